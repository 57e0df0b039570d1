//! The default mapping of every method, and the two kinds of message nobody is asked about (binding 7). The sets
//! are closed: a method that a later revision invents is denied until somebody maps it.

use std::collections::{BTreeMap, BTreeSet};

use sayso_protocol::Json;
use serde_json::json;

use crate::fault::{Fault, Why};
use crate::mapping::Mapping;
use crate::operation::Operation;
use crate::settings::Revision;

/// Methods outside the binding that `extra_defaults` may name; each is about the server as a whole.
pub const EXTRA_DEFAULTS: [&str; 3] = ["server/discover", "resources/templates/list", "subscriptions/listen"];

const INITIALIZE: &str = "initialize";
/// What a server-wide method is about.
const SERVER: &str = "mcp_server";
/// The member of every context that names the agent.
const AGENT: &str = "agent";

/// (method, what it is about): the server itself, or one thing of a kind named by an expression.
const SERVER_WIDE: [&str; 5] =
    ["tools/list", "resources/list", "prompts/list", "tasks/list", "logging/setLevel"];
const ABOUT: [(&str, &str, &str); 9] = [
    ("tools/call", "tool", "$params.name"),
    ("resources/read", "resource", "$params.uri"),
    ("resources/subscribe", "resource", "$params.uri"),
    ("resources/unsubscribe", "resource", "$params.uri"),
    ("prompts/get", "prompt", "$params.name"),
    ("tasks/get", "task", "$params.taskId"),
    ("tasks/result", "task", "$params.taskId"),
    ("tasks/cancel", "task", "$params.taskId"),
    (
        "completion/complete",
        "$params.ref.type == 'ref/prompt' ? 'prompt' : 'resource'",
        // The draft prints two more dollars inside, which no reading of its own rule allows.
        "$params.ref.type == 'ref/prompt' ? params.ref.name : params.ref.uri",
    ),
];

/// Whether the message passes without a decision: `ping`, and notifications.
#[must_use]
pub fn passes(operation: &Operation<'_>) -> bool {
    operation.method == "ping" || (!operation.is_request && operation.method.starts_with("notifications/"))
}

/// What the default mapping of one method can ask about: its action is the method, its subject an [`IDENTITY`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultShape {
    /// The method.
    pub method: &'static str,
    /// The types its resource can have.
    pub resources: Vec<&'static str>,
    /// The members its context can have; none is always there, and each is what the message says.
    pub context: Vec<&'static str>,
}

/// The type of every default mapping's subject.
pub const IDENTITY: &str = "identity";

/// What all default mappings can ask about, those of `extra_defaults` and of every revision among them.
#[must_use]
pub fn default_shapes() -> Vec<DefaultShape> {
    let about = ABOUT.into_iter().map(|(method, kind, _)| {
        let resources = if kind.starts_with('$') { vec!["prompt", "resource"] } else { vec![kind] };
        DefaultShape { method, resources, context: vec![AGENT] }
    });
    let server = SERVER_WIDE.into_iter().chain(EXTRA_DEFAULTS).chain([INITIALIZE]).map(|method| {
        let context = std::iter::once(AGENT).chain(more(method).map(|(name, _)| name)).collect();
        DefaultShape { method, resources: vec![SERVER], context }
    });
    about.chain(server).collect()
}

/// What the context of a server-wide method says beside the agent.
fn more(method: &str) -> Option<(&'static str, &'static str)> {
    match method {
        "logging/setLevel" => Some(("level", "$params.level")),
        INITIALIZE => Some(("protocol_version", "$params.protocolVersion")),
        _ => None,
    }
}

/// The default mappings of one server.
#[derive(Debug)]
pub(crate) struct Defaults(BTreeMap<String, Mapping>);

impl Defaults {
    /// Compiles them. Call it inside `expr::roomy`.
    pub(crate) fn compile(revision: Revision, extra: &BTreeSet<String>) -> Result<Defaults, Fault> {
        let mut all = BTreeMap::new();
        for (method, kind, id) in ABOUT {
            all.insert(method.to_owned(), mapping(method, kind, id, None, false)?);
        }
        for method in SERVER_WIDE {
            all.insert(method.to_owned(), server(method)?);
        }
        if revision == Revision::July2026 {
            all.insert(INITIALIZE.to_owned(), server(INITIALIZE)?);
        }
        for method in extra {
            let known = EXTRA_DEFAULTS.into_iter().find(|known| known == method);
            let method = known.ok_or_else(|| Why::Unmapped.at(method.as_str()))?;
            all.insert(method.to_owned(), server(method)?);
        }
        Ok(Defaults(all))
    }

    /// The mapping of a method.
    pub(crate) fn of(&self, method: &str) -> Option<&Mapping> {
        self.0.get(method)
    }
}

fn server(method: &str) -> Result<Mapping, Fault> {
    mapping(method, SERVER, "$token.aud", more(method), true)
}

fn mapping(
    method: &str,
    kind: &str,
    id: &str,
    extra: Option<(&str, &str)>,
    names_server: bool,
) -> Result<Mapping, Fault> {
    let mut context = json!({ AGENT: "$token.?client_id" });
    if let (Some((name, value)), Some(context)) = (extra, context.as_object_mut()) {
        context.insert(name.to_owned(), value.into());
    }
    let mut mapping = Mapping::parse_here(&Json::from(json!({"evaluation": {
        "subject": {"type": IDENTITY, "id": "$token.sub"},
        "action": {"name": method},
        "resource": {"type": kind, "id": id},
        "context": context,
    }})))?;
    mapping.names_server = names_server;
    Ok(mapping)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shapes_are_those_of_the_mappings() {
        let extra = EXTRA_DEFAULTS.iter().map(ToString::to_string).collect();
        let all = crate::expr::roomy(|| Defaults::compile(Revision::July2026, &extra)).unwrap().unwrap();
        let shapes: BTreeSet<&str> = default_shapes().iter().map(|shape| shape.method).collect();
        assert_eq!(shapes, all.0.keys().map(String::as_str).collect());
    }
}
