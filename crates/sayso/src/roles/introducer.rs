//! A gateway that its owner's authority does not know introduces itself, and goes on when she has approved (FED-20).
//!
//! It asks her once: while she has not answered it only looks, ever less often, whether she has. What she withdrew is left
//! alone, unless the operator says that this gateway is to ask again.

use sayso_enforce::Unavailable;
use sayso_enforce::authority::http::{Admission, HttpAuthority, Introduced};
use sayso_protocol::{ClientId, OwnerName};
use std::sync::Arc;
use std::time::Duration;

/// The first wait; each that brought nothing new is twice the one before.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait while the authority cannot be asked, or the owner may answer at any time.
const SOON: Duration = Duration::from_secs(30);
/// The longest wait after a refusal.
const LATE: Duration = Duration::from_secs(300);

/// One owner's resource behind this gateway, and the authority it has to be known to.
#[derive(Clone)]
pub(crate) struct Introducer {
    pub(crate) authority: Arc<HttpAuthority>,
    pub(crate) issuer: String,
    pub(crate) owner: OwnerName,
    pub(crate) client_id: ClientId,
    pub(crate) resource_uri: String,
    /// What it calls itself.
    pub(crate) name: String,
    /// Whether it asks once more when it finds itself withdrawn.
    pub(crate) ask_again: bool,
}

/// What a round came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    /// It holds a token.
    Admitted,
    /// She has not answered.
    Waits,
    /// She withdrew it.
    Withdrawn,
    /// A check failed.
    Refused,
    /// It is to be tried again after so many seconds.
    Later(u64),
    /// The authority cannot be asked.
    Unheard(Unavailable),
}

impl Introducer {
    /// Runs until this gateway is admitted.
    pub(crate) async fn run(mut self) {
        let (mut last, mut wait) = (None, FIRST);
        loop {
            let round = self.round().await.unwrap_or_else(Round::Unheard);
            if round == Round::Admitted {
                tracing::info!(authority = %self.issuer, owner = %self.owner, "resource_server.admitted");
                return;
            }
            if last != Some(round) {
                self.tell(round);
                wait = FIRST;
            }
            last = Some(round);
            tokio::time::sleep(match round {
                Round::Later(seconds) => Duration::from_secs(seconds),
                _ => wait,
            })
            .await;
            let longest = if matches!(round, Round::Refused | Round::Withdrawn) { LATE } else { SOON };
            wait = (wait * 2).min(longest);
        }
    }

    async fn round(&mut self) -> Result<Round, Unavailable> {
        match self.stands().await? {
            None => self.enter().await,
            // Once: if she withdraws it again, that is her answer.
            Some(Round::Withdrawn) if std::mem::take(&mut self.ask_again) => self.enter().await,
            Some(round) => Ok(round),
        }
    }

    /// Says who it is, and logs in where that was enough.
    ///
    /// # Errors
    /// When the authority cannot be asked.
    pub(crate) async fn enter(&self) -> Result<Round, Unavailable> {
        Ok(match self.authority.introduce(&self.resource_uri, &self.name).await? {
            // Known, and its login not taken: its keys could not be read just now.
            Introduced::Known => self.stands().await?.unwrap_or(Round::Refused),
            Introduced::Waits => Round::Waits,
            Introduced::Refused => Round::Refused,
            Introduced::Later(seconds) => Round::Later(seconds),
        })
    }

    /// Where its login says it stands; `None` when it is not known.
    async fn stands(&self) -> Result<Option<Round>, Unavailable> {
        Ok(match self.authority.admission().await? {
            Admission::Admitted => Some(Round::Admitted),
            Admission::Waits => Some(Round::Waits),
            Admission::Withdrawn => Some(Round::Withdrawn),
            Admission::Unknown => None,
        })
    }

    /// Tells whoever runs this.
    pub(crate) fn tell(&self, round: Round) {
        let (authority, owner, client_id) = (&self.issuer, &self.owner, &self.client_id);
        match round {
            Round::Admitted => {}
            Round::Waits => tracing::warn!(
                authority, owner = %owner, client_id = %client_id,
                "resource_server.waits: until she approves it, every call is refused; she can with `sayso owner \
                 resource-servers approve {client_id}`"
            ),
            Round::Withdrawn => tracing::warn!(
                authority, owner = %owner, client_id = %client_id,
                "resource_server.withdrawn: she withdrew this gateway; `gateway.ask_again` asks her once more"
            ),
            Round::Refused => tracing::warn!(
                authority, owner = %owner, client_id = %client_id,
                "resource_server.refused: the authority serves no such owner, or cannot verify what is published at {}",
                self.resource_uri
            ),
            Round::Later(seconds) => {
                tracing::warn!(authority, owner = %owner, seconds, "resource_server.later");
            }
            Round::Unheard(fault) => {
                tracing::info!(authority, owner = %owner, why = %fault, "resource_server.unheard");
            }
        }
    }
}
