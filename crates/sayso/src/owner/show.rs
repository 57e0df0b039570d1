//! How answers read on a terminal. Arguments are printed from their canonical bytes, whole.

use super::typed::Typed;
use super::{Act, request};
use crate::terminal::{duration, moment, plain, table};
use sayso_protocol::{Json, canon};
use serde_json::Value;

/// The answer to one command as text. `units` are hers where the answer turns on them.
pub(super) fn answer(act: &Act, value: &Value, units: &Value, typed: &Typed) -> String {
    match act {
        Act::Pending => pending(value, typed),
        Act::Show { .. } => {
            let asks = value.get("tier").and_then(Value::as_str).and_then(|unit| units.get(unit));
            request::show(value, asks.and_then(|unit| unit.get("ask_me")?.as_bool()))
        }
        Act::Approve { family } => format!("approved {}", plain(family)),
        Act::Deny { family } => format!("denied {}", plain(family)),
        Act::Connections | Act::Relink { .. } => connections(value),
        Act::Revoke { handle } => revoked(handle, value),
        Act::Resources | Act::Accept { .. } => resources(value, typed),
        Act::ResourceServers { answer: None } => servers(value),
        Act::ResourceServers { answer: Some(answer) } => answer.told(typed),
        Act::Policies { change: None } => policies(value),
        Act::Policies { change: Some(change) } => change.told(),
        Act::Ledger { .. } => ledger(value),
    }
}

fn rows(value: &Value, row: impl Fn(&Value) -> Vec<String>) -> Vec<Vec<String>> {
    value.as_array().map(|items| items.iter().map(row).collect()).unwrap_or_default()
}

pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".into(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => canonical(other),
    }
}

/// A member by its path, null where there is none.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    value.pointer(&format!("/{path}")).unwrap_or(&Value::Null)
}

/// The agent as it will be known: by the key that signed.
pub(super) fn agent(item: &Value) -> String {
    let named = at(item, "agent");
    if named.is_null() { format!("jkt:{}", text(at(item, "key"))) } else { text(named) }
}

/// The canonical form, the one that was hashed.
pub(super) fn canonical(value: &Value) -> String {
    let bytes = canon::to_bytes(&Json::from(value.clone())).ok();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| value.to_string())
}

pub(super) fn when(value: &Value) -> String {
    value.as_i64().map_or_else(|| "-".into(), moment)
}

fn pending(value: &Value, typed: &Typed) -> String {
    let rows = rows(value, |item| {
        let act = at(item, "operation/tool");
        let what = text(if act.is_null() { at(item, "resource_id") } else { act });
        vec![text(at(item, "family")), text(at(item, "kind")), what, agent(item), when(at(item, "deadline"))]
    });
    if rows.is_empty() {
        return "nothing waits".into();
    }
    let list = table(&["FAMILY", "ASKS", "FOR", "AGENT", "LAPSES"], &rows);
    format!("{list}\n\nsee one whole: {}", typed.line("show FAMILY"))
}

fn connections(value: &Value) -> String {
    let rows = rows(value, |item| {
        vec![
            text(at(item, "handle")),
            text(at(item, "status")),
            when(at(item, "first_seen")),
            when(at(item, "last_access")),
            text(at(item, "revocations")),
        ]
    });
    if rows.is_empty() {
        "no agent was let in".into()
    } else {
        table(&["HANDLE", "STATUS", "FIRST SEEN", "LAST ACCESS", "ENDED"], &rows)
    }
}

fn revoked(handle: &str, value: &Value) -> String {
    if at(value, "connections_revoked") == 0 {
        return format!("{} was ended before; there was nothing to end", plain(handle));
    }
    let ended = text(at(value, "rpts_deactivated"));
    format!("ended {}; live grants that died with it: {}", plain(handle), plain(&ended))
}

fn resources(value: &Value, typed: &Typed) -> String {
    let rows = rows(value, |item| {
        vec![
            text(at(item, "_id")),
            text(at(item, "resource_scopes")),
            governs(item),
            text(at(item, "ask_me")),
        ]
    });
    let list = table(&["RESOURCE", "SCOPES", "UNIT", "ASKS"], &rows);
    if value.as_array().into_iter().flatten().all(is_settled) {
        return list;
    }
    format!("{list}\n\nsee what one says of itself, or what changed: {}", typed.line("accept RESOURCE"))
}

fn is_settled(item: &Value) -> bool {
    !at(item, "unit").is_null() && at(item, "changed") != true && at(item, "accepted").is_null()
}

/// What governs a resource, and whether it is what she last saw.
fn governs(item: &Value) -> String {
    match (at(item, "unit"), at(item, "changed")) {
        (Value::Null, _) => "ungoverned: denied until you accept it".into(),
        (_, Value::Bool(true)) => "changed: suspended until you accept it".into(),
        (unit, _) if is_settled(item) => text(unit),
        (unit, _) => format!("{} (says it in other words now)", text(unit)),
    }
}

fn servers(value: &Value) -> String {
    let rows = rows(value, |item| {
        vec![
            text(at(item, "client_id")),
            text(at(item, "status")),
            text(at(item, "introduced_by")),
            text(at(item, "resource_uri")),
            text(at(item, "name")),
        ]
    });
    table(&["ORIGIN", "STATUS", "INTRODUCED BY", "RESOURCE", "CALLS ITSELF"], &rows)
}

fn policies(value: &Value) -> String {
    let units: Vec<Value> = match value {
        Value::Object(units) => units.values().cloned().collect(),
        other => other.as_array().cloned().unwrap_or_default(),
    };
    let rows = rows(&Value::Array(units), |item| {
        vec![
            text(at(item, "id")),
            text(at(item, "version")),
            text(at(item, "ask_me")),
            text(at(item, "terms/per_operation")),
            text(at(item, "bind")),
            at(item, "terms/expires_in").as_i64().map_or_else(|| "-".into(), duration),
            text(at(item, "resources")),
        ]
    });
    table(&["UNIT", "VERSION", "ASKS", "PER CALL", "FOLLOW-UPS", "LASTS", "RESOURCES"], &rows)
}

/// Who acted, in a word; `--json` tells which key or server.
fn author(value: &Value) -> String {
    let word = value.as_str().or_else(|| value.as_object()?.keys().next().map(String::as_str));
    match word {
        Some("owner" | "browser") => "her".into(),
        Some("setup") => "set-up".into(),
        Some(word) => word.replace('_', " "),
        None => "-".into(),
    }
}

fn ledger(value: &Value) -> String {
    let rows = rows(value, |item| {
        let entry = at(item, "entry");
        let named = [
            at(entry, "operation/tool"),
            at(entry, "tool"),
            at(entry, "resource_id"),
            at(entry, "client_id"),
            at(entry, "unit"),
            at(entry, "because"),
        ];
        let what = named.into_iter().find(|value| !value.is_null()).map_or_else(|| "-".into(), text);
        vec![
            text(at(item, "seq")),
            when(at(item, "ts")),
            text(at(item, "kind")),
            what,
            text(at(item, "handle")),
            author(at(item, "author")),
        ]
    });
    table(&["SEQ", "WHEN", "WHAT", "OF", "AGENT", "BY"], &rows)
}
