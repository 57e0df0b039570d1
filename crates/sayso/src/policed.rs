//! Policies as configuration names them: who is asked about a resource, which policy engine, and whose tokens are taken.
//!
//! One policy engine for all resources that name the same, asked at the start whether it is the one that was meant. What
//! names a policy and cannot have one does not start. Files and variables are read here; credentials are named in settings
//! and never written there.

mod binding;

use crate::clock;
use crate::settings::Settings;
use anyhow::{Context as _, bail};
use sayso_coaz::{DecisionPoint, Trust, lint};
use sayso_enforce::oauth::{IssuerSettings, JwtSettings, JwtTokens};
use sayso_enforce::policy::{Mappings, Policy, PolicySettings};
use sayso_enforce::{Enforcement, Policed};
use sayso_fetch::{Client, Reach};
use sayso_pdp::client::{Identity, Remote, RemoteSettings};
use sayso_protocol::Json;
use sayso_protocol::json::Limits;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use binding::Binding;

/// The policy engine in this process.
const EMBEDDED: &str = "embedded";
/// Mappings of a server whose tools declare none.
const NONE: &str = "none";

/// Who is asked before a message is forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Owner,
    Policy,
    Both,
    Nobody,
}

impl Asked {
    /// By their names.
    pub(crate) fn these(names: &[&str]) -> Option<Self> {
        match names {
            ["uma"] => Some(Asked::Owner),
            ["coaz"] => Some(Asked::Policy),
            ["uma", "coaz"] | ["coaz", "uma"] => Some(Asked::Both),
            [] => Some(Asked::Nobody),
            _ => None,
        }
    }

    pub(crate) fn asks_owner(self) -> bool {
        matches!(self, Asked::Owner | Asked::Both)
    }

    pub(crate) fn asks_policy(self) -> bool {
        matches!(self, Asked::Policy | Asked::Both)
    }
}

/// How far a server's own words about the subject are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Trusted {
    #[default]
    Warn,
    Strict,
}

impl FromStr for Trusted {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text {
            "warn" => Ok(Self::Warn),
            "strict" => Ok(Self::Strict),
            _ => bail!("it must be warn or strict"),
        }
    }
}

/// What the policy of one resource is to be like.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    pub(crate) pdp: Option<String>,
    pub(crate) extra_defaults: Vec<String>,
    pub(crate) filter_lists: bool,
    pub(crate) subject_claim: Option<String>,
    pub(crate) trust: Trusted,
    pub(crate) binding: Binding,
    pub(crate) audit_arguments: bool,
    pub(crate) audience: Option<String>,
    pub(crate) mappings: Option<String>,
}

impl Wishes {
    /// Those of an `up`.
    pub(crate) fn of(settings: &Settings) -> anyhow::Result<Self> {
        Ok(Self {
            pdp: settings.text("gateway.pdp").map(str::to_owned),
            extra_defaults: settings.list("gateway.extra_defaults"),
            filter_lists: settings.parse("gateway.filter_lists")?,
            subject_claim: settings.text("gateway.subject_claim").map(str::to_owned),
            trust: settings.parse("gateway.trust")?,
            binding: settings.parse("gateway.binding")?,
            audit_arguments: settings.parse("gateway.audit_arguments")?,
            audience: None,
            mappings: None,
        })
    }
}

/// Every policy of one process.
pub(crate) struct Policies<'s> {
    settings: &'s Settings,
    /// Whether agents are served over plain http, which is development (D-42).
    development: bool,
    points: BTreeMap<String, Arc<dyn DecisionPoint>>,
    remotes: Vec<(String, Arc<Remote>)>,
    tokens: Vec<Arc<JwtTokens>>,
}

impl<'s> Policies<'s> {
    /// For resources under this public URL.
    pub(crate) fn of(settings: &'s Settings, public_url: &str) -> Self {
        let development = public_url.starts_with("http://");
        Self { settings, development, points: BTreeMap::new(), remotes: vec![], tokens: vec![] }
    }

    /// How the resource at this URL is enforced.
    ///
    /// # Errors
    /// When it is to ask whom nobody named.
    pub(crate) fn enforcement(
        &mut self,
        asked: Asked,
        url: &str,
        wishes: &Wishes,
    ) -> anyhow::Result<Enforcement> {
        let enforcement = match asked {
            Asked::Owner => Enforcement::Uma,
            Asked::Nobody => Enforcement::Nothing,
            Asked::Both => {
                if wishes.filter_lists || wishes.subject_claim.is_some() {
                    bail!(
                        "{url}: `filter_lists` and `subject_claim` are about tokens, and the owner's lists are open"
                    );
                }
                Enforcement::UmaAndCoaz(Arc::new(self.policy(None, &[], wishes)?))
            }
            Asked::Policy => {
                let (audiences, issuers) = (self.audiences(url, wishes), self.settings.list("oauth.issuers"));
                let policy = Arc::new(self.policy(audiences.first().cloned(), &issuers, wishes)?);
                warn_of_unmapped(&policy, url);
                wishes.binding.warn(url);
                Enforcement::Coaz(Policed { policy, tokens: self.tokens(audiences, issuers)? })
            }
        };
        Ok(enforcement)
    }

