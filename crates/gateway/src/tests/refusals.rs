//! Every refusal: its status, its code, the shape of its body, and an upstream that saw nothing.

use super::cast::{HOST, House, NOW, TRADE, key};
use super::wire::{Request, Response};
use serde_json::json;

struct Row {
    what: &'static str,
    request: Request,
    status: u16,
    error: &'static str,
    /// The JSON-RPC code, for faults of the MCP layer.
    code: Option<i64>,
}

fn row(what: &'static str, request: Request, status: u16, error: &'static str) -> Row {
    Row { what, request, status, error, code: None }
}

fn fault(what: &'static str, request: Request, status: u16, code: i64, error: &'static str) -> Row {
    Row { what, request, status, error, code: Some(code) }
}

fn trade() -> Request {
    Request::call("execute_trade", TRADE)
}

fn read() -> Request {
    Request::call("get_positions", "{}")
}

fn check(row: &Row, response: &Response) {
    assert_eq!(response.status, row.status, "{}: {response:?}", row.what);
    let body = response.json();
    match row.code {
        None => {
            assert_eq!(body["error"], row.error, "{}", row.what);
            assert!(body["error_description"].as_str().is_some_and(|text| text.len() > 10), "{}", row.what);
            assert!(body.get("jsonrpc").is_none());
        }
        Some(code) => {
            assert_eq!(
                (&body["jsonrpc"], &body["error"]["code"]),
                (&json!("2.0"), &json!(code)),
                "{}",
                row.what
            );
            assert_eq!(body["error"]["data"]["error"], row.error, "{}", row.what);
            assert!(body.get("result").is_none());
        }
    }
    assert!(!response.is_challenge() && body.get("ticket").is_none(), "{}", row.what);
    assert_eq!(response.all("content-type"), ["application/json"]);
    assert_eq!(response.all("cache-control"), ["no-store"]);
}

fn possession() -> Vec<Row> {
    let by = |seed, at, authority: &str| trade().shown("trade-1").signed_by(&key(seed), at, authority);
    vec![
        row("unsigned", trade().shown("trade-1"), 401, "invalid_token"),
        row("another key", by(0x33, NOW, HOST), 401, "invalid_token"),
        row("stale", by(0x22, NOW.plus(-61), HOST), 401, "invalid_token"),
        row("from the future", by(0x22, NOW.plus(61), HOST), 401, "invalid_token"),
        row("another authority", by(0x22, NOW, "evil.example.test"), 401, "invalid_token"),
        row(
            "another authority, and Host to match",
            by(0x22, NOW, "evil.example.test").but("Host", "evil.example.test"),
            401,
            "invalid_token",
        ),
        row("bearer", read().with("Authorization", "Bearer reader"), 401, "invalid_token"),
        row("no scheme", read().with("Authorization", "reader"), 401, "invalid_token"),
        row(
            "other digest",
            trade().signed("trade-1").but("Content-Digest", "sha-256=:AAAA:"),
            401,
            "invalid_token",
        ),
        row("no digest", trade().signed("trade-1").without("Content-Digest"), 401, "invalid_token"),
    ]
}

