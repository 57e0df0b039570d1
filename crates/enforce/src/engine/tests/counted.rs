//! What an observer is told: an outcome and a word of ours, once a request.

use super::*;
use crate::observe::{Observer, Outcome};
use std::sync::Mutex;
use std::time::Duration;

#[derive(Default)]
struct Tally(Mutex<Vec<(Outcome, &'static str)>>);

impl Observer for Tally {
    fn decided(&self, outcome: Outcome, reason: &'static str, _took: Duration) {
        self.0.lock().unwrap().push((outcome, reason));
    }
}

async fn counted(
    grant: sayso_protocol::payload::protection::LiveGrant,
    incoming: &Incoming,
) -> (Outcome, &'static str) {
    let tally = Arc::new(Tally::default());
    let scene = Scene::with(grant);
    let engine = scene.engine.clone().observed(Some(tally.clone()));
    if engine.preview(&incoming.head, crate::Named::Nothing).is_ok() {
        drop(engine.decide(incoming, &scene.door).await);
    }
    let told = tally.0.lock().unwrap();
    let [once] = told[..] else { panic!("told {} times", told.len()) };
    once
}

#[tokio::test]
async fn every_request_is_counted_once_by_words_of_ours() {
    let strange = "<script>\u{202e}";
    let open =
        post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "notifications/initialized", None);
    assert_eq!(counted(reusable(), &open).await, (Outcome::Allowed, "open"));
    assert_eq!(counted(reusable(), &signed("get_positions", "{}")).await, (Outcome::Allowed, "reusable"));
    assert_eq!(counted(single_use(), &trade()).await, (Outcome::Allowed, "single_use"));
    let unsigned = call("get_positions", "{}");
    assert_eq!(counted(reusable(), &unsigned).await, (Outcome::Challenged, "insufficient_authorization"));
    let other = signed("execute_trade", r#"{"symbol":"VTI","quantity":4}"#);
    assert_eq!(counted(single_use(), &other).await, (Outcome::Denied, "operation_mismatch"));
    let unknown = post(call_body("rm", &format!(r#"{{"x":"{strange}"}}"#)), "tools/call", Some("rm"));
    assert_eq!(counted(reusable(), &unknown).await, (Outcome::Denied, "unknown_tool"));
    let garbage = post(strange, "tools/call", Some("x"));
    assert_eq!(counted(reusable(), &garbage).await, (Outcome::Denied, "malformed"));
    let mut elsewhere = call("get_positions", "{}");
    elsewhere.head.headers.insert("origin", HeaderValue::from_static("https://evil.example"));
    assert_eq!(counted(reusable(), &elsewhere).await, (Outcome::Denied, "invalid_origin"));
}
