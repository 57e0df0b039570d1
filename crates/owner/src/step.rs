//! One beat of an agent: state, facts and what was presented in; next state, reply and records out.
//!
//! Pure: everything random is drawn before and everything looked up is a fact, so a store may run it again. The
//! facts are read in the transaction that applies the step, so what was true at commit is checked again at issue
//! (D-18).

use crate::connection::Connection;
use crate::issue::{self, Grant, IssueFacts, Issuer};
use crate::ledger::{Author, Kind, Record};
use crate::negotiation::{Ask, Commitment, Ending, Negotiation, PENDING_SECONDS, State};
use crate::registry::{Registered, Standing};
use crate::unit::{Owner, Unit};
use sayso_protocol::payload::agreement::{Breach, SignedAgreement};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::negotiation::{TokenError, TokenReply};
use sayso_protocol::payload::terms::{Proffer, RequiredClaim, Terms};
use sayso_protocol::{Timestamp, b64};
use serde_json::json;

/// What the agent presented with its ticket.
pub enum Beat {
    /// The ticket alone: a first presentation or a poll.
    Present,
    /// An agreement whose signature verified.
    Commit(Box<SignedAgreement>),
    /// A claim that is not a readable agreement.
    Unreadable(Breach),
    /// A claim in a format not accepted here; the demand is repeated (O-25).
    OtherFormat,
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
    /// The connection of the agent this beat speaks for.
    pub connection: Option<Connection>,
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
    Table { house, negotiation, facts, draws, now }.play(beat)
}

/// One beat being played: what `step` was given.
struct Table<'a> {
    house: &'a House,
    negotiation: &'a Negotiation,
    facts: &'a Facts,
    draws: &'a Draws,
    now: Timestamp,
}

