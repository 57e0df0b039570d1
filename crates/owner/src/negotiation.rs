//! A negotiation and its states.
//!
//! ```text
//!            need_info            agreement              her decision          claim
//! (ticket) ─────────► AwaitingAgreement ──► AwaitingOwner ──► Approved ──────► Closed(issued)
//!                          │   │  ▲             │    │            │ terms moved on
//!                          │   │  └─────────────┼────┼────────────┘
//!                          │   └── unasked ─────┼────┼───────────────────────► Closed(issued)
//!                          └─ decline, breach ──┴────┴─ Denied ─ expiry ─────► Closed(…)
//! ```
//! `step` moves it by an agent's beat, `decision` by the owner; nobody else does. Waiting is a state that no
//! message of the agent's changes.

use crate::evidence::Evidence;
use crate::ledger::Author;
use crate::likeness;
use crate::unit::Unit;
use sayso_protocol::payload::agreement::{Mission, SignedAgreement};
use sayso_protocol::payload::assertion::Asserted;
use sayso_protocol::payload::operation::Operation;
use sayso_protocol::payload::terms::Proffer;
use sayso_protocol::{
    ClientId, Handle, Jwk, NegotiationId, OwnerName, ResourceId, S256, Scope, Timestamp, UnitId,
};
use serde::{Deserialize, Serialize};

/// How long a ticket is good for between steps, in seconds.
pub const STEP_SECONDS: i64 = 300;
/// How long a request waits for the owner, in seconds; fixed at commit, never extended by polling (D-17).
pub const PENDING_SECONDS: i64 = 7 * 24 * 3600;

/// Why the owner is asked (CORE-39).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ask {
    /// The agent is not connected: first contact, or contact after an ending.
    Connection,
    /// It is, and her policy wants her answer.
    Operation,
}

/// The agent's side of an agreement, as the negotiation keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Commitment {
    /// What was agreed to.
    pub proffer: Proffer,
    /// The unit.
    pub unit: UnitId,
    /// The version of its terms.
    pub version: i64,
    /// The agreement as received.
    pub agreement_jws: String,
    /// Its digest.
    pub agreement: S256,
    /// Who agreed.
    pub handle: Handle,
    /// The key that signed.
    pub cnf: Jwk,
    /// The scopes agreed to.
    pub scope: Vec<Scope>,
    /// The lifetime agreed to, in seconds.
    pub expires_in: i64,
    /// The promises made.
    pub prohibited: Vec<String>,
    /// The act named.
    pub operation: Option<Operation>,
    /// The arguments as signed, for the owner to read.
    pub params: Option<serde_json::Value>,
    /// Why, in the agent's words.
    pub reason: Option<String>,
    /// The mission it names.
    pub mission: Option<Mission>,
    /// The pin of the tool's definition when it was made: what she is asked about (D-30).
    #[serde(default)]
    pub definition: Option<S256>,
    /// Whether the tool may ask follow-up questions in the call: what she is shown and approves with it (D-11).
    #[serde(default)]
    pub bind: bool,
    /// What another agreement to the same is alike to (D-19).
    pub likeness: S256,
    /// What was checked about the agent then.
    #[serde(default)]
    pub evidence: Evidence,
    /// When it was made.
    pub at: Timestamp,
}

impl Commitment {
    /// The commitment `agreement` makes to what `unit` proffered. That it assents to it is the caller's to have checked.
    pub fn new(
        agreement: &SignedAgreement,
        proffer: &Proffer,
        unit: &Unit,
        definition: Option<S256>,
        asserted: Option<&Asserted>,
        at: Timestamp,
    ) -> Self {
        let claims = agreement.claims();
        Self {
            proffer: proffer.clone(),
            unit: unit.id.clone(),
            version: unit.version,
            agreement_jws: agreement.compact().to_owned(),
            agreement: agreement.digest(),
            handle: agreement.handle(),
            cnf: agreement.key().jwk(),
            scope: claims.scope.clone(),
            expires_in: claims.expires_in,
            prohibited: claims.prohibited.clone(),
            operation: agreement.operation().cloned(),
            params: claims.operation.as_ref().map(|operation| operation.params.clone().into()),
            reason: claims.reason.clone(),
            mission: claims.mission.clone(),
            definition,
            bind: unit.bind,
            likeness: likeness::of(agreement, asserted),
            evidence: Evidence { asserted: asserted.cloned(), ..Evidence::of(agreement.credential(), None) },
            at,
        }
    }
}

