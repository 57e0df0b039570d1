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
        Act::ResourceServers => servers(value),
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
        let act = &item["operation"];
        let what = if act.is_null() { text(&item["resource_id"]) } else { text(&act["tool"]) };
        vec![text(&item["family"]), text(&item["kind"]), what, text(&item["agent"]), when(&item["deadline"])]
    });
    if rows.is_empty() {
        return "nothing waits".into();
    }
    let list = table(&["FAMILY", "ASKS", "FOR", "AGENT", "LAPSES"], &rows);
    format!("{list}\n\nsee one whole: sayso owner show FAMILY")
}

fn request(item: &Value) -> String {
    let first = item["kind"] == "connection";
    let mut lines = vec![
        ("request", text(&item["family"])),
        ("agent", text(&item["agent"])),
        ("asks", if first { "to be let in (first contact)".into() } else { "for this one answer".into() }),
        ("resource", text(&item["resource_id"])),
        ("scopes", text(&item["scope"])),
        ("purpose", text(&item["purpose"])),
        ("promises", text(&item["prohibited"])),
        ("lasts", item["expires_in"].as_i64().map_or_else(|| "-".into(), duration)),
        ("its reason", text(&item["reason"])),
        ("terms", text(&item["terms_uri"])),
        ("lapses", when(&item["deadline"])),
    ];
    if !item["operation"].is_null() {
        lines.push(("tool", text(&item["operation"]["tool"])));
        lines.push(("arguments", canonical(&item["operation"]["params"])));
    }
    let body: Vec<String> = lines.iter().map(|(name, value)| format!("{name:<11}{}", plain(value))).collect();
    let grants = if item["per_operation"] == true {
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
            text(&item["handle"]),
            text(&item["status"]),
            when(&item["first_seen"]),
            when(&item["last_access"]),
            text(&item["revocations"]),
        ]
    });
    if rows.is_empty() {
        "no agent was let in".into()
    } else {
        table(&["HANDLE", "STATUS", "FIRST SEEN", "LAST ACCESS", "ENDED"], &rows)
    }
}

fn revoked(handle: &str, value: &Value) -> String {
    let ended = text(&value["rpts_deactivated"]);
    format!("ended {}; live grants that died with it: {}", plain(handle), plain(&ended))
}

fn resources(value: &Value) -> String {
    let rows = rows(value, |item| {
        let unit = if item["unit"].is_null() { "ungoverned: denied".into() } else { text(&item["unit"]) };
        vec![text(&item["_id"]), text(&item["resource_scopes"]), unit, text(&item["ask_me"])]
    });
    table(&["RESOURCE", "SCOPES", "UNIT", "ASKS"], &rows)
}

fn servers(value: &Value) -> String {
    let rows = rows(value, |item| {
        vec![
            text(&item["client_id"]),
            text(&item["status"]),
            text(&item["resource_uri"]),
            text(&item["name"]),
        ]
    });
    table(&["ORIGIN", "STATUS", "RESOURCE", "NAME"], &rows)
}

fn policies(value: &Value) -> String {
    let units: Vec<Value> = match value {
        Value::Object(units) => units.values().cloned().collect(),
        other => other.as_array().cloned().unwrap_or_default(),
    };
    let rows = rows(&Value::Array(units), |item| {
        vec![
            text(&item["id"]),
            text(&item["version"]),
            text(&item["ask_me"]),
            text(&item["terms"]["per_operation"]),
            item["terms"]["expires_in"].as_i64().map_or_else(|| "-".into(), duration),
            text(&item["resources"]),
        ]
    });
    table(&["UNIT", "VERSION", "ASKS", "PER CALL", "LASTS", "RESOURCES"], &rows)
}

fn ledger(value: &Value) -> String {
    let rows = rows(value, |item| {
        let entry = &item["entry"];
        let named = [&entry["operation"]["tool"], &entry["tool"], &entry["resource_id"], &entry["because"]];
        let what = named.into_iter().find(|value| !value.is_null()).map_or_else(|| "-".into(), text);
        vec![
            text(&item["seq"]),
            when(&item["ts"]),
            text(&item["kind"]),
            what,
            text(&item["handle"]),
            text(&item["author"]),
        ]
    });
    table(&["SEQ", "WHEN", "WHAT", "OF", "AGENT", "BY"], &rows)
}
