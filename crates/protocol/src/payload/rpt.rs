//! The requesting party token: a proof-of-possession grant, an RFC 9068 access token (CORE-65..80).
//!
//! An enforcement point treats it as opaque and asks its authority; the claims are for the authority that issues
//! it and for whoever audits it.

use super::operation::Operation;
use crate::canon::S256;
use crate::id::{ClientId, Handle, OwnerName, ResourceId, Scope, Timestamp};
use crate::jws::{self, BadJws, KeyName, Unverified, Verified};
use crate::key::{Jwk, SigningKey};
use serde::{Deserialize, Serialize};

/// The `typ` of a grant.
pub const TYP: &str = "at+jwt";
/// The token type and authorization scheme of a grant.
pub const SCHEME: &str = "PoP";
/// Longest token read, in bytes.
pub const LONGEST: usize = 16 * 1024;
/// Longest life of a grant, in seconds (D-18).
pub const MAX_LIFE: i64 = 3600;

/// The confirmed key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The key that signed the agreement (CORE-70).
    pub jwk: Jwk,
}

/// One permission of a grant (CORE-71).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    /// The resource.
    pub resource_id: ResourceId,
    /// The scopes granted on it.
    pub resource_scopes: Vec<Scope>,
    /// When the permission ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exp: Option<Timestamp>,
    /// When it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iat: Option<Timestamp>,
    /// When it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<Timestamp>,
    /// The pin of the tool's definition the owner accepted (D-30).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<S256>,
}

impl Permission {
    /// Whether the permission's own bounds admit `now` (CORE-86).
    pub fn admits(&self, now: Timestamp) -> bool {
        self.exp.is_none_or(|exp| now < exp) && self.nbf.is_none_or(|nbf| nbf <= now)
    }
}

/// The claims of a grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rpt {
    /// The authority.
    pub iss: String,
    /// The resource server (O-28).
    pub aud: ClientId,
    /// The token's id.
    pub jti: String,
    /// When it was issued.
    pub iat: Timestamp,
    /// When it ends.
    pub exp: Timestamp,
    /// The connection handle.
    pub sub: Handle,
    /// The connection handle again (CORE-69).
    pub client_id: Handle,
    /// The key that must be proven.
    pub cnf: Confirmation,
    /// What it permits.
    pub permissions: Vec<Permission>,
    /// Whose it is (CORE-72).
    pub owner: OwnerName,
    /// `s256` of the agreement (CORE-73).
    pub contract: S256,
    /// The tool's declared class at issue time (CORE-74).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consequence: Option<String>,
    /// Whether it is spent by one call (CORE-79).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single_use: bool,
    /// The one call it is for (CORE-80).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
}

impl Rpt {
    /// Signs the grant.
    ///
    /// # Errors
    /// When it cannot be serialised.
    pub fn sign(&self, key: &SigningKey) -> Result<String, BadJws> {
        jws::sign(key, TYP, &KeyName::Kid(&key.kid()), self)
    }

    /// Reads a grant the authority itself signed, to name why it is not live (D-20).
    ///
    /// # Errors
    /// When it is not one, or does not verify under `key`.
    pub fn read(compact: &str, key: &crate::key::VerifyingKey) -> Result<(Rpt, Verified), BadJws> {
        let jws = Unverified::parse(compact, LONGEST)?;
        if jws.typ() != Some(TYP) {
            return Err(BadJws::Form);
        }
        let verified = jws.verify(key)?;
        Ok((verified.claims()?, verified))
    }
}

#[cfg(test)]
mod tests;
