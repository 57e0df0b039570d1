//! How a call ended that brought no answer of the server's, as a failed result: a sentence for people and models, and one
//! word for programs. Words of strangers come after ours, and what does not show in them is written as an escape (D-28).

use super::Posted;
use super::answer::Asked;
use crate::{Fault, Outcome};
use sayso_protocol::letters::is_hidden;
use serde_json::{Value, json};

/// The member of a failed result's `_meta` that says in a word how the call ended: `not_accepted`, `denied`, `not_believed`,
/// `identity_wanted`, `waiting`, `refused`, `unknown` or `not_called`.
pub const OUTCOME: &str = "dev.sayso/outcome";
/// Who is waited for, for programs (MCP-23).
const SUBJECT: &str = "dev.sayso/subject";
/// Most characters of a stranger's words that are repeated.
const MOST: usize = 512;

pub(super) fn told(asked: &Asked, outcome: &Outcome) -> Posted {
    let (word, text) = match outcome {
        Outcome::NotAccepted { declined: true } => (
            "not_accepted",
            "Not called: the terms were declined, and the owner's authority was told so.".into(),
        ),
        Outcome::NotAccepted { declined: false } | Outcome::Later => {
            ("not_accepted", "Not called: nobody has agreed to the owner's terms.".into())
        }
        Outcome::Denied { words } => {
            let ours = "Denied by the owner of the resource, or by her policy; nothing was executed.";
            ("denied", with(ours, words.as_deref()))
        }
        Outcome::NotBelieved { words } => {
            let ours = "Not called: what was shown of this agent's identity does not count with the owner's authority.";
            ("not_believed", with(ours, words.as_deref()))
        }
        Outcome::Unnamed { providers } => {
            let ours = "Not called: the owner's authority wants to hear for whom this agent acts.";
            ("identity_wanted", with(ours, Some(&providers.join(", "))))
        }
        Outcome::Waiting { .. } | Outcome::Busy | Outcome::Stopped => ("waiting", WAITING.into()),
        Outcome::Refused(refused) => {
            let code = refused.code.as_deref().map(plain).unwrap_or_default();
            let ours = format!("Not executed: the resource refused ({} {code}).", refused.status);
            ("refused", with(&ours, refused.words.as_deref()))
        }
        Outcome::Unknown { .. } => (
            "unknown",
            "Nobody here knows whether it was executed; its grant counts as spent, and it is not sent again."
                .into(),
        ),
        Outcome::Result { json, .. } | Outcome::ServerError { json } => ("refused", plain(json)),
    };
    asked.result(&failed(word, &text))
}

const WAITING: &str = "Not yet: the owner of the resource has been asked and has not decided. She is not you, and neither \
                       you nor this client can reach her or decide for her. Nothing was executed. The same call with the \
                       same arguments goes on waiting; she is not asked twice.";

pub(super) fn told_fault(asked: &Asked, fault: &Fault) -> Posted {
    asked.result(&failed("not_called", &plain(&format!("Not called: {fault}."))))
}

fn failed(word: &str, text: &str) -> Value {
    let mut meta = json!({ OUTCOME: word });
    if let (Some(members), "waiting") = (meta.as_object_mut(), word) {
        let subject = json!({ "party": "resource_owner", "is_requesting_party": false,
                              "reachable_by_client": false, "notified": true });
        members.insert(SUBJECT.into(), subject);
    }
    json!({ "content": [{ "type": "text", "text": text }], "isError": true, "resultType": "complete", "_meta": meta })
}

fn with(ours: &str, words: Option<&str>) -> String {
    words.map_or_else(|| ours.to_owned(), |words| format!("{ours} They say: {}", plain(words)))
}

fn plain(words: &str) -> String {
    let mut out = String::new();
    for letter in words.chars().take(MOST) {
        match is_hidden(letter) {
            true => out.extend(letter.escape_unicode()),
            false => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    // MCP-22, MCP-23, CORE-43, D-28
    #[test]
    fn whoever_is_waited_for_is_named_and_strangers_words_are_text() {
        let asked = Asked::of(br#"{"jsonrpc":"2.0","id":"a","method":"tools/call"}"#, None).unwrap();
        let text = |outcome: &Outcome| match told(&asked, outcome) {
            Ok(rmcp::transport::streamable_http_client::StreamableHttpPostResponse::Json(message, _)) => {
                serde_json::to_value(message).unwrap()
            }
            _ => panic!("a result"),
        };
        let waits = text(&Outcome::Waiting { authority: "https://as.example".into(), family: None });
        assert_eq!((&waits["id"], &waits["result"]["_meta"][OUTCOME]), (&json!("a"), &json!("waiting")));
        assert_eq!(waits["result"]["_meta"][SUBJECT]["is_requesting_party"], false);
        assert!(waits["result"]["content"][0]["text"].as_str().unwrap().contains("She is not you"));
        let denied = text(&Outcome::Denied { words: Some("no\u{202e}\u{1b}[2J".into()) });
        let words = denied["result"]["content"][0]["text"].as_str().unwrap();
        assert!(words.ends_with("They say: no\\u{202e}\\u{1b}[2J"), "{words}");
        assert_eq!(denied["result"]["isError"], true);
    }
}
