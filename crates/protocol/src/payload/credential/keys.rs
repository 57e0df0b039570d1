//! The keys an issuer of credentials publishes, and the document that says where (AAUTH-04, AAUTH-05).
//!
//! A set keeps the entries it cannot use: that there is another key decides whether one that is not named is the only
//! one. What it says is as good as the connection it came over.

use super::{DOCUMENT, SPECIFIED, is_issuer};
use crate::json::{self, Limits};
use crate::key::{Jwk, VerifyingKey};
use serde::Deserialize;
use url::Url;

/// Most keys of a set.
const MAX_KEYS: usize = 64;
/// What of a document is read.
const LIMITS: Limits = Limits { bytes: 64 * 1024, depth: 32 };

/// The document or key set is not one an issuer publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a document or key set of this issuer's")]
pub struct BadIssuer;

/// An issuer's published keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IssuerKeys {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    kid: Option<String>,
    alg: Option<String>,
    /// None where it is another kind of key, or not for signing.
    key: Option<VerifyingKey>,
}

#[derive(Deserialize)]
struct Document {
    issuer: Option<String>,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<serde_json::Value>,
}

/// Where an issuer's document is.
pub(super) fn address_of(issuer: &str) -> String {
    format!("{issuer}/.well-known/{DOCUMENT}")
}

/// Where the keys of `issuer` are, by the document it publishes; at its own origin, so that an issuer that is believed
/// cannot send us elsewhere.
///
/// # Errors
/// When the document is another issuer's, or its keys are not at its origin.
pub fn keys_address(issuer: &str, document: &[u8]) -> Result<String, BadIssuer> {
    let document: Document = json::strict(document, LIMITS).map_err(|_| BadIssuer)?;
    let url = Url::parse(&document.jwks_uri).map_err(|_| BadIssuer)?;
    let bare = url.username().is_empty() && url.password().is_none();
    let own = is_issuer(issuer) && url.origin().ascii_serialization() == issuer && bare;
    let same = document.issuer.is_none_or(|named| named == issuer);
    // As it was read: whoever asks there has no second reading of the text.
    if own && same { Ok(url.into()) } else { Err(BadIssuer) }
}

/// Where an identity provider publishes what it is: as an authorization server has it (RFC 8414), and as OpenID has it.
/// None for what is no provider: an https URL in its plain form, with nothing but a path after its host.
pub fn provider_addresses(provider: &str) -> Option<[String; 2]> {
    let url = Url::parse(provider).ok()?;
    let origin = url.origin().ascii_serialization();
    let path = url.path().trim_end_matches('/');
    let plain = url.scheme() == "https" && url.username().is_empty() && format!("{origin}{path}") == provider;
    plain.then(|| {
        let first = format!("{origin}/.well-known/oauth-authorization-server{path}");
        [first, format!("{provider}/.well-known/openid-configuration")]
    })
}

/// Where the keys of a provider are, by the document it publishes; at its own origin.
///
/// # Errors
/// When the document is another provider's, or its keys are not at its origin.
pub fn provider_keys_address(provider: &str, document: &[u8]) -> Result<String, BadIssuer> {
    let document: Document = json::strict(document, LIMITS).map_err(|_| BadIssuer)?;
    let origin =
        |text: &str| Url::parse(text).ok().filter(|url| url.username().is_empty()).map(|url| url.origin());
    let own = origin(&document.jwks_uri).is_some_and(|keys| Some(keys) == origin(provider));
    let same = document.issuer.as_deref() == Some(provider);
    if own && same { Ok(document.jwks_uri) } else { Err(BadIssuer) }
}

impl IssuerKeys {
    /// Where the document of an issuer is.
    pub fn document_of(issuer: &str) -> String {
        address_of(issuer)
    }

    /// Reads a key set.
    ///
    /// # Errors
    /// When it is none, or holds more keys than are looked at.
    pub fn read(set: &[u8]) -> Result<Self, BadIssuer> {
        let set: Set = json::strict(set, LIMITS).map_err(|_| BadIssuer)?;
        if set.keys.len() > MAX_KEYS {
            return Err(BadIssuer);
        }
        Ok(Self { entries: set.keys.iter().map(entry).collect() })
    }

    /// The one key that may have signed under this `kid` and algorithm.
    pub(in crate::payload) fn pick(&self, kid: Option<&str>, alg: &str) -> Option<&VerifyingKey> {
        let mut fitting = self.entries.iter().filter(|entry| kid.is_none() || entry.kid.as_deref() == kid);
        let (Some(entry), None) = (fitting.next(), fitting.next()) else { return None };
        let named = match entry.alg.as_deref() {
            Some(named) => named == alg,
            None => alg != SPECIFIED,
        };
        entry.key.as_ref().filter(|_| named)
    }

    /// Whether a key of this name is among them; without a name, whether there is any.
    pub fn knows(&self, kid: Option<&str>) -> bool {
        self.entries.iter().any(|entry| kid.is_none() || entry.kid.as_deref() == kid)
    }
}

fn entry(value: &serde_json::Value) -> Entry {
    let text = |name| value.get(name).and_then(serde_json::Value::as_str).map(str::to_owned);
    let signs = text("use").is_none_or(|purpose| purpose == "sig");
    // serde would take an array for a key, member by member.
    let jwk = Some(value).filter(|value| value.is_object() && signs);
    let jwk = jwk.and_then(|value| serde_json::from_value::<Jwk>(value.clone()).ok());
    Entry { kid: text("kid"), alg: text("alg"), key: jwk.and_then(|jwk| jwk.key().ok()) }
}
