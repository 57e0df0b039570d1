//! The settings of which access tokens are taken, checked once. Every fault says what to write instead.

use std::sync::Arc;

use sayso_fetch::Fetch;
use url::{Host, Url};

use super::claims::Rules;
use super::issuer::Issuer;
use super::keys::Algorithm;

/// Which access tokens are taken.
#[derive(Debug, Clone)]
pub struct JwtSettings {
    /// Who issues them.
    pub issuers: Vec<IssuerSettings>,
    /// What `aud` must name, byte for byte: the resource's own identifier. Of several, one is enough.
    pub audiences: Vec<String>,
    /// Names of the signature algorithms that are taken; empty for all that are known. `none` and those with a shared secret
    /// are not known.
    pub algorithms: Vec<String>,
    /// Whether `typ` must say `at+jwt` (RFC 9068). Else `JWT`, and saying nothing, are taken too.
    pub require_at_jwt: bool,
    /// Seconds that clocks may differ, at most 60.
    pub skew: i64,
    /// Seconds that a token may still live.
    pub longest: i64,
    /// Development: plain http, on loopback alone (D-42).
    pub development: bool,
}

impl Default for JwtSettings {
    fn default() -> Self {
        JwtSettings {
            issuers: Vec::new(),
            audiences: Vec::new(),
            algorithms: Vec::new(),
            require_at_jwt: false,
            skew: 60,
            longest: 24 * 3600,
            development: false,
        }
    }
}

/// An issuer of access tokens.
#[derive(Debug, Clone)]
pub struct IssuerSettings {
    /// Its identifier, as `iss` has it, byte for byte.
    pub issuer: String,
    /// Where its keys are, instead of its metadata's word for it.
    pub jwks_uri: Option<String>,
}

/// Why settings take no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadJwt {
    /// No issuer.
    #[error("no issuer of access tokens is named: list at least one in `issuers`")]
    NoIssuer,
    /// One issuer twice.
    #[error("the issuer {0} is listed twice; keep one of them")]
    Twice(String),
    /// An issuer that is no https URL.
    #[error(
        "the issuer {0} is not an https URL without query or fragment; write it exactly as its metadata and its tokens do"
    )]
    Issuer(String),
    /// A `jwks_uri` that is no https URL.
    #[error("the jwks_uri {0} is not an https URL; write it out in full")]
    Jwks(String),
    /// No audience.
    #[error("no audience is named: list the resource's own identifier in `audiences`")]
    NoAudience,
    /// An algorithm that is not known.
    #[error("the algorithm {0} is not taken; known are {names}", names = Algorithm::NAMES.join(", "))]
    Algorithm(String),
    /// Too much difference between clocks.
    #[error("`skew` must be between 0 and 60 seconds")]
    Skew,
    /// No lifetime.
    #[error("`longest` must be more than zero seconds")]
    Longest,
}

/// Seconds that clocks may differ, at most.
const MAX_SKEW: i64 = 60;

impl JwtSettings {
    pub(super) fn rules(&self) -> Result<Rules, BadJwt> {
        if self.audiences.is_empty() || self.audiences.iter().any(String::is_empty) {
            return Err(BadJwt::NoAudience);
        }
        if !(0..=MAX_SKEW).contains(&self.skew) {
            return Err(BadJwt::Skew);
        }
        if self.longest <= 0 {
            return Err(BadJwt::Longest);
        }
        let named = |name: &String| Algorithm::named(name).ok_or_else(|| BadJwt::Algorithm(name.clone()));
        let algorithms = match self.algorithms.as_slice() {
            [] => Algorithm::ALL.to_vec(),
            names => names.iter().map(named).collect::<Result<_, _>>()?,
        };
        Ok(Rules {
            audiences: self.audiences.clone(),
            algorithms,
            require_at_jwt: self.require_at_jwt,
            skew: self.skew,
            longest: self.longest,
        })
    }

    pub(super) fn issuers(&self, fetch: &Arc<dyn Fetch>) -> Result<Vec<Arc<Issuer>>, BadJwt> {
        let mut issuers: Vec<Arc<Issuer>> = Vec::new();
        for settings in &self.issuers {
            let name = &settings.issuer;
            let url = url(name, self.development).filter(|url| url.query().is_none());
            let url = url.ok_or_else(|| BadJwt::Issuer(name.clone()))?;
            if issuers.iter().any(|before| before.name() == name) {
                return Err(BadJwt::Twice(name.clone()));
            }
            let keys = settings.jwks_uri.as_ref();
            if let Some(uri) = keys.filter(|uri| self::url(uri, self.development).is_none()) {
                return Err(BadJwt::Jwks(uri.clone()));
            }
            let issuer = Issuer::new(name, &url, keys.cloned(), self.development, fetch.clone());
            issuers.push(Arc::new(issuer));
        }
        if issuers.is_empty() { Err(BadJwt::NoIssuer) } else { Ok(issuers) }
    }
}

/// A URL that may be fetched. `http` is for this machine, in development.
pub(super) fn url(text: &str, development: bool) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let here = match url.host()? {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    };
    let secure = url.scheme() == "https" || (url.scheme() == "http" && development && here);
    let bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    (secure && bare).then_some(url)
}
