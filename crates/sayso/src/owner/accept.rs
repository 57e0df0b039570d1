//! What she has not seen of a tool, shown, and her word that it may be called so: a tool that changed is suspended until
//! then, one that appeared later is governed by nothing (D-29, D-30).
//!
//! What is accepted is exactly what was shown. Which unit a new tool is put in follows from what it says of itself, as
//! it would have at first.

use super::client::{Client, Refused};
use super::typed::Typed;
use crate::terminal::{plain, shell};
use anyhow::Context as _;
use sayso_owner::first;
use sayso_owner::unit::Unit;
use sayso_protocol::message::Class;
use sayso_protocol::payload::metadata::OwnedResource;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What there is to see of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unseen {
    /// All of it: no unit governs it, and every call is refused.
    Whole,
    /// It is another tool than she last saw, and suspended.
    Definition,
    /// It says the same in other words, and can be called.
    Words,
}

impl Unseen {
    fn of(entry: &Value) -> Option<Self> {
        let is = |name| entry.get(name).is_some_and(|value| !value.is_null());
        match entry.get("changed") {
            _ if !is("unit") => Some(Unseen::Whole),
            Some(Value::Bool(true)) => Some(Unseen::Definition),
            _ => is("accepted").then_some(Unseen::Words),
        }
    }
}

/// Shows what she has not seen; with `yes`, accepts exactly what was shown. Returns the entry, and what to print of it.
pub(super) async fn run(
    client: &Client,
    typed: &Typed,
    resource: &str,
    yes: bool,
) -> anyhow::Result<(Value, String)> {
    let all = client.read("resources", None).await?;
    let entries = all.as_array().context("the authority's resources are not a list")?;
    let named: Vec<&Value> = entries.iter().filter(|entry| text(entry, "_id") == resource).collect();
    let list = || typed.line("resources");
    if named.is_empty() {
        return Err(Refused::because(&format!(
            "there is no resource `{}`; {} lists them",
            plain(resource),
            list()
        ))
        .into());
    }
    let Some((entry, unseen)) = named.iter().find_map(|entry| Some((*entry, Unseen::of(entry)?))) else {
        return Err(
            Refused::because("it is governed, and what you last saw; there is nothing to accept").into()
        );
    };
    let mut unit = None;
    if yes && unseen == Unseen::Whole {
        unit = Some(govern(client, entry).await?);
    } else if yes {
        let member = |name| entry.get(name).cloned().unwrap_or_default();
        let seen = json!({
            "client_id": member("client_id"), "resource_id": member("_id"), "definition": member("definition"),
        });
        client.write("resources/accept", &seen).await?;
    }
    let next = match unit {
        Some(unit) => governed(&unit, typed),
        None => next(entry, unseen, yes, typed),
    };
    Ok((entry.clone(), format!("{}\n{next}", difference(entry))))
}

/// Makes the unit this tool would have been in at first, by her hand.
async fn govern(client: &Client, entry: &Value) -> anyhow::Result<Unit> {
    let unit = first::unit_of(&published(entry)?)?;
    let policies = client.read("policies", None).await?;
    let taken = |id: &str| policies.get(id).is_some();
    let mut n = 1;
    while taken(first::nth(&unit.id, n)?.as_str()) {
        n += 1;
    }
    let unit = Unit { id: first::nth(&unit.id, n)?, ..unit };
    let made = json!({
        "id": unit.id, "name": unit.name, "resources": unit.resources, "ask_me": unit.ask_me, "rules": [],
        "terms": unit.terms,
    });
    client.write("policies", &made).await?;
    // It governs what the tool is at that moment, which she may not have been shown.
    let all = client.read("resources", None).await?;
    let same = |now: &&Value| ["_id", "client_id"].iter().all(|name| now.get(name) == entry.get(name));
    let now = all.as_array().and_then(|entries| entries.iter().find(same));
    if now.is_none_or(|now| now.get("surface") != entry.get("surface")) {
        client.delete(&format!("policies/{}", super::client::segment(unit.id.as_str()))).await?;
        return Err(Refused::because("the tool changed just now; look at it again").into());
    }
    Ok(unit)
}

/// The entry as it was published.
fn published(entry: &Value) -> anyhow::Result<OwnedResource> {
    serde_json::from_value(entry.clone()).context("the authority's entry is no resource")
}

fn asked(class: Class) -> &'static str {
    match class {
        Class::Read => "it says that it only reads, so that you are asked each time an agent wants to",
        Class::Act => "it may do anything, so that you are asked about every single call, with its arguments",
    }
}

fn governed(unit: &Unit, typed: &Typed) -> String {
    let class = if unit.terms.per_operation { Class::Act } else { Class::Read };
    let list = typed.line("policies");
    format!("unit {} governs it now: {}. All units: {list}", plain(unit.id.as_str()), asked(class))
}

fn next(entry: &Value, unseen: Unseen, yes: bool, typed: &Typed) -> String {
    let name = plain(text(entry, "_id"));
    let accept = typed.line(&format!("accept {} --yes", shell(text(entry, "_id"))));
    match (unseen, yes) {
        (Unseen::Whole, _) => {
            // One that cannot be read as a resource may do anything.
            let asked = asked(published(entry).map_or(Class::Act, |resource| first::class(&resource)));
            format!(
                "nothing governs it, so that every call is refused; to put it under a unit of its own ({asked}): {accept}"
            )
        }
        (Unseen::Definition, true) => format!("{name} may be called again, as it is now"),
        (Unseen::Definition, false) => {
            format!("it stays suspended; to let it be called as it is now: {accept}")
        }
        (Unseen::Words, true) => format!("noted: these are the words of {name} that you know"),
        (Unseen::Words, false) => {
            format!("only its words changed, and it can be called; to note that you saw: {accept}")
        }
    }
}

/// The difference, member by member: each line names its place in full, so that none can hide behind its like elsewhere.
fn difference(entry: &Value) -> String {
    let lines = |member: &str| {
        let mut lines = BTreeSet::new();
        let value = entry.get(member).filter(|value| !value.is_null());
        value.into_iter().for_each(|value| gather(value, "", &mut lines));
        lines
    };
    let (before, after) = (lines("accepted"), lines("surface"));
    let gone = before.difference(&after).map(|line| format!("- {}", plain(line)));
    let new = after.difference(&before).map(|line| format!("+ {}", plain(line)));
    let shown: Vec<String> = gone.chain(new).collect();
    if shown.is_empty() { "nothing that shows".into() } else { shown.join("\n") }
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

fn text<'a>(entry: &'a Value, name: &str) -> &'a str {
    entry.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
