//! Her record: rows that are only ever appended, each written in the transaction that decides what it tells.
//!
//! Rows use the kinds of POL-54; those of later rings have their place in the list but no producer yet (D-43).
//! Challenges and minted tickets are never rows (D-27).

use sayso_protocol::{Handle, NegotiationId, Timestamp};
use serde::{Deserialize, Serialize};

/// What a row tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An agent agreed to her terms.
    Promised,
    /// A protected call went through.
    Touched,
    /// A connection was established.
    Connected,
    /// A request was approved.
    Approved,
    /// A request was denied.
    Denied,
    /// A connection, resource server or unit was ended.
    Revoked,
    /// A rule of hers relaxed a question.
    Relaxed,
    /// Something was refused without asking her.
    Refused,
}

/// Who acted: the author of a row and of every decision.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The owner, through the enrolled key of this thumbprint.
    Owner(String),
    /// The owner, in the browser session of this name; the row that opened it says by whose link.
    Browser(String),
    /// Her policy, as she wrote it.
    Policy,
    /// The agent's own doing.
    Agent,
    /// The enforcement point of this resource server.
    ResourceServer(String),
    /// The set-up of the deployment, before she acted (D-22).
    Setup,
}

/// A row to be written: everything but its owner, place and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What it tells.
    pub kind: Kind,
    /// The negotiation it belongs to.
    pub family: Option<NegotiationId>,
    /// The agent it names; `None` only where nobody can be named (POL-46).
    pub handle: Option<Handle>,
    /// Who acted.
    pub author: Author,
    /// The particulars, as the owner reads them.
    pub entry: serde_json::Value,
}

/// A row as it stands in the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its place, from 1, without gaps.
    pub seq: i64,
    /// When it was written.
    pub ts: Timestamp,
    /// What it tells.
    #[serde(flatten)]
    pub record: Record,
}

impl Record {
    /// A row about one negotiation.
    pub fn new(kind: Kind, family: &NegotiationId, author: Author, entry: serde_json::Value) -> Self {
        Self { kind, family: Some(family.clone()), handle: None, author, entry }
    }

    /// The row, naming an agent.
    #[must_use]
    pub fn naming(mut self, handle: &Handle) -> Self {
        self.handle = Some(handle.clone());
        self
    }
}
