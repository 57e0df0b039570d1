//! The challenge: a refusal that carries a ticket and says whose authority decides (CORE-06..13).
//!
//! Its seven members are the same object in a header, a JSON body and a JSON-RPC error's `data` (D-3).

use super::remediation::Remediation;
use crate::id::{Realm, Scope};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The `error` every challenge of ours carries (CORE-07).
pub const ERROR: &str = "insufficient_authorization";
/// The word some peers use in its place; read, never written (D-2).
pub const ERROR_OF_PEERS: &str = "uma_challenge";

/// A challenge of ours, whole by construction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// A constant of the resource server.
    pub realm: Realm,
    /// The issuer of the authority that decides.
    pub as_uri: String,
    /// The permission ticket from that authority.
    pub ticket: String,
    /// The RFC 9728 document of the identifier called.
    pub resource_metadata: String,
    /// The scopes that would suffice.
    pub scopes: Vec<Scope>,
    /// What was refused, for a machine.
    pub remediation: Remediation,
}

/// The seven members as JSON. Everything a peer may leave out in process is optional here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChallengeObject {
    /// `insufficient_authorization`.
    pub error: String,
    /// The realm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realm: Option<Realm>,
    /// The authority's issuer.
    pub as_uri: String,
    /// The ticket.
    pub ticket: String,
    /// The metadata document's URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_metadata: Option<String>,
    /// Space-separated scopes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The remediation object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_remediation: Option<Remediation>,
}

impl Challenge {
    /// The challenge as its JSON object.
    pub fn object(&self) -> ChallengeObject {
        ChallengeObject {
            error: ERROR.into(),
            realm: Some(self.realm.clone()),
            as_uri: self.as_uri.clone(),
            ticket: self.ticket.clone(),
            resource_metadata: Some(self.resource_metadata.clone()),
            scope: Some(Scope::join(&self.scopes)),
            authorization_remediation: Some(self.remediation.clone()),
        }
    }
}

/// A challenge whose parts contradict one another, or that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadChallenge {
    /// The header cannot be read as challenges, or a parameter occurs twice.
    #[error("challenge is malformed")]
    Malformed,
    /// More than one challenge for this scheme, so nobody can say which is meant.
    #[error("more than one challenge")]
    Several,
    /// `error` is not a challenge's.
    #[error("not a challenge")]
    NotOne,
    /// A required member is absent.
    #[error("challenge lacks a required member")]
    Incomplete,
    /// The remediation names another authority or ticket, or its reference is not the digest of its details.
    #[error("challenge and remediation disagree")]
    Contradiction,
}

impl ChallengeObject {
    /// The challenge a peer sent, checked against itself; branches on `data`, never on a number (D-2).
    ///
    /// # Errors
    /// When it is no challenge or contradicts itself.
    pub fn check(self) -> Result<ChallengeObject, BadChallenge> {
        if self.error != ERROR && self.error != ERROR_OF_PEERS {
            return Err(BadChallenge::NotOne);
        }
        if self.as_uri.is_empty() || self.ticket.is_empty() {
            return Err(BadChallenge::Incomplete);
        }
        let agrees = self.authorization_remediation.as_ref().is_none_or(|remediation| {
            remediation.authorization_server == self.as_uri
                && remediation.ticket == self.ticket
                && remediation.is_consistent()
                && self.scope.as_deref().is_none_or(|scope| names(remediation, scope))
        });
        if agrees { Ok(self) } else { Err(BadChallenge::Contradiction) }
    }
}

/// Whether a scope list is the remediation's, in any order (D-2).
fn names(remediation: &Remediation, scope: &str) -> bool {
    let listed: Option<BTreeSet<Scope>> = Scope::split(scope).ok().map(BTreeSet::from_iter);
    let detailed =
        remediation.authorization_details.iter().flat_map(|detail| detail.datatypes.iter().cloned());
    listed.is_some_and(|listed| listed == detailed.collect())
}
