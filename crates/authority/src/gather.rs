//! From what an agent presents to a beat: reading its claim, and asking others about it where it names others (D-41).
//!
//! Nobody is asked before the agreement verified under its header's key and its ticket is known to be live, and nothing
//! is spent before everybody was heard. Every credential that is not accepted has one answer, and its ticket stays good.

use crate::Authority;
use sayso_fetch::{Fetch, Limits, get};
use sayso_owner::step::Beat;
use sayso_owner::store::{Digest, Peek};
use sayso_protocol::payload::agreement::{Breach, Presented, SignedAgreement, Unvouched};
use sayso_protocol::payload::credential::{BadCredential, IssuerKeys, keys_address};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::negotiation::{TicketRequest, TokenError, TokenReply};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

const UNVOUCHED: &str = "the agent credential is not one this authority accepts; present the ticket again with another \
                         one, or sign with a bare key";
const AWAY: &str = "nobody could be asked about what came with this ticket; present it again";
const BUSY: &str = "what came with this ticket is being looked at; wait for that answer";

/// Tickets that are being looked at. One of these serves all callers.
#[derive(Clone, Default)]
pub(crate) struct Gathering {
    tickets: Arc<Mutex<HashSet<[u8; 32]>>>,
}

/// One look at what came with a ticket; over when it is dropped, and held by whoever looks, not by whoever waits for it.
struct Turn {
    gathering: Gathering,
    ticket: [u8; 32],
}

