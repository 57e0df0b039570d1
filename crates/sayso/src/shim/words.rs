//! What the shim says to its client: sentences for people and models, a typed block for programs.
//!
//! Of whom a wait waits is always said, and that the client cannot reach her (MCP-23). Words of strangers in it are
//! escaped (D-28).

use crate::agent::show;
use crate::terminal::plain;
use sayso_agent::{Fault, Outcome};
use serde_json::{Value, json};

/// Our own member of `_meta`.
pub(super) const SUBJECT: &str = "dev.sayso/subject";

/// Who is waited for, for clients that read it.
pub(super) fn subject() -> Value {
    json!({
        "party": "resource_owner",
        "is_requesting_party": false,
        "reachable_by_client": false,
        "notified": true,
    })
}

/// `_meta` that says so.
pub(super) fn meta() -> Value {
    json!({ SUBJECT: subject() })
}

/// The one question there is while she is waited for (MCP-24).
pub(super) fn keep_waiting(tool: &str, authority: &str) -> String {
    format!(
        "`{}` is waiting for the owner of the resource to decide. Her own authority ({}) has asked her. She is not you, \
         and neither you nor this client can reach her or decide for her. Keep waiting?",
        plain(tool),
        plain(authority)
    )
}

pub(super) fn waits_elsewhere(tool: &str) -> String {
    format!(
        "`{}` is waiting: another call of it is being put to the owner of the resource, who is not you and whom this client \
         cannot reach. Keep waiting?",
        plain(tool)
    )
}

/// The schema of a question with one boolean, whose `true` means go on.
pub(super) fn yes_or_no(name: &str, title: &str, description: &str) -> Value {
    json!({
        "type": "object",
        "properties": { name: { "type": "boolean", "title": title, "description": description } },
        "required": [name],
    })
}

/// What is said while the owner thinks.
pub(super) const WAITING: &str =
    "waiting for the owner of the resource to decide; she cannot be reached from here";

/// A wait handed back to a client that is not asked, or has waited as long as it can.
pub(super) fn still_waiting(tool: &str, authority: Option<&str>) -> String {
    let by =
        authority.map(|authority| format!(" by her authority ({})", plain(authority))).unwrap_or_default();
    format!(
        "Not yet: the owner of the resource has been asked{by} and has not decided. She is not you, and neither you nor \
         this client can reach her or decide for her. Nothing was executed. Call `{}` again with the same arguments to go on \
         waiting; she is not asked twice.",
        plain(tool)
    )
}

pub(super) fn stopped(tool: &str) -> String {
    format!(
        "Stopped waiting for the owner of the resource; nothing was executed. She may still decide: calling `{}` again with \
         the same arguments takes the wait up again.",
        plain(tool)
    )
}

/// Terms that nobody can be asked about here.
pub(super) fn terms_unasked(terms: &str, tool: &str) -> String {
    format!(
        "Not called: the owner of the resource sets terms, and nobody has agreed to them. This client has no way of showing \
         them to the person it works for, and only that person can agree.\n\n{terms}\n\nWho agrees to terms like these \
         beforehand starts the shim with --agree-up-to, or --accept-terms; or agrees once in a terminal with `sayso agent \
         call`, after which `{}` can be called again here.",
        plain(tool)
    )
}

/// How a call ended that brought no answer of the server's, in a sentence or two.
pub(super) fn ending(outcome: &Outcome, resource: &str, tool: &str) -> String {
    match outcome {
        Outcome::NotAccepted { declined: true } => {
            "Not called: the terms were declined, and the owner's authority was told so.".into()
        }
        Outcome::NotAccepted { declined: false } | Outcome::Later => {
            format!(
                "Not called: nobody has agreed to the owner's terms. Calling `{}` again shows them again.",
                plain(tool)
            )
        }
        // Ours first: what follows the words of a stranger could be taken for theirs, and theirs for ours.
        Outcome::Denied { words } => show::with_words(
            "Denied by the owner of the resource, or by her policy; nothing was executed. Asking again at once will not \
             change it",
            words.as_deref(),
        ),
        Outcome::Waiting { authority, .. } => still_waiting(tool, Some(authority)),
        Outcome::Busy => still_waiting(tool, None),
        Outcome::Stopped => stopped(tool),
        Outcome::Refused(refused) => {
            let advice = crate::agent::advice::of_refusal(refused, resource);
            let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
            format!("Not executed: {}{advice}", show::refused(refused))
        }
        Outcome::Unknown { why } => {
            format!("Nobody here knows whether it was executed: {}", show::unknown(*why))
        }
        Outcome::Result { .. } | Outcome::ServerError { .. } => String::new(),
    }
}

/// A fault on the way.
pub(super) fn fault(fault: &Fault, resource: &str) -> String {
    let advice = crate::agent::advice::of(fault, resource);
    format!("Not called: {fault}{}", advice.map(|advice| format!("; {advice}")).unwrap_or_default())
}

/// A tool's failure in our words.
pub(super) fn failed(text: &str, modern: bool, subject: bool) -> Value {
    let mut result = json!({ "content": [{ "type": "text", "text": text }], "isError": true });
    if let Some(members) = result.as_object_mut() {
        if modern {
            members.insert("resultType".into(), "complete".into());
        }
        if subject {
            members.insert("_meta".into(), meta());
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    // MCP-22, MCP-23, CORE-43
    #[test]
    fn whoever_is_waited_for_is_named_and_cannot_be_reached() {
        let waits = [
            keep_waiting("execute_trade", "https://as.example.test"),
            waits_elsewhere("execute_trade"),
            still_waiting("execute_trade", Some("https://as.example.test")),
            still_waiting("execute_trade", None),
        ];
        for text in waits {
            assert!(text.contains("owner of the resource") && text.contains("not you"), "{text}");
            assert!(text.contains("reach her") || text.contains("cannot reach"), "{text}");
            assert!(!text.to_lowercase().contains("approve"), "nobody here is asked to: {text}");
        }
        assert_eq!(subject()["reachable_by_client"], false);
        assert_eq!(subject()["is_requesting_party"], false);
    }

    // MCP-24
    #[test]
    fn a_question_has_one_boolean() {
        let schema = yes_or_no("keep_waiting", "Keep waiting", "or stop");
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(properties.len(), 1);
        assert_eq!(properties["keep_waiting"]["type"], "boolean");
        assert_eq!(schema["required"], json!(["keep_waiting"]));
    }

    // D-28
    #[test]
    fn words_of_strangers_are_text() {
        let text = keep_waiting("a\u{202e}b\u{1b}[2J", "https://as.example.test");
        assert!(text.contains("\\u{202e}") && !text.contains('\u{1b}'), "{text}");
        let denied = Outcome::Denied { words: Some("no\u{200b}".into()) };
        assert!(ending(&denied, "http://127.0.0.1:1/mcp", "x").contains("\\u{200b}"));
    }
}
