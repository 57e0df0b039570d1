//! The owner's decision on a waiting request: pure, once, with its author in the same step (OWN-08, POL-11).
//!
//! Approving first contact also answers the request it came with, and admits the agent (O-39). A request that has
//! been decided, or whose time ran out, cannot be decided again.

use crate::connection::{Connection, Status};
use crate::ledger::{Author, Kind, Record};
use crate::negotiation::{Ask, Commitment, Decided, Negotiation, State};
use sayso_protocol::{S256, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What she says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Yes.
    Approved,
    /// No.
    Denied,
}

/// Her answer, and to what: the agreement she was shown, where she was shown one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// What she says.
    pub answer: Answer,
    /// The digest of the agreement she says it to; `None` answers whatever waits.
    pub shown: Option<S256>,
}

impl From<Answer> for Ruling {
    fn from(answer: Answer) -> Self {
        Self { answer, shown: None }
    }
}

impl Ruling {
    /// Whether it answers `negotiation` as it stands.
    pub fn is_about(&self, negotiation: &Negotiation) -> bool {
        let agreement = negotiation.commitment().map(|commitment| &commitment.agreement);
        self.shown.is_none() || self.shown.as_ref() == agreement
    }
}

/// What a decision does, applied by the store in one transaction.
#[derive(Debug)]
pub struct Decision {
    /// The next state.
    pub state: State,
    /// The connection as it stands afterwards, when she admits the agent.
    pub admits: Option<Connection>,
    /// Rows for her record.
    pub records: Vec<Record>,
}

/// Decides `negotiation`, or `None` when it does not wait for her.
pub fn decide(
    negotiation: &Negotiation,
    connection: Option<&Connection>,
    answer: Answer,
    by: &Author,
    now: Timestamp,
) -> Option<Decision> {
    let State::AwaitingOwner { commitment, ask, deadline } = &negotiation.state else { return None };
    if *deadline <= now {
        return None;
    }
    let epoch = connection.map_or(0, |connection| connection.epoch);
    let decided = Decided { at: now, by: by.clone(), epoch };
    let row = |kind| {
        let entry = json!({
            "resource_id": negotiation.resource,
            "ask": ask,
            "terms_uri": commitment.proffer.terms_uri,
            "agreement": commitment.agreement,
            "operation": commitment.operation,
        });
        Record::new(kind, &negotiation.id, by.clone(), entry).naming(&commitment.handle)
    };
    match answer {
        Answer::Denied => Some(Decision {
            state: State::Denied { decided },
            admits: None,
            records: vec![row(Kind::Denied)],
        }),
        Answer::Approved => {
            let admits = admitted(*ask, connection, commitment);
            let mut records = vec![];
            if admits.is_some() {
                records.push(row(Kind::Connected));
            }
            records.push(row(Kind::Approved));
            let state = State::Approved { commitment: commitment.clone(), decided };
            Some(Decision { state, admits, records })
        }
    }
}

/// The connection an approval establishes. It keeps the epoch that endings have bumped, so nothing revives, and
/// the count of endings (CORE-104, CORE-105). A question about an operation of a standing agent admits nobody.
fn admitted(ask: Ask, connection: Option<&Connection>, commitment: &Commitment) -> Option<Connection> {
    match (ask, connection) {
        (_, Some(connection)) if connection.is_active() => None,
        (Ask::Operation, _) => None,
        (Ask::Connection, Some(ended)) => Some(Connection { status: Status::Active, ..ended.clone() }),
        (Ask::Connection, None) => Some(Connection {
            handle: commitment.handle.clone(),
            identity: commitment.evidence.identity(),
            status: Status::Active,
            epoch: 0,
            first_seen: commitment.at,
            last_access: None,
            revocations: 0,
        }),
    }
}

#[cfg(test)]
mod tests;
