//! Sessions of the older revisions (D-13): whose they are, what is said in them, and what ends their streams.

mod bound;
pub(super) mod cast;
mod expiring;
mod server;
mod streams;

use cast::{Legacy, answer, delete, get, note, post};
use serde_json::json;

// The upstream's id never leaves, and ours never reaches it.
#[tokio::test]
async fn a_session_has_a_name_of_ours() {
    let legacy = Legacy::open().await;
    let (first, second) = (legacy.initialize().await, legacy.initialize().await);
    assert!(first.len() == 43 && first != second && !first.contains("theirs"));
    for (id, theirs) in [(&first, "theirs-0"), (&second, "theirs-1")] {
        let response = legacy.send(post("tools/list", &json!({})).with("Mcp-Session-Id", id)).await;
        assert_eq!((response.status, response.all("mcp-session-id")), (200, vec![id.as_str()]));
        let got = legacy.server.last();
        assert_eq!(got.header("mcp-session-id"), Some(theirs));
        assert!(!got.headers.values().any(|value| value == id.as_str()));
    }
    let told = legacy.send(note("notifications/initialized").with("Mcp-Session-Id", &first)).await;
    assert_eq!((told.status, told.body.len()), (202, 0));
}

#[tokio::test]
async fn a_server_that_mints_none_stays_without() {
    let legacy = Legacy::before(true).await;
    let response = legacy.send(post("initialize", &json!({}))).await;
    assert_eq!((response.status, response.all("mcp-session-id")), (200, vec![]));
    assert_eq!(legacy.send(post("tools/list", &json!({}))).await.status, 200);
    let before = legacy.server.count();
    for (request, status) in [(get(), 405), (delete(), 405), (answer("1"), 403)] {
        assert_eq!(legacy.send(request).await.status, status);
    }
    let served = legacy.send(post("completion/complete", &json!({}))).await;
    assert_eq!((served.status, served.json()["error"]["code"].as_i64()), (403, Some(-32601)));
    assert_eq!(legacy.server.count(), before);
}

// A restart, another process, somebody's guess, the upstream's own name: all the same.
#[tokio::test]
async fn an_unknown_session_is_not_found() {
    let legacy = Legacy::open().await;
    let id = legacy.initialize().await;
    let restarted = legacy.restarted().await;
    let before = legacy.server.count();
    for name in [id.as_str(), "theirs-0", "", "x", &id.to_lowercase(), &format!("{id}A")] {
        for request in
            [post("tools/list", &json!({})), get(), delete(), answer("1"), post("tools/call", &json!({}))]
        {
            let response = restarted.send(request.with("Mcp-Session-Id", name)).await;
            assert_eq!(
                (response.status, response.json()["error"].as_str()),
                (404, Some("session_not_found"))
            );
            assert!(!response.is_challenge());
        }
    }
    let foreign = restarted.send(get().with("Mcp-Session-Id", &id).with("Origin", "https://evil.test")).await;
    assert_eq!(foreign.status, 403);
    assert_eq!(legacy.server.count(), before);
    assert_eq!(legacy.send(post("ping", &json!({})).with("Mcp-Session-Id", &id)).await.status, 200);
    // What its server forgot is forgotten here.
    legacy.server.forget();
    for forwarded in [1, 0] {
        let before = legacy.server.count();
        let response = legacy.send(post("ping", &json!({})).with("Mcp-Session-Id", &id)).await;
        assert_eq!((response.status, legacy.server.count() - before), (404, forwarded));
    }
}

#[tokio::test]
async fn a_modern_client_has_no_session() {
    let legacy = Legacy::open().await;
    let id = legacy.initialize().await;
    let list = super::wire::Request::list().with("Mcp-Session-Id", &id).with("Last-Event-ID", "first");
    legacy.send(list).await;
    let got = legacy.server.last();
    assert_eq!((got.header("mcp-session-id"), got.header("last-event-id")), (None, None));
    let before = legacy.server.count();
    for request in [get(), delete()] {
        let response =
            legacy.send(request.but("MCP-Protocol-Version", "2026-07-28").with("Mcp-Session-Id", &id)).await;
        assert_eq!(response.status, 405);
    }
    let twice = post("ping", &json!({})).with("Mcp-Session-Id", &id).with("Mcp-Session-Id", &id);
    assert_eq!(legacy.send(twice).await.status, 400);
    assert_eq!(legacy.send(get().with("Mcp-Session-Id", &id).with("Mcp-Session-Id", &id)).await.status, 405);
    assert_eq!(legacy.server.count(), before);
}