    fn audiences(&self, url: &str, wishes: &Wishes) -> Vec<String> {
        let named: Vec<String> = match &wishes.audience {
            Some(audience) => vec![audience.clone()],
            None => self.settings.list("oauth.audience"),
        };
        if named.is_empty() { vec![url.to_owned()] } else { named }
    }

    fn policy(
        &mut self,
        server: Option<String>,
        issuers: &[String],
        wishes: &Wishes,
    ) -> anyhow::Result<Policy> {
        let claim = |issuer: &String| Some((issuer.clone(), wishes.subject_claim.clone()?));
        let mapping = sayso_coaz::Settings {
            server,
            subject_claims: issuers.iter().filter_map(claim).collect(),
            trust: match wishes.trust {
                Trusted::Warn => Trust::Warn,
                Trusted::Strict => Trust::Strict,
            },
            revision: wishes.binding.revision(),
            extra_defaults: wishes.extra_defaults.iter().cloned().collect(),
        };
        let settings = PolicySettings {
            mapping,
            mappings: mappings(wishes.mappings.as_deref())?,
            point: self.point(wishes.pdp.as_deref())?,
            filter_lists: wishes.filter_lists,
            audit_arguments: wishes.audit_arguments,
        };
        Policy::new(settings).map_err(|fault| {
            let known = sayso_coaz::EXTRA_DEFAULTS.join(", ");
            anyhow::anyhow!("`extra_defaults` may name {known}, and nothing else: {fault}")
        })
    }

    /// The policy engine of this name, the one of `[pdp]` where there is none.
    fn point(&mut self, named: Option<&str>) -> anyhow::Result<Arc<dyn DecisionPoint>> {
        let (url, policies) = (self.settings.text("pdp.url"), self.settings.text("pdp.policies"));
        let name = match (named, url, policies) {
            (Some(name), ..) | (None, Some(name), None) => name.to_owned(),
            (None, None, Some(_)) => EMBEDDED.to_owned(),
            (None, Some(_), Some(_)) => {
                bail!(
                    "[pdp] has a `url` and `policies`: say which of them with `pdp` where \"coaz\" is enforced"
                )
            }
            (None, None, None) => bail!(
                "\"coaz\" asks a policy engine: name one as `url` of [pdp], or give the embedded one a folder of `policies`"
            ),
        };
        if let Some(point) = self.points.get(&name) {
            return Ok(Arc::clone(point));
        }
        let point: Arc<dyn DecisionPoint> = if name == EMBEDDED {
            embedded(policies.context("the embedded policy engine needs `policies` in [pdp], a folder")?)?
        } else {
            let remote =
                Arc::new(Remote::new(&self.remote(&name)?).with_context(|| format!("`pdp` {name}"))?);
            self.remotes.push((name.clone(), Arc::clone(&remote)));
            remote
        };
        self.points.insert(name, Arc::clone(&point));
        Ok(point)
    }

    fn remote(&self, url: &str) -> anyhow::Result<RemoteSettings> {
        let settings = self.settings;
        if url.starts_with("http://") && self.development {
            tracing::warn!(
                "the policy engine at {url} is asked without TLS: whoever is between can say yes in its place"
            );
        }
        let file = |name: &str| {
            let read = |path| std::fs::read(path).with_context(|| format!("`{name}`: cannot read {path}"));
            settings.text(name).map(read).transpose()
        };
        let identity = match (file("pdp.certificate")?, file("pdp.key")?) {
            (Some(chain), Some(key)) => Some(Identity { chain, key }),
            (None, None) => None,
            _ => bail!("`pdp.certificate` and `pdp.key` go together"),
        };
        let milliseconds: u64 = settings.whole("pdp.timeout", 1..=30_000)?;
        Ok(RemoteSettings {
            pdp: Some(url.to_owned()),
            bearer: bearer(settings)?,
            roots: file("pdp.ca")?,
            identity,
            time_limit: Duration::from_millis(milliseconds),
            development: self.development,
            ..RemoteSettings::default()
        })
    }

