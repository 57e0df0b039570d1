//! An identity assertion (`oauth-id-jag+jwt`): an identity provider's word to one authority for whom an agent acts, and how
//! far (CORE-35, CORE-36).
//!
//! `Said` is what was presented and names who would have to vouch for it; `Asserted` is what the provider's published key
//! signed. It tells who and how far and is never access: nothing here can be granted on.

use super::audience::Audience;
use super::credential::{IssuerKeys, provider_addresses};
use crate::id::{MAX_BYTES, Scope, Timestamp};
use crate::jws::{self, BadJws};
use crate::key::Thumbprint;
use crate::sig::SKEW_SECONDS;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

/// Its `claim_token_format`, and its token type in an exchange.
pub const FORMAT: &str = "urn:ietf:params:oauth:token-type:id-jag";
/// The `typ` of its header.
pub const TYP: &str = "oauth-id-jag+jwt";
/// Longest assertion read, in bytes.
pub const MAX_ASSERTION: usize = 16 * 1024;
/// The longest that one may be good for, in seconds: as long as it is remembered that it was used.
pub const MAX_LIFE: i64 = 3600;

/// The demand for an assertion: one element of `required_claims` (O-33).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredIdentity {
    /// The formats accepted.
    pub claim_token_format: Vec<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub friendly_name: Option<String>,
    /// The providers whose word counts.
    pub issuer: Vec<String>,
    /// Whom it has to be for.
    pub audience: String,
    /// The resource server it has to reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The scopes it has to reach, separated by spaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// What may be exchanged for one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subject_token_types: Vec<String>,
}

impl RequiredIdentity {
    /// The demand of the authority of this issuer for a word of one of these providers.
    pub fn of(providers: &[String], authority: &str, resource: &str, scopes: &[Scope]) -> Self {
        let scopes: Vec<&str> = scopes.iter().map(AsRef::as_ref).collect();
        Self {
            claim_token_format: vec![FORMAT.into()],
            friendly_name: Some("whom this agent acts for".into()),
            issuer: providers.to_vec(),
            audience: authority.into(),
            resource: Some(resource.into()),
            scope: Some(scopes.join(" ")).filter(|scope| !scope.is_empty()),
            subject_token_types: vec!["urn:ietf:params:oauth:token-type:id_token".into()],
        }
    }
}

/// Why an assertion is not acceptable. For the log of whoever runs the authority: a stranger hears one sentence for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadAssertion {
    /// Not a compact JWS under Ed25519, or longer than is read.
    #[error(transparent)]
    Jws(#[from] BadJws),
    /// Another `typ`.
    #[error("not an {TYP}")]
    Type,
    /// A claim is missing or has the wrong shape.
    #[error("a claim is missing or has the wrong shape")]
    Claims,
    /// Nobody who is believed here says so.
    #[error("its issuer is not one that is believed here")]
    Issuer,
    /// Its time has run out, has not come, or is longer than one may be good for.
    #[error("it is not valid now, or for too long")]
    Time,
    /// It is for somebody else.
    #[error("it is addressed to somebody else")]
    Audience,
    /// It does not reach this resource, or not all scopes of the request.
    #[error("it does not reach what is asked for")]
    Reach,
    /// It names no key and no agent that it is for.
    #[error("it is bound to no key")]
    Unbound,
    /// The provider publishes no such key, or more than one.
    #[error("its issuer publishes no one key that could have signed it")]
    Unpublished,
    /// It was used before.
    #[error("it was used before")]
    Used,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: Audience,
    client_id: String,
    jti: String,
    exp: Timestamp,
    iat: Timestamp,
    nbf: Option<Timestamp>,
    resource: Option<Audience>,
    scope: Option<String>,
    cnf: Option<Confirmed>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Deserialize)]
struct Confirmed {
    jkt: String,
}

/// An assertion as it was presented: well formed, and nobody has vouched for it.
pub struct Said {
    jws: jws::Unverified,
    claims: Claims,
}

/// What is asked for: an assertion has to reach it.
pub struct Asked<'a> {
    /// The issuer of the authority that is asked.
    pub authority: &'a str,
    /// The resource server, by its origin.
    pub server: &'a str,
    /// The scopes of the request.
    pub scopes: &'a [Scope],
    /// The claim that names the person.
    pub subject: &'a str,
}

/// For whom an agent acts, by the word of a provider whose published key signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asserted {
    /// Who says so.
    pub issuer: String,
    /// Whom it names.
    pub subject: String,
    /// The agent it is for, as the provider knows it.
    pub client_id: String,
    /// The thumbprint of the key it is for; without it, the client id is the handle it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jkt: Option<String>,
}

