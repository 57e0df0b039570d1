//! Learning what an owner has by asking her resource servers, never by being told (FED-13..18).
//!
//! A pull replaces the registry of one owner at one server whole; one that fails changes nothing, and one that lists
//! nothing is believed only after ten minutes of it (D-30). Readiness never waits for a pull.

pub use crate::resource_server::PullFault;

use crate::Authority;
use futures::StreamExt as _;
use sayso_owner::registry::{ResourceServer, Standing};
use sayso_owner::store::Unavailable;
use sayso_protocol::payload::metadata::OwnedResource;
use sayso_protocol::{ClientId, OwnerName, Timestamp};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Seconds between pulls.
const EVERY: Duration = Duration::from_secs(300);
/// The first wait after a pull that failed; it doubles up to `EVERY`.
const RETRY: Duration = Duration::from_secs(2);
/// How long an empty listing removes nothing, in seconds.
const GRACE: i64 = 600;
/// Pulls in flight at once.
const AT_ONCE: usize = 8;

type Key = (OwnerName, ClientId);

/// Lets one pull of a kind run at a time and shares its outcome with those who came before it started.
#[derive(Default)]
pub(crate) struct Gate {
    sources: Mutex<HashMap<Key, Arc<tokio::sync::Mutex<Source>>>>,
}

#[derive(Default)]
struct Source {
    started: Option<Instant>,
    outcome: Option<Result<usize, PullFault>>,
    empty_since: Option<Timestamp>,
}

impl Gate {
    fn source(&self, key: Key) -> Arc<tokio::sync::Mutex<Source>> {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.entry(key).or_default().clone()
    }
}

impl Authority {
    /// Asks one resource server what the owner has there; returns how many resources it lists.
    ///
    /// # Errors
    /// When it is not trusted, cannot be asked, or is not to be believed. Nothing has changed then.
    pub async fn pull(&self, owner: &OwnerName, client_id: &ClientId) -> Result<usize, PullFault> {
        let hers = self.store.resource_servers(owner).await?;
        let known = hers
            .into_iter()
            .find(|server| server.client_id == *client_id && server.status == Standing::Active);
        let server = known.ok_or(PullFault::NotTrusted)?;
        let asked = Instant::now();
        let source = self.pulls.source((owner.clone(), client_id.clone()));
        let mut source = source.lock().await;
        // One that began after this was asked for is as good as another.
        if let (Some(started), Some(outcome)) = (source.started, &source.outcome)
            && started >= asked
        {
            return outcome.clone();
        }
        source.started = Some(Instant::now());
        let outcome = self.replace(owner, &server, &mut source.empty_since).await;
        source.outcome = Some(outcome.clone());
        outcome
    }

    async fn replace(
        &self,
        owner: &OwnerName,
        server: &ResourceServer,
        empty_since: &mut Option<Timestamp>,
    ) -> Result<usize, PullFault> {
        let published = self.published(&server.resource_uri, server.introduced_by).await?;
        let listing = self.listing(owner, server, &published).await?;
        let now = self.now();
        if listing.is_empty() && self.has_any(owner, &server.client_id).await? {
            let since = *empty_since.get_or_insert(now);
            if now.since(since) < GRACE {
                return Err(PullFault::Emptied);
            }
        }
        *empty_since = None;
        self.record(owner, &server.client_id, &listing, now).await?;
        Ok(listing.len())
    }

    async fn has_any(&self, owner: &OwnerName, client_id: &ClientId) -> Result<bool, Unavailable> {
        Ok(self.store.resources(owner).await?.iter().any(|entry| entry.client_id == *client_id))
    }

    async fn record(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        listing: &[OwnedResource],
        now: Timestamp,
    ) -> Result<(), Unavailable> {
        self.store.pull(owner, client_id, listing, now).await?;
        tracing::info!(client_id = %client_id, resources = listing.len(), "registry.pulled");
        Ok(())
    }

    /// Pulls from every approved resource server of every owner; true when all of them answered.
    ///
    /// # Errors
    /// When the store cannot be asked.
    pub async fn pull_all(&self) -> Result<bool, Unavailable> {
        let mut sources = vec![];
        for owner in self.store.owners().await? {
            let hers = self.store.resource_servers(&owner.name).await?;
            let trusted = hers.into_iter().filter(|server| server.status == Standing::Active);
            sources.extend(trusted.map(|server| (owner.name.clone(), server.client_id)));
        }
        let pulls = futures::stream::iter(sources).map(|(owner, client_id)| async move {
            let outcome = self.pull(&owner, &client_id).await;
            if let Err(fault) = &outcome {
                tracing::warn!(client_id = %client_id, why = %fault, "registry.pull_failed");
            }
            outcome.is_ok()
        });
        Ok(pulls.buffer_unordered(AT_ONCE).all(|ok| async move { ok }).await)
    }
}

/// Pulls at start, every five minutes, and sooner after a failure. Ends only when it is dropped.
pub(crate) async fn keep_pulling(authority: Arc<Authority>) {
    let mut retry = RETRY;
    loop {
        if authority.pull_all().await.unwrap_or(false) {
            retry = RETRY;
            tokio::time::sleep(EVERY).await;
        } else {
            tokio::time::sleep(retry).await;
            retry = (retry * 2).min(EVERY);
        }
    }
}
