//! What an access token opened ends with it.

use super::super::cast::NOW;
use super::super::wire::Request;
use super::cast::{Legacy, get, post, read};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(4);

fn by(token: &str, request: Request) -> Request {
    request.with("Authorization", &format!("Bearer {token}"))
}

async fn initialized(legacy: &Legacy) -> String {
    let response =
        legacy.send(by("ann", post("initialize", &json!({ "protocolVersion": "2025-11-25" })))).await;
    let [id] = response.all("mcp-session-id").try_into().expect("a session");
    id.to_owned()
}

// D-13, COAZ-MCP-87: the session's own stream and a call's end with the token that opened them, and no other does.
#[tokio::test]
async fn a_stream_ends_when_the_token_that_opened_it_does() {
    let now = Arc::new(AtomicI64::new(NOW.0));
    let legacy = Legacy::policed(&now, false).await;
    let id = initialized(&legacy).await;
    let inside = |request: Request| request.with("Mcp-Session-Id", &id);
    let streamed = || read(&json!({ "stream": true }));
    let mut own = legacy.listen(by("brief", inside(get()))).await;
    let mut call = legacy.listen(by("brief", inside(streamed()))).await;
    let mut lasting = legacy.listen(by("ann", inside(streamed()))).await;
    let short = Duration::from_millis(700);
    assert_eq!((own.ends_within(short).await, call.ends_within(short).await), (false, false));
    // A second before it is over, and then.
    now.store(NOW.0 + 1, Ordering::SeqCst);
    assert!(!own.ends_within(Duration::from_secs(2)).await);
    now.store(NOW.0 + 2, Ordering::SeqCst);
    assert_eq!(tokio::join!(own.ends_within(SOON), call.ends_within(SOON)), (true, true));
    assert!(!lasting.ends_within(short).await, "the session is not over, nor is this token");
    assert!(!legacy.server.holds("GET"), "and its server is not listened to any more");
    let again = by("ann", inside(post("tools/list", &json!({}))));
    assert_eq!(legacy.send(again).await.status, 200);
}

// The same outside any session, for a subscription or a long answer of the newest revision.
#[tokio::test]
async fn a_long_answer_ends_with_its_token_too() {
    let now = Arc::new(AtomicI64::new(NOW.0));
    let legacy = Legacy::policed(&now, true).await;
    let modern = || Request::call("get_positions", r#"{"stream":true}"#);
    let mut call = legacy.listen(by("brief", modern())).await;
    let mut lasting = legacy.listen(by("ann", modern())).await;
    assert!(!call.ends_within(Duration::from_millis(300)).await);
    now.store(NOW.0 + 2, Ordering::SeqCst);
    assert!(call.ends_within(SOON).await);
    assert!(!lasting.ends_within(Duration::from_millis(300)).await);
    // One that begins when the token is over already says nothing at all.
    let response = legacy.send(by("brief", modern())).await;
    assert_eq!((response.status, response.body.len()), (200, 0));
    let whole = legacy.send(by("brief", Request::call("get_positions", "{}"))).await;
    assert!(whole.json()["result"].is_object(), "an answer of known length is not under way for long");
}
