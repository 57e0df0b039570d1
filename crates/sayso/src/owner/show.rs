//! How answers read on a terminal. Arguments are printed from their canonical bytes, whole.

use super::Act;
use crate::terminal::{duration, moment, plain, table};
use sayso_protocol::{Json, canon};
use serde_json::Value;

/// The answer to one command as text.
pub(super) fn answer(act: &Act, value: &Value) -> String {
    match act {
        Act::Pending => pending(value),
        Act::Show { .. } => request(value),
        Act::Approve { family } => format!("approved {}", plain(family)),
        Act::Deny { family } => format!("denied {}", plain(family)),
        Act::Connections => connections(value),
        Act::Revoke { handle } => revoked(handle, value),
        Act::Resources => resources(value),
        Act::Accept { resource, yes } => super::accept::show(resource, *yes, value),
        Act::ResourceServers { answer: None } => servers(value),
        Act::ResourceServers { answer: Some(answer) } => answer.told(),
        Act::Policies => policies(value),
        Act::Ledger { .. } => ledger(value),
    }
}

fn rows(value: &Value, row: impl Fn(&Value) -> Vec<String>) -> Vec<Vec<String>> {
    value.as_array().map(|items| items.iter().map(row).collect()).unwrap_or_default()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".into(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => canonical(other),
    }
}

/// A member by its path, null where there is none.
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    value.pointer(&format!("/{path}")).unwrap_or(&Value::Null)
}

/// The agent as it will be known: by the key that signed.
fn agent(item: &Value) -> String {
    let known = at(item, "handle");
    if known.is_null() { format!("jkt:{}", text(at(item, "key"))) } else { text(known) }
}

/// The canonical form, the one that was hashed.
fn canonical(value: &Value) -> String {
    let bytes = canon::to_bytes(&Json::from(value.clone())).ok();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| value.to_string())
}

fn when(value: &Value) -> String {
    value.as_i64().map_or_else(|| "-".into(), moment)
}

fn pending(value: &Value) -> String {
    let rows = rows(value, |item| {
        let act = at(item, "operation/tool");
        let what = text(if act.is_null() { at(item, "resource_id") } else { act });
        vec![text(at(item, "family")), text(at(item, "kind")), what, agent(item), when(at(item, "deadline"))]
    });
    if rows.is_empty() {
        return "nothing waits".into();
    }
    let list = table(&["FAMILY", "ASKS", "FOR", "AGENT", "LAPSES"], &rows);
    format!("{list}\n\nsee one whole: sayso owner show FAMILY")
}

fn request(item: &Value) -> String {
    let first = at(item, "kind") == "connection";
    let mut lines = vec![
        ("request", text(at(item, "family"))),
        ("agent", agent(item)),
        ("asks", if first { "to be let in (first contact)".into() } else { "for this one answer".into() }),
        ("resource", text(at(item, "resource_id"))),
        ("scopes", text(at(item, "scope"))),
        ("purpose", text(at(item, "purpose"))),
        ("promises", text(at(item, "prohibited"))),
        ("lasts", at(item, "expires_in").as_i64().map_or_else(|| "-".into(), duration)),
        ("its reason", text(at(item, "reason"))),
        ("terms", text(at(item, "terms_uri"))),
        ("lapses", when(at(item, "deadline"))),
    ];
    if !at(item, "operation").is_null() {
        lines.push(("tool", text(at(item, "operation/tool"))));
        lines.push(("arguments", canonical(at(item, "operation/params"))));
    }
    let body: Vec<String> = lines.iter().map(|(name, value)| format!("{name:<11}{}", plain(value))).collect();
    let grants = if at(item, "per_operation") == true {
        "Approving allows this one call with these arguments, once."
    } else {
        "Approving allows calls within these scopes until the agreement ends."
    };
    let admits = if first { " It also lets the agent in." } else { "" };
    format!("{}\n\n{grants}{admits}", body.join("\n"))
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
    let ended = text(at(value, "rpts_deactivated"));
    format!("ended {}; live grants that died with it: {}", plain(handle), plain(&ended))
}

fn resources(value: &Value) -> String {
    let rows = rows(value, |item| {
        let unit = match (at(item, "unit"), at(item, "changed")) {
            (Value::Null, _) => "ungoverned: denied".into(),
            (_, Value::Bool(true)) => "changed: suspended until `sayso owner accept`".into(),
            (unit, _) => text(unit),
        };
        vec![text(at(item, "_id")), text(at(item, "resource_scopes")), unit, text(at(item, "ask_me"))]
    });
    table(&["RESOURCE", "SCOPES", "UNIT", "ASKS"], &rows)
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
            at(item, "terms/expires_in").as_i64().map_or_else(|| "-".into(), duration),
            text(at(item, "resources")),
        ]
    });
    table(&["UNIT", "VERSION", "ASKS", "PER CALL", "LASTS", "RESOURCES"], &rows)
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