impl Said {
    /// Reads an assertion, strictly.
    ///
    /// # Errors
    /// When it is not of the draft's form.
    pub fn read(compact: &str) -> Result<Self, BadAssertion> {
        let jws = jws::Unverified::parse(compact, MAX_ASSERTION)?;
        if jws.typ() != Some(TYP) {
            return Err(BadAssertion::Type);
        }
        let claims: Claims = jws.said().map_err(|_| BadAssertion::Claims)?;
        let texts = [&claims.iss, &claims.client_id, &claims.jti];
        if texts.iter().any(|text| text.is_empty() || text.len() > MAX_BYTES) {
            return Err(BadAssertion::Claims);
        }
        Ok(Self { jws, claims })
    }

    /// Who would have to vouch for it.
    pub fn issuer(&self) -> &str {
        &self.claims.iss
    }

    /// The key of the provider it names, if it names one.
    pub fn kid(&self) -> Option<&str> {
        self.jws.kid()
    }

    /// Whether it says that it is for the authority of this issuer, and nobody else.
    pub fn is_for(&self, authority: &str) -> bool {
        matches!(self.claims.aud.names(), [one] if one == authority)
    }

    /// What its one use is remembered under, and until when.
    pub fn once(&self) -> (String, Timestamp) {
        let Claims { iss, jti, exp, .. } = &self.claims;
        (format!("{FORMAT} {}:{iss} {jti}", iss.len()), exp.plus(SKEW_SECONDS))
    }

    /// Whether it could be good for what is asked, should its provider vouch for it. Nobody is asked about one that could
    /// not.
    ///
    /// # Errors
    /// When its time has run out or not come, it is for somebody else, reaches something else, or is bound to nobody.
    pub fn could_hold(&self, asked: &Asked<'_>, now: Timestamp) -> Result<(), BadAssertion> {
        let claims = &self.claims;
        let early = |at: Timestamp| at.since(now) > SKEW_SECONDS;
        let life = claims.exp.since(claims.iat);
        if claims.exp <= now
            || early(claims.iat)
            || claims.nbf.is_some_and(early)
            || !(1..=MAX_LIFE).contains(&life)
        {
            return Err(BadAssertion::Time);
        }
        // One audience and no second: it is this authority's alone.
        if !self.is_for(asked.authority) {
            return Err(BadAssertion::Audience);
        }
        let origin = |text: &String| {
            Url::parse(text).is_ok_and(|url| url.origin().ascii_serialization() == asked.server)
        };
        let reaches = claims.resource.as_ref().is_none_or(|named| named.names().iter().any(origin));
        let covers = |scopes: &String| {
            asked
                .scopes
                .iter()
                .all(|scope| scopes.split(' ').any(|named| named == AsRef::<str>::as_ref(scope)))
        };
        if !reaches || !claims.scope.as_ref().is_none_or(covers) {
            return Err(BadAssertion::Reach);
        }
        let handle = claims.client_id.starts_with("jkt:") || claims.client_id.contains('@');
        if claims.cnf.is_none() && !handle {
            return Err(BadAssertion::Unbound);
        }
        self.person(asked).map(drop)
    }

    fn person(&self, asked: &Asked<'_>) -> Result<&str, BadAssertion> {
        let named = self.claims.others.get(asked.subject).and_then(Value::as_str);
        named.filter(|name| !name.is_empty() && name.len() <= MAX_BYTES).ok_or(BadAssertion::Claims)
    }

    /// What it asserts, if a key of `keys` signed it and it is good for what is asked.
    ///
    /// # Errors
    /// When no one published key did, or it is not good.
    pub fn vouched(
        self,
        keys: &IssuerKeys,
        asked: &Asked<'_>,
        now: Timestamp,
    ) -> Result<Asserted, BadAssertion> {
        self.could_hold(asked, now)?;
        let subject = self.person(asked)?.to_owned();
        let key = keys.pick(self.jws.kid(), self.jws.alg()).ok_or(BadAssertion::Unpublished)?;
        self.jws.verify(key)?;
        let Claims { iss, client_id, cnf, .. } = self.claims;
        Ok(Asserted { issuer: iss, subject, client_id, jkt: cnf.map(|confirmed| confirmed.jkt) })
    }
}

impl Asserted {
    /// Whether it is about whoever signs with the key of this thumbprint under this handle.
    pub fn is_about(&self, key: &Thumbprint, handle: &str) -> bool {
        match &self.jkt {
            Some(jkt) => jkt == key.as_str(),
            None => self.client_id == handle,
        }
    }
}

/// Whether a text is a provider as assertions name one: an https URL in its plain form, without query or fragment.
pub fn is_provider(text: &str) -> bool {
    provider_addresses(text).is_some()
}

#[cfg(test)]
mod tests;
