//! A tool that changed is suspended until she has seen what changed (D-30); here she sees it, and says so.

use super::client::{Client, Refused};
use crate::terminal::plain;
use anyhow::Context as _;
use serde_json::{Value, json};

/// Shows the difference; with `yes`, accepts exactly what was shown.
pub(super) async fn run(client: &Client, resource: &str, yes: bool) -> anyhow::Result<Value> {
    let all = client.read("resources", None).await?;
    let entries = all.as_array().context("the authority's resources are not a list")?;
    let named = |entry: &&Value| entry.get("_id").and_then(Value::as_str) == Some(resource);
    let changed = |entry: &&Value| entry.get("changed") == Some(&Value::Bool(true));
    let entry = entries.iter().filter(named).find(changed);
    let entry = entry.ok_or_else(|| Refused::because("no governed tool of that name has changed"))?;
    if yes {
        let member = |name| entry.get(name).cloned().unwrap_or_default();
        let seen = json!({
            "client_id": member("client_id"), "resource_id": member("_id"), "definition": member("definition"),
        });
        client.write("resources/accept", &seen).await?;
    }
    Ok(entry.clone())
}

/// The difference, line by line.
pub(super) fn show(resource: &str, yes: bool, entry: &Value) -> String {
    let lines = |member: &str| -> Vec<String> {
        let text = entry.get(member).and_then(|value| serde_json::to_string_pretty(value).ok());
        text.unwrap_or_default().lines().map(plain).collect()
    };
    let (before, after) = (lines("accepted"), lines("surface"));
    let gone = before.iter().filter(|line| !after.contains(line)).map(|line| format!("- {line}"));
    let new = after.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
    let shown: Vec<String> = gone.chain(new).collect();
    let next = if yes {
        format!("{} may be called again, as it is now", plain(resource))
    } else {
        format!(
            "it stays suspended; to let it be called as it is now: sayso owner accept {} --yes",
            plain(resource)
        )
    };
    format!("{}\n{next}", if shown.is_empty() { "nothing but their order".into() } else { shown.join("\n") })
}