fn grants() -> Vec<Row> {
    let larger = r#"{"symbol":"VTI","quantity":4}"#;
    let extra = |member: &str| {
        let mut request = trade();
        let body = String::from_utf8(request.body).unwrap();
        request.body = body.replace(r#""name""#, &format!(r#"{member},"name""#)).into_bytes();
        request.signed("trade-1")
    };
    vec![
        row("revoked", trade().signed("connection_revoked"), 403, "access_revoked"),
        row("revoked, unsigned", trade().shown("connection_revoked"), 403, "access_revoked"),
        row("settled for a reason nobody knows", trade().signed("x_new"), 403, "access_revoked"),
        row("spent before", trade().signed("already_consumed"), 403, "already_consumed"),
        row(
            "other arguments",
            Request::call("execute_trade", larger).signed("trade-1"),
            403,
            "operation_mismatch",
        ),
        row("no operation", trade().signed("unbound"), 403, "operation_required"),
        row("unknown tool", Request::call("wire_money", "{}"), 403, "unknown_tool"),
        row(
            "unknown tool with a grant",
            Request::call("wire_money", "{}").signed("reader"),
            403,
            "unknown_tool",
        ),
        row("a task", extra(r#""task":{"ttl":1}"#), 400, "task_not_served"),
        row("more than was approved", extra(r#""note":1"#), 400, "invalid_request"),
        row("an answer to a question", extra(r#""inputResponses":{}"#), 400, "invalid_request"),
    ]
}

fn listener() -> Vec<Row> {
    let mut large = trade();
    large.body = vec![b' '; (64 << 10) + 1];
    let mut chunked = large.clone().with("Transfer-Encoding", "chunked");
    chunked.body = [b"10001\r\n", &large.body[..], b"\r\n0\r\n\r\n"].concat();
    let line = |line: &str| Request { line: line.into(), ..trade() };
    vec![
        row("foreign origin", trade().with("Origin", "https://evil.example"), 403, "invalid_origin"),
        row("null origin", read().with("Origin", "null"), 403, "invalid_origin"),
        row(
            "two origins",
            read().with("Origin", "https://app.example.test").with("Origin", "null"),
            403,
            "invalid_origin",
        ),
        row("another host", read().but("Host", "evil.example.test"), 421, "misdirected_request"),
        row(
            "an open method at another host",
            Request::list().but("Host", "evil.test"),
            421,
            "misdirected_request",
        ),
        row("a query", line("POST /mcp?x=1 HTTP/1.1"), 400, "invalid_request"),
        row("a coding", trade().with("Content-Encoding", "gzip"), 415, "unsupported_media_type"),
        row("not json", trade().but("Content-Type", "text/plain"), 415, "unsupported_media_type"),
        row("too large", large, 413, "request_body_too_large"),
        row("too large, length unknown", chunked, 413, "request_body_too_large"),
        row("get", line("GET /mcp HTTP/1.1"), 405, "method_not_allowed"),
        row("delete", line("DELETE /mcp HTTP/1.1"), 405, "method_not_allowed"),
        row("options", line("OPTIONS /mcp HTTP/1.1"), 405, "method_not_allowed"),
    ]
}

fn messages() -> Vec<Row> {
    let older = |method: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{}}}}"#);
        Request::post(method, None, body).but("MCP-Protocol-Version", "2025-11-25").without("Mcp-Method")
    };
    let newer = |method: &str| {
        let mut request = Request::list().but("Mcp-Method", method);
        request.body = String::from_utf8(request.body).unwrap().replace("tools/list", method).into_bytes();
        request
    };
    let lie = "header_body_mismatch";
    vec![
        fault("unknown method", newer("vault/open"), 404, -32601, "unknown_method"),
        fault("a method not served", newer("subscriptions/listen"), 404, -32601, "unknown_method"),
        fault("tasks", newer("tasks/list"), 404, -32601, "unknown_method"),
        fault("unknown method, older peer", older("vault/open"), 403, -32601, "unknown_method"),
        fault("open header", trade().signed("trade-1").but("Mcp-Method", "tools/list"), 400, -32020, lie),
        fault("another name", trade().signed("trade-1").but("Mcp-Name", "get_positions"), 400, -32020, lie),
        fault("older version", trade().but("MCP-Protocol-Version", "2025-11-25"), 400, -32020, lie),
        fault("method twice", trade().with("Mcp-Method", "tools/list"), 400, -32020, lie),
        fault("name twice", trade().with("mcp-NAME", "get_positions"), 400, -32020, lie),
        fault("underscore", trade().with("Mcp_Name", "get_positions"), 400, -32020, lie),
        fault("two tokens", trade().signed("trade-1").with("Authorization", "Bearer x"), 400, -32020, lie),
        fault("no method header", trade().without("Mcp-Method"), 400, -32020, "missing_routing_headers"),
        fault("no name header", trade().without("Mcp-Name"), 400, -32020, "missing_routing_headers"),
    ]
}

// CORE-16, CORE-17, CORE-18, CORE-19, CORE-20, CORE-21, CORE-23, CORE-24, CORE-55, CORE-59, CORE-66, CORE-88, CORE-91,
// MCP-06, MCP-08, MCP-09, MCP-14, MCP-25, MCP-26, MCP-27, MCP-28, MCP-30
#[tokio::test]
async fn what_is_refused_is_refused_in_full_and_forwards_nothing() {
    let house = House::open().await;
    for row in possession().into_iter().chain(grants()).chain(listener()).chain(messages()) {
        check(&row, &house.send(&row.request).await);
        house.assert_untouched(row.what);
    }
    assert_eq!(house.authority.tickets.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test]
async fn what_could_be_done_instead_is_in_the_headers() {
    let house = House::open().await;
    let response = house.send(&trade().shown("trade-1")).await;
    assert_eq!(response.all("www-authenticate"), [r#"PoP error="invalid_token""#]);
    let get = Request { line: "GET /mcp HTTP/1.1".into(), ..trade() };
    assert_eq!(house.send(&get).await.all("allow"), ["POST"]);
}

// CORE-07, CORE-11, CORE-13, CORE-14, CORE-15, CORE-25, CORE-82, MCP-07, MCP-08
#[tokio::test]
async fn a_challenge_says_the_same_in_its_header_and_its_body() {
    let house = House::open().await;
    for request in
        [trade(), trade().signed("trade-1").but("Authorization", "PoP expired"), read().signed("trade-1")]
    {
        let before = house.authority.tickets.load(std::sync::atomic::Ordering::SeqCst);
        let response = house.send(&request).await;
        assert_eq!(response.status, 401);
        assert_eq!(response.all("www-authenticate").len(), 1);
        let mut headers = http::HeaderMap::new();
        headers.insert("www-authenticate", response.all("www-authenticate")[0].parse().unwrap());
        let read = sayso_protocol::envelope::www_authenticate::decode(&headers).unwrap().unwrap();
        let body = response.json();
        assert_eq!(serde_json::to_value(&read).unwrap(), body);
        assert_eq!(body.as_object().unwrap().len(), 7);
        assert_eq!(body["error"], "insufficient_authorization");
        assert_eq!(body["ticket"], format!("ticket-{before}"));
        assert_eq!(body["as_uri"], "https://as.example.test");
        let document = "http://gw.example.test/.well-known/oauth-protected-resource/mcp";
        assert_eq!(body["resource_metadata"], document);
        assert_eq!(
            body["authorization_remediation"]["authorization_details"][0]["locations"],
            json!(["http://gw.example.test"])
        );
        assert_eq!(house.authority.tickets.load(std::sync::atomic::Ordering::SeqCst), before + 1);
    }
    house.assert_untouched("challenged");
}

// CORE-22
#[tokio::test]
async fn without_the_authority_nothing_goes_and_the_same_request_may_come_again() {
    let house = House::open().await;
    house.authority.gone.store(true, std::sync::atomic::Ordering::SeqCst);
    let signed = trade().signed("trade-1");
    for request in [&trade(), &signed] {
        let response = house.send(request).await;
        check(&row("gone", request.clone(), 503, "temporarily_unavailable"), &response);
        assert_eq!(response.all("retry-after"), ["1"]);
    }
    house.assert_untouched("gone");
    house.authority.gone.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(house.send(&signed).await.status, 200);
    assert_eq!(house.canary.count(), 1);
}

#[tokio::test]
async fn a_stale_registry_and_a_lost_report_are_503s() {
    let house = House::open().await;
    house.authority.stale.store(true, std::sync::atomic::Ordering::SeqCst);
    let response = house.send(&read()).await;
    assert_eq!(response.status, 503);
    assert!(response.json()["error_description"].as_str().unwrap().contains("stale"));
    house.authority.no_reports.store(true, std::sync::atomic::Ordering::SeqCst);
    let signed = read().signed("reader");
    assert_eq!(house.send(&signed).await.status, 503);
    house.assert_untouched("no report");
    house.authority.no_reports.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(house.send(&signed).await.status, 200);
}

#[tokio::test]
async fn an_unknown_outcome_counts_as_spent() {
    let house = House::open().await;
    house.authority.silent_consume.store(true, std::sync::atomic::Ordering::SeqCst);
    let signed = trade().signed("trade-1");
    let response = house.send(&signed).await;
    let body = response.json();
    assert_eq!((response.status, &body["spent"], &body["forwarded"]), (503, &json!(true), &json!("no")));
    assert_eq!(response.all("retry-after"), [""; 0]);
    assert_eq!(house.canary.count(), 0);
    assert_eq!(house.send(&signed).await.json()["error"], "invalid_token");
}

#[tokio::test]
async fn a_replay_is_refused_even_where_the_grant_would_allow_it() {
    let house = House::open().await;
    let once = read().signed("reader");
    assert_eq!(house.send(&once).await.status, 200);
    check(&row("replay", once.clone(), 401, "invalid_token"), &house.send(&once).await);
    let renamed = Request {
        headers: once
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.replace("sig1=", "sig2=")))
            .collect(),
        ..once.clone()
    };
    check(&row("renamed", renamed.clone(), 401, "invalid_token"), &house.send(&renamed).await);
    assert_eq!(house.canary.count(), 1);
}
