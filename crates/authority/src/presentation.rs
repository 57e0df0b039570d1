//! One presentation of a ticket: read, hold a hasty poll, check who polls, and let the store decide (D-17).
//!
//! Everything that can be wrong with a request is found before its ticket is spent. What the presentation leads to is
//! `sayso_owner::step`'s business; it runs inside the store's transaction.

use crate::http::received::Received;
use crate::{Authority, draw, observe};
use sayso_owner::likeness::Speaker;
use sayso_owner::negotiation::{Negotiation, State};
use sayso_owner::step::{self, Beat, Draws, Step};
use sayso_owner::store::{Advanced, Digest, StepFn, Unavailable};
use sayso_protocol::payload::negotiation::{TicketRequest, TokenError, TokenReply};
use sayso_protocol::sig::{self, Profile};
use sayso_protocol::{Jwk, NegotiationId, Timestamp, b64, ticket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How often a held poll looks at the clock.
const TICK: Duration = Duration::from_millis(50);

const LOST: &str =
    "the ticket is unknown here, already used or expired; call the resource again for a fresh one";
const FULL: &str =
    "too many negotiations are open here, policy was not asked; try again later with a fresh ticket";

/// What one step will be told about, once it took effect.
type Told = Arc<Mutex<Option<Noted>>>;

/// For the log, the negotiation and its events; for whoever counts, where the step led.
struct Noted {
    family: NegotiationId,
    events: Vec<&'static str>,
    moved: Option<&'static str>,
}

/// A step ready to run, and what it left behind.
struct Prepared {
    step: StepFn,
    next: Digest,
    speaker: Option<Speaker>,
    now: Timestamp,
    told: Told,
}

impl Authority {
    /// Answers one presentation of a ticket.
    pub(crate) async fn present(
        self: &Arc<Self>,
        request: &TicketRequest,
        received: &Received,
    ) -> Result<TokenReply, Unavailable> {
        let (advanced, told) = if ticket::is_sealed(&request.ticket) {
            let Ok(attempt) = self.sealers.open(&request.ticket, self.now()) else {
                return Ok(self.lost());
            };
            let ready = self.prepare(Self::first_beat(request))?;
            let speaker = ready.speaker.as_ref();
            (self.store.open(&attempt, ready.next, speaker, ready.step, ready.now).await?, ready.told)
        } else {
            let spent = Digest::of(&request.ticket);
            let Some(peek) = self.store.peek(spent, self.now()).await? else { return Ok(self.lost()) };
            self.hold(peek.due).await;
            if let Some(key) = &peek.cnf
                && let Err(why) = self.poller(key, received).await?
            {
                return Ok(TokenReply::refused(TokenError::InvalidClient, why));
            }
            let beat = match self.beat(request, spent, &peek).await {
                Ok(beat) => beat,
                Err(refused) => return Ok(refused),
            };
            let ready = self.prepare(beat)?;
            let speaker = ready.speaker.as_ref();
            (self.store.advance(spent, ready.next, speaker, ready.step, ready.now).await?, ready.told)
        };
        Ok(match advanced {
            Advanced::Won(reply) => {
                self.tell(&told);
                reply
            }
            Advanced::Lost => self.lost(),
            Advanced::Full => {
                self.observed.presented(observe::FULL);
                TokenReply::refused(TokenError::TooManyRequests, FULL)
            }
        })
    }

    fn lost(&self) -> TokenReply {
        self.observed.presented(observe::LOST);
        TokenReply::refused(TokenError::InvalidGrant, LOST)
    }

    fn tell(&self, told: &Told) {
        let Some(noted) = told.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        for event in noted.events {
            tracing::info!(family = %noted.family, "{event}");
        }
        if let Some(moved) = noted.moved {
            self.observed.presented(moved);
        }
    }

    /// Waits until a poll is due, without spending its ticket. The wait is bounded however the clock moves.
    async fn hold(&self, due: Timestamp) {
        let most = Duration::from_secs(self.house.interval.unsigned_abs().saturating_add(1));
        let until = Instant::now() + most;
        while self.now() < due && Instant::now() < until {
            tokio::time::sleep(TICK).await;
        }
    }

    /// Checks the signature of a poll, where there is one or one is demanded, before anything is spent.
    async fn poller(&self, key: &Jwk, received: &Received) -> Result<Result<(), &'static str>, Unavailable> {
        let signed =
            received.headers.contains_key("signature") || received.headers.contains_key("signature-input");
        if !signed {
            let demanded = self.require_signed_polls;
            return Ok(if demanded {
                Err("sign polls with the key that signed the agreement")
            } else {
                Ok(())
            });
        }
        let wrong =
            "the signature must be fresh, by the key that signed the agreement, and cover the whole request";
        let (Ok(key), Ok(signatures)) = (key.key(), sig::read(&received.headers)) else {
            return Ok(Err(wrong));
        };
        let facts = received.facts(&self.public);
        match signatures.verify(&facts, &key, &Profile::default(), self.now()) {
            Err(_) => Ok(Err(wrong)),
            Ok(proof) if self.first_use(&proof).await? => Ok(Ok(())),
            Ok(_) => Ok(Err("this signature was already used; sign every request afresh")),
        }
    }

    /// Draws everything random, so that the step itself is pure.
    fn prepare(&self, beat: Beat) -> Result<Prepared, Unavailable> {
        let draws = Draws { ticket: draw()?, nonce: draw()?, jti: draw()? };
        let next = Digest::of(&b64::encode(draws.ticket));
        let speaker = match &beat {
            Beat::Commit(agreement, _) => Some(Speaker::of(agreement)),
            _ => None,
        };
        let (house, now, told) = (self.house.clone(), self.now(), Told::default());
        let noted = told.clone();
        let step: StepFn = Box::new(move |negotiation, facts| {
            let step = step::step(&house, negotiation, facts, &beat, &draws, now);
            *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(Noted {
                family: negotiation.id.clone(),
                events: events(negotiation, &step),
                moved: observe::moved(&negotiation.state, &step),
            });
            step
        });
        Ok(Prepared { step, next, speaker, now, told })
    }
}

/// The events of a step, by the names the reference implementation logs.
fn events(before: &Negotiation, step: &Step) -> Vec<&'static str> {
    let mut events = vec![];
    if step.untouched {
        return events;
    }
    let was_awaited = matches!(before.state, State::AwaitingAgreement { .. });
    let waits = matches!(step.state, State::AwaitingOwner { .. });
    if matches!(step.reply, TokenReply::NeedInfo { .. }) {
        events.push("need_info.terms_dictated");
    }
    if was_awaited && (waits || step.grant.is_some()) {
        events.push("contract.committed");
    }
    if was_awaited && waits {
        events.push("owner.notified");
    }
    if step.grant.is_some() {
        events.push("rpt.issued");
    }
    events
}
