//! Keeps what is published about a server's tools as the server says it now (D-30).
//!
//! A listing that fails or is empty removes nothing for ten minutes. The authority reads the new listing at once, and a
//! step that failed is taken again with the next listing. A server heard for the first time is given its first policy;
//! after that, whether a changed or new tool may be called is the owner's to say, not this task's.

use super::behind::{first_units, govern};
use super::policy::FirstPolicy;
use sayso_authority::Authority;
use sayso_enforce::resource::ToolSettings;
use sayso_gateway::{Gateway, Surveyed, Upstream};
use sayso_protocol::{ClientId, OwnerName, Realm};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often a server is asked, while it has not been heard at all.
const UNHEARD: Duration = Duration::from_secs(2);
/// The least time between two listings.
const LULL: Duration = Duration::from_millis(500);
/// How long an empty listing is not believed.
const GRACE: Duration = Duration::from_secs(600);

/// A server that has to be asked again, and how often when it does not say that its list changed.
#[derive(Clone)]
pub(super) struct Watched {
    pub(super) upstream: Upstream,
    pub(super) every: Duration,
}

/// What the keeper looks after.
pub(super) struct Keeper {
    pub(super) gateway: Gateway,
    pub(super) authority: Arc<Authority>,
    pub(super) watched: Watched,
    pub(super) realm: Realm,
    pub(super) first: FirstPolicy,
    pub(super) owner: OwnerName,
    pub(super) client_id: ClientId,
    pub(super) published: Vec<ToolSettings>,
}

impl Keeper {
    /// Runs for ever.
    pub(super) async fn keep(self) {
        let upstream = self.watched.upstream.clone();
        tokio::select! {
            () = self.look() => {}
            () = upstream.attend() => {}
        }
    }

    async fn look(mut self) {
        let Watched { upstream, every } = self.watched.clone();
        let mut changes = upstream.changes();
        let mut empty_since: Option<Instant> = None;
        loop {
            // Whoever says all the time that something changed is asked no oftener for it.
            sleep(LULL).await;
            let every = if self.published.is_empty() { UNHEARD } else { every };
            tokio::select! {
                () = sleep(every.saturating_sub(LULL)) => {}
                changed = changes.changed() => if changed.is_err() { return },
            }
            let Ok(survey) = upstream.survey().await else { continue };
            let tools = govern(&survey.tools, &self.realm);
            if tools.is_empty() && empty_since.get_or_insert_with(Instant::now).elapsed() < GRACE {
                continue;
            }
            empty_since = None;
            self.publish(tools, &survey.tools).await;
        }
    }

    async fn publish(&mut self, tools: Vec<ToolSettings>, surveyed: &[Surveyed]) {
        let pins = |tools: &[ToolSettings]| -> Vec<_> {
            tools
                .iter()
                .map(|tool| (tool.tool.clone(), tool.definition.clone(), tool.scopes.clone()))
                .collect()
        };
        if pins(&tools) == pins(&self.published) {
            return;
        }
        if let Err(fault) = self.gateway.replace_tools("/mcp", tools.clone()) {
            tracing::warn!("the server's new listing is not served: {fault}");
            return;
        }
        let units = first_units(surveyed, &self.realm);
        match self.first.settle(&self.authority, &self.owner, &self.client_id, &units).await {
            Ok(()) => {
                tracing::info!(tools = tools.len(), "registry.changed");
                self.published = tools;
            }
            Err(fault) => tracing::warn!("the new listing is not wholly in force yet: {fault:#}"),
        }
    }
}
