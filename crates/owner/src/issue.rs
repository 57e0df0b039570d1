//! Issuing: the grant and its receipt, as pure functions of a commitment and a moment.
//!
//! A grant's life runs from her decision, or from the commit where she was not asked, and never outlasts the
//! agreement (TERMS-31, D-18). Signatures are deterministic, so issuing inside a transaction may run again.

use crate::negotiation::{Commitment, Negotiation};
use sayso_protocol::jws::BadJws;
use sayso_protocol::payload::operation::Operation;
use sayso_protocol::payload::receipt::Receipt;
use sayso_protocol::payload::rpt::{Confirmation, MAX_LIFE, Permission, Rpt};
use sayso_protocol::{Handle, NegotiationId, S256, Scope, SigningKey, Timestamp, UnitId};

/// The keys and names an authority issues under. Has no `Debug`: it holds keys.
pub struct Issuer {
    /// The issuer identifier.
    pub url: String,
    /// Signs grants.
    pub grants: SigningKey,
    /// Signs receipts.
    pub receipts: SigningKey,
}

/// A grant as the store keeps it; the token itself is kept only as its digest.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    /// SHA-256 of the compact token.
    pub token_sha256: [u8; 32],
    /// The claims.
    pub rpt: Rpt,
    /// Which key signed it.
    pub kid: String,
    /// The negotiation.
    pub family: NegotiationId,
    /// The unit it was granted under.
    pub unit: UnitId,
    /// The connection it lives under.
    pub handle: Handle,
    /// The connection's epoch; the grant lives only while it is equal (D-21).
    pub epoch: i64,
    /// Whether the tool may ask follow-up questions in the call (D-11).
    pub bind: bool,
    /// What another agreement to the same is alike to (D-19).
    pub likeness: S256,
    /// When she approved it; `None` where she was not asked.
    pub approved: Option<Timestamp>,
    /// The compact receipt.
    pub receipt: String,
}

/// A grant with the token the agent gets. Has no `Debug`: it holds a token.
pub struct Issued {
    /// The compact token.
    pub token: String,
    /// What the store keeps.
    pub grant: Grant,
    /// The token's life from now, in seconds.
    pub expires_in: i64,
}

/// When a grant decided at `decided` ends; a claim after that is denied.
pub fn ends(decided: Timestamp, commitment: &Commitment) -> Timestamp {
    decided.plus(commitment.expires_in.min(MAX_LIFE))
}

/// Issues the grant of `commitment`.
///
/// # Errors
/// When a document cannot be serialised.
pub fn issue(
    issuer: &Issuer,
    negotiation: &Negotiation,
    commitment: &Commitment,
    facts: &IssueFacts,
) -> Result<Issued, BadJws> {
    let rpt = claims(issuer, negotiation, commitment, facts);
    let token = rpt.sign(&issuer.grants)?;
    let receipt = Receipt {
        iss: issuer.url.clone(),
        sub: commitment.handle.clone(),
        iat: facts.now,
        terms_uri: commitment.proffer.terms_uri.clone(),
        template_id: commitment.proffer.terms.template_id.clone(),
        agreement: commitment.agreement.clone(),
        agreement_jws: commitment.agreement_jws.clone(),
        family: negotiation.id.clone(),
    }
    .sign(&issuer.receipts)?;
    let grant = Grant {
        token_sha256: sayso_protocol::canon::sha256(token.as_bytes()),
        kid: issuer.grants.kid(),
        family: negotiation.id.clone(),
        unit: commitment.unit.clone(),
        handle: commitment.handle.clone(),
        epoch: facts.epoch,
        bind: commitment.bind && rpt.single_use,
        likeness: commitment.likeness.clone(),
        approved: facts.approved.then_some(facts.decided),
        receipt,
        rpt,
    };
    Ok(Issued { expires_in: grant.rpt.exp.since(facts.now), token, grant })
}

/// What issuing needs to know beyond the commitment.
pub struct IssueFacts {
    /// Now.
    pub now: Timestamp,
    /// When it was decided: by her, or at commit where she was not asked.
    pub decided: Timestamp,
    /// Whether she decided it herself.
    pub approved: bool,
    /// The connection's epoch.
    pub epoch: i64,
    /// The token id, freshly drawn.
    pub jti: String,
    /// The class the tool declares now (CORE-74).
    pub consequence: Option<String>,
}

/// The scopes a grant of `commitment` permits: those the ticket needs and the agreement covers (CORE-71).
pub fn scopes(negotiation: &Negotiation, commitment: &Commitment) -> Vec<Scope> {
    negotiation.scopes.iter().filter(|scope| commitment.scope.contains(scope)).cloned().collect()
}

fn claims(issuer: &Issuer, negotiation: &Negotiation, commitment: &Commitment, facts: &IssueFacts) -> Rpt {
    let per_operation = commitment.proffer.terms.per_operation;
    let operation: Option<Operation> = commitment.operation.clone().filter(|_| per_operation);
    Rpt {
        iss: issuer.url.clone(),
        aud: negotiation.client_id.clone(),
        jti: facts.jti.clone(),
        iat: facts.now,
        exp: ends(facts.decided, commitment),
        sub: commitment.handle.clone(),
        client_id: commitment.handle.clone(),
        cnf: Confirmation { jwk: commitment.cnf.clone() },
        permissions: vec![Permission {
            resource_id: negotiation.resource.clone(),
            resource_scopes: scopes(negotiation, commitment),
            exp: Some(facts.decided.plus(commitment.expires_in)),
            iat: Some(facts.now),
            nbf: None,
            definition: commitment.definition.clone(),
        }],
        owner: negotiation.owner.clone(),
        contract: commitment.agreement.clone(),
        consequence: facts.consequence.clone(),
        single_use: per_operation,
        operation,
    }
}
