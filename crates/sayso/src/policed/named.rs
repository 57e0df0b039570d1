//! `[pdp]` and `[oauth]` as they are set: read once at the start and refused there, whether or not a resource asks anybody
//! yet. Credentials are named in settings and never written there.

use super::EMBEDDED;
use crate::settings::Settings;
use anyhow::{Context as _, bail};
use sayso_enforce::oauth::{BadJwt, IssuerSettings, JwtSettings, JwtTokens};
use sayso_fetch::{BadTls, Client, Fetch, Reach};
use sayso_pdp::client::{BadRemote, Identity, Remote, RemoteSettings};
use std::sync::Arc;
use std::time::Duration;

/// Whom to ask where nobody is named, so that how is checked all the same.
const NOBODY: &str = "https://nobody.invalid";

/// Who may be asked about policies, and whose tokens are taken.
pub(super) struct Named {
    /// The policy engine where a resource names none.
    pub(super) url: Option<String>,
    /// The folder of the embedded one.
    pub(super) policies: Option<String>,
    /// How a policy engine elsewhere is asked.
    remote: RemoteSettings,
    issuers: Vec<IssuerSettings>,
    /// What tokens are for, where it is not the resource's own URL.
    pub(super) audiences: Vec<String>,
    tokens: JwtSettings,
    fetch: Arc<dyn Fetch>,
}

impl Named {
    /// Reads both tables.
    ///
    /// # Errors
    /// When a value in them cannot be used, whoever would use it.
    pub(super) fn read(settings: &Settings, development: bool) -> anyhow::Result<Self> {
        let text = |name| settings.text(name).map(str::to_owned);
        let tokens = JwtSettings {
            algorithms: settings.list("oauth.algorithms"),
            require_at_jwt: settings.parse("oauth.require_at_jwt")?,
            development,
            ..JwtSettings::default()
        };
        let named = Self {
            url: text("pdp.url"),
            policies: text("pdp.policies"),
            remote: remote(settings, development)?,
            issuers: issuers(settings)?,
            audiences: settings.list("oauth.audience"),
            tokens,
            fetch: Arc::new(Client::new(Reach::Configured)),
        };
        named.check()?;
        Ok(named)
    }

    fn check(&self) -> anyhow::Result<()> {
        if self.url.as_deref() == Some(EMBEDDED) {
            bail!("`pdp.url` is an address: for the embedded policy engine give `policies`, a folder");
        }
        let remote = &self.remote;
        let credentials = remote.bearer.is_some() || remote.roots.is_some() || remote.identity.is_some();
        if credentials || self.url.is_some() {
            let named = self.url.as_deref().unwrap_or(NOBODY);
            self.asked(named).map_err(|fault| anyhow::Error::new(fault).context(setting_of(fault)))?;
        }
        if let Some(folder) = &self.policies {
            check_policies(folder)?;
        }
        let issuers = match self.issuers.as_slice() {
            [] => vec![IssuerSettings { issuer: NOBODY.to_owned(), jwks_uri: None }],
            issuers => issuers.to_vec(),
        };
        self.validator(issuers, vec![NOBODY.to_owned()]).map(drop)
    }

    /// The policy engine of this identifier.
    pub(super) fn remote(&self, url: &str) -> anyhow::Result<Remote> {
        self.asked(url).with_context(|| format!("`pdp` {url}"))
    }

    fn asked(&self, url: &str) -> Result<Remote, BadRemote> {
        Remote::new(&RemoteSettings { pdp: Some(url.to_owned()), ..self.remote.clone() })
    }

    /// Whether an issuer is asked without TLS.
    pub(super) fn is_plain(&self) -> bool {
        self.issuers.iter().any(|issuer| issuer.issuer.starts_with("http://"))
    }

    /// The issuers, as tokens name them.
    pub(super) fn issuers(&self) -> Vec<String> {
        self.issuers.iter().map(|issuer| issuer.issuer.clone()).collect()
    }

    /// Whoever validates tokens for these audiences.
    pub(super) fn tokens(&self, audiences: Vec<String>) -> anyhow::Result<JwtTokens> {
        self.validator(self.issuers.clone(), audiences)
    }

    fn validator(&self, issuers: Vec<IssuerSettings>, audiences: Vec<String>) -> anyhow::Result<JwtTokens> {
        let settings = JwtSettings { issuers, audiences, ..self.tokens.clone() };
        JwtTokens::new(&settings, Arc::clone(&self.fetch)).map_err(|fault| {
            let key = key_of(&fault);
            anyhow::Error::new(fault).context(key)
        })
    }
}

