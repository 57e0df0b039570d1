//! A tool that changed is suspended until she has seen what changed (D-30); here she sees it, and says so.

use super::client::{Client, Refused};
use crate::terminal::plain;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::collections::BTreeSet;

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

/// The difference, member by member: each line names its place in full, so that none can hide behind its like elsewhere.
pub(super) fn show(resource: &str, yes: bool, entry: &Value) -> String {
    let lines = |member: &str| {
        let mut lines = BTreeSet::new();
        entry.get(member).into_iter().for_each(|value| gather(value, "", &mut lines));
        lines
    };
    let (before, after) = (lines("accepted"), lines("surface"));
    let gone = before.difference(&after).map(|line| format!("- {}", plain(line)));
    let new = after.difference(&before).map(|line| format!("+ {}", plain(line)));
    let shown: Vec<String> = gone.chain(new).collect();
    let next = if yes {
        format!("{} may be called again, as it is now", plain(resource))
    } else {
        format!(
            "it stays suspended; to let it be called as it is now: sayso owner accept {} --yes",
            plain(resource)
        )
    };
    format!("{}\n{next}", if shown.is_empty() { "nothing that shows".into() } else { shown.join("\n") })
}

/// What a value holds, a line for each member that holds no other: its JSON pointer, and itself.
///
/// INVARIANT: the answer it is part of was parsed, which bounds how deep it is.
fn gather(value: &Value, place: &str, lines: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                gather(member, &format!("{place}/{}", name.replace('~', "~0").replace('/', "~1")), lines);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                gather(item, &format!("{place}/{at}"), lines);
            }
        }
        _ => {
            lines.insert(format!("{place}: {value}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // D-30
    #[test]
    fn no_change_hides_behind_a_line_like_it() {
        let tool = |to: &str| json!({ "inputSchema": { "a/b": { "type": "string" }, "n": { "type": to } }, "x": [] });
        let entry = json!({ "accepted": tool("number"), "surface": tool("string") });
        let shown = show("r/t", false, &entry);
        let expected =
            "- /inputSchema/n/type: \"number\"\n+ /inputSchema/n/type: \"string\"\nit stays suspended";
        assert!(shown.starts_with(expected), "{shown}");
        let whole = show("r/t", true, &json!({ "surface": tool("string") }));
        assert!(whole.starts_with("+ /inputSchema/a~1b/type: \"string\"\n"), "{whole}");
        assert!(whole.ends_with("+ /x: []\nr/t may be called again, as it is now"), "{whole}");
    }

    // D-28
    #[test]
    fn names_that_would_move_the_cursor_are_escaped() {
        let shown = show("r/t", false, &json!({ "surface": { "a\u{1b}[2Jb\n+ c": "\u{202e}" } }));
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown}");
        assert_eq!(shown.lines().count(), 2);
    }
}
