//! Keeps what is published about a server's tools as the server says it now (D-30).
//!
//! A listing that fails or is empty removes nothing for ten minutes. The authority reads the new listing at once, and a
//! step that failed is taken again with the next listing. A server heard for the first time is given its first policy;
//! after that, whether a changed or new tool may be called is the owner's to say, not this task's.

use super::behind::{self, first_units, govern};
use super::entrance::Entrance;
use super::policy::FirstPolicy;
use crate::listings::{Listings, are_alike};
use sayso_authority::Authority;
use sayso_enforce::resource::ToolSettings;
use sayso_gateway::{Gateway, Survey, Upstream};
use sayso_protocol::{ClientId, OwnerName, Realm};
use std::sync::Arc;
use std::time::Duration;

/// A server that has to be asked again, and how often when it does not say that its list changed.
#[derive(Clone)]
pub(super) struct Watched {
    pub(super) upstream: Upstream,
    pub(super) every: Duration,
    /// Its realm, if it was heard already.
    pub(super) heard: Option<Realm>,
}

/// What the keeper looks after.
pub(super) struct Keeper {
    pub(super) gateway: Gateway,
    pub(super) authority: Arc<Authority>,
    pub(super) watched: Watched,
    /// The realm asked for, whatever the server calls itself.
    pub(super) wanted: Option<Realm>,
    pub(super) first: FirstPolicy,
    pub(super) owner: OwnerName,
    pub(super) published: Vec<ToolSettings>,
}

impl Keeper {
    /// Runs for ever, with the gateway's way to say what it calls itself.
    pub(super) async fn keep(self, entrance: Entrance) {
        let upstream = self.watched.upstream.clone();
        tokio::select! {
            () = self.look(entrance) => {}
            () = upstream.attend() => {}
        }
    }

    async fn look(mut self, mut entrance: Entrance) {
        let mut listings = Listings::of(self.watched.upstream.clone(), self.watched.every);
        loop {
            let survey = listings.next(!self.published.is_empty()).await;
            let realm = match self.realm(&survey, &mut entrance).await {
                Ok(realm) => realm,
                Err(fault) => {
                    tracing::warn!("the server's tools are not in force yet: {fault:#}");
                    continue;
                }
            };
            let tools = govern(&survey.tools, &realm);
            if listings.believes(&tools) {
                self.publish(tools, &survey, &realm, entrance.client_id()).await;
            }
        }
    }

    /// The realm, which a server that is heard for the first time says now: nothing was made of another before (D-30).
    async fn realm(&mut self, survey: &Survey, entrance: &mut Entrance) -> anyhow::Result<Realm> {
        if let Some(realm) = &self.watched.heard {
            return Ok(realm.clone());
        }
        let realm = behind::realm(self.wanted.as_ref(), survey)?;
        self.gateway.name_realm("/mcp", realm.clone())?;
        entrance.rename(&realm).await?;
        self.watched.heard = Some(realm.clone());
        Ok(realm)
    }

    async fn publish(
        &mut self,
        tools: Vec<ToolSettings>,
        survey: &Survey,
        realm: &Realm,
        client_id: &ClientId,
    ) {
        if are_alike(&tools, &self.published) {
            return;
        }
        if let Err(fault) = self.gateway.replace_tools("/mcp", tools.clone()) {
            tracing::warn!("the server's new listing is not served: {fault}");
            return;
        }
        let units = first_units(&survey.tools, realm);
        let settled = self.first.settle(&self.authority, &self.owner, client_id, realm, &units);
        match settled.await {
            Ok(()) => {
                tracing::info!(tools = tools.len(), "registry.changed");
                self.published = tools;
            }
            Err(fault) => tracing::warn!("the new listing is not wholly in force yet: {fault:#}"),
        }
    }
}
