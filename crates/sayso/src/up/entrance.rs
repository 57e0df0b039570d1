//! How the gateway of an `up` becomes known to the authority beside it: by the way that is open to every other (D-22).
//!
//! It introduces itself and logs in over HTTP, signed with its key. All that set-up does for it is to say beforehand that
//! this key, at this address, is expected; what the owner withdrew, that does not bring back.

use super::behind::Behind;
use super::parts::Wanted;
use crate::clock;
use crate::roles::introducer::{Introducer, Round};
use crate::settings::Settings;
use anyhow::bail;
use sayso_enforce::authority::http::HttpAuthority;
use sayso_fetch::{Client, Reach};
use sayso_owner::registry::{PreApproval, Standing};
use sayso_owner::store::Store;
use sayso_protocol::{ClientId, Realm, SigningKey, Thumbprint};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the ready line waits for it to be let in.
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(100);

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entered {
    /// It is trusted, and holds its token.
    In,
    /// She has to answer.
    Waits,
    /// She withdrew it, and it does not ask again.
    Withdrawn,
}

/// The gateway before the authority's door.
pub(super) struct Entrance {
    store: Arc<dyn Store>,
    approval: PreApproval,
    introducer: Introducer,
}

impl Entrance {
    /// The gateway of this address and key, in front of this server.
    pub(super) async fn of(
        store: &Arc<dyn Store>,
        wanted: &Wanted,
        settings: &Settings,
        behind: &Behind,
        (issuer, client_id, key): (&str, &ClientId, &SigningKey),
    ) -> anyhow::Result<Self> {
        let authority = HttpAuthority::new(
            Arc::new(Client::new(Reach::Configured)),
            issuer,
            client_id.clone(),
            wanted.owner.clone(),
            key.clone(),
            Arc::new(clock::now),
        );
        let (thumbprint, resource_uri) = (key.verifying().thumbprint(), format!("{client_id}/mcp"));
        let introducer = Introducer {
            authority: Arc::new(authority),
            issuer: issuer.to_owned(),
            owner: wanted.owner.clone(),
            client_id: client_id.clone(),
            resource_uri: resource_uri.clone(),
            name: name(&**store, wanted, behind, &thumbprint).await?,
            ask_again: settings.parse("gateway.ask_again")?,
        };
        let approval = PreApproval { client_id: client_id.clone(), resource_uri, key: thumbprint };
        // Before anybody is heard: a stranger who names this resource first has it looked at as what it is.
        store.pre_approve(&wanted.owner, &approval, clock::now()).await?;
        Ok(Self { store: Arc::clone(store), approval, introducer })
    }

    /// The client id it asks for.
    pub(super) fn client_id(&self) -> &ClientId {
        &self.approval.client_id
    }

    /// Lets it introduce itself. Where that does not let it in, whoever runs this is told why.
    ///
    /// # Errors
    /// When the authority could not be asked, or would not take it, for as long as the ready line waits.
    pub(super) async fn enter(&mut self) -> anyhow::Result<Entered> {
        let stood = self.expect().await?;
        if stood == Some(Standing::Revoked) && !std::mem::take(&mut self.introducer.ask_again) {
            self.introducer.tell(Round::Withdrawn);
            return Ok(Entered::Withdrawn);
        }
        let hers = matches!(stood, Some(Standing::Revoked | Standing::Pending));
        let start = Instant::now();
        loop {
            let round = self.introducer.enter().await.unwrap_or_else(Round::Unheard);
            match round {
                Round::Admitted => return Ok(Entered::In),
                Round::Later(_) if !hers => {}
                Round::Waits | Round::Withdrawn | Round::Later(_) => {
                    self.introducer.tell(round);
                    return Ok(Entered::Waits);
                }
                Round::Refused | Round::Unheard(_) => {}
            }
            if start.elapsed() > PATIENCE {
                self.introducer.tell(round);
                let (issuer, resource) = (&self.introducer.issuer, &self.introducer.resource_uri);
                bail!(
                    "this gateway cannot introduce itself to the authority beside it: see that {issuer} and {resource} \
                     lead here"
                );
            }
            sleep(AGAIN).await;
        }
    }

    /// Whoever looks whether she has answered, ever less often.
    pub(super) fn waiting(&self) -> Introducer {
        self.introducer.clone()
    }

    /// Says what its server calls itself, now that it was heard.
    ///
    /// # Errors
    /// When the authority could not be asked, or would not take it.
    pub(super) async fn rename(&mut self, realm: &Realm) -> anyhow::Result<()> {
        self.introducer.name = realm.to_string();
        if self.expect().await? == Some(Standing::Revoked) {
            // It has nothing to say until it asks again.
            return Ok(());
        }
        match self.introducer.enter().await? {
            Round::Admitted | Round::Waits | Round::Withdrawn => Ok(()),
            round @ (Round::Refused | Round::Later(_) | Round::Unheard(_)) => {
                bail!("the authority did not take its name: {round:?}")
            }
        }
    }

    async fn expect(&self) -> anyhow::Result<Option<Standing>> {
        Ok(self.store.pre_approve(&self.introducer.owner, &self.approval, clock::now()).await?)
    }
}

/// What it calls itself. Before a server that has not said its name yet, it keeps the one it had.
async fn name(
    store: &dyn Store,
    wanted: &Wanted,
    behind: &Behind,
    key: &Thumbprint,
) -> anyhow::Result<String> {
    if behind.watched.as_ref().is_some_and(|watched| watched.heard.is_none()) {
        let known = store.resource_servers(&wanted.owner).await?;
        let known = known.into_iter().find(|known| known.pinned_key.as_ref() == Some(key));
        if let Some(known) = known {
            return Ok(known.name);
        }
    }
    Ok(behind.realm.to_string())
}
