//! What is shown of a tool she has not seen, and what it is made into.

use super::*;
use std::path::Path;

fn told(entry: &Value, yes: bool) -> String {
    let typed = Typed::at(Path::new(".sayso"));
    let unseen = Unseen::of(entry).unwrap();
    format!("{}\n{}", difference(entry), next(entry, unseen, yes, &typed))
}

// D-30
#[test]
fn no_change_hides_behind_a_line_like_it() {
    let tool =
        |to: &str| json!({ "inputSchema": { "a/b": { "type": "string" }, "n": { "type": to } }, "x": [] });
    let governed = |entry: Value| {
        let mut all = json!({ "_id": "r/t", "unit": "t", "changed": true });
        all.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        all
    };
    let shown = told(&governed(json!({ "accepted": tool("number"), "surface": tool("string") })), false);
    let expected = "- /inputSchema/n/type: \"number\"\n+ /inputSchema/n/type: \"string\"\nit stays suspended";
    assert!(shown.starts_with(expected), "{shown}");
    assert!(shown.ends_with("sayso owner accept r/t --yes"), "{shown}");
    let whole = told(&governed(json!({ "surface": tool("string") })), true);
    assert!(whole.starts_with("+ /inputSchema/a~1b/type: \"string\"\n"), "{whole}");
    assert!(whole.ends_with("+ /x: []\nr/t may be called again, as it is now"), "{whole}");
}

// D-28
#[test]
fn names_that_would_move_the_cursor_are_escaped() {
    let entry = json!({ "_id": "r/\u{1b}t", "unit": "t", "changed": true, "surface": { "a\u{1b}[2Jb\n+ c": "\u{202e}" } });
    let shown = told(&entry, false);
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown}");
    assert_eq!(shown.lines().count(), 2);
}

// D-29
#[test]
fn how_she_will_be_asked_is_said_before_she_accepts() {
    let entry = |annotations: Value| {
        json!({ "_id": "r/late", "name": "late", "type": "mcp-tool", "tool": "late", "resource_scopes": ["late:read"],
                "unit": null, "surface": { "name": "late", "annotations": annotations } })
    };
    let harmless = json!({ "readOnlyHint": true, "openWorldHint": false });
    assert!(told(&entry(harmless), false).contains("it only reads"));
    assert!(told(&entry(json!({ "readOnlyHint": true })), false).contains("every single call"));
}

#[test]
fn what_she_has_seen_is_nothing_to_accept() {
    assert_eq!(Unseen::of(&json!({ "unit": "t", "changed": false })), None);
    assert_eq!(Unseen::of(&json!({ "unit": "t", "changed": false, "accepted": {} })), Some(Unseen::Words));
    assert_eq!(Unseen::of(&json!({ "unit": "t", "changed": true })), Some(Unseen::Definition));
    assert_eq!(Unseen::of(&json!({ "unit": null, "changed": false })), Some(Unseen::Whole));
}
