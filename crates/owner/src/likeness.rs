//! When two requests are the same question: an agent whose reply was lost asks again and is attached (D-19).
//!
//! Alike are agreements of one key to one version of terms with the same scopes, lifetime, promises and act. Owner,
//! resource server, resource and the scopes of the ticket are compared by the store, beside it.

use crate::negotiation::Ask;
use sayso_protocol::canon::{S256, s256_bytes};
use sayso_protocol::payload::agreement::SignedAgreement;
use sayso_protocol::payload::assertion::Asserted;
use sayso_protocol::{Handle, NegotiationId, Timestamp};

/// Who a presentation speaks for, and which earlier request it would repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speaker {
    /// The agent.
    pub handle: Handle,
    /// What its agreement is alike to.
    pub likeness: S256,
}

impl Speaker {
    /// The speaker of an agreement whose signature verified, for whom a provider says that it acts, if one does.
    pub fn of(agreement: &SignedAgreement, asserted: Option<&Asserted>) -> Self {
        Self { handle: agreement.handle(), likeness: of(agreement, asserted) }
    }
}

/// An earlier request that a commit repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Twin {
    /// The earlier negotiation.
    pub family: NegotiationId,
    /// How far it got.
    pub stage: Stage,
}

/// How far an earlier request got before its agent lost touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// It waits for her.
    Waiting {
        /// Why she is asked.
        ask: Ask,
        /// When the question lapses; repeating it gains no time.
        deadline: Timestamp,
    },
    /// She approved it, and no enforcement point has seen a grant of it.
    Approved {
        /// When she approved.
        at: Timestamp,
        /// The connection's epoch then.
        epoch: i64,
        /// The pin of the tool she approved.
        definition: Option<S256>,
    },
}

/// The digest of what makes two agreements the same question. Every part is written with its length, so that no two
/// lists of parts are written alike.
pub(crate) fn of(agreement: &SignedAgreement, asserted: Option<&Asserted>) -> S256 {
    let claims = agreement.claims();
    let mut scopes: Vec<&str> = claims.scope.iter().map(AsRef::as_ref).collect();
    let mut promises: Vec<&str> = claims.prohibited.iter().map(String::as_str).collect();
    for list in [&mut scopes, &mut promises] {
        list.sort_unstable();
        list.dedup();
    }
    let operation = agreement.operation();
    let act = operation.map_or(["", ""], |act| [act.tool.as_str(), act.params_s256.as_str()]);
    let lifetime = claims.expires_in.to_string();
    let thumbprint = agreement.key().thumbprint();
    let mut text = String::new();
    let person: Vec<&str> =
        asserted.map_or_else(Vec::new, |it| vec![it.issuer.as_str(), it.subject.as_str()]);
    let first = [claims.template_id.as_str(), thumbprint.as_str(), &lifetime];
    let mut lists = vec![&first[..], &scopes, &promises, &act];
    lists.extend((!person.is_empty()).then_some(&person[..]));
    for list in lists {
        text.push_str(&format!("{}[", list.len()));
        for part in list {
            text.push_str(&format!("{}:{part}", part.len()));
        }
    }
    s256_bytes(text.as_bytes())
}
