//! An agent's credential (`aa-agent+jwt`): an issuer's word, good for a while, that a name holds a key (AAUTH-02..12).
//!
//! `Shown` is what is merely said, and names who would have to vouch for it; `Credential` is what the issuer's published
//! key signed. Which issuers are believed is the authority's business, and so is asking them.

mod keys;

pub use keys::{IssuerKeys, keys_address, provider_addresses, provider_keys_address};

use super::audience::Audience;
use crate::id::{Handle, MAX_BYTES, Timestamp};
use crate::jws::{self, BadJws};
use crate::key::{Jwk, VerifyingKey};
use crate::sig::SKEW_SECONDS;
use serde::Deserialize;
use url::Url;

/// The `typ` of a credential.
pub const TYP: &str = "aa-agent+jwt";
/// The document an issuer publishes about itself, under `/.well-known/`.
pub const DOCUMENT: &str = "aauth-agent.json";
/// Longest credential read, in bytes.
pub const MAX_CREDENTIAL: usize = 16 * 1024;
/// The algorithm a key is used with when nothing names one.
const USUAL: &str = "EdDSA";
/// The fully specified name of the same algorithm (RFC 9864), which asks for more members.
const SPECIFIED: &str = "Ed25519";
/// Longest local part of an agent identifier.
const MAX_LOCAL: usize = 255;

/// Why a credential is not acceptable. For the log of whoever runs the authority: a stranger hears one sentence for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadCredential {
    /// Not a compact JWS under Ed25519, or longer than is read.
    #[error(transparent)]
    Jws(#[from] BadJws),
    /// Another `typ`.
    #[error("not an {TYP}")]
    Type,
    /// A claim is missing or has the wrong shape.
    #[error("a claim is missing or has the wrong shape")]
    Claims,
    /// The issuer is no https origin, or keeps its document elsewhere.
    #[error("the issuer is not an https origin with an {DOCUMENT}")]
    Issuer,
    /// The subject is not a name under this issuer, or the parent is not one beside it.
    #[error("the subject or its parent is not a name of this issuer's")]
    Name,
    /// The confirmed key is no Ed25519 key, or an algorithm does not fit.
    #[error("the confirmed key or an algorithm is not acceptable")]
    Key,
    /// Its time has run out, or has not come.
    #[error("it is not valid now")]
    Time,
    /// It is for somebody else.
    #[error("it is addressed to somebody else")]
    Audience,
    /// The issuer publishes no such key, or more than one.
    #[error("the issuer publishes no one key that could have signed it")]
    Unpublished,
    /// What it is used for was signed with another algorithm name than its key has.
    #[error("the agreement's algorithm is not the confirmed key's")]
    Algorithm,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    exp: Timestamp,
    cnf: Confirmed,
    iat: Option<Timestamp>,
    nbf: Option<Timestamp>,
    jti: Option<String>,
    dwk: Option<String>,
    aud: Option<Audience>,
    parent_agent: Option<String>,
}

#[derive(Deserialize)]
struct Confirmed {
    jwk: Named,
}

/// A key with what it says of its algorithm. A private half in it is no confirmation but an accident.
#[derive(Deserialize)]
struct Named {
    #[serde(flatten)]
    jwk: Jwk,
    alg: Option<String>,
    d: Option<serde_json::Value>,
}

/// A credential as it was shown: well formed, and nobody has vouched for it.
pub struct Shown {
    jws: jws::Unverified,
    claims: Claims,
    handle: Handle,
    parent: Option<Handle>,
    confirmed: VerifyingKey,
}

/// A credential that its issuer's published key signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// What the agent is known by: issuer and subject, whatever its key (CORE-48, CORE-49).
    pub handle: Handle,
    /// Who vouches.
    pub issuer: String,
    /// For whom.
    pub subject: String,
    /// The handle of the agent this one belongs to, by the issuer's word (AAUTH-13).
    pub parent: Option<Handle>,
    /// Until when.
    pub expires: Timestamp,
}

impl Shown {
    /// Reads a credential, strictly: whatever can be found wrong without the issuer's key is found here.
    ///
    /// # Errors
    /// When it is not a credential of the drafts' form.
    pub fn read(compact: &str) -> Result<Self, BadCredential> {
        let jws = jws::Unverified::parse(compact, MAX_CREDENTIAL)?;
        if jws.typ() != Some(TYP) {
            return Err(BadCredential::Type);
        }
        let claims: Claims = jws.said().map_err(|_| BadCredential::Claims)?;
        let host = host_of(&claims.iss)?;
        if claims.dwk.as_deref().is_some_and(|document| document != DOCUMENT) {
            return Err(BadCredential::Issuer);
        }
        let confirmed = confirmed(jws.alg(), &claims)?;
        if claims.sub.is_empty() || claims.sub.len() > MAX_BYTES {
            return Err(BadCredential::Name);
        }
        let domain = agent_domain(&claims.sub);
        if claims.sub.starts_with(SCHEME) && domain != Some(host.as_str()) {
            return Err(BadCredential::Name);
        }
        let handle = Handle::identified(&claims.sub, &claims.iss).map_err(|_| BadCredential::Name)?;
        let parent = match &claims.parent_agent {
            None => None,
            Some(parent) if *parent == claims.sub => return Err(BadCredential::Name),
            Some(parent) if domain.is_none() || agent_domain(parent) != domain => {
                return Err(BadCredential::Name);
            }
            Some(parent) => Some(Handle::identified(parent, &claims.iss).map_err(|_| BadCredential::Name)?),
        };
        Ok(Self { jws, claims, handle, parent, confirmed })
    }