impl Gathering {
    fn with<T>(&self, act: impl FnOnce(&mut HashSet<[u8; 32]>) -> T) -> T {
        act(&mut self.tickets.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn turn(&self, ticket: Digest) -> Option<Turn> {
        let first = self.with(|tickets| tickets.insert(ticket.0));
        first.then(|| Turn { gathering: self.clone(), ticket: ticket.0 })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.gathering.with(|tickets| tickets.remove(&self.ticket));
    }
}

impl Authority {
    /// The beat of a first presentation. What it claims is not looked at: nothing has been demanded yet.
    pub(crate) fn first_beat(request: &TicketRequest) -> Beat {
        match read(request) {
            Read::Beat(beat) => beat,
            Read::Agreement(Presented::Bare(agreement)) => Beat::Commit(agreement, None),
            Read::Agreement(Presented::Named(_)) | Read::Unreadable(Breach::Credential) => Beat::OtherFormat,
            Read::Unreadable(breach) => Beat::Unreadable(breach),
        }
    }

    /// The beat of a later presentation, everybody asked who has to be; or an answer that leaves the ticket as it is.
    pub(crate) async fn beat(
        self: &Arc<Self>,
        request: &TicketRequest,
        ticket: Digest,
        peek: &Peek,
    ) -> Result<Beat, TokenReply> {
        let presented = match read(request) {
            Read::Beat(beat) => return Ok(beat),
            Read::Unreadable(Breach::Credential) => return Err(unvouched(None)),
            Read::Unreadable(breach) => return Ok(Beat::Unreadable(breach)),
            Read::Agreement(presented) => presented,
        };
        let asks = match &presented {
            Presented::Bare(agreement) => agreement.described().client_id.is_some(),
            Presented::Named(_) => true,
        };
        match presented {
            Presented::Bare(agreement) if !asks => return Ok(Beat::Commit(agreement, None)),
            // Committed already: whatever is said now decides nothing, and is not looked into.
            Presented::Named(_) if peek.cnf.is_some() => return Ok(Beat::OtherFormat),
            Presented::Bare(agreement) if peek.cnf.is_some() => return Ok(Beat::Commit(agreement, None)),
            _ => {}
        }
        let busy = || TokenReply::refused(TokenError::TooManyRequests, BUSY);
        let turn = self.gathering.turn(ticket).ok_or_else(busy)?;
        // A task of its own: whoever asked may leave in the middle, and what was begun is finished, counted and remembered.
        let authority = self.clone();
        let gathered = tokio::spawn(async move {
            let _turn = turn;
            authority.gather(presented).await
        });
        gathered.await.unwrap_or_else(|_| Err(TokenReply::refused(TokenError::TemporarilyUnavailable, AWAY)))
    }

    async fn gather(&self, presented: Presented) -> Result<Beat, TokenReply> {
        let agreement = match presented {
            Presented::Bare(agreement) => agreement,
            Presented::Named(named) => {
                Box::new(self.vouch(*named).await.map_err(|why| unvouched(Some(why)))?)
            }
        };
        let operator = self.operator(&agreement).await;
        Ok(Beat::Commit(agreement, operator))
    }

    /// The agreement under the name its credential gives it, if an issuer that is believed here vouches for that.
    async fn vouch(&self, named: Unvouched) -> Result<SignedAgreement, BadCredential> {
        let (shown, now) = (named.credential(), self.now());
        if !self.agent_issuers.believes(shown.issuer()) {
            return Err(BadCredential::Issuer);
        }
        shown.could_hold(self.issuer(), now)?;
        if !named.is_for(self.issuer(), now) {
            return Err(BadCredential::Audience);
        }
        let keys = self.issuer_keys(shown.issuer(), shown.kid()).await.ok_or(BadCredential::Unpublished)?;
        named.vouched(&keys, self.issuer(), self.now())
    }

    async fn issuer_keys(&self, issuer: &str, kid: Option<&str>) -> Option<IssuerKeys> {
        let serves = |keys: &IssuerKeys| keys.knows(kid);
        let ask = || ask_issuer(self.egress.configured.clone(), issuer.to_owned());
        self.agent_issuers.keys(issuer, serves, &self.clock, ask).await
    }
}

/// What an issuer publishes now.
async fn ask_issuer(fetch: Arc<dyn Fetch>, issuer: String) -> Option<IssuerKeys> {
    let read = async {
        let document = get(&*fetch, &IssuerKeys::document_of(&issuer), Limits::DOCUMENT).await;
        let address = keys_address(&issuer, &document.map_err(|why| why.to_string())?);
        let address = address.map_err(|why| why.to_string())?;
        let set = get(&*fetch, &address, Limits::DOCUMENT).await.map_err(|why| why.to_string())?;
        IssuerKeys::read(&set).map_err(|why| why.to_string())
    };
    read.await.map_err(|why| tracing::warn!(issuer, why, "issuer.unreadable")).ok()
}

fn unvouched(why: Option<BadCredential>) -> TokenReply {
    match why {
        Some(why) => tracing::info!(%why, "credential.refused"),
        None => tracing::info!("credential.unreadable"),
    }
    TokenReply::refused(TokenError::RequestDenied, UNVOUCHED)
}

/// What was presented, as far as it can be read without asking anybody.
enum Read {
    Beat(Beat),
    Agreement(Presented),
    Unreadable(Breach),
}

fn read(request: &TicketRequest) -> Read {
    if request.decline {
        return Read::Beat(Beat::Decline);
    }
    match &request.claim {
        None => Read::Beat(Beat::Present),
        Some(claim) if !claim.format.as_deref().is_some_and(Edition::accepts_format) => {
            Read::Beat(Beat::OtherFormat)
        }
        Some(claim) => match Presented::read(&claim.token) {
            Ok(presented) => Read::Agreement(presented),
            Err(breach) => Read::Unreadable(breach),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // D-41
    #[test]
    fn a_ticket_is_looked_at_once_at_a_time() {
        let gathering = Gathering::default();
        let ticket = Digest::of("t");
        let turn = gathering.turn(ticket);
        assert!(turn.is_some() && gathering.turn(ticket).is_none());
        assert!(gathering.turn(Digest::of("u")).is_some());
        drop(turn);
        assert!(gathering.turn(ticket).is_some());
    }
}
