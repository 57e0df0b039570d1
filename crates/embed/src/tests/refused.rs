//! Every kind of refusal at the layer: its status, its body, and a service that saw nothing.

use super::cast::{HOST, House, NOW, TRADE, key};
use super::request::Call;
use bytes::Bytes;
use http::Method;
use http_body_util::StreamBody;
use serde_json::json;

type Row = (&'static str, Call, u16, &'static str, Option<i64>);

fn trade() -> Call {
    Call::tool("execute_trade", TRADE)
}

fn read() -> Call {
    Call::tool("get_positions", "{}")
}

fn grants() -> Vec<Row> {
    let other = r#"{"symbol":"VTI","quantity":4}"#;
    let by = |seed, at, host: &str| trade().shown("trade-1").signed_by(&key(seed), at, host);
    vec![
        ("unsigned", trade().shown("trade-1"), 401, "invalid_token", None),
        ("another key", by(0x33, NOW, HOST), 401, "invalid_token", None),
        ("stale", by(0x22, NOW.plus(-61), HOST), 401, "invalid_token", None),
        ("another authority", by(0x22, NOW, "evil.example.test"), 401, "invalid_token", None),
        ("bearer", read().with("authorization", "Bearer reader"), 401, "invalid_token", None),
        (
            "another body",
            trade()
                .signed("trade-1")
                .saying(trade().body.to_vec().repeat(1).into_iter().chain(*b" ").collect::<Bytes>()),
            401,
            "invalid_token",
            None,
        ),
        ("no digest", trade().signed("trade-1").without("content-digest"), 401, "invalid_token", None),
        ("revoked", trade().signed("connection_revoked"), 403, "access_revoked", None),
        ("spent before", trade().signed("already_consumed"), 403, "already_consumed", None),
        (
            "other arguments",
            Call::tool("execute_trade", other).signed("trade-1"),
            403,
            "operation_mismatch",
            None,
        ),
        ("unknown tool", Call::tool("wire_money", "{}").signed("reader"), 403, "unknown_tool", None),
    ]
}

fn listener() -> Vec<Row> {
    let large = trade().saying(vec![b' '; (64 << 10) + 1]);
    let cut = trade().signed("trade-1").with("content-length", "4000");
    vec![
        ("foreign origin", trade().with("origin", "https://evil.example"), 403, "invalid_origin", None),
        ("another host", read().but("host", "evil.example.test"), 421, "misdirected_request", None),
        ("a query", trade().at("/mcp?x=1"), 400, "invalid_request", None),
        ("a coding", trade().with("content-encoding", "gzip"), 415, "unsupported_media_type", None),
        ("not json", trade().but("content-type", "text/plain"), 415, "unsupported_media_type", None),
        ("too large", large, 413, "request_body_too_large", None),
        ("cut short", cut, 413, "request_body_too_large", None),
        ("options", Call { method: Method::OPTIONS, ..trade() }, 405, "method_not_allowed", None),
    ]
}

fn messages() -> Vec<Row> {
    let (lie, missing, unknown) = ("header_body_mismatch", "missing_routing_headers", "unknown_method");
    let older = |method: &str| Call::older_request(method, &json!({}));
    vec![
        ("unknown method", Call::open("vault/open"), 404, unknown, Some(-32601)),
        ("tasks", Call::open("tasks/list"), 404, unknown, Some(-32601)),
        ("reading", Call::open("resources/read").with("mcp-name", "x"), 400, lie, Some(-32020)),
        ("unknown method, older peer", older("vault/open"), 403, unknown, Some(-32601)),
        ("open header", trade().signed("trade-1").but("mcp-method", "tools/list"), 400, lie, Some(-32020)),
        ("another name", trade().signed("trade-1").but("mcp-name", "get_positions"), 400, lie, Some(-32020)),
        ("an older version", trade().but("mcp-protocol-version", "2025-11-25"), 400, lie, Some(-32020)),
        ("name twice", trade().with("mcp-name", "get_positions"), 400, lie, Some(-32020)),
        ("no method header", trade().without("mcp-method"), 400, missing, Some(-32020)),
        ("no name header", trade().without("mcp-name"), 400, missing, Some(-32020)),
    ]
}

