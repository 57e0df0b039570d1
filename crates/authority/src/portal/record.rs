//! Rows of her record as lines of a page: our words for what happened, theirs for what it was about.

use sayso_owner::ledger::{Author, Kind, Row};
use serde_json::Value;

/// Rows shown on her page.
pub(super) const SHOWN: i64 = 50;

/// One row.
pub(super) struct Entry {
    pub(super) seq: i64,
    pub(super) when: String,
    pub(super) kind: &'static str,
    pub(super) what: &'static str,
    pub(super) of: String,
    pub(super) agent: String,
    pub(super) by: String,
}

/// The rows, newest first.
pub(super) fn entries(rows: &[Row]) -> Vec<Entry> {
    rows.iter().rev().map(entry).collect()
}

fn entry(row: &Row) -> Entry {
    let record = &row.record;
    let (kind, what) = what(row);
    Entry {
        seq: row.seq,
        when: row.ts.utc(),
        kind,
        what,
        of: of(&record.entry),
        agent: record.handle.as_ref().map(ToString::to_string).unwrap_or_default(),
        by: by(&record.author),
    }
}

/// The kind as the style sheet knows it, and what it means.
fn what(row: &Row) -> (&'static str, &'static str) {
    let record = &row.record;
    let of_request = record.family.is_some();
    let rounds = record.entry.get("bind").is_some();
    match record.kind {
        Kind::Promised if !of_request => ("promised", "introduced itself, and asks you"),
        Kind::Promised if record.entry.get("asks").is_some() => ("promised", "agreed, and asked you"),
        Kind::Promised => ("promised", "agreed to your terms"),
        Kind::Touched if record.entry.get("continuation").is_some() => {
            ("touched", "answered a follow-up question")
        }
        Kind::Touched => ("touched", "used"),
        Kind::Connected if record.handle.is_some() => ("connected", "let in"),
        Kind::Connected => ("connected", "signed in"),
        Kind::Approved if of_request => ("approved", "approved"),
        Kind::Approved if rounds => ("approved", "follow-up questions allowed"),
        Kind::Revoked if rounds => ("revoked", "follow-up questions refused from now on"),
        Kind::Approved => ("approved", "server approved"),
        Kind::Denied => ("denied", "denied"),
        Kind::Revoked => ("revoked", "ended"),
        Kind::Relaxed => ("relaxed", "relaxed by a rule"),
        Kind::Refused => ("refused", "refused"),
    }
}

/// What a row is about: the first of these that it names.
fn of(entry: &Value) -> String {
    let places =
        ["/operation/tool", "/tool", "/resource_id", "/resource_server", "/client_id", "/unit", "/because"];
    let named = places.iter().find_map(|place| entry.pointer(place)?.as_str());
    named.unwrap_or_default().to_owned()
}

fn by(author: &Author) -> String {
    match author {
        Author::Owner(_) => "you, with a device key".into(),
        Author::Browser(_) => "you, on this page".into(),
        Author::Policy => "your policy".into(),
        Author::Agent => "the agent".into(),
        Author::ResourceServer(origin) => format!("the server {origin}"),
        Author::Setup => "set-up".into(),
    }
}
