//! Beats two to four on the agent's side: terms, agreement, waiting, grant. A state that can be put away and taken
//! up again (CORE-33, CORE-42, TERMS-22..40).
//! It keeps two rules: nobody but `Consent` agrees to terms, and nobody but the owner ends the wait (CORE-43). What
//! is done with the grant is `call`'s business.

mod consent;
mod granted;
mod terms;
pub(crate) mod token;

pub use consent::{Ask, Consent, Decision, News};
pub use terms::Narrower;

use crate::asserting::Wanted;
use crate::discover::pins::Pins;
use crate::discover::{Authority, Doors};
use crate::fault::{BadDemand, Fault};
use crate::shows::Shows;
use crate::stop::Stop;
use crate::turns::Turn;
use crate::wallet::Grant;
use sayso_fetch::FetchError;
use sayso_protocol::canon::{S256, s256_bytes};
use sayso_protocol::id::{NegotiationId, ResourceId, Timestamp, ToolName};
use sayso_protocol::payload::assertion::{FORMAT, RequiredIdentity};
use sayso_protocol::payload::negotiation::{Answer, Demand};
use sayso_protocol::payload::terms::{Proffer, RequiredClaim};
use sayso_protocol::{Handle, SigningKey};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;
use token::{Answered, Say, present};

/// How often terms may change under a negotiation before the agent gives up.
const MOST_ROUNDS: usize = 3;
/// Seconds for which terms nobody has answered can be taken up again; a ticket lives for five minutes.
const FRESH: i64 = 240;
/// Seconds between polls when the authority names none, and the bounds of what it may name.
const INTERVAL: (i64, i64, i64) = (1, 5, 60);

/// What a negotiation is about; fixed when it starts.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) resource: String,
    pub(crate) tool: ToolName,
    pub(crate) params_s256: S256,
    pub(crate) resource_id: Option<ResourceId>,
    pub(crate) reference: Option<S256>,
    /// Thumbprint of the key that signs.
    pub(crate) key: String,
}

/// A negotiation, wherever it stands. Holds a ticket, so it has no `Debug`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Negotiation {
    pub(crate) authority: Authority,
    pub(crate) about: About,
    state: State,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// The ticket of a challenge, not presented yet.
    Asking { ticket: String },
    /// Asked for whom it acts.
    Naming { ticket: String, demand: Box<RequiredIdentity>, since: Timestamp },
    /// Terms nobody has agreed to.
    Weighing { ticket: String, claim: Box<RequiredClaim>, since: Timestamp },
    /// Agreed; the owner has been asked.
    Waiting { ticket: String, next_poll: Timestamp, committed: Box<Committed> },
}

/// What was agreed to, as far as the receipt must repeat it.
#[derive(Clone, Serialize, Deserialize)]
struct Committed {
    proffer: Proffer,
    agreement: S256,
    expires_in: i64,
    /// Who agreed, where that is not the bare key.
    #[serde(default)]
    handle: Option<Handle>,
}

/// Whatever a negotiation needs from its surroundings.
pub(crate) struct Party<'a> {
    pub(crate) doors: &'a Doors,
    pub(crate) pins: &'a Pins,
    pub(crate) key: &'a SigningKey,
    pub(crate) shows: &'a Shows,
    pub(crate) now: fn() -> Timestamp,
    pub(crate) consent: &'a dyn Consent,
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) reason: Option<&'a str>,
    pub(crate) deadline: Timestamp,
    pub(crate) stop: Option<&'a Stop>,
    pub(crate) turn: &'a Turn<'a>,
}

impl Party<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(Stop::is_said)
    }

    async fn stopped(&self) {
        match self.stop {
            Some(stop) => stop.said().await,
            None => std::future::pending().await,
        }
    }
}

/// How a negotiation ended, or that it has not.
pub(crate) enum End {
    Granted(Box<Grant>),
    Waiting,
    Declined,
    NotNow,
    /// The terms are put off; they can be taken up again.
    Later,
    Denied {
        words: Option<String>,
    },
    /// What was shown of an identity does not count there; the terms can be taken up again with something else.
    Doubted {
        words: Option<String>,
    },
    /// A provider's word is wanted that is not to be had.
    Unnamed {
        providers: Vec<String>,
    },
    /// The authority does not know the ticket any more.
    Lost,
}

enum Next {
    Go(State),
    End(End),
}

impl Negotiation {
    pub(crate) fn start(authority: Authority, about: About, ticket: String) -> Negotiation {
        Negotiation { authority, about, state: State::Asking { ticket } }
    }

    /// The negotiation's id, once the authority has named it.
    pub(crate) fn family(&self) -> Option<&NegotiationId> {
        match &self.state {
            State::Asking { .. } | State::Naming { .. } => None,
            State::Weighing { claim, .. } => Some(&claim.terms_template.family),
            State::Waiting { committed, .. } => Some(&committed.proffer.family),
        }
    }