/// Without a session there is nothing of an older client's but its requests.
fn sessionless() -> Vec<Row> {
    let answer = Call::older(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    let named = |call: Call| call.with("mcp-session-id", "nobodys");
    let (get, delete) = (Call::bodiless(Method::GET), Call::bodiless(Method::DELETE));
    vec![
        ("get", get.clone(), 405, "method_not_allowed", None),
        ("delete", delete.clone(), 405, "method_not_allowed", None),
        ("an event", get.clone().with("last-event-id", "1"), 405, "method_not_allowed", None),
        ("an answer", answer, 403, "unknown_method", Some(-32601)),
        (
            "a session nobody knows",
            named(Call::older_request("tools/list", &json!({}))),
            404,
            "session_not_found",
            None,
        ),
        ("and its stream", named(get), 404, "session_not_found", None),
        ("and its end", named(delete), 404, "session_not_found", None),
    ]
}

// CORE-16, CORE-17, CORE-18, CORE-20, CORE-21, CORE-23, CORE-59, CORE-66, CORE-88, MCP-06, MCP-08, MCP-14, MCP-19,
// MCP-25, MCP-26, MCP-27, MCP-28, MCP-29, MCP-30
#[tokio::test]
async fn what_is_refused_reaches_nobody() {
    let house = House::open();
    let rows = grants().into_iter().chain(listener()).chain(messages()).chain(sessionless());
    for (what, call, status, error, code) in rows {
        let answer = house.send(&call).await;
        let body = answer.json();
        assert_eq!(answer.status, status, "{what}: {body}");
        match code {
            None => assert_eq!(body["error"], error, "{what}"),
            Some(code) => {
                assert_eq!(
                    (&body["error"]["code"], &body["error"]["data"]["error"]),
                    (&json!(code), &json!(error)),
                    "{what}"
                );
            }
        }
        assert!(body.get("result").is_none() && body.get("ticket").is_none(), "{what}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{what}");
        house.assert_untouched(what);
    }
    assert_eq!(house.authority.tickets(), 0);
}

// MCP-29, MCP-30
#[tokio::test]
async fn a_body_that_breaks_off_is_nobodys_request() {
    let house = House::open();
    let whole = trade().signed("trade-1");
    let pieces = [Ok(http_body::Frame::data(whole.body.slice(..20))), Err("it broke off")];
    let (parts, _) = whole.request().into_parts();
    let body = StreamBody::new(futures::stream::iter(pieces));
    let response = tower::ServiceExt::oneshot(house.layered.clone(), http::Request::from_parts(parts, body))
        .await
        .unwrap();
    assert_eq!(response.status(), 413);
    house.assert_untouched("broken off");
}

// CORE-22
#[tokio::test]
async fn without_the_authority_nothing_goes_and_the_same_request_may_come_again() {
    let house = House::open();
    let signed = trade().signed("trade-1");
    house.authority.gone.store(true, std::sync::atomic::Ordering::SeqCst);
    for call in [&trade(), &signed] {
        let answer = house.send(call).await;
        assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, Some("1")));
    }
    house.assert_untouched("gone");
    house.authority.gone.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(house.send(&signed).await.status, 200);
}

// CORE-95
#[tokio::test]
async fn a_replay_is_refused_even_where_the_grant_would_allow_it() {
    let house = House::open();
    let once = read().signed("reader");
    assert_eq!(house.send(&once).await.status, 200);
    let again = house.send(&once).await;
    assert_eq!((again.status.as_u16(), &again.json()["error"]), (401, &json!("invalid_token")));
    let trade_once = trade().signed("trade-1");
    assert_eq!(house.send(&trade_once).await.status, 200);
    let afresh = house.send(&trade().signed("trade-1")).await;
    assert_eq!((afresh.status.as_u16(), &afresh.json()["error"]), (403, &json!("already_consumed")));
    assert_eq!(house.inside.count(), 2);
}