    /// Who would have to vouch for it: an https origin, as it is written there.
    pub fn issuer(&self) -> &str {
        &self.claims.iss
    }

    /// The key of the issuer it names, if it names one.
    pub fn kid(&self) -> Option<&str> {
        self.jws.kid()
    }

    /// The handle its agent would have.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The key it is about: the one that signs in its name.
    pub fn confirmed(&self) -> &VerifyingKey {
        &self.confirmed
    }

    /// The algorithm name its key has, which is the one that is signed under (AAUTH-10).
    pub fn algorithm(&self) -> &str {
        self.claims.cnf.jwk.alg.as_deref().unwrap_or(USUAL)
    }

    /// When it runs out.
    pub fn expires(&self) -> Timestamp {
        self.claims.exp
    }

    /// Whether it could be good for `audience` now, should somebody vouch for it. Nobody is asked about one that could
    /// not.
    ///
    /// # Errors
    /// When its time has run out or not come, or it is for somebody else.
    pub fn could_hold(&self, audience: &str, now: Timestamp) -> Result<(), BadCredential> {
        let claims = &self.claims;
        let ahead = |at: &Timestamp| at.since(now) > SKEW_SECONDS;
        let early = claims.iat.as_ref().is_some_and(ahead) || claims.nbf.as_ref().is_some_and(ahead);
        let backwards = claims.iat.is_some_and(|iat| claims.exp <= iat);
        if claims.exp <= now || early || backwards {
            return Err(BadCredential::Time);
        }
        let ours = claims.aud.as_ref().is_none_or(|named| named.names().iter().any(|name| name == audience));
        if ours { Ok(()) } else { Err(BadCredential::Audience) }
    }

    /// The credential, if a key of `keys` signed it and it is good for `audience` now.
    ///
    /// # Errors
    /// When no one published key did, or it is not good.
    pub fn vouched(
        self,
        keys: &IssuerKeys,
        audience: &str,
        now: Timestamp,
    ) -> Result<Credential, BadCredential> {
        self.could_hold(audience, now)?;
        let key = keys.pick(self.jws.kid(), self.jws.alg()).ok_or(BadCredential::Unpublished)?;
        self.jws.verify(key)?;
        let Claims { iss, sub, exp, .. } = self.claims;
        Ok(Credential { handle: self.handle, issuer: iss, subject: sub, parent: self.parent, expires: exp })
    }
}

/// The confirmed key, where the algorithm names fit one another (AAUTH-07, AAUTH-08).
fn confirmed(alg: &str, claims: &Claims) -> Result<VerifyingKey, BadCredential> {
    let Named { jwk, alg: named, d } = &claims.cnf.jwk;
    let specified = alg == SPECIFIED;
    if specified && (claims.dwk.is_none() || claims.iat.is_none()) {
        return Err(BadCredential::Claims);
    }
    if specified && claims.jti.as_deref().is_none_or(str::is_empty) {
        return Err(BadCredential::Claims);
    }
    let fits = match named.as_deref() {
        Some(SPECIFIED) => true,
        Some(USUAL) | None => !specified,
        Some(_) => false,
    };
    if !fits || d.is_some() {
        return Err(BadCredential::Key);
    }
    jwk.key().map_err(|_| BadCredential::Key)
}

/// The host of an issuer, which is an https origin in the one form it can be written in (CORE-47, AAUTH-03).
fn host_of(issuer: &str) -> Result<String, BadCredential> {
    let url = Url::parse(issuer).map_err(|_| BadCredential::Issuer)?;
    let origin = url.scheme() == "https" && url.origin().ascii_serialization() == issuer;
    url.host_str().filter(|_| origin).map(str::to_owned).ok_or(BadCredential::Issuer)
}

/// Whether a text is an issuer as credentials name one: an https origin and nothing after it.
pub fn is_issuer(text: &str) -> bool {
    host_of(text).is_ok()
}

const SCHEME: &str = "aauth:";

/// The domain of an agent identifier, `aauth:local@domain`.
fn agent_domain(subject: &str) -> Option<&str> {
    let (local, domain) = subject.strip_prefix(SCHEME)?.split_once('@')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '.');
    let fits = (1..=MAX_LOCAL).contains(&local.len()) && local.chars().all(plain);
    Some(domain).filter(|domain| fits && !domain.is_empty() && !domain.contains(['@', '/']))
}

#[cfg(test)]
mod tests;
