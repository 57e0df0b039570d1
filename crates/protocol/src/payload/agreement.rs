//! The agreement: the agent's signed echo of exactly the terms proffered, and the check that it is one.
//!
//! Narrower is accepted, wider or altered is a breach and ends the negotiation (TERMS-22..35). What the agent adds
//! beyond the echo is recorded and decides nothing (TERMS-32); `reason` and `mission` are bounded, never read.

use super::operation::Operation;
use super::terms::Proffer;
use crate::canon::{S256, s256_bytes};
use crate::id::{Handle, NegotiationId, Scope, TemplateId, Timestamp, ToolName};
use crate::json::Json;
use crate::jws::Verified;
use crate::key::VerifyingKey;
use crate::payload::credential::Credential;
use serde::{Deserialize, Serialize};

mod presented;
mod signing;

pub use presented::{Presented, Unvouched};
pub use signing::{Showing, sign, sign_as};

/// The `typ` of an agreement.
pub const TYP: &str = "myterms-agreement-v1+jws";
/// Longest `claim_token` accepted, in bytes.
pub const MAX_CLAIM_TOKEN: usize = 64 * 1024;
/// Longest `reason` accepted, in bytes (O-42).
pub const MAX_REASON: usize = 512;
/// How far `iat` may lie from the time it is read, in seconds.
pub const IAT_SKEW: i64 = 600;

/// The claims of an agreement. Unknown members are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgreementClaims {
    /// The agent's own name for itself; decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iss: Option<String>,
    /// The issuer of the authority.
    pub aud: String,
    /// When it was signed.
    pub iat: Timestamp,
    /// Echo of the terms' version.
    pub template_id: TemplateId,
    /// Echo of where they are served.
    pub terms_uri: String,
    /// Echo of the purpose.
    pub purpose: String,
    /// The scopes agreed to; a subset of the terms'.
    pub scope: Vec<Scope>,
    /// The lifetime agreed to, in seconds; at most the terms'.
    pub expires_in: i64,
    /// The promises; a superset of the terms'.
    pub prohibited: Vec<String>,
    /// Echo of the negotiation.
    pub family: NegotiationId,
    /// Echo of the nonce.
    pub nonce: String,
    /// The act, where the terms are per operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationClaim>,
    /// Why, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The mission this act belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mission: Option<Mission>,
}

/// The operation an agreement names: a tool and its arguments (TERMS-30).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationClaim {
    /// The tool.
    pub tool: ToolName,
    /// The arguments, an object.
    pub params: serde_json::Map<String, serde_json::Value>,
}

/// A mission somebody approved elsewhere; recorded, never dereferenced (TERMS-34).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mission {
    /// An `https` URL.
    pub approver: String,
    /// A digest of the mission.
    pub s256: S256,
}

/// How an agreement breaks the terms. The sentence is safe to show: it echoes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// Not a readable agreement.
    #[error("the claim token is not a base64url-encoded compact JWS of typ {TYP}")]
    Form,
    /// Neither or both of `jwk` and `agent_token`.
    #[error("the agreement's header must name exactly one key")]
    Key,
    /// An issuer's credential, where only a bare key is accepted, or one that is none.
    #[error("the agent credential is not one this authority accepts")]
    Credential,
    /// The signature does not verify under the header's key.
    #[error("the agreement's signature does not verify")]
    Signature,
    /// A claim is absent or has the wrong type.
    #[error("an agreement claim is missing or has the wrong type")]
    Claims,
    /// `aud` is not this authority.
    #[error("the agreement is addressed to another authority")]
    Audience,
    /// `iat` is too far from now.
    #[error("the agreement was not signed recently")]
    IssuedAt,
    /// An echoed member differs.
    #[error("the agreement must echo {0} unchanged")]
    Altered(&'static str),
    /// `expires_in` is not positive or exceeds the terms'.
    #[error("expires_in must be positive and no longer than the terms allow")]
    Expiry,
    /// `scope` is empty or not a subset.
    #[error("scope must be a non-empty subset of the terms'")]
    Scope,
    /// A prohibition is missing.
    #[error("a prohibition of the terms is missing")]
    Prohibition,
    /// `operation` is absent, malformed, or another tool's.
    #[error("these terms are per operation: name the tool and its arguments")]
    Operation,
    /// `reason` is too long.
    #[error("reason is longer than {MAX_REASON} bytes")]
    Reason,
    /// `mission` does not name an https approver.
    #[error("mission must name an https approver and a digest")]
    Mission,
}

/// An agreement whose signature verified under the key its header names; not yet compared with any terms.
#[derive(Clone)]
pub struct SignedAgreement {
    jws: Verified,
    claims: AgreementClaims,
    operation: Option<Operation>,
    /// The credential that names its key, verified; none for a bare key.
    credential: Option<Credential>,
    described: Described,
}

/// Where an agent says that somebody describes it, under its signature. Decides nothing (CORE-53).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Described {
    /// The address of its client metadata document, which is its client id (CORE-51).
    pub client_id: Option<String>,
    /// The origin of the key directory that has its key.
    pub directory: Option<String>,
}

