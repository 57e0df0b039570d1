//! Sessions of older clients, inside the server's own process (D-13).

use super::cast::{HOST, House, NOW, Turn, key, result};
use super::request::Call;
use http::{Method, StatusCode};
use serde_json::json;

fn read() -> Call {
    Call::older_request("tools/call", &json!({ "name": "get_positions", "arguments": {} }))
}

fn list() -> Call {
    Call::older_request("tools/list", &json!({}))
}

async fn initialize(house: &House) -> String {
    let mut answer = result();
    answer.headers_mut().insert("mcp-session-id", "theirs".parse().unwrap());
    house.inside.next(Turn::Answer(answer));
    let answer =
        house.send(&Call::older_request("initialize", &json!({ "protocolVersion": "2025-11-25" }))).await;
    answer.header("mcp-session-id").unwrap().to_owned()
}

/// The name of its session in the last request that got there.
fn named(house: &House) -> Option<String> {
    let got = house.inside.got.lock().unwrap();
    got.last()?.headers().get("mcp-session-id").map(|value| value.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_session_has_a_name_outside_and_another_inside() {
    let house = House::open();
    let ours = initialize(&house).await;
    assert_ne!(ours, "theirs");
    assert_eq!(house.send(&list().with("mcp-session-id", &ours)).await.status, 200);
    assert_eq!(named(&house).as_deref(), Some("theirs"));
    for stolen in ["theirs", "x"] {
        assert_eq!(house.send(&list().with("mcp-session-id", stolen)).await.status, 404);
    }
    assert_eq!(house.inside.count(), 2);
}

#[tokio::test]
async fn the_first_call_makes_it_its_callers() {
    let house = House::open();
    let id = initialize(&house).await;
    let within = |call: Call| call.with("mcp-session-id", &id);
    assert_eq!(house.send(&within(read()).signed("reader")).await.status, 200);
    let got = house.inside.count();
    let thief = house.send(&within(read()).shown("other").signed_by(&key(0x33), NOW, HOST)).await;
    assert_eq!((thief.status.as_u16(), &thief.json()["error"]), (403, &json!("session_bound")));
    for call in [list(), Call::bodiless(Method::GET), Call::bodiless(Method::DELETE)] {
        let answer = house.send(&within(call.clone())).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]), (401, &json!("invalid_token")));
        let other = house.send(&within(call).signed_by(&key(0x33), NOW, HOST)).await;
        assert_eq!(other.status, 401);
    }
    let answer = within(Call::older(&json!({ "jsonrpc": "2.0", "id": 9, "result": {} })));
    assert_eq!(house.send(&answer.signed_by(&key(0x22), NOW, HOST)).await.status, 400);
    let event =
        within(Call::bodiless(Method::GET)).with("last-event-id", "7").signed_by(&key(0x22), NOW, HOST);
    assert_eq!(house.send(&event).await.status, 400);
    assert_eq!(house.inside.count(), got);
    let unknown = within(Call::older_request("vault/open", &json!({}))).signed_by(&key(0x22), NOW, HOST);
    let unknown = house.send(&unknown).await;
    assert_eq!((unknown.status.as_u16(), &unknown.json()["error"]["code"]), (200, &json!(-32601)));
    assert_eq!(house.inside.count(), got);
    assert_eq!(house.send(&within(list()).signed_by(&key(0x22), NOW, HOST)).await.status, 200);
    let end = within(Call::bodiless(Method::DELETE)).signed_by(&key(0x22), NOW, HOST);
    assert_eq!(house.send(&end).await.status, 200);
    assert_eq!(named(&house).as_deref(), Some("theirs"));
    assert_eq!(house.send(&within(list()).signed_by(&key(0x22), NOW, HOST)).await.status, 404);
}

#[tokio::test]
async fn a_session_its_server_forgot_is_forgotten_here() {
    let house = House::open();
    let id = initialize(&house).await;
    let mut gone = result();
    *gone.status_mut() = StatusCode::NOT_FOUND;
    house.inside.next(Turn::Answer(gone));
    for _ in 0..2 {
        assert_eq!(house.send(&list().with("mcp-session-id", &id)).await.status, 404);
    }
    assert_eq!(house.inside.count(), 2);
}
