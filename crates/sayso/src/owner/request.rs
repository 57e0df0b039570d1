//! One waiting request, whole, and what a yes to it would allow.
//!
//! How long an approval is good for and how long the agent keeps its word are two things, and both are said (D-18).

use super::show::{agent, at, canonical, text, when};
use crate::terminal::{duration, plain};
use sayso_protocol::payload::rpt::MAX_LIFE;
use serde_json::Value;

/// The request as text; `asks` says whether its unit asks her each time, where that is known.
pub(super) fn show(item: &Value, asks: Option<bool>) -> String {
    let first = at(item, "kind") == "connection";
    let mut lines = vec![
        ("request", text(at(item, "family"))),
        ("agent", agent(item)),
        ("asks", if first { "to be let in (first contact)".into() } else { "for this one answer".into() }),
        ("resource", text(at(item, "resource_id"))),
        ("scopes", text(at(item, "scope"))),
        ("purpose", text(at(item, "purpose"))),
    ];
    lines.extend(checked(item));
    lines.extend(promises(item));
    let agreed =
        seconds(item).map_or_else(|| "-".into(), |agreed| format!("binds it for {}", duration(agreed)));
    lines.push(("agreement", agreed));
    lines.push(("approval", format!("good {}", good_for(item))));
    lines.push(("its reason", text(at(item, "reason"))));
    lines.push(("terms", text(at(item, "terms_uri"))));
    if at(item, "bind") == true {
        lines.push((
            "follow-ups",
            "this tool may ask follow-up questions; you will not see the answers".into(),
        ));
    }
    lines.push(("lapses", when(at(item, "deadline"))));
    if !at(item, "operation").is_null() {
        lines.push(("tool", text(at(item, "operation/tool"))));
        lines.push(("arguments", canonical(at(item, "operation/params"))));
    }
    let body: Vec<String> = lines.iter().map(|(name, value)| format!("{name:<11}{}", plain(value))).collect();
    let admits = if first { " It also lets the agent in." } else { "" };
    format!("{}\n\n{}{admits}", body.join("\n"), allows(item, asks))
}

/// What it promises not to do, a line each: what the resource makes sure of, and what is only promised.
fn promises(item: &Value) -> Vec<(&'static str, String)> {
    let upheld = |promise: &str| at(item, "enforced").get(promise).map(text);
    let one = |promise: &Value| {
        let promise = text(promise);
        match upheld(&promise) {
            Some(how) => format!("{promise} (upheld by the resource: {how})"),
            None => format!("{promise} (only promised)"),
        }
    };
    let all: Vec<String> = at(item, "prohibited").as_array().into_iter().flatten().map(one).collect();
    if all.is_empty() {
        return vec![("promises", "none".into())];
    }
    let name = |place| if place == 0 { "promises" } else { "" };
    all.into_iter().enumerate().map(|(place, promise)| (name(place), promise)).collect()
}

/// What was checked about the agent, a sentence an axis; the names in them are strangers' words.
fn checked(item: &Value) -> Vec<(&'static str, String)> {
    let name = |place| if place == 0 { "checked" } else { "" };
    let all = at(item, "assurance_notes").as_array().into_iter().flatten().map(text);
    all.enumerate().map(|(place, sentence)| (name(place), sentence)).collect()
}

fn seconds(item: &Value) -> Option<i64> {
    at(item, "expires_in").as_i64()
}

fn life(item: &Value) -> String {
    duration(seconds(item).map_or(MAX_LIFE, |agreed| agreed.min(MAX_LIFE)))
}

fn good_for(item: &Value) -> String {
    let life = life(item);
    if at(item, "per_operation") == true {
        format!("for this one call, within {life} of your answer")
    } else {
        format!("for calls during {life} from your answer")
    }
}

fn allows(item: &Value, asks: Option<bool>) -> String {
    let life = life(item);
    if at(item, "per_operation") == true {
        return format!(
            "Approving allows this one call with these arguments, once, within {life} of your answer."
        );
    }
    let then = match asks {
        Some(true) => " Then you are asked again.",
        Some(false) => " It can renew that without asking you.",
        None => "",
    };
    format!("Approving allows calls within these scopes for {life}.{then}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // D-18
    #[test]
    fn an_approval_and_a_promise_last_differently() {
        let read =
            json!({ "kind": "operation", "prohibited": [], "expires_in": 86_400, "per_operation": false });
        let shown = show(&read, Some(true));
        for line in [
            "promises   none",
            "agreement  binds it for 1 d",
            "approval   good for calls during 1 h from your answer",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{shown}");
        }
        assert!(shown.ends_with("calls within these scopes for 1 h. Then you are asked again."), "{shown}");
        assert!(show(&read, Some(false)).ends_with("It can renew that without asking you."));
        assert!(show(&read, None).ends_with("for 1 h."));

        let call = json!({ "kind": "connection", "prohibited": ["reuse", "resale"], "enforced": { "reuse": "single-use" },
                           "expires_in": 900, "per_operation": true, "operation": { "tool": "t", "params": {} } });
        let shown = show(&call, Some(true));
        for line in [
            "promises   reuse (upheld by the resource: single-use)",
            "           resale (only promised)",
            "approval   good for this one call, within 15 min of your answer",
            "arguments  {}",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{shown}");
        }
        assert!(shown.ends_with("of your answer. It also lets the agent in."), "{shown}");
    }

    // D-28
    #[test]
    fn what_the_agent_wrote_moves_no_cursor() {
        let item = json!({ "reason": "a\u{1b}[2J\nlapses     never", "prohibited": ["\u{202e}"] });
        let shown = show(&item, None);
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
        assert!(!shown.lines().any(|line| line == "lapses     never"), "{shown}");
    }
}
