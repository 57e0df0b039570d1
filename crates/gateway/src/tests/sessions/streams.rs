//! What ends a stream, and what does not.

use super::super::cast::{HOST, NOW, key};
use super::super::wire::Request;
use super::cast::{Legacy, answer, get, post, read};
use serde_json::json;
use std::time::Duration;

fn listening(session: &str) -> Request {
    get().with("Mcp-Session-Id", session).signed_by(&key(0x22), NOW, HOST)
}

/// A session's own stream, a call's in it, and one of a call outside any.
async fn ends(reason: &'static str) -> (bool, bool, bool) {
    let legacy = Legacy::open().await;
    let id = legacy.bound().await;
    let streamed = json!({ "stream": true });
    let mut own = legacy.listen(listening(&id)).await;
    let mut call = legacy.listen(read(&streamed).with("Mcp-Session-Id", &id).signed("reader")).await;
    let outside = Legacy::before(true).await;
    let modern = Request::call("get_positions", &streamed.to_string()).signed("reader");
    let mut single = outside.listen(modern).await;
    for authority in [&legacy.house.authority, &outside.house.authority] {
        *authority.ended.lock().unwrap() = Some(reason);
    }
    let limit = Duration::from_secs(5);
    tokio::join!(own.ends_within(limit), call.ends_within(limit), single.ends_within(limit))
}

// D-13, D-21
#[tokio::test]
async fn the_streams_of_a_revoked_grant_end_within_five_seconds_and_those_of_a_spent_one_do_not() {
    let (connection, revoked, spent, expired) =
        tokio::join!(ends("connection_revoked"), ends("revoked"), ends("already_consumed"), ends("expired"));
    assert_eq!((connection, revoked), ((true, true, true), (true, true, true)));
    assert_eq!((spent, expired), ((false, false, false), (false, false, false)));
}

#[tokio::test]
async fn what_cannot_be_asked_about_ends() {
    let legacy = Legacy::open().await;
    let id = legacy.bound().await;
    let mut own = legacy.listen(listening(&id)).await;
    legacy.house.authority.gone.store(true, std::sync::atomic::Ordering::SeqCst);
    assert!(own.ends_within(Duration::from_secs(5)).await);
    let response = legacy.send(listening(&id)).await;
    assert_eq!((response.status, response.json()["error"].as_str()), (503, Some("temporarily_unavailable")));
    legacy.house.authority.gone.store(false, std::sync::atomic::Ordering::SeqCst);
    *legacy.house.authority.ended.lock().unwrap() = Some("connection_revoked");
    let before = legacy.server.count();
    for request in [get(), answer("1")] {
        let request = request.with("Mcp-Session-Id", &id).signed_by(&key(0x22), NOW, HOST);
        let response = legacy.send(request).await;
        assert_eq!((response.status, response.json()["error"].as_str()), (403, Some("access_revoked")));
    }
    assert_eq!(legacy.server.count(), before);
}

// D-10: an older client that hangs up cancels nothing; one that stops listening stops listening.
#[tokio::test]
async fn an_older_client_that_leaves_ends_its_listening_and_no_call() {
    let legacy = Legacy::open().await;
    let id = legacy.bound().await;
    let call = read(&json!({ "stream": true })).with("Mcp-Session-Id", &id).signed("reader");
    let call = legacy.listen(call).await;
    let own = legacy.listen(listening(&id)).await;
    drop((call, own));
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(legacy.server.holds("tools/call") && !legacy.server.holds("GET"));
    // What the server asks meanwhile can still be answered.
    let asks = r#"data: {"jsonrpc":"2.0","id":9,"method":"ping"}"#;
    legacy.server.say("theirs-0", "tools/call", asks);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let answer = answer("9").with("Mcp-Session-Id", &id).signed_by(&key(0x22), NOW, HOST);
    assert_eq!(legacy.send(answer).await.status, 202);
}

// A server gives a stream to one listener: what is read on for nobody makes way for who takes it up.
#[tokio::test]
async fn a_stream_that_is_taken_up_is_let_go_of_first() {
    let legacy = Legacy::open().await;
    let id = legacy.bound().await;
    let call = read(&json!({ "stream": true })).with("Mcp-Session-Id", &id).signed("reader");
    drop(legacy.listen(call).await);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(legacy.server.holds("tools/call"));
    let again = get().with("Mcp-Session-Id", &id).with("Last-Event-ID", "first");
    let _again = legacy.listen(again.signed_by(&key(0x22), NOW, HOST)).await;
    assert!(!legacy.server.holds("tools/call") && legacy.server.holds("GET"));
}

#[tokio::test]
async fn streams_go_to_whoever_opened_them() {
    let legacy = Legacy::open().await;
    let (one, two) = (legacy.bound().await, legacy.initialize().await);
    let mut first = legacy.listen(listening(&one)).await;
    let mut second = legacy.listen(get().with("Mcp-Session-Id", &two)).await;
    for (theirs, word) in [("theirs-0", "for-one"), ("theirs-1", "for-two")] {
        legacy.server.say(theirs, "GET", &format!("data: {word}"));
    }
    first.until("for-one").await;
    second.until("for-two").await;
    assert!(!first.read_so_far().await.contains("for-two"));
    assert!(!second.read_so_far().await.contains("for-one"));
    assert_eq!(legacy.send(post("ping", &json!({})).with("Mcp-Session-Id", &two)).await.status, 200);
}
