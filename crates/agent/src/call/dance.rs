//! The dance, whichever way the call itself is sent: try, be challenged, corroborate, negotiate, try again.
//! It keeps two counts: a call negotiates at most as often as an authority may lose track of it, and begins at most
//! one session anew. Of callers racing on the same thing, one negotiates at a time.

use super::{Agent, Errand, Outcome};
use crate::discover::{Dialled, corroborate};
use crate::fault::{BadDemand, Fault};
use crate::negotiate::{About, Consent, End, Negotiation, News, Party};
use crate::stop::Stop;
use crate::turns::Turn;
use crate::wallet::{Grant, Reference, exact_place, wide_place};
use async_trait::async_trait;
use http::Response;
use sayso_fetch::Pieces;
use sayso_protocol::SigningKey;
use sayso_protocol::payload::challenge::ChallengeObject;
use std::time::Duration;
use url::Url;

/// How often a call is challenged afresh because the authority lost track of the negotiation before.
const MOST_NEGOTIATIONS: usize = 3;

/// How a call ended: by what was found out, or with an answer of the server's that is still to be read.
pub(super) enum Over {
    Outcome(Outcome),
    Carried(Box<Response<Pieces>>),
}

/// What one sending led to.
pub(super) enum Attempt {
    Over(Over),
    Challenged(Box<ChallengeObject>),
}

impl From<Outcome> for Attempt {
    fn from(outcome: Outcome) -> Attempt {
        Attempt::Over(Over::Outcome(outcome))
    }
}

/// A way on which a call is sent.
#[async_trait]
pub(super) trait Road: Send {
    /// Sends the call: as it is, or with a grant and signed. A single-use grant is out of the wallet by now.
    async fn attempt(
        &mut self,
        agent: &Agent,
        errand: &Errand,
        grant: Option<&Grant>,
    ) -> Result<Attempt, Fault>;

    /// Begins a session that was lost anew; false where that is not for us to do.
    async fn anew(&mut self, agent: &Agent, errand: &Errand) -> Result<bool, Fault>;
}

/// What a negotiation within a call led to.
enum Led {
    /// A grant, unless another process got the single-use one first, and whether it was negotiated just now.
    Holding {
        grant: Option<Box<Grant>>,
        new: bool,
    },
    Lost,
    Ended(Outcome),
}

impl Agent {
    pub(super) async fn dance(
        &self,
        errand: &Errand,
        dialled: &Dialled,
        road: &mut dyn Road,
        consent: &dyn Consent,
    ) -> Result<Over, Fault> {
        let (mut held, mut fresh, mut again) = (self.held(errand, None)?, false, false);
        if held.is_some() {
            consent.tell(&News::Reusing);
        } else if self.parked(errand)?.is_some() {
            match self.take_up(errand, consent).await? {
                Led::Ended(outcome) => return Ok(Over::Outcome(outcome)),
                Led::Holding { grant, new } => (fresh, held) = (new && grant.is_some(), grant),
                Led::Lost => consent.tell(&News::Restarting),
            }
        }
        for _ in 0..=MOST_NEGOTIATIONS {
            let challenge = match road.attempt(self, errand, held.as_deref()).await? {
                // The owner took her time, and the server did not wait; of this call it heard nothing.
                Attempt::Over(Over::Outcome(Outcome::Refused(refused)))
                    if refused.has_no_session() && !again && road.anew(self, errand).await? =>
                {
                    (held, again) = (self.held(errand, None)?, true);
                    continue;
                }
                Attempt::Over(over) => return Ok(over),
                Attempt::Challenged(_) if fresh => return Err(BadDemand::CounterChallenge.into()),
                Attempt::Challenged(challenge) => challenge,
            };
            held = None;
            match self.answer(errand, dialled, *challenge, consent).await? {
                Led::Ended(outcome) => return Ok(Over::Outcome(outcome)),
                Led::Holding { grant, new } => (fresh, held) = (new && grant.is_some(), grant),
                Led::Lost => consent.tell(&News::Restarting),
            }
        }
        Err(BadDemand::Restless.into())
    }

