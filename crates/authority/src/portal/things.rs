//! What she has, by server, with the unit that governs each; what nothing governs comes first, then what changed.

use super::act::SignedIn;
use super::changes::Change;
use super::fresh::Fresh;
use super::servers::Answer;
use sayso_owner::registry::{Registered, ResourceServer, Standing};
use sayso_owner::unit::Unit;
use sayso_protocol::ClientId;

/// One server with what it publishes.
pub(super) struct Server {
    pub(super) origin: String,
    /// The name it was given or gives itself.
    pub(super) name: String,
    /// Why nothing of it can be used, where that is so.
    pub(super) standing: Option<&'static str>,
    pub(super) things: Vec<Thing>,
    /// For the form that withdraws it, where she trusts it.
    pub(super) withdraw: Option<Answer>,
}

/// One tool.
pub(super) struct Thing {
    pub(super) tool: String,
    pub(super) resource: String,
    pub(super) scopes: String,
    pub(super) governance: Governance,
}

/// What governs a tool, in the order in which she should see to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Governance {
    /// Nothing of hers, so every request is refused (POL-03).
    Missing(Fresh),
    /// A unit, but the tool is not what she last saw, or says so in other words.
    Changed(Change),
    /// A unit.
    Under {
        /// Its name.
        unit: String,
        /// What it does.
        how: &'static str,
    },
}

/// Everything she has, servers with something ungoverned first.
pub(super) fn by_server(
    registered: &[Registered],
    servers: &[ResourceServer],
    units: &[Unit],
    by: &SignedIn,
) -> Vec<Server> {
    // One that waits and published nothing yet is shown where she is asked about it.
    let shown = servers.iter().filter(|server| server.status != Standing::Pending);
    let mut origins: Vec<&ClientId> = shown.map(|server| &server.client_id).collect();
    origins.extend(registered.iter().map(|one| &one.client_id));
    origins.sort();
    origins.dedup();
    let server = |origin: &ClientId| {
        let known = servers.iter().find(|server| server.client_id == *origin);
        let here = registered.iter().filter(|one| one.client_id == *origin);
        let mut things: Vec<Thing> = here.map(|one| thing(one, units, by)).collect();
        things.sort_by(|one, other| (&one.governance, &one.tool).cmp(&(&other.governance, &other.tool)));
        Server {
            origin: origin.to_string(),
            name: known.map(|server| server.name.clone()).unwrap_or_default(),
            standing: known.and_then(|server| standing(server.status)),
            things,
            withdraw: known.and_then(|server| Answer::withdrawing(server, by)),
        }
    };
    let mut all: Vec<Server> = origins.into_iter().map(server).collect();
    let unsettled = |thing: &Thing| !matches!(thing.governance, Governance::Under { .. });
    all.sort_by_key(|server| !server.things.iter().any(unsettled));
    all
}

fn standing(status: Standing) -> Option<&'static str> {
    match status {
        Standing::Active => None,
        Standing::Pending => Some("waits for you to approve it; nothing of it can be used"),
        Standing::Revoked => Some("withdrawn by you; nothing of it can be used"),
    }
}

fn thing(registered: &Registered, units: &[Unit], by: &SignedIn) -> Thing {
    let resource = &registered.resource;
    let unit = units.iter().find(|unit| Some(&unit.id) == registered.unit.as_ref());
    Thing {
        tool: resource.tool.to_string(),
        resource: resource.id.to_string(),
        scopes: resource.resource_scopes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        governance: match unit {
            None => Governance::Missing(Fresh::of(registered, by)),
            Some(unit) if registered.changed || registered.accepted.is_some() => {
                Governance::Changed(Change::of(registered, unit, by))
            }
            Some(unit) => Governance::Under { unit: unit.name.clone(), how: how(unit) },
        },
    }
}

fn how(unit: &Unit) -> &'static str {
    match (unit.ask_me, unit.terms.per_operation) {
        (true, true) if unit.bind => {
            "asks you about every single call, and may ask the agent follow-up questions you will not see answered"
        }
        (false, true) if unit.bind => {
            "gives agents you let in one call at a time, unasked, with follow-up questions you will not see answered"
        }
        (true, true) => "asks you about every single call",
        (true, false) => "asks you every time an agent wants in",
        (false, true) => "gives agents you let in one call at a time, unasked",
        (false, false) => "is open to agents you let in, unasked",
    }
}
