//! One beat of an agent: state, facts and what was presented in; next state, reply and records out.
//!
//! Pure: everything random is drawn before and everything looked up is a fact, so a store may run it again. The
//! facts are read in the transaction that applies the step, so what was true at commit is checked again at issue
//! (D-18).

use crate::connection::Connection;
use crate::evidence::Operator;
use crate::issue::{Grant, Issuer};
use crate::ledger::Record;
use crate::likeness::Twin;
use crate::negotiation::{Negotiation, State};
use crate::registry::{Registered, Standing};
use crate::unit::{Owner, Unit};
use sayso_protocol::payload::agreement::{Breach, SignedAgreement};
use sayso_protocol::payload::assertion::Asserted;
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::negotiation::TokenReply;
use sayso_protocol::{NegotiationId, Timestamp};

mod table;

/// What the agent presented with its ticket.
pub enum Beat {
    /// The ticket alone: a first presentation or a poll.
    Present,
    /// An agreement whose signature verified, and what came of looking for whoever its agent says runs it.
    Commit(Box<SignedAgreement>, Option<Operator>),
    /// A claim that is not a readable agreement.
    Unreadable(Breach),
    /// A claim in a format not accepted here; the demand is repeated (O-25).
    OtherFormat,
    /// A provider's word for whom it acts, which a published key signed and which reaches what is asked (CORE-35).
    Identify(Asserted),
    /// It declines the terms.
    Decline,
}

/// What is true now, read in the same transaction.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The owner.
    pub owner: Option<Owner>,
    /// Where the resource server stands with her.
    pub standing: Option<Standing>,
    /// The resource's registration.
    pub registered: Option<Registered>,
    /// The governing unit.
    pub unit: Option<Unit>,
    /// The connection of the agent the negotiation is committed to, else of the one this beat speaks for, also when
    /// it has been ended.
    pub connection: Option<Connection>,
    /// The earlier request that this beat's agreement repeats (D-19).
    pub twin: Option<Twin>,
}

/// Everything random a step may need, drawn before it runs. Has no `Debug`: it becomes tickets.
#[derive(Clone)]
pub struct Draws {
    /// The next ticket.
    pub ticket: [u8; 32],
    /// The next nonce.
    pub nonce: [u8; 16],
    /// The next token id.
    pub jti: [u8; 16],
}

/// The deployment's constants a step needs. Has no `Debug`: it holds keys.
pub struct House {
    /// Names and keys.
    pub issuer: Issuer,
    /// Where terms are served; a version is at `{terms_endpoint}/{template_id}`.
    pub terms_endpoint: String,
    /// Which edition's identifiers are emitted.
    pub edition: Edition,
    /// Seconds between polls.
    pub interval: i64,
    /// The providers one of which has to say for whom an agent acts, before it is shown terms; none: nobody has to.
    pub providers: Vec<String>,
}

/// What a step does, applied by the store in the transaction that read the facts.
pub struct Step {
    /// The next state.
    pub state: State,
    /// Whether the agent gets the drawn ticket.
    pub rotates: bool,
    /// When a poll of the next ticket is due; earlier ones are held.
    pub due: Timestamp,
    /// What the agent is told.
    pub reply: TokenReply,
    /// Rows for her record.
    pub records: Vec<Record>,
    /// The earlier request whose place this one takes (D-19).
    pub supersedes: Option<NegotiationId>,
    /// The grant issued.
    pub grant: Option<Grant>,
    /// Whether the ticket is left unspent and nothing changes: the request made no sense here.
    pub untouched: bool,
}

/// Moves `negotiation` by one beat.
pub fn step(
    house: &House,
    negotiation: &Negotiation,
    facts: &Facts,
    beat: &Beat,
    draws: &Draws,
    now: Timestamp,
) -> Step {
    table::Table { house, negotiation, facts, draws, now }.play(beat)
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