impl SignedAgreement {
    /// Reads and verifies a `claim_token` under a bare key: base64url of the whole compact JWS (TERMS-22..24).
    ///
    /// # Errors
    /// When it is malformed, names no single bare key, or does not verify.
    pub fn read(claim_token: &str) -> Result<Self, Breach> {
        match Presented::read(claim_token)? {
            Presented::Bare(agreement) => Ok(*agreement),
            Presented::Named(_) => Err(Breach::Credential),
        }
    }

    /// The compact JWS as received.
    pub fn compact(&self) -> &str {
        self.jws.compact()
    }

    /// `s256` over the compact JWS: the wire's `contract` and `agreement` (TERMS-38).
    pub fn digest(&self) -> S256 {
        s256_bytes(self.compact().as_bytes())
    }

    /// The key that signed: the key the grant confirms (TERMS-25).
    pub fn key(&self) -> &VerifyingKey {
        self.jws.key()
    }

    /// The handle this agreement speaks for: its credential's, or that of its key.
    pub fn handle(&self) -> Handle {
        match &self.credential {
            Some(credential) => credential.handle.clone(),
            None => Handle::pseudonymous(&self.key().thumbprint()),
        }
    }

    /// The credential that names its key, where there is one.
    pub fn credential(&self) -> Option<&Credential> {
        self.credential.as_ref()
    }

    /// Where it says that somebody describes its agent.
    pub fn described(&self) -> &Described {
        &self.described
    }

    /// Whether it was signed recently and for this authority; one that was not is a breach of any terms.
    pub fn is_for(&self, issuer: &str, now: Timestamp) -> bool {
        is_for(&self.claims, issuer, now)
    }

    /// The claims.
    pub fn claims(&self) -> &AgreementClaims {
        &self.claims
    }

    /// The operation named, with the digest of its arguments.
    pub fn operation(&self) -> Option<&Operation> {
        self.operation.as_ref()
    }

    /// Compares the agreement with what was proffered (TERMS-26..35).
    ///
    /// # Errors
    /// The first way in which it is not the proffered terms or something narrower.
    pub fn assents_to(
        &self,
        proffer: &Proffer,
        tool: Option<&ToolName>,
        now: Timestamp,
    ) -> Result<(), Breach> {
        let (claims, terms) = (&self.claims, &proffer.terms);
        check(claims.aud == terms.proffered_by, Breach::Audience)?;
        check(is_recent(claims, now), Breach::IssuedAt)?;
        check(claims.nonce == proffer.nonce, Breach::Altered("nonce"))?;
        check(claims.family == proffer.family, Breach::Altered("family"))?;
        check(claims.template_id == terms.template_id, Breach::Altered("template_id"))?;
        check(claims.terms_uri == proffer.terms_uri, Breach::Altered("terms_uri"))?;
        check(claims.purpose == terms.purpose, Breach::Altered("purpose"))?;
        check((1..=terms.expires_in).contains(&claims.expires_in), Breach::Expiry)?;
        let subset = claims.scope.iter().all(|scope| terms.scope.contains(scope));
        check(subset && !claims.scope.is_empty(), Breach::Scope)?;
        let kept = terms.prohibited.iter().all(|promise| claims.prohibited.contains(promise));
        check(kept, Breach::Prohibition)?;
        if terms.per_operation {
            let named = self.operation.as_ref().ok_or(Breach::Operation)?;
            check(tool.is_none_or(|tool| *tool == named.tool), Breach::Operation)?;
        }
        check(claims.reason.as_ref().is_none_or(|reason| reason.len() <= MAX_REASON), Breach::Reason)?;
        let lawful = claims.mission.as_ref().is_none_or(|mission| mission.approver.starts_with("https://"));
        check(lawful, Breach::Mission)
    }
}

fn check(holds: bool, breach: Breach) -> Result<(), Breach> {
    if holds { Ok(()) } else { Err(breach) }
}

fn is_recent(claims: &AgreementClaims, now: Timestamp) -> bool {
    now.since(claims.iat).abs() <= IAT_SKEW
}

fn is_for(claims: &AgreementClaims, issuer: &str, now: Timestamp) -> bool {
    claims.aud == issuer && is_recent(claims, now)
}

/// The operation with the digest of its arguments as signed: the canonical form is taken from the bytes, not from
/// a value that already went through a lossy number type.
fn operation_of(jws: &Verified) -> Result<Option<Operation>, Breach> {
    let json = jws.json().map_err(|_| Breach::Claims)?;
    let Some(operation) = json.get("operation") else { return Ok(None) };
    let tool = operation.get("tool").and_then(Json::as_str).ok_or(Breach::Operation)?;
    let params =
        operation.get("params").filter(|params| params.as_object().is_some()).ok_or(Breach::Operation)?;
    let tool = ToolName::parse(tool).map_err(|_| Breach::Operation)?;
    Operation::of(tool, params).map(Some).map_err(|_| Breach::Operation)
}

#[cfg(test)]
mod tests;