    /// Whether the owner has been asked, so that this is worth taking up again.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting { .. })
    }

    /// Whether it is about one operation alone, as far as is known: terms that say otherwise have to be there first.
    pub(crate) fn is_exact(&self) -> bool {
        match &self.state {
            State::Asking { .. } | State::Naming { .. } => true,
            State::Weighing { claim, .. } => claim.terms_template.terms.per_operation,
            State::Waiting { committed, .. } => committed.proffer.terms.per_operation,
        }
    }

    /// Whether its terms waited too long for an answer to be worth asking about.
    pub(crate) fn is_stale(&self, now: Timestamp) -> bool {
        matches!(&self.state, State::Naming { since, .. } | State::Weighing { since, .. } if !(0..FRESH).contains(&now.since(*since)))
    }

    /// Goes on until there is an end, or the deadline; `keep` is called with every state worth coming back to.
    pub(crate) async fn run(
        &mut self,
        party: &Party<'_>,
        keep: &(dyn Fn(&Negotiation) -> Result<(), Fault> + Sync),
    ) -> Result<End, Fault> {
        let (mut rounds, mut named) = (0, false);
        // A wait that is taken up again is asked about at least once, however short the time is.
        let mut asked = false;
        loop {
            let next = match self.state.clone() {
                State::Asking { ticket } => self.ask(party, &ticket).await?,
                State::Naming { .. } if named => return Err(BadDemand::Identity.into()),
                State::Naming { ticket, demand, .. } => {
                    named = true;
                    self.name(party, &ticket, &demand).await?
                }
                State::Weighing { ticket, claim, .. } => {
                    rounds += 1;
                    if rounds > MOST_ROUNDS {
                        return Err(BadDemand::Restless.into());
                    }
                    if self.is_exact() && rounds == 1 {
                        party.turn.narrow().await;
                    }
                    asked = true;
                    self.weigh(party, &ticket, &claim).await?
                }
                State::Waiting { ticket, next_poll, committed } => {
                    if (asked && next_poll > party.deadline) || party.is_stopped() {
                        return Ok(End::Waiting);
                    }
                    if self.is_exact() && !asked {
                        party.turn.narrow().await;
                    }
                    asked = true;
                    self.poll(party, &ticket, next_poll, committed).await?
                }
            };
            match next {
                Next::Go(state) => self.state = state,
                Next::End(end) => return Ok(end),
            }
            if !matches!(self.state, State::Asking { .. }) {
                keep(self)?;
            }
        }
    }

    async fn ask(&self, party: &Party<'_>, ticket: &str) -> Result<Next, Fault> {
        let answered =
            present(self.authority.door(party.doors), &self.authority, ticket, Say::Nothing, None).await?;
        self.take(party, answered, None).await
    }

    async fn weigh(&self, party: &Party<'_>, ticket: &str, claim: &RequiredClaim) -> Result<Next, Fault> {
        let proffer = &claim.terms_template;
        let ask = Ask {
            resource: &self.about.resource,
            authority: &self.authority.issuer,
            proffer,
            tool: &self.about.tool,
            arguments: party.arguments,
        };
        let door = self.authority.door(party.doors);
        let narrower = match party.consent.agree(&ask).await {
            Decision::Agree(narrower) => narrower,
            Decision::NotNow => return Ok(Next::End(End::NotNow)),
            Decision::Later => return Ok(Next::End(End::Later)),
            Decision::Decline => {
                // Said once; whether it was heard changes nothing here.
                let _ = present(door, &self.authority, ticket, Say::Decline, None).await;
                return Ok(Next::End(End::Declined));
            }
        };
        let (answered, committed) = self.agree(party, ticket, claim, &narrower, party.shows).await?;
        if let (Answer::Doubted { ticket, .. }, Some(bare)) = (&answered.1, party.shows.without_credential())
        {
            party.consent.tell(&News::Doubted);
            let (answered, committed) = self.agree(party, ticket, claim, &narrower, &bare).await?;
            return self.take(party, answered, Some(committed)).await;
        }
        self.take(party, answered, Some(committed)).await
    }

    /// Presents the agreement, under what is shown beside the key.
    async fn agree(
        &self,
        party: &Party<'_>,
        ticket: &str,
        claim: &RequiredClaim,
        narrower: &Narrower,
        shows: &Shows,
    ) -> Result<(Answered, Box<Committed>), Fault> {
        let said = (party.arguments, party.reason);
        let shown = shows.at(&self.authority.issuer, party.key, (party.now)())?;
        let signed = terms::agree(&self.about, claim, narrower, said, (party.key, &shown), (party.now)())?;
        let say = Say::Claim { token: &signed.token, format: &signed.format };
        let door = self.authority.door(party.doors);
        let answered = present(door, &self.authority, ticket, say, None).await?;
        party.consent.tell(&News::Agreed);
        let committed = Committed {
            proffer: claim.terms_template.clone(),
            agreement: s256_bytes(signed.compact.as_bytes()),
            expires_in: signed.expires_in,
            handle: Some(shown.handle),
        };
        Ok((answered, Box::new(committed)))
    }

    /// Says for whom this agent acts, if there is somebody to say so.
    async fn name(&self, party: &Party<'_>, ticket: &str, demand: &RequiredIdentity) -> Result<Next, Fault> {
        let authority = &*self.authority.issuer;
        let wanted = Wanted { authority, demand, key: party.key, now: (party.now)() };
        let Some(token) = party.shows.assertion(&wanted).await? else {
            return Ok(Next::End(End::Unnamed { providers: demand.issuer.clone() }));
        };
        let say = Say::Claim { token: &token, format: FORMAT };
        let answered = present(self.authority.door(party.doors), &self.authority, ticket, say, None).await?;
        self.take(party, answered, None).await
    }

    async fn poll(
        &self,
        party: &Party<'_>,
        ticket: &str,
        due: Timestamp,
        committed: Box<Committed>,
    ) -> Result<Next, Fault> {
        let seconds = due.since((party.now)()).clamp(0, INTERVAL.2);
        party.consent.tell(&News::Waiting { authority: &self.authority.issuer, seconds });
        let due_again = || {
            Next::Go(State::Waiting {
                ticket: ticket.to_owned(),
                next_poll: due,
                committed: committed.clone(),
            })
        };
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(seconds.unsigned_abs())) => {}
            () = party.stopped() => return Ok(due_again()),
        }
        let signer = Some((party.key, (party.now)()));
        let door = self.authority.door(party.doors);
        match present(door, &self.authority, ticket, Say::Nothing, signer).await {
            // The ticket was not presented, so it is as good as before.
            Err(Fault::Unavailable { why: FetchError::Unreachable, .. }) => {
                let next_poll = (party.now)().plus(INTERVAL.1);
                Ok(Next::Go(State::Waiting { ticket: ticket.to_owned(), next_poll, committed }))
            }
            answered => self.take(party, answered?, Some(committed)).await,
        }
    }

    /// What an answer makes of the negotiation.
    async fn take(
        &self,
        party: &Party<'_>,
        (status, answer): Answered,
        committed: Option<Box<Committed>>,
    ) -> Result<Next, Fault> {
        match (answer, committed) {
            (Answer::NeedInfo { ticket, claims }, _) => {
                let since = (party.now)();
                Ok(Next::Go(match terms::accept(&self.about, &self.authority.issuer, claims)? {
                    Demand::Agreement(claim) => State::Weighing { ticket, claim, since },
                    Demand::Identity(demand) => State::Naming { ticket, demand, since },
                }))
            }
            (Answer::Doubted { description, .. }, _) => Ok(Next::End(End::Doubted { words: description })),
            (Answer::Submitted { ticket, interval }, Some(committed)) => {
                let (least, usual, most) = INTERVAL;
                let next_poll = (party.now)().plus(interval.unwrap_or(usual).clamp(least, most));
                Ok(Next::Go(State::Waiting { ticket, next_poll, committed }))
            }
            (Answer::Granted { access_token, expires_in, receipt }, Some(committed)) => {
                let receipt = receipt.ok_or(BadDemand::Receipt)?;
                let keys = self.authority.keys(party.doors, party.pins).await?;
                self.check(&receipt, &keys, party.key, &committed)?;
                let grant = self.grant((access_token, expires_in, receipt), &committed, (party.now)())?;
                party.consent.tell(&News::Granted);
                Ok(Next::End(End::Granted(Box::new(grant))))
            }
            (Answer::Submitted { .. } | Answer::Granted { .. }, None) => Err(BadDemand::Unasked.into()),
            (Answer::Error { code, description }, _) => refusal(status, &code, description),
        }
    }
}

/// What an error of the token endpoint means for the negotiation.
fn refusal(status: u16, code: &str, words: Option<String>) -> Result<Next, Fault> {
    match (code, status) {
        // Too many negotiations are open, or a dependency of the authority's failed: later may be different.
        (_, 429 | 500..) => Err(crate::fault::Party::Authority.unavailable(FetchError::Status(status))),
        ("request_denied" | "access_denied", _) => Ok(Next::End(End::Denied { words })),
        ("invalid_grant", _) => Ok(Next::End(End::Lost)),
        _ => Err(BadDemand::Answer.into()),
    }
}
