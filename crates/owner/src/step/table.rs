//! The table a beat is looked up in: state by beat by facts.
//!
//! A request that waits for her, or that she denied, is read before anything the agent sent. Policy is read again
//! at every other beat, and what is no longer as it was proffered is proffered anew (D-18).

use super::{Beat, Draws, Facts, House, Step};
use crate::connection::Connection;
use crate::evidence::{Evidence, Operator};
use crate::issue::{self, IssueFacts};
use crate::ledger::{Author, Kind, Record};
use crate::likeness::{Stage, Twin};
use crate::negotiation::{Ask, Commitment, Decided, Ending, Negotiation, PENDING_SECONDS, State};
use crate::registry::Standing;
use crate::unit::Unit;
use sayso_protocol::payload::agreement::SignedAgreement;
use sayso_protocol::payload::assertion::{Asserted, RequiredIdentity};
use sayso_protocol::payload::negotiation::{TokenError, TokenReply};
use sayso_protocol::payload::terms::{Proffer, RequiredClaim, Terms};
use sayso_protocol::{Handle, S256, Timestamp, b64};
use serde_json::json;

const REVOKED: &str = "the resource owner ended this connection";
const WITHDRAWN: &str = "the resource owner withdrew this resource server while this was under way";
const ANOTHERS: &str = "the identity assertion is about another key than the one that agreed";
const UNANSWERED: &str = "the resource owner did not answer in time";

/// One beat being played: what `step` was given.
pub(super) struct Table<'a> {
    pub(super) house: &'a House,
    pub(super) negotiation: &'a Negotiation,
    pub(super) facts: &'a Facts,
    pub(super) draws: &'a Draws,
    pub(super) now: Timestamp,
}

