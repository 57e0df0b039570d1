//! A session that is somebody's.

use super::super::cast::{HOST, NOW, TRADE, key};
use super::super::wire::Request;
use super::cast::{Legacy, answer, delete, get, note, post, read};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

fn within(request: Request, session: &str) -> Request {
    request.with("Mcp-Session-Id", session)
}

/// Signed by a key alone, without a token.
fn by(request: Request, seed: u8) -> Request {
    request.signed_by(&key(seed), NOW, HOST)
}

fn trade() -> Request {
    let arguments: Value = serde_json::from_str(TRADE).unwrap();
    post("tools/call", &json!({ "name": "execute_trade", "arguments": arguments }))
}

fn everything() -> Vec<Request> {
    vec![
        post("tools/list", &json!({})),
        post("ping", &json!({})),
        post("initialize", &json!({})),
        post("unknown/method", &json!({})),
        note("notifications/initialized"),
        note("notifications/cancelled"),
        answer("1"),
        get(),
        get().with("Last-Event-ID", "first"),
        delete(),
    ]
}

// D-13: from then on whatever is said in it is signed by its key, and a stolen id is worth nothing.
#[tokio::test]
async fn a_bound_session_hears_its_key_alone() {
    let legacy = Legacy::open().await;
    let id = legacy.bound().await;
    let (before, tickets) = (legacy.server.count(), legacy.house.authority.tickets.load(Ordering::SeqCst));
    for request in everything() {
        let request = within(request, &id);
        let stale = request.clone().signed_by(&key(0x22), NOW.plus(-61), HOST);
        let elsewhere = request.clone().signed_by(&key(0x22), NOW, "other.test");
        let half = by(request.clone(), 0x22).shown("reader");
        for thief in
            [request.clone(), by(request.clone(), 0x33), request.signed_other(), stale, elsewhere, half]
        {
            let response = legacy.send(thief).await;
            assert_eq!((response.status, response.json()["error"].as_str()), (401, Some("invalid_token")));
            assert_eq!(response.all("www-authenticate"), [r#"PoP error="invalid_token""#]);
            assert!(response.json().get("ticket").is_none());
        }
    }
    assert_eq!(legacy.server.count(), before);
    assert_eq!(legacy.house.authority.tickets.load(Ordering::SeqCst), tickets);
    for (request, status) in [
        (post("tools/list", &json!({})), 200),
        (note("notifications/initialized"), 202),
        (post("unknown/method", &json!({})), 200),
        (answer("1"), 400),
        (delete(), 200),
        (post("tools/list", &json!({})), 404),
    ] {
        assert_eq!(legacy.send(by(within(request, &id), 0x22)).await.status, status);
    }
    let ended: Vec<_> = legacy.server.got.lock().unwrap().iter().map(|got| got.method.clone()).collect();
    assert_eq!(ended.iter().filter(|method| *method == "DELETE").count(), 1);
}

trait SignedOther {
    fn signed_other(self) -> Self;
}

impl SignedOther for Request {
    /// With a live grant of another key.
    fn signed_other(self) -> Self {
        by(self.shown("other"), 0x33)
    }
}

#[tokio::test]
async fn what_is_said_is_said_once() {
    let legacy = Legacy::open().await;
    let id = legacy.bound().await;
    for request in [post("tools/list", &json!({})), note("notifications/initialized"), delete()] {
        let request = by(within(request, &id), 0x22);
        assert!(legacy.send(request.clone()).await.status < 300);
        let before = legacy.server.count();
        let again = legacy.send(request.clone()).await;
        let expected = if request.line.starts_with("DELETE") { 404 } else { 401 };
        assert_eq!((again.status, legacy.server.count()), (expected, before));
    }
    let id = legacy.bound().await;
    let mut altered = by(within(post("logging/setLevel", &json!({ "level": "info" })), &id), 0x22);
    altered.body = String::from_utf8(altered.body).unwrap().replace("info", "debu").into_bytes();
    assert_eq!(legacy.send(altered).await.status, 401);
}

// D-13: a call is judged as anywhere, and another key's is refused before anything is spent.
#[tokio::test]
async fn a_call_in_a_bound_session_is_judged_as_anywhere() {
    let legacy = Legacy::open().await;
    let id = legacy.bound().await;
    let challenged = legacy.send(within(read(&json!({})), &id)).await;
    assert!(challenged.status == 401 && challenged.is_challenge());
    let before = legacy.server.count();
    let foreign = legacy.send(within(read(&json!({})), &id).signed_other()).await;
    assert_eq!((foreign.status, foreign.json()["error"].as_str()), (403, Some("session_bound")));
    assert!(!foreign.is_challenge());
    assert_eq!(legacy.server.count(), before);
    assert_eq!(legacy.send(within(trade(), &id).signed("trade-1")).await.status, 200);
    assert_eq!(legacy.house.authority.spent.lock().unwrap().len(), 1);
    // The other way round: the trade is the one that is not spent.
    let theirs = legacy.initialize().await;
    assert_eq!(legacy.send(within(read(&json!({})), &theirs).signed_other()).await.status, 200);
    let before = legacy.server.count();
    let foreign = legacy.send(within(trade(), &theirs).signed("trade-2")).await;
    assert_eq!((foreign.status, foreign.json()["error"].as_str()), (403, Some("session_bound")));
    assert_eq!(legacy.house.authority.spent.lock().unwrap().len(), 1);
    assert_eq!(legacy.server.count(), before);
}

#[tokio::test]
async fn a_call_that_is_not_forwarded_binds_nothing() {
    let legacy = Legacy::open().await;
    let id = legacy.initialize().await;
    legacy.send(within(trade(), &legacy.initialize().await).signed("trade-1")).await;
    for (request, status) in [
        (within(read(&json!({})), &id), 401),
        (within(read(&json!({})), &id).signed("expired"), 401),
        (within(read(&json!({})), &id).signed("connection_revoked"), 403),
        (within(trade(), &id).signed("trade-1"), 403),
        (within(trade(), &id).signed("unbound"), 403),
        (by(within(read(&json!({})), &id).shown("reader"), 0x33), 401),
    ] {
        assert_eq!(legacy.send(request).await.status, status);
        assert_eq!(legacy.send(within(post("ping", &json!({})), &id)).await.status, 200, "it is nobody's");
    }
    assert_eq!(legacy.send(within(read(&json!({})), &id).signed_other()).await.status, 200);
    assert_eq!(legacy.send(within(post("ping", &json!({})), &id)).await.status, 401);
}

// D-13: what was open before the session was somebody's is closed.
#[tokio::test]
async fn binding_closes_what_strangers_opened() {
    let legacy = Legacy::open().await;
    let (id, other) = (legacy.initialize().await, legacy.initialize().await);
    let mut listening = legacy.listen(within(get(), &id)).await;
    let mut listed = legacy.listen(within(post("tools/list", &json!({ "stream": true })), &id)).await;
    let mut elsewhere = legacy.listen(within(get(), &other)).await;
    let call = within(read(&json!({ "stream": true })), &id).signed("reader");
    let mut called = legacy.listen(call).await;
    legacy.server.say("theirs-0", "tools/call", "data: secret");
    called.until("secret").await;
    for stream in [&mut listening, &mut listed] {
        assert!(stream.ends_within(Duration::from_secs(2)).await);
    }
    assert!(!called.ends_within(Duration::from_millis(300)).await, "the call's own stream goes on");
    assert!(!elsewhere.ends_within(Duration::from_millis(300)).await, "and another session's");
    let mut again = legacy.listen(by(within(get(), &id), 0x22)).await;
    // A second call of the key closes nothing.
    assert_eq!(legacy.send(within(read(&json!({})), &id).signed("reader")).await.status, 200);
    legacy.server.say("theirs-0", "GET", "data: {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"roots/list\"}");
    again.until("roots/list").await;
    assert_eq!(legacy.send(within(answer("5"), &id)).await.status, 401);
    assert_eq!(legacy.send(by(within(answer("5"), &id), 0x22)).await.status, 202);
    assert_eq!(legacy.send(by(within(answer("5"), &id), 0x22)).await.status, 400);
    assert_eq!(legacy.send(by(within(delete(), &id), 0x22)).await.status, 200);
    assert!(again.ends_within(Duration::from_secs(2)).await, "and its end closes the rest");
}
