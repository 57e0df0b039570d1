//! Signing an agreement: by a bare key, or in the name a credential gives the key, and described by whoever describes it.

use super::{AgreementClaims, TYP};
use crate::b64;
use crate::jws::{self, ALG, BadJws};
use crate::key::{Jwk, SigningKey};
use crate::payload::credential::Shown;
use serde::Serialize;

/// What an agent shows of itself beside its key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Showing<'a> {
    /// An issuer's credential for the key, compact; in its place stands the bare key.
    pub credential: Option<&'a str>,
    /// The address of a client metadata document.
    pub client_id: Option<&'a str>,
    /// The origin of a key directory that has the key.
    pub directory: Option<&'a str>,
}

#[derive(Serialize)]
struct Header<'a> {
    alg: &'a str,
    typ: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    jwk: Option<Jwk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature_agent: Option<&'a str>,
}

/// Signs an agreement with a bare key and wraps it as a `claim_token`.
///
/// # Errors
/// When the claims cannot be serialised, or whoever holds the key does not sign.
pub fn sign(key: &SigningKey, claims: &AgreementClaims) -> Result<String, BadJws> {
    sign_as(key, &Showing::default(), claims)
}

/// Signs an agreement, showing what else there is to show, and wraps it as a `claim_token`.
///
/// # Errors
/// When the credential is none or is for another key, the claims cannot be serialised, or whoever holds the key does not
/// sign.
pub fn sign_as(key: &SigningKey, showing: &Showing<'_>, claims: &AgreementClaims) -> Result<String, BadJws> {
    let shown = showing.credential.map(Shown::read).transpose().map_err(|_| BadJws::Claims)?;
    if shown.as_ref().is_some_and(|shown| shown.confirmed() != key.verifying()) {
        return Err(BadJws::Signature);
    }
    let header = Header {
        alg: shown.as_ref().map_or(ALG, Shown::algorithm),
        typ: TYP,
        jwk: shown.is_none().then(|| key.verifying().jwk()),
        agent_token: showing.credential,
        client_id: showing.client_id,
        signature_agent: showing.directory,
    };
    jws::sign_under(key, &header, claims).map(b64::encode)
}