impl Table<'_> {
    pub(super) fn play(&self, beat: &Beat) -> Step {
        match (&self.negotiation.state, beat) {
            (State::Closed { ending }, _) => self.closed(*ending),
            (State::AwaitingAgreement { proffer, .. }, Beat::Decline) => self.declined(proffer),
            (_, Beat::Decline) => {
                self.untouched(TokenError::InvalidRequest, "there is nothing to decline: no claim is awaited")
            }
            (State::AwaitingOwner { deadline, .. }, _) => self.waiting(*deadline),
            // Whatever is presented: a claim here would otherwise put the question to her again.
            (State::Denied { .. }, _) => self.close(Ending::Denied, "the resource owner said no"),
            _ => match self.governed() {
                Err(why) => self.refused(self.speaker(beat), why),
                Ok((unit, terms)) => self.governed_beat(beat, unit, &terms),
            },
        }
    }

    fn governed_beat(&self, beat: &Beat, unit: &Unit, terms: &Terms) -> Step {
        match (&self.negotiation.state, beat) {
            (State::Approved { commitment, decided }, _) => self.claimed(commitment, decided, unit, terms),
            // Whom it acts for is asked first (CORE-38).
            (State::Opened, Beat::Identify(asserted)) => self.proffer(unit, terms, Some(asserted)),
            _ if self.is_unnamed() => self.identify(),
            (State::AwaitingAgreement { proffer, .. }, Beat::Commit(agreement, operator))
                if proffer.terms == *terms =>
            {
                self.committed(agreement, operator.as_ref(), proffer, unit)
            }
            (State::AwaitingAgreement { .. }, Beat::Unreadable(breach)) => {
                self.close(Ending::Breached, &breach.to_string())
            }
            _ => self.proffer(unit, terms, self.negotiation.asserted()),
        }
    }

    /// The unit that governs the resource, with its terms, or why there is none.
    fn governed(&self) -> Result<(&Unit, Terms), &'static str> {
        if self.facts.standing != Some(Standing::Active) {
            return Err("the resource owner does not trust this resource server");
        }
        let registered = self.facts.registered.as_ref().ok_or("this resource is no longer registered")?;
        if registered.changed {
            return Err("this tool is not as its owner last saw it; she has to look at the change first");
        }
        let needed = &self.negotiation.scopes;
        if !needed.iter().all(|scope| registered.resource.resource_scopes.contains(scope)) {
            return Err("a scope of this request is no longer registered");
        }
        let unit =
            self.facts.unit.as_ref().ok_or("the resource owner has not decided about this tool yet")?;
        if !needed.is_empty() && !needed.iter().any(|scope| unit.terms.scope.contains(scope)) {
            return Err("the resource owner's terms offer no scope of this request");
        }
        let owner = self.facts.owner.as_ref().ok_or("this resource has no owner here")?;
        let terms = unit.published(&owner.namespace, &self.house.issuer.url);
        terms.map(|terms| (unit, terms)).map_err(|_| "this resource has no usable terms")
    }

    /// The connection `handle` stands under. The facts may hold another agent's, where a claim that decides nothing
    /// spoke for one.
    fn connection(&self, handle: &Handle) -> Option<&Connection> {
        self.facts.connection.as_ref().filter(|it| it.is_active() && it.handle == *handle)
    }

    /// The pin of the tool's definition now.
    fn definition(&self) -> Option<&S256> {
        self.facts.registered.as_ref().and_then(|registered| registered.resource.definition.as_ref())
    }

    /// Whether a provider has to say first for whom the agent acts.
    fn is_unnamed(&self) -> bool {
        !self.house.providers.is_empty() && self.negotiation.asserted().is_none()
    }

    fn identify(&self) -> Step {
        let Negotiation { client_id, scopes, .. } = self.negotiation;
        let (providers, issuer) = (&self.house.providers, &self.house.issuer.url);
        let claim = RequiredIdentity::of(providers, issuer, client_id.as_str(), scopes);
        self.answer(State::Opened, TokenReply::Identify { ticket: self.ticket(), claim: Box::new(claim) })
    }

    fn proffer(&self, unit: &Unit, terms: &Terms, asserted: Option<&Asserted>) -> Step {
        let proffer = Proffer {
            terms_uri: format!("{}/{}", self.house.terms_endpoint, terms.template_id),
            terms: terms.clone(),
            nonce: b64::encode(self.draws.nonce),
            family: self.negotiation.id.clone(),
            resource_id: self.negotiation.resource.clone(),
        };
        let claim = RequiredClaim::agreement(self.house.edition, proffer.clone());
        let state = State::AwaitingAgreement {
            proffer: Box::new(proffer),
            unit: unit.id.clone(),
            version: unit.version,
            asserted: asserted.cloned().map(Box::new),
        };
        self.answer(state, TokenReply::NeedInfo { ticket: self.ticket(), claim: Box::new(claim) })
    }

    fn committed(
        &self,
        agreement: &SignedAgreement,
        operator: Option<&Operator>,
        proffer: &Proffer,
        unit: &Unit,
    ) -> Step {
        let tool = self.facts.registered.as_ref().map(|registered| &registered.resource.tool);
        if let Err(breach) = agreement.assents_to(proffer, tool, self.now) {
            let row =
                self.refusal(Author::Policy, Some(proffer), &breach.to_string()).naming(&agreement.handle());
            return Step { records: vec![row], ..self.close(Ending::Breached, &breach.to_string()) };
        }
        let asserted = self.negotiation.asserted();
        let about = |it: &Asserted| it.is_about(&agreement.key().thumbprint(), agreement.handle().as_str());
        if !asserted.is_none_or(about) {
            let row = self.refusal(Author::Policy, Some(proffer), ANOTHERS).naming(&agreement.handle());
            return Step { records: vec![row], ..self.close(Ending::Breached, ANOTHERS) };
        }
        let made = Commitment::new(agreement, proffer, unit, self.definition().cloned(), asserted, self.now);
        let commitment =
            Commitment { evidence: Evidence { operator: operator.cloned(), ..made.evidence }, ..made };
        if !self.negotiation.scopes.is_empty() && issue::scopes(self.negotiation, &commitment).is_empty() {
            return self.refused(Some(commitment.handle), "the agreement covers no scope of this request");
        }
        let twin = self.facts.twin.as_ref().filter(|twin| twin.family != self.negotiation.id);
        let mut promised = self.promised(&commitment, twin);
        let step = self.answered(commitment, unit, twin.map(|twin| &twin.stage));
        if let (State::AwaitingOwner { ask, .. }, Some(entry)) = (&step.state, promised.entry.as_object_mut())
        {
            entry.insert("asks".into(), json!(ask));
        }
        Step { records: vec![promised], supersedes: twin.map(|twin| twin.family.clone()), ..step }
    }

    /// Policy answers, or an approval of hers that nobody heard of, or she is asked: once, however often the agent asks
    /// the same (D-19).
    fn answered(&self, commitment: Commitment, unit: &Unit, earlier: Option<&Stage>) -> Step {
        match (self.connection(&commitment.handle), earlier) {
            (Some(connection), _) if !unit.ask_me => self.issue(&commitment, None, connection.epoch),
            (Some(connection), Some(Stage::Approved { at, epoch, definition }))
                if *epoch == connection.epoch
                    && *definition == commitment.definition
                    && issue::ends(*at, &commitment) > self.now =>
            {
                self.issue(&commitment, Some(*at), connection.epoch)
            }
            (standing, earlier) => {
                let ask = if standing.is_some() { Ask::Operation } else { Ask::Connection };
                let deadline = match earlier {
                    Some(Stage::Waiting { deadline, .. }) => *deadline,
                    _ => self.now.plus(PENDING_SECONDS),
                };
                self.submitted(State::AwaitingOwner { commitment: Box::new(commitment), ask, deadline })
            }
        }
    }

    /// What she approved is issued only while it is what she approved: the same agent under the same connection, in
    /// time, on the same terms, for the same tool (D-18, D-21, D-30).
    fn claimed(&self, commitment: &Commitment, decided: &Decided, unit: &Unit, terms: &Terms) -> Step {
        let connection = self.connection(&commitment.handle).filter(|it| it.epoch == decided.epoch);
        let Some(connection) = connection else { return self.close(Ending::Revoked, REVOKED) };
        if issue::ends(decided.at, commitment) <= self.now {
            return self.close(Ending::Expired, "the approval lapsed before it was claimed; ask again");
        }
        if commitment.proffer.terms != *terms || commitment.definition.as_ref() != self.definition() {
            return self.proffer(unit, terms, commitment.evidence.asserted.as_ref());
        }
        self.issue(commitment, Some(decided.at), connection.epoch)
    }

    fn waiting(&self, deadline: Timestamp) -> Step {
        if deadline <= self.now {
            return self.close(Ending::Expired, UNANSWERED);
        }
        self.submitted(self.negotiation.state.clone())
    }

    fn submitted(&self, state: State) -> Step {
        let interval = self.house.interval;
        let reply = TokenReply::Submitted { ticket: self.ticket(), interval };
        Step { due: self.now.plus(interval), ..self.answer(state, reply) }
    }

    fn declined(&self, proffer: &Proffer) -> Step {
        let row = self.refusal(Author::Agent, Some(proffer), "the agent declined the terms");
        Step { records: vec![row], ..self.close(Ending::Declined, "you declined the terms") }
    }

    /// Refused by policy. A row needs somebody to name: only a decline is recorded against nobody (POL-46), and a
    /// stranger with tickets must not be able to fill her record.
    fn refused(&self, speaker: Option<Handle>, why: &str) -> Step {
        let row = |handle| self.refusal(Author::Policy, None, why).naming(&handle);
        Step { records: speaker.map(row).into_iter().collect(), ..self.close(Ending::Refused, why) }
    }

    /// Who a beat speaks for, as far as a signature says so.
    fn speaker(&self, beat: &Beat) -> Option<Handle> {
        match (self.negotiation.commitment(), beat) {
            (Some(commitment), _) => Some(commitment.handle.clone()),
            (None, Beat::Commit(agreement, _)) => Some(agreement.handle()),
            _ => None,
        }
    }

    /// A ticket of a closed negotiation is live only where the owner's side closed it.
    fn closed(&self, ending: Ending) -> Step {
        match ending {
            Ending::Revoked => self.close(ending, REVOKED),
            Ending::Withdrawn => self.close(ending, WITHDRAWN),
            Ending::Expired => self.close(ending, UNANSWERED),
            _ => self.untouched(TokenError::InvalidGrant, "this ticket was already used"),
        }
    }

    fn promised(&self, commitment: &Commitment, twin: Option<&Twin>) -> Record {
        let mut entry = json!({
            "resource_id": self.negotiation.resource,
            "scope": commitment.scope,
            "terms_uri": commitment.proffer.terms_uri,
            "agreement": commitment.agreement,
            "expires_in": commitment.expires_in,
            "operation": commitment.operation,
            "reason": commitment.reason,
            "mission": commitment.mission,
            "supersedes": twin.map(|twin| &twin.family),
        });
        if let (false, Some(entry)) = (commitment.evidence.is_empty(), entry.as_object_mut()) {
            entry.insert("evidence".into(), json!(commitment.evidence));
        }
        Record::new(Kind::Promised, &self.negotiation.id, Author::Agent, entry).naming(&commitment.handle)
    }

    fn refusal(&self, author: Author, proffer: Option<&Proffer>, because: &str) -> Record {
        let mut entry = json!({ "resource_id": self.negotiation.resource, "because": because });
        if let (Some(proffer), Some(entry)) = (proffer, entry.as_object_mut()) {
            entry.insert("terms_uri".into(), proffer.terms_uri.clone().into());
        }
        Record::new(Kind::Refused, &self.negotiation.id, author, entry)
    }

    /// Issues what she approved at `approved`, or what policy grants now.
    fn issue(&self, commitment: &Commitment, approved: Option<Timestamp>, epoch: i64) -> Step {
        let resource = self.facts.registered.as_ref().map(|registered| &registered.resource);
        let facts = IssueFacts {
            now: self.now,
            decided: approved.unwrap_or(self.now),
            approved: approved.is_some(),
            epoch,
            jti: b64::encode(self.draws.jti),
            consequence: resource.and_then(|resource| resource.consequence.clone()),
        };
        match issue::issue(&self.house.issuer, self.negotiation, commitment, &facts) {
            Ok(issued) => {
                let reply = TokenReply::Granted {
                    access_token: issued.token,
                    expires_in: issued.expires_in,
                    receipt: issued.grant.receipt.clone(),
                };
                let state = State::Closed { ending: Ending::Issued };
                Step { grant: Some(issued.grant), ..self.answer(state, reply) }
            }
            Err(_) => {
                self.untouched(TokenError::TemporarilyUnavailable, "the grant could not be signed; try again")
            }
        }
    }

    fn close(&self, ending: Ending, why: &str) -> Step {
        self.answer(State::Closed { ending }, TokenReply::refused(TokenError::RequestDenied, why))
    }

    fn untouched(&self, error: TokenError, why: &str) -> Step {
        let reply = TokenReply::refused(error, why);
        Step { untouched: true, ..self.answer(self.negotiation.state.clone(), reply) }
    }

    /// The bare step: the ticket rotates exactly when the reply carries the next one.
    fn answer(&self, state: State, reply: TokenReply) -> Step {
        let rotates = matches!(
            reply,
            TokenReply::NeedInfo { .. } | TokenReply::Identify { .. } | TokenReply::Submitted { .. }
        );
        Step {
            state,
            rotates,
            due: self.now,
            reply,
            records: vec![],
            supersedes: None,
            grant: None,
            untouched: false,
        }
    }

    fn ticket(&self) -> String {
        b64::encode(self.draws.ticket)
    }
}
