//! Policies as configuration names them: who is asked about a resource, which policy engine, and whose tokens are taken.
//!
//! One policy engine for all resources that name the same, asked at the start whether it is the one that was meant. What
//! names a policy and cannot have one does not start. What is set about engines and issuers is read in `named`.

mod binding;
mod named;
mod wishes;

use crate::clock;
use crate::settings::Settings;
use anyhow::{Context as _, bail};
pub(crate) use binding::Binding;
use named::Named;
use sayso_coaz::{DecisionPoint, Trust, lint};
use sayso_enforce::oauth::JwtTokens;
use sayso_enforce::policy::{Mappings, Policy, PolicySettings};
use sayso_enforce::{Enforcement, Policed};
use sayso_pdp::client::Remote;
use sayso_protocol::Json;
use sayso_protocol::json::Limits;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
pub(crate) use wishes::{Told, Trusted, Wishes};

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

/// Every policy of one process.
pub(crate) struct Policies {
    named: Named,
    /// Whether agents are served over plain http, which is development (D-42).
    development: bool,
    points: BTreeMap<String, Arc<dyn DecisionPoint>>,
    remotes: Vec<(String, Arc<Remote>)>,
    tokens: Vec<Arc<JwtTokens>>,
}

impl Policies {
    /// For resources under this public URL, none of which need ask anybody.
    ///
    /// # Errors
    /// When `[pdp]` or `[oauth]` has a value that cannot be used.
    pub(crate) fn read(settings: &Settings, public_url: &str) -> anyhow::Result<Self> {
        let development = public_url.starts_with("http://");
        let named = Named::read(settings, development)?;
        Ok(Self { named, development, points: BTreeMap::new(), remotes: vec![], tokens: vec![] })
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
                let (audiences, issuers) = (self.audiences(url, wishes), self.named.issuers());
                let policy = Arc::new(self.policy(audiences.first().cloned(), &issuers, wishes)?);
                warn_of_unmapped(&policy, url);
                wishes.binding.warn(url);
                Enforcement::Coaz(Policed { policy, tokens: self.tokens(audiences)? })
            }
        };
        Ok(enforcement)
    }

    fn audiences(&self, url: &str, wishes: &Wishes) -> Vec<String> {
        let named: Vec<String> = match &wishes.audience {
            Some(audience) => vec![audience.clone()],
            None => self.named.audiences.clone(),
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
            denials: wishes.denials()?,
        };
        Policy::new(settings).map_err(|fault| {
            let known = sayso_coaz::EXTRA_DEFAULTS.join(", ");
            anyhow::anyhow!("`extra_defaults` may name {known}, and nothing else: {fault}")
        })
    }

    /// The policy engine of this name, the one of `[pdp]` where there is none.
    fn point(&mut self, named: Option<&str>) -> anyhow::Result<Arc<dyn DecisionPoint>> {
        let (url, policies) = (self.named.url.as_deref(), self.named.policies.as_deref());
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
            if name.starts_with("http://") && self.development {
                tracing::warn!(
                    "the policy engine at {name} is asked without TLS: whoever is between can say yes in its place"
                );
            }
            let remote = Arc::new(self.named.remote(&name)?);
            self.remotes.push((name.clone(), Arc::clone(&remote)));
            remote
        };
        self.points.insert(name, Arc::clone(&point));
        Ok(point)
    }

    fn tokens(&mut self, audiences: Vec<String>) -> anyhow::Result<Arc<JwtTokens>> {
        if self.development && self.named.is_plain() {
            tracing::warn!(
                "an issuer of access tokens is asked for its keys without TLS: whoever is between can be anybody"
            );
        }
        let tokens = Arc::new(self.named.tokens(audiences)?);
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

// The policies they decide by are Cedar's.
#[cfg(test)]
#[cfg(feature = "cedar")]
mod tests;
