//! Keeps the tools of a resource whose configuration says `discover` as its server says them now (D-29, D-30).
//!
//! Nothing is called before they are known, and her authority reads what is published here in its own time. A tool whose
//! definition is not the one she accepted is refused meanwhile, by its pin.

use crate::listings::{Listings, are_alike};
use sayso_enforce::resource::ToolSettings;
use sayso_gateway::classify;
use sayso_gateway::{Gateway, Surveyed, Upstream};
use sayso_protocol::{Realm, ToolName};
use std::time::Duration;

/// One resource that is to be discovered.
pub(super) struct Follower {
    pub(super) path: String,
    pub(super) realm: Realm,
    /// Tools whose every call needs a grant of its own, whatever the grant says of itself.
    pub(super) single_use: Vec<ToolName>,
    pub(super) every: Duration,
}

impl Follower {
    /// Runs for ever.
    pub(super) async fn run(self, gateway: Gateway) {
        let Some(upstream) = gateway.upstream(&self.path) else { return };
        tokio::select! {
            () = self.follow(&gateway, upstream.clone()) => {}
            () = upstream.attend() => {}
        }
    }

    async fn follow(&self, gateway: &Gateway, upstream: Upstream) {
        let mut listings = Listings::of(upstream, self.every);
        let mut served: Vec<ToolSettings> = Vec::new();
        loop {
            let survey = listings.next(!served.is_empty()).await;
            for left in &survey.left_out {
                tracing::warn!(
                    path = self.path,
                    "a tool cannot be governed and is not served: {}",
                    left.reason
                );
            }
            let tools = self.tools(&survey.tools);
            if !listings.believes(&tools) || are_alike(&tools, &served) {
                continue;
            }
            match gateway.replace_tools(&self.path, tools.clone()) {
                Ok(()) => {
                    tracing::info!(path = self.path, tools = tools.len(), "registry.changed");
                    served = tools;
                }
                Err(fault) => tracing::warn!("the server's new listing is not served: {fault}"),
            }
        }
    }

    fn tools(&self, surveyed: &[Surveyed]) -> Vec<ToolSettings> {
        let governed = surveyed.iter().filter_map(|tool| classify::govern(tool, &self.realm).ok());
        let single = |tool: &ToolSettings| tool.single_use || self.single_use.contains(&tool.tool);
        governed.map(|tool| ToolSettings { single_use: single(&tool), ..tool }).collect()
    }
}