    async fn turn(&self, errand: &Errand) -> Option<Turn<'_>> {
        let wanted = errand.wanted(None);
        let wait = Duration::from_secs(u64::from(errand.wait).max(1));
        self.turns.take(&wide_place(&wanted), exact_place(&wanted), wait).await
    }

    /// Takes up what an earlier call left, unless another caller finished it meanwhile.
    async fn take_up(&self, errand: &Errand, consent: &dyn Consent) -> Result<Led, Fault> {
        let Some(turn) = self.turn(errand).await else { return Ok(Led::Ended(Outcome::Busy)) };
        if let Some(grant) = self.held(errand, None)? {
            consent.tell(&News::Reusing);
            return Ok(Led::Holding { grant: Some(grant), new: false });
        }
        let Some(parked) = self.parked(errand)? else {
            return Ok(Led::Holding { grant: None, new: false });
        };
        self.resume(errand, parked, &turn, consent).await
    }

    async fn resume(
        &self,
        errand: &Errand,
        parked: Negotiation,
        turn: &Turn<'_>,
        consent: &dyn Consent,
    ) -> Result<Led, Fault> {
        if parked.is_waiting() {
            consent.tell(&News::Resuming { authority: &parked.authority.issuer });
        }
        self.negotiate(errand, parked, turn, consent).await
    }

    /// Corroborates a challenge and negotiates, unless a grant for the same reference is held already or another
    /// caller's negotiation is about the same.
    async fn answer(
        &self,
        errand: &Errand,
        dialled: &Dialled,
        challenge: ChallengeObject,
        consent: &dyn Consent,
    ) -> Result<Led, Fault> {
        let authority = corroborate(&self.doors, &self.pins, dialled, &challenge, (self.now)()).await?;
        consent.tell(&News::Challenged { authority: &authority.issuer });
        let Some(turn) = self.turn(errand).await else { return Ok(Led::Ended(Outcome::Busy)) };
        let remediation = challenge.authorization_remediation;
        let known = remediation.as_ref().map(|remediation| Reference {
            digest: &remediation.authorization_reference,
            authority: &authority.issuer,
        });
        if let Some(grant) = self.held(errand, known)? {
            consent.tell(&News::Reusing);
            return Ok(Led::Holding { grant: Some(grant), new: false });
        }
        if let Some(parked) =
            self.parked(errand)?.filter(|parked| parked.authority.issuer == authority.issuer)
        {
            return self.resume(errand, parked, &turn, consent).await;
        }
        let key = self.key_at(errand, &authority.issuer)?;
        let detail = remediation.as_ref().and_then(|remediation| remediation.authorization_details.first());
        let about = About {
            resource: errand.resource.clone(),
            tool: errand.tool.clone(),
            params_s256: errand.params_s256.clone(),
            resource_id: detail.map(|detail| detail.identifier.clone()),
            reference: remediation.map(|remediation| remediation.authorization_reference),
            key: key.kid(),
        };
        let negotiation = Negotiation::start(authority, about, challenge.ticket);
        self.negotiate(errand, negotiation, &turn, consent).await
    }

    async fn negotiate(
        &self,
        errand: &Errand,
        mut negotiation: Negotiation,
        turn: &Turn<'_>,
        consent: &dyn Consent,
    ) -> Result<Led, Fault> {
        let key = self.key_at(errand, &negotiation.authority.issuer)?;
        let party = Party {
            doors: &self.doors,
            pins: &self.pins,
            key: &key,
            shows: &errand.shows,
            now: self.now,
            consent,
            arguments: &errand.arguments,
            reason: errand.reason.as_deref(),
            deadline: (self.now)().plus(errand.wait.into()),
            stop: errand.stop.as_ref(),
            turn,
        };
        let park = |negotiation: &Negotiation| self.wallet.park(negotiation).map_err(Fault::from);
        let end = negotiation.run(&party, &park).await?;
        let stopped = errand.stop.as_ref().is_some_and(Stop::is_said);
        if let End::Granted(grant) = &end {
            // On disk before the way to it is forgotten, so that no moment is without either.
            self.wallet.keep(grant, (self.now)())?;
        }
        if !matches!(end, End::Waiting | End::Later | End::Doubted { .. }) {
            self.wallet.forget(&negotiation)?;
        }
        Ok(match end {
            End::Granted(_) | End::Waiting | End::Later if stopped => Led::Ended(Outcome::Stopped),
            End::Granted(grant) => {
                Led::Holding { grant: self.wallet.claim(*grant)?.map(Box::new), new: true }
            }
            End::Lost => Led::Lost,
            End::Later => Led::Ended(Outcome::Later),
            End::Declined => Led::Ended(Outcome::NotAccepted { declined: true }),
            End::NotNow => Led::Ended(Outcome::NotAccepted { declined: false }),
            End::Denied { words } => Led::Ended(Outcome::Denied { words }),
            End::Doubted { words } => Led::Ended(Outcome::NotBelieved { words }),
            End::Unnamed { providers } => Led::Ended(Outcome::Unnamed { providers }),
            End::Waiting => Led::Ended(Outcome::Waiting {
                authority: negotiation.authority.issuer.clone(),
                family: negotiation.family().cloned(),
            }),
        })
    }

    /// A grant in the wallet that this errand's key can use; a single-use one is out of the wallet with that.
    fn held(&self, errand: &Errand, reference: Option<Reference<'_>>) -> Result<Option<Box<Grant>>, Fault> {
        let usable = |grant: &Grant| self.holds(errand, &grant.authority, &grant.key);
        Ok(self.wallet.take(&errand.wanted(reference), (self.now)(), &usable)?.map(Box::new))
    }

    /// What an earlier call of the same kind left, if it was this errand's key that it was for.
    fn parked(&self, errand: &Errand) -> Result<Option<Negotiation>, Fault> {
        let parked = self.wallet.parked(&errand.wanted(None))?;
        let now = (self.now)();
        Ok(parked.filter(|parked| {
            !parked.is_stale(now) && self.holds(errand, &parked.authority.issuer, &parked.about.key)
        }))
    }

    /// Whether the key this errand uses at an authority is the one of this thumbprint.
    fn holds(&self, errand: &Errand, issuer: &str, thumbprint: &str) -> bool {
        self.key_at(errand, issuer).is_ok_and(|key| key.kid() == thumbprint)
    }

    pub(super) fn key_at(&self, errand: &Errand, issuer: &str) -> Result<SigningKey, Fault> {
        match &errand.key {
            Some(key) => Ok(key.clone()),
            None => self.keys.key_for(&Url::parse(issuer).map_err(|_| BadDemand::Terms)?),
        }
    }
}