    fn tokens(&mut self, audiences: Vec<String>, issuers: Vec<String>) -> anyhow::Result<Arc<JwtTokens>> {
        let settings = self.settings;
        let jwks_uri = settings.text("oauth.jwks_uri").map(str::to_owned);
        if jwks_uri.is_some() && issuers.len() != 1 {
            bail!("`oauth.jwks_uri` is for one issuer; with several, each says itself where its keys are");
        }
        if self.development && issuers.iter().any(|issuer| issuer.starts_with("http://")) {
            tracing::warn!(
                "an issuer of access tokens is asked for its keys without TLS: whoever is between can be anybody"
            );
        }
        let issuer = |issuer: String| IssuerSettings { issuer, jwks_uri: jwks_uri.clone() };
        let jwt = JwtSettings {
            issuers: issuers.into_iter().map(issuer).collect(),
            audiences,
            algorithms: settings.list("oauth.algorithms"),
            require_at_jwt: settings.parse("oauth.require_at_jwt")?,
            development: self.development,
            ..JwtSettings::default()
        };
        let tokens = JwtTokens::new(&jwt, Arc::new(Client::new(Reach::Configured))).context("[oauth]")?;
        let tokens = Arc::new(tokens);
        self.tokens.push(Arc::clone(&tokens));
        Ok(tokens)
    }

    /// Asks whoever was named whether they are who was meant. One that cannot be reached now may be later; one that is
    /// another is refused.
    ///
    /// # Errors
    /// When a policy engine is not the one that was named.
    pub(crate) async fn prepare(&self) -> anyhow::Result<()> {
        for (url, remote) in &self.remotes {
            match remote.prepare().await {
                Ok(()) => {}
                Err(fault) if fault.passes() => {
                    tracing::warn!(
                        "the policy engine at {url} is not known yet: {fault}; until it is, calls are refused"
                    );
                }
                Err(fault) => bail!("the policy engine at {url} cannot be asked: {fault}"),
            }
        }
        for tokens in &self.tokens {
            if let Err((issuer, fault)) = tokens.prepare(clock::now()).await {
                tracing::warn!(
                    "the keys of {issuer} are not known yet: {fault}; until they are, its tokens are refused"
                );
            }
        }
        Ok(())
    }
}

/// The policy engine in this process.
#[cfg(feature = "cedar")]
fn embedded(folder: &str) -> anyhow::Result<Arc<dyn DecisionPoint>> {
    use sayso_pdp::{Embedded, EmbeddedSettings};
    Ok(Arc::new(Embedded::open(EmbeddedSettings::new(folder))?))
}

/// There is none in this build.
#[cfg(not(feature = "cedar"))]
fn embedded(_folder: &str) -> anyhow::Result<Arc<dyn DecisionPoint>> {
    bail!("this build has no policy engine of its own: name another as `url` of [pdp]")
}

/// What our own credential for a policy engine is, by the variable or file that holds it.
fn bearer(settings: &Settings) -> anyhow::Result<Option<String>> {
    match (settings.text("pdp.token_env"), settings.text("pdp.token_file")) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => bail!("[pdp] has a `token_env` and a `token_file`; leave one of them out"),
        (Some(name), None) => {
            let token = std::env::var(name).ok().filter(|token| !token.is_empty());
            token.map(Some).with_context(|| format!("`pdp.token_env` names {name}, which is not set"))
        }
        (None, Some(path)) => {
            let text = std::fs::read_to_string(path);
            let text = text.with_context(|| format!("`pdp.token_file`: cannot read {path}"))?;
            Ok(Some(text.trim_end().to_owned()))
        }
    }
}

/// The mappings a server declares: asked for, said to be none, or those of a file.
fn mappings(named: Option<&str>) -> anyhow::Result<Mappings> {
    let path = match named {
        None => return Ok(Mappings::unknown()),
        Some(NONE) => return Ok(Mappings::undeclared()),
        Some(path) => Path::new(path),
    };
    let context = || format!("`mappings` {}", path.display());
    let text = std::fs::read(path).with_context(context)?;
    let limits = Limits { bytes: 8 << 20, ..Limits::default() };
    let document = Json::parse(&text, limits).with_context(context)?;
    let pages = document.as_array().map_or_else(|| vec![&document], |pages| pages.iter().collect());
    let pages: Vec<Json> = pages
        .into_iter()
        .map(|page| lint::listing(page).cloned())
        .collect::<Result<_, _>>()
        .with_context(context)?;
    Mappings::fixed(&pages).with_context(context)
}

/// Said at every start: a client of the newest revision begins with a method that COAZ has no default for (D-6).
fn warn_of_unmapped(policy: &Policy, url: &str) {
    let unmapped: Vec<&str> = policy.unmapped().collect();
    if unmapped.contains(&"server/discover") {
        tracing::warn!(
            "clients of MCP 2026-07-28 begin with server/discover, which COAZ does not map: add it to `extra_defaults` of {url} \
             or they are denied"
        );
    }
    let rest: Vec<&str> = unmapped.into_iter().filter(|method| *method != "server/discover").collect();
    if !rest.is_empty() {
        tracing::info!("denied at {url}, for want of a mapping: {}", rest.join(", "));
    }
}

#[cfg(test)]
mod tests;
