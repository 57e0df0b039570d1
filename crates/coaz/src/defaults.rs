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
        let level = Some(("level", "$params.level"));
        for method in SERVER_WIDE {
            all.insert(method.to_owned(), server(method, level.filter(|_| method == "logging/setLevel"))?);
        }
        if revision == Revision::July2026 {
            let version = Some(("protocol_version", "$params.protocolVersion"));
            all.insert("initialize".to_owned(), server("initialize", version)?);
        }
        for method in extra {
            let known = EXTRA_DEFAULTS.into_iter().find(|known| known == method);
            let method = known.ok_or_else(|| Why::Unmapped.at(method.as_str()))?;
            all.insert(method.to_owned(), server(method, None)?);
        }
        Ok(Defaults(all))
    }

    /// The mapping of a method.
    pub(crate) fn of(&self, method: &str) -> Option<&Mapping> {
        self.0.get(method)
    }
}

fn server(method: &str, extra: Option<(&str, &str)>) -> Result<Mapping, Fault> {
    mapping(method, "mcp_server", "$token.aud", extra, true)
}

fn mapping(
    method: &str,
    kind: &str,
    id: &str,
    extra: Option<(&str, &str)>,
    names_server: bool,
) -> Result<Mapping, Fault> {
    let mut context = json!({"agent": "$token.?client_id"});
    if let (Some((name, value)), Some(context)) = (extra, context.as_object_mut()) {
        context.insert(name.to_owned(), value.into());
    }
    let mut mapping = Mapping::parse_here(&Json::from(json!({"evaluation": {
        "subject": {"type": "identity", "id": "$token.sub"},
        "action": {"name": method},
        "resource": {"type": kind, "id": id},
        "context": context,
    }})))?;
    mapping.names_server = names_server;
    Ok(mapping)
}
