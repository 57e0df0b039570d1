//! What `sayso agent` prints, with every stranger's word made plain (D-28).
//!
//! Terms and arguments are shown whole, arguments as the canonical bytes that are bound. A result is printed as it
//! came where a program reads it, and escaped where a person does.

use super::Call;
use crate::terminal::{duration, moment, plain, shell, table};
use sayso_agent::{Ask, Grant, Kept, Refused};
use sayso_fetch::FetchError;
use sayso_protocol::payload::rpt::MAX_LIFE;
use sayso_protocol::{Json, canon};
use serde_json::{Value, json};
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

/// The terms, all of them.
pub(crate) fn terms(ask: &Ask<'_>) -> String {
    let (terms, proffer) = (&ask.proffer.terms, ask.proffer);
    let mut lines = vec![format!("Terms the owner sets for {}", plain(ask.resource))];
    let mut say = |name: &str, value: &str| lines.push(format!("  {name:<14}{}", plain(value)));
    say("authority", ask.authority);
    say("resource", proffer.resource_id.as_str());
    say("version", terms.template_id.as_str());
    say("published", &proffer.terms_uri);
    say("purpose", &terms.purpose);
    let scopes: Vec<&str> = terms.scope.iter().map(|scope| scope.as_str()).collect();
    say("scope", &scopes.join(" "));
    if terms.prohibited.is_empty() {
        say("promises", "none");
    }
    for promise in &terms.prohibited {
        match terms.enforced.get(promise) {
            Some(how) => say("never", &format!("{promise} (upheld by the resource: {how})")),
            None => say("never", promise),
        }
    }
    say("promised for", &duration(terms.expires_in));
    let life = duration(terms.expires_in.min(MAX_LIFE));
    if terms.per_operation {
        say("a grant is", &format!("good for this one call, within {life} of a yes"));
        say("one call", &format!("{} {}", ask.tool, arguments(ask)));
    } else {
        say("a grant is", &format!("good for calls during {life}; after that it is asked for anew"));
    }
    lines.join("\n")
}

/// The arguments as the bytes an approval binds.
fn arguments(ask: &Ask<'_>) -> String {
    let exact = canon::to_bytes(&Json::from(Value::Object(ask.arguments.clone())));
    exact.ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// A tool's result: whole as JSON, else its structured content, else its text.
pub(super) fn result(result: &str, json: bool) {
    if json {
        return print(&one_line(result));
    }
    let value: Value = serde_json::from_str(result).unwrap_or_default();
    let text = match (value.get("structuredContent"), value.get("content").and_then(Value::as_array)) {
        (Some(structured), _) => serde_json::to_string_pretty(structured).unwrap_or_default(),
        (None, Some(content)) => content.iter().map(part).collect::<Vec<_>>().join("\n"),
        (None, None) => result.to_owned(),
    };
    print(&if std::io::stdout().is_terminal() { plain_lines(&text) } else { text });
}

/// One part of a result's content: its text, or what else it is as JSON.
fn part(part: &Value) -> String {
    part.get("text").and_then(Value::as_str).map_or_else(|| part.to_string(), str::to_owned)
}

/// JSON text on one line. Outside strings a line end is blank space, and inside one it cannot stand.
fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

fn plain_lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// Our sentence, and after it what the other side said.
pub(crate) fn with_words(ours: &str, theirs: Option<&str>) -> String {
    theirs.map_or_else(|| ours.to_owned(), |theirs| format!("{ours}. It says: {}", plain(theirs)))
}

pub(crate) fn refused(refused: &Refused) -> String {
    let code = refused.code.as_deref().unwrap_or("no code");
    with_words(&format!("refused with {} ({})", refused.status, plain(code)), refused.words.as_deref())
}

pub(crate) fn unknown(why: Option<FetchError>) -> String {
    let why =
        why.map_or_else(|| "the answer says that it failed on the way".to_owned(), |why| why.to_string());
    format!(
        "{why}. The call may have run, and its grant counts as spent; it is not sent again. Look before asking anew."
    )
}

pub(super) fn still_waiting(authority: &str, resume: &str) -> String {
    format!(
        "the owner has not decided yet. She was asked by {}; this agent cannot reach her. To go on waiting:\n  {resume}",
        plain(authority)
    )
}

/// The command that takes a wait up again.
pub(super) fn again(call: &Call, config_dir: Option<&Path>) -> String {
    let path = |path: &Path| shell(&path.display().to_string());
    let mut words = vec!["sayso agent call".to_owned(), shell(&call.resource_url), shell(&call.tool)];
    if call.args != "{}" {
        words.push(format!("--args {}", shell(&call.args)));
    }
    if let Some(key) = &call.key {
        words.push(format!("--key {}", path(key)));
    }
    words.extend(call.presenting.words());
    if call.accept_terms {
        words.push("--accept-terms".to_owned());
    }
    if let Some(dir) = config_dir {
        words.push(format!("--config-dir {}", path(dir)));
    }
    plain(&words.join(" "))
}

pub(super) fn tools(tools: &[Value], json: bool) {
    let text =
        |tool: &Value, name: &str| tool.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let row = |tool: &Value| {
        let hint = |name| tool.pointer(&format!("/annotations/{name}")).and_then(Value::as_bool);
        let kind = match (hint("readOnlyHint"), hint("destructiveHint")) {
            (Some(true), _) => "reads",
            (_, Some(true)) => "destroys",
            _ => "acts",
        };
        vec![text(tool, "name"), kind.to_owned(), text(tool, "description")]
    };
    list(&["TOOL", "SAYS IT", "DESCRIPTION"], tools.iter().map(row).collect(), &json!(tools), json);
}

pub(super) fn receipts(receipts: &[Kept], json: bool) {
    let row = |kept: &Kept| {
        let Kept { kept: at, tool, template_id, resource, authority, .. } = kept;
        vec![moment(at.0), tool.to_string(), template_id.to_string(), resource.clone(), authority.clone()]
    };
    let rows = receipts.iter().map(row).collect();
    list(&["KEPT", "TOOL", "TERMS", "RESOURCE", "AUTHORITY"], rows, &json!(receipts), json);
}

pub(super) fn grants(grants: &[Grant], json: bool) {
    let good_for = |grant: &Grant| if grant.operation.is_some() { "one call" } else { "calls" };
    let row = |grant: &Grant| {
        vec![moment(grant.expires.0), good_for(grant).into(), grant.tool.to_string(), grant.resource.clone()]
    };
    // The token itself is printed nowhere.
    let object = |grant: &Grant| {
        json!({
            "resource": grant.resource, "tool": grant.tool, "authority": grant.authority, "family": grant.family,
            "template_id": grant.template_id, "operation": grant.operation, "expires": grant.expires,
        })
    };
    let objects: Vec<Value> = grants.iter().map(object).collect();
    list(&["UNTIL", "GOOD FOR", "TOOL", "RESOURCE"], grants.iter().map(row).collect(), &json!(objects), json);
}

/// Writes to stdout; a reader that has gone away is not a failure of the call.
pub(super) fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

pub(super) fn list(heading: &[&str], rows: Vec<Vec<String>>, value: &Value, json: bool) {
    match (json, rows.is_empty()) {
        (true, _) => print(&value.to_string()),
        (false, true) => eprintln!("none"),
        (false, false) => print(&table(heading, &rows)),
    }
}

#[cfg(test)]
mod tests;