impl Table<'_> {
    fn play(&self, beat: &Beat) -> Step {
        match (&self.negotiation.state, beat) {
            (State::Closed { .. }, _) => self.untouched(TokenError::InvalidGrant, "this ticket was already used"),
            (State::Denied { .. }, Beat::Present) => self.close(Ending::Denied, "the resource owner said no"),
            (State::AwaitingAgreement { proffer, .. }, Beat::Decline) => self.declined(proffer),
            (_, Beat::Decline) => {
                self.untouched(TokenError::InvalidRequest, "there is nothing to decline: no claim is awaited")
            }
            (State::AwaitingOwner { deadline, .. }, _) => self.waiting(*deadline),
            _ => match self.governed() {
                Err(why) => self.refused(why),
                Ok((unit, terms)) => self.governed_beat(beat, unit, &terms),
            },
        }
    }

    fn governed_beat(&self, beat: &Beat, unit: &Unit, terms: &Terms) -> Step {
        match (&self.negotiation.state, beat) {
            (State::Approved { commitment, .. }, _) if self.moved_on(commitment, unit) => {
                self.proffer(unit, terms)
            }
            (State::Approved { commitment, decided }, _) => {
                let stands = self.facts.connection.as_ref().filter(|it| it.is_active() && it.epoch == decided.epoch);
                match stands {
                    None => self.close(Ending::Revoked, "the resource owner ended this connection"),
                    Some(_) if issue::ends(decided.at, commitment) <= self.now => {
                        self.close(Ending::Expired, "the approval lapsed before it was claimed; ask again")
                    }
                    Some(connection) => self.issue(commitment, decided.at, connection.epoch, vec![]),
                }
            }
            (State::AwaitingAgreement { proffer, version, .. }, Beat::Commit(agreement)) => {
                let current = *version == unit.version && proffer.terms.template_id == terms.template_id;
                if current { self.committed(agreement, proffer, unit) } else { self.proffer(unit, terms) }
            }
            (State::AwaitingAgreement { .. }, Beat::Unreadable(breach)) => {
                self.close(Ending::Breached, &breach.to_string())
            }
            _ => self.proffer(unit, terms),
        }
    }

    /// The unit that governs the resource, with its terms, or why there is none.
    fn governed(&self) -> Result<(&Unit, Terms), &'static str> {
        if self.facts.standing != Some(Standing::Active) {
            return Err("the resource owner does not trust this resource server");
        }
        let registered = self.facts.registered.as_ref().ok_or("this resource is no longer registered")?;
        let scopes = &registered.resource.resource_scopes;
        if !self.negotiation.scopes.iter().all(|scope| scopes.contains(scope)) {
            return Err("a scope of this request is no longer registered");
        }
        let unit = self.facts.unit.as_ref().ok_or("the resource owner shares this with nobody")?;
        let owner = self.facts.owner.as_ref().ok_or("this resource has no owner here")?;
        let terms = unit.published(&owner.namespace, &self.house.issuer.url);
        terms.map(|terms| (unit, terms)).map_err(|_| "this resource has no usable terms")
    }

    fn moved_on(&self, commitment: &Commitment, unit: &Unit) -> bool {
        commitment.unit != unit.id || commitment.version != unit.version
    }

    fn proffer(&self, unit: &Unit, terms: &Terms) -> Step {
        let proffer = Proffer {
            terms_uri: format!("{}/{}", self.house.terms_endpoint, terms.template_id),
            terms: terms.clone(),
            nonce: b64::encode(self.draws.nonce),
            family: self.negotiation.id.clone(),
            resource_id: self.negotiation.resource.clone(),
        };
        let claim = RequiredClaim::agreement(self.house.edition, proffer.clone());
        let state = State::AwaitingAgreement { proffer: Box::new(proffer), unit: unit.id.clone(), version: unit.version };
        self.rotate(state, TokenReply::NeedInfo { ticket: self.ticket(), claim: Box::new(claim) })
    }

    fn committed(&self, agreement: &SignedAgreement, proffer: &Proffer, unit: &Unit) -> Step {
        let tool = self.facts.registered.as_ref().map(|registered| &registered.resource.tool);
        let handle = agreement.handle();
        if let Err(breach) = agreement.assents_to(proffer, tool, self.now) {
            let entry = json!({ "terms_uri": proffer.terms_uri, "because": breach.to_string() });
            let row = Record::new(Kind::Refused, &self.negotiation.id, Author::Policy, entry).naming(&handle);
            return Step { records: vec![row], ..self.close(Ending::Breached, &breach.to_string()) };
        }
        let commitment = commitment(agreement, proffer, unit, self.now);
        let promised = self.promised(&commitment);
        let stands = self.facts.connection.as_ref().filter(|connection| connection.is_active());
        match stands {
            Some(connection) if !unit.ask_me => {
                self.issue(&commitment, self.now, connection.epoch, vec![promised])
            }
            stands => {
                let ask = if stands.is_some() { Ask::Operation } else { Ask::Connection };
                let deadline = self.now.plus(PENDING_SECONDS);
                let state = State::AwaitingOwner { commitment: Box::new(commitment), ask, deadline };
                Step { records: vec![promised], ..self.submitted(state) }
            }
        }
    }

    fn promised(&self, commitment: &Commitment) -> Record {
        let entry = json!({
            "resource_id": self.negotiation.resource,
            "scope": commitment.scope,
            "terms_uri": commitment.proffer.terms_uri,
            "agreement": commitment.agreement,
            "expires_in": commitment.expires_in,
            "operation": commitment.operation,
            "reason": commitment.reason,
        });
        Record::new(Kind::Promised, &self.negotiation.id, Author::Agent, entry).naming(&commitment.handle)
    }

    fn waiting(&self, deadline: Timestamp) -> Step {
        if deadline <= self.now {
            return self.close(Ending::Expired, "the resource owner did not answer in time");
        }
        self.submitted(self.negotiation.state.clone())
    }

    fn submitted(&self, state: State) -> Step {
        let interval = self.house.interval;
        self.rotate(state, TokenReply::Submitted { ticket: self.ticket(), interval })
    }

    fn declined(&self, proffer: &Proffer) -> Step {
        let entry = json!({ "terms_uri": proffer.terms_uri, "because": "the agent declined the terms" });
        let row = Record::new(Kind::Refused, &self.negotiation.id, Author::Agent, entry);
        Step { records: vec![row], ..self.close(Ending::Declined, "you declined the terms") }
    }

    fn refused(&self, why: &'static str) -> Step {
        let entry = json!({ "resource_id": self.negotiation.resource, "because": why });
        let mut row = Record::new(Kind::Refused, &self.negotiation.id, Author::Policy, entry);
        row.handle = self.negotiation.commitment().map(|commitment| commitment.handle.clone());
        Step { records: vec![row], ..self.close(Ending::Refused, why) }
    }

    fn issue(&self, commitment: &Commitment, decided: Timestamp, epoch: i64, records: Vec<Record>) -> Step {
        let resource = self.facts.registered.as_ref().map(|registered| &registered.resource);
        let facts = IssueFacts {
            now: self.now,
            decided,
            epoch,
            jti: b64::encode(self.draws.jti),
            consequence: resource.and_then(|resource| resource.consequence.clone()),
            definition: resource.and_then(|resource| resource.definition.clone()),
        };
        match issue::issue(&self.house.issuer, self.negotiation, commitment, &facts) {
            Ok(issued) => {
                let reply = TokenReply::Granted {
                    access_token: issued.token,
                    expires_in: issued.expires_in,
                    receipt: issued.grant.receipt.clone(),
                };
                let state = State::Closed { ending: Ending::Issued };
                Step { records, grant: Some(issued.grant), rotates: false, ..self.rotate(state, reply) }
            }
            Err(_) => self.untouched(TokenError::TemporarilyUnavailable, "the grant could not be signed; try again"),
        }
    }

    fn rotate(&self, state: State, reply: TokenReply) -> Step {
        let waits = matches!(reply, TokenReply::Submitted { .. });
        let due = if waits { self.now.plus(self.house.interval) } else { self.now };
        Step { state, rotates: true, due, reply, records: vec![], grant: None, untouched: false }
    }

    fn close(&self, ending: Ending, why: &str) -> Step {
        let reply = TokenReply::refused(TokenError::RequestDenied, why);
        Step { rotates: false, ..self.rotate(State::Closed { ending }, reply) }
    }

    fn untouched(&self, error: TokenError, why: &str) -> Step {
        let reply = TokenReply::refused(error, why);
        Step { rotates: false, untouched: true, ..self.rotate(self.negotiation.state.clone(), reply) }
    }

    fn ticket(&self) -> String {
        b64::encode(self.draws.ticket)
    }
}

fn commitment(agreement: &SignedAgreement, proffer: &Proffer, unit: &Unit, now: Timestamp) -> Commitment {
    let claims = agreement.claims();
    Commitment {
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
        at: now,
    }
}

#[cfg(test)]
mod tests;
