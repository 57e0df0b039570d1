//! How a no of a policy's is told, whose word a subject is, and whose and how long what a token permits is.

#![cfg(feature = "coaz")]

use super::policed::{like, older, stage, weather};
use super::*;
use crate::policy::Denials;
use crate::scripted_policy::{Says, Script, asks, by};
use serde_json::json as value;

fn telling(words: Option<&str>, as_result: bool) -> Script {
    let words = words.map(|words| words.parse().unwrap());
    Script { denials: Denials { words, as_result }, ..Script::default() }
}

// COAZ-MCP-78: words of a denial are the policy engine's only where an operator says which.
#[tokio::test]
async fn a_denial_repeats_what_the_policy_engine_says_where_that_is_named() {
    for (words, says, message) in [
        (None, Says::NoSaying, "Access denied: the policy says no"),
        (Some("reason_user.en"), Says::NoSaying, "Access denied: not today - ever"),
        (Some("reason"), Says::NoSaying, "Access denied: R"),
        (Some("reason_user"), Says::NoSaying, "Access denied: the policy says no"),
        (Some("reason"), Says::No, "Access denied: the policy says no"),
        (Some("reason"), Says::Nothing, "Authorization service unavailable"),
    ] {
        let answer = like(says, telling(words, false)).answer(&weather()).await;
        assert_eq!(answer["error"]["message"], message, "{words:?}");
        assert_eq!(answer["id"], 1);
    }
}

// COAZ-MCP-79: a call of a tool may be denied by a result; every other no, and every other fault, stays an error.
#[tokio::test]
async fn a_call_may_be_denied_by_a_result() {
    for (words, said) in [(None, "Access denied: the policy says no"), (Some("reason"), "Access denied: R")] {
        let stage = like(Says::NoSaying, telling(words, true));
        let answer = stage.answer(&weather()).await;
        let content = value!([{"type": "text", "text": said}]);
        let result = value!({"content": content, "isError": true, "resultType": "complete"});
        assert_eq!(answer, value!({"jsonrpc": "2.0", "id": 1, "result": result}));
        assert_eq!(stage.told(&weather()).await, "denied", "it is counted as what it is");
        for other in [asks("tools/list", None, ""), asks("no/such", None, "")] {
            let answer = stage.answer(&by(other, "ann")).await;
            assert_eq!((&answer["error"]["code"], answer.get("result")), (&value!(-32001), None));
        }
    }
    let answer = like(Says::Nothing, telling(None, true)).answer(&weather()).await;
    assert_eq!((&answer["error"]["code"], answer.get("result")), (&value!(-32603), None));
    let answer = like(Says::Yes, telling(None, true)).answer(&by(call("get_weather", "{}"), "nobody")).await;
    assert_eq!((&answer["error"]["code"], answer.get("result")), (&value!(-32602), None));
    let obliged = like(Says::Obliged, telling(None, true)).answer(&weather()).await;
    assert_eq!(obliged["result"]["isError"], true);
}

// COAZ-MCP-58, COAZ-MCP-82, COAZ-FW-48: whose word a subject is, is counted; strictly it is not taken.
#[tokio::test]
async fn a_subject_that_is_its_mappings_word_is_counted_or_refused() {
    let who = || by(call("get_weather", r#"{"who":"u-bob"}"#), "ann");
    let warned = like(Says::Yes, Script::unanchored("get_weather", sayso_coaz::Trust::Warn));
    let counts = Arc::new(Counts::default());
    let observer: Arc<dyn Observer> = counts.clone();
    let engine = warned.scene.engine.clone().observed(Some(observer));
    for _ in 0..2 {
        assert_eq!(told(&engine.decide(&who(), &warned.scene.door).await), "permit");
    }
    assert_eq!(counts.0.load(std::sync::atomic::Ordering::SeqCst), 1, "once for each mapping");
    let asked: serde_json::Value = serde_json::from_str(&warned.point.bodies()[0]).unwrap();
    assert_eq!(asked["subject"]["id"], "u-bob");

    let strict = like(Says::Yes, Script::unanchored("get_weather", sayso_coaz::Trust::Strict));
    let answer = strict.answer(&who()).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert!(strict.point.bodies().is_empty() && !answer.to_string().contains("u-bob"), "{answer}");
    assert_eq!(
        strict.told(&by(asks("tools/list", None, ""), "ann")).await,
        "permit",
        "defaults are anchored"
    );
}

#[derive(Default)]
struct Counts(std::sync::atomic::AtomicU64);

impl Observer for Counts {
    fn decided(&self, _: crate::Outcome, _: &'static str, _: std::time::Duration) {}

    fn warned(&self, notice: &'static str) {
        assert_eq!(notice, "subject_unverified");
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

// COAZ-MCP-87, D-15: a host that sees no session begin holds it to whoever was first let through in it.
#[tokio::test]
async fn a_session_nobody_saw_begin_is_whose_call_was_first_let_through() {
    let stage = stage(Says::Yes);
    let within = |incoming: Incoming, token: &str, session: &'static str| {
        let mut incoming = by(incoming, token);
        incoming.head.headers.insert("mcp-session-id", HeaderValue::from_static(session));
        incoming
    };
    let list = || older("tools/list", "{}");
    let told = async |incoming: &Incoming| {
        let session = Arc::new(Session::unseen());
        told(&stage.scene.engine.decide_within(Some(&session), incoming, &stage.scene.door).await)
    };
    let cancel = || {
        let mut note = by(
            post(
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
                "",
                None,
            ),
            "ann",
        );
        note.head.headers.remove("mcp-method");
        note.head.headers.insert("mcp-protocol-version", HeaderValue::from_static("2025-11-25"));
        note
    };
    assert_eq!(told(&within(cancel(), "ann", "one")).await, "unknown_method", "of nobody's session");
    *stage.point.says.lock().unwrap() = Says::No;
    assert_eq!(told(&within(list(), "bob", "one")).await, "denied");
    *stage.point.says.lock().unwrap() = Says::Yes;
    assert_eq!(told(&within(list(), "ann", "one")).await, "permit", "a denied one was in no session");
    let asked = stage.point.bodies().len();
    for stranger in ["bob", "ann-elsewhere", "nobody"] {
        assert_eq!(told(&within(list(), stranger, "one")).await, "session_bound", "{stranger}");
    }
    assert_eq!(stage.point.bodies().len(), asked, "nobody was asked about them");
    assert_eq!(told(&within(list(), "eve", "one")).await, "bad token");
    assert_eq!(told(&within(list(), "ann", "one")).await, "permit");
    assert_eq!(told(&within(cancel(), "ann", "one")).await, "open");
    assert_eq!(told(&within(cancel(), "bob", "one")).await, "session_bound");
    assert_eq!(told(&within(list(), "bob", "two")).await, "permit");
    assert_eq!(told(&within(list(), "ann", "two")).await, "session_bound");
}

// D-13: what a token permits lasts as long as the token.
#[tokio::test]
async fn a_permit_says_until_when_its_token_is_good() {
    let stage = stage(Says::Yes);
    for (token, until) in [("brief", Some(NOW.plus(2))), ("ann", Some(NOW.plus(600))), ("nobody", None)] {
        let Verdict::Permit(permit) = stage.scene.decide(&by(older("ping", "{}"), token)).await else {
            panic!()
        };
        assert_eq!(permit.redeem().ok().unwrap().until, until, "{token}");
    }
}