// D-3: 200 in a session, where 404 would end it.
#[tokio::test]
async fn a_method_that_is_not_served_leaves_the_session_alone() {
    let legacy = Legacy::open().await;
    let id = legacy.initialize().await;
    let before = legacy.server.count();
    for method in ["completion/complete", "resources/read", "tasks/get", "unknown/method"] {
        let response = legacy.send(post(method, &json!({})).with("Mcp-Session-Id", &id)).await;
        let body = response.json();
        assert_eq!((response.status, &body["error"]["code"], &body["id"]), (200, &json!(-32601), &json!(1)));
        assert_eq!(body["error"]["data"]["error"], "unknown_method");
    }
    let note = legacy.send(note("notifications/unheard_of").with("Mcp-Session-Id", &id)).await;
    assert_eq!((note.status, note.json()["error"]["code"].as_i64()), (200, Some(-32601)));
    let tool =
        legacy.send(post("tools/call", &json!({ "name": "wire_money" })).with("Mcp-Session-Id", &id)).await;
    assert_eq!((tool.status, tool.json()["error"].as_str()), (403, Some("unknown_tool")));
    assert_eq!(legacy.server.count(), before);
}

// Case 67, D-13, MSG-08, MSG-10: a response answers an id sent in that session, once.
#[tokio::test]
async fn a_response_answers_what_was_asked_in_its_session_once() {
    let legacy = Legacy::open().await;
    let (one, two) = (legacy.initialize().await, legacy.initialize().await);
    let mut stream = legacy.listen(get().with("Mcp-Session-Id", &one)).await;
    let mut other = legacy.listen(get().with("Mcp-Session-Id", &two)).await;
    let asks =
        r#"data: {"jsonrpc":"2.0","id":"ask-1","method":"elicitation/create","params":{"message":"?"}}"#;
    legacy.server.say("theirs-0", "GET", asks);
    stream.until("ask-1").await;
    assert!(!other.read_so_far().await.contains("ask-1"), "another session heard it");
    let before = legacy.server.count();
    for (id, session) in [("\"ask-1\"", &two), ("\"ask-2\"", &one), ("1", &one)] {
        let response = legacy.send(answer(id).with("Mcp-Session-Id", session)).await;
        assert_eq!((response.status, response.json()["error"].as_str()), (400, Some("invalid_request")));
    }
    assert_eq!(legacy.send(answer("\"ask-1\"")).await.status, 403, "outside a session");
    assert_eq!(legacy.server.count(), before);
    for (status, forwarded) in [(202, 1), (400, 0)] {
        let before = legacy.server.count();
        let response = legacy.send(answer("\"ask-1\"").with("Mcp-Session-Id", &one)).await;
        assert_eq!((response.status, legacy.server.count() - before), (status, forwarded));
    }
    assert_eq!(legacy.server.last().header("mcp-session-id"), Some("theirs-0"));
}

// Case 67: a stream is taken up by an event of its own session alone.
#[tokio::test]
async fn an_event_passes_on_the_session_it_belongs_to() {
    let legacy = Legacy::open().await;
    let (one, two) = (legacy.initialize().await, legacy.initialize().await);
    let mut stream = legacy.listen(get().with("Mcp-Session-Id", &one)).await;
    legacy.server.say("theirs-0", "GET", "id: event-9\ndata: {}");
    stream.until("event-9").await;
    drop(stream);
    let before = legacy.server.count();
    for (session, event) in [(&two, "event-9"), (&one, "event-8"), (&two, "first"), (&one, "")] {
        let response = legacy.send(get().with("Mcp-Session-Id", session).with("Last-Event-ID", event)).await;
        assert_eq!(response.status, 400, "{event}");
    }
    assert_eq!(legacy.server.count(), before);
    let _stream = legacy.listen(get().with("Mcp-Session-Id", &one).with("Last-Event-ID", "event-9")).await;
    let got = legacy.server.last();
    assert_eq!(
        (got.header("last-event-id"), got.header("mcp-session-id")),
        (Some("event-9"), Some("theirs-0"))
    );
    legacy.send(post("ping", &json!({})).with("Mcp-Session-Id", &one).with("Last-Event-ID", "event-9")).await;
    assert_eq!(legacy.server.last().header("last-event-id"), None);
}