/// Her decision on a waiting request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// When.
    pub at: Timestamp,
    /// By whom; recorded in the same step as the decision (POL-11).
    pub by: Author,
    /// The connection's epoch at that moment; a later ending voids the approval (D-21).
    pub epoch: i64,
}

/// How a negotiation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// A grant was issued.
    Issued,
    /// The agent declined the terms.
    Declined,
    /// The agreement was not what was proffered.
    Breached,
    /// The owner said no.
    Denied,
    /// Policy, or a resource or server that is gone, said no.
    Refused,
    /// The owner withdrew the resource server it was at, or that server moved.
    Withdrawn,
    /// Its time ran out.
    Expired,
    /// The owner ended the agent's connection while it waited.
    Revoked,
    /// The agent asked the same again and was attached (D-19).
    Superseded,
}

/// Where a negotiation stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// A ticket was presented; nothing has been proffered yet. Where an identity is asked for, it is asked for here.
    Opened,
    /// Terms were proffered.
    AwaitingAgreement {
        /// Which.
        proffer: Box<Proffer>,
        /// The unit.
        unit: UnitId,
        /// The version of its terms.
        version: i64,
        /// For whom the agent acts, where that was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asserted: Option<Box<Asserted>>,
    },
    /// The owner is asked.
    AwaitingOwner {
        /// What was agreed.
        commitment: Box<Commitment>,
        /// Why she is asked.
        ask: Ask,
        /// When the question lapses.
        deadline: Timestamp,
    },
    /// She said yes; the grant has not been claimed.
    Approved {
        /// What was agreed.
        commitment: Box<Commitment>,
        /// Her decision.
        decided: Decided,
    },
    /// She said no; the agent has not heard.
    Denied {
        /// Her decision.
        decided: Decided,
    },
    /// It is over.
    Closed {
        /// How.
        ending: Ending,
    },
}

/// A negotiation as the store keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Negotiation {
    /// Its id; the wire says `family`.
    pub id: NegotiationId,
    /// Whose resource.
    pub owner: OwnerName,
    /// Which resource server asked.
    pub client_id: ClientId,
    /// The resource.
    pub resource: ResourceId,
    /// The scopes that would suffice.
    pub scopes: Vec<Scope>,
    /// Where it stands.
    pub state: State,
    /// When its ticket was first presented.
    pub opened: Timestamp,
}

impl Negotiation {
    /// What the agent committed to, while it matters.
    pub fn commitment(&self) -> Option<&Commitment> {
        match &self.state {
            State::AwaitingOwner { commitment, .. } | State::Approved { commitment, .. } => Some(commitment),
            _ => None,
        }
    }

    /// For whom its agent acts, as far as that was asked for and said.
    pub fn asserted(&self) -> Option<&Asserted> {
        match &self.state {
            State::AwaitingAgreement { asserted, .. } => asserted.as_deref(),
            _ => self.commitment().and_then(|commitment| commitment.evidence.asserted.as_ref()),
        }
    }
}

impl State {
    /// Until when the ticket of this state can be presented.
    pub fn ticket_expires(&self, now: Timestamp) -> Timestamp {
        match self {
            State::AwaitingOwner { deadline, .. } => deadline.plus(sayso_protocol::payload::rpt::MAX_LIFE),
            _ => now.plus(STEP_SECONDS),
        }
    }

    /// A word for the column the store selects by.
    pub fn word(&self) -> &'static str {
        match self {
            State::Opened => "opened",
            State::AwaitingAgreement { .. } => "awaiting_agreement",
            State::AwaitingOwner { .. } => "awaiting_owner",
            State::Approved { .. } => "approved",
            State::Denied { .. } => "denied",
            State::Closed { .. } => "closed",
        }
    }
}