/// The setting that a fault is about.
fn key_of(fault: &BadJwt) -> &'static str {
    match fault {
        BadJwt::NoIssuer | BadJwt::Twice(_) | BadJwt::Issuer(_) => "`oauth.issuers`",
        BadJwt::Jwks(_) => "`oauth.jwks_uri`",
        BadJwt::NoAudience => "`oauth.audience`",
        BadJwt::Algorithm(_) => "`oauth.algorithms`",
        BadJwt::Skew | BadJwt::Longest => "[oauth]",
    }
}

/// The setting that a fault of a policy engine's is about, where that is not its address.
fn setting_of(fault: BadRemote) -> &'static str {
    match fault {
        BadRemote::Tls(BadTls::NoRoot | BadTls::Root) => "`pdp.ca`",
        BadRemote::Tls(BadTls::NoCertificate) => "`pdp.certificate`",
        BadRemote::Tls(BadTls::NoKey | BadTls::Mismatch) => "`pdp.key`",
        BadRemote::Bearer => "our token for the policy engine",
        _ => "`pdp.url`",
    }
}

/// Whether the embedded policy engine could decide by this folder.
#[cfg(feature = "cedar")]
fn check_policies(folder: &str) -> anyhow::Result<()> {
    sayso_pdp::Embedded::check(std::path::Path::new(folder)).context("`pdp.policies`")
}

/// There is none in this build.
#[cfg(not(feature = "cedar"))]
fn check_policies(_folder: &str) -> anyhow::Result<()> {
    bail!("`pdp.policies`: this build has no policy engine of its own; name another as `url` of [pdp]")
}

fn remote(settings: &Settings, development: bool) -> anyhow::Result<RemoteSettings> {
    let file = |name: &str| {
        let read = |path| {
            std::fs::read(path)
                .with_context(|| format!("`{name}`: cannot read {path}; name a PEM file that is there"))
        };
        settings.text(name).map(read).transpose()
    };
    let identity = match (file("pdp.certificate")?, file("pdp.key")?) {
        (Some(chain), Some(key)) => Some(Identity { chain, key }),
        (None, None) => None,
        _ => bail!("`pdp.certificate` and `pdp.key` go together: set both, or neither"),
    };
    let milliseconds: u64 = settings.whole("pdp.timeout", 1..=30_000)?;
    Ok(RemoteSettings {
        bearer: bearer(settings)?,
        roots: file("pdp.ca")?,
        identity,
        time_limit: Duration::from_millis(milliseconds),
        development,
        ..RemoteSettings::default()
    })
}

/// What our own credential for a policy engine is, by the variable or file that holds it.
pub(super) fn bearer(settings: &Settings) -> anyhow::Result<Option<String>> {
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

/// The issuers, each with where its keys are if that is said: one URL for the one issuer, or an issuer and its URL.
fn issuers(settings: &Settings) -> anyhow::Result<Vec<IssuerSettings>> {
    let named = settings.list("oauth.issuers");
    let mut issuers: Vec<_> =
        named.into_iter().map(|issuer| IssuerSettings { issuer, jwks_uri: None }).collect();
    for entry in settings.list("oauth.jwks_uri") {
        let mut words = entry.split_whitespace();
        let (whose, uri) = match (words.next(), words.next(), words.next(), issuers.as_mut_slice()) {
            (Some(uri), None, _, [only]) => (only, uri),
            (Some(_), None, ..) => bail!(
                "`oauth.jwks_uri` {entry}: with {} issuers say whose keys are there, as \"ISSUER URL\"",
                issuers.len()
            ),
            (Some(name), Some(uri), None, issuers) => {
                let known = issuers.iter_mut().find(|known| known.issuer == name);
                let known = known.with_context(|| {
                    format!(
                        "`oauth.jwks_uri` names {name}, which is not among `oauth.issuers`: list it there"
                    )
                })?;
                (known, uri)
            }
            _ => bail!("`oauth.jwks_uri` {entry}: write a URL, or \"ISSUER URL\""),
        };
        if whose.jwks_uri.replace(uri.to_owned()).is_some() {
            bail!("`oauth.jwks_uri` says twice where the keys of {} are; keep one of them", whose.issuer);
        }
    }
    Ok(issuers)
}
