//! What a request's head says, and whether its body is all there: host, origin, method, codings, headers against body.

use super::*;

// CORE-20, MCP-28
#[test]
fn an_origin_is_compared_whole() {
    assert_eq!(outcome(&with(list(), "origin", b"https://app.example.test")), "open");
    let foreign: [&[u8]; 14] = [
        b"null",
        b"",
        b"https://app.example.test.evil.test",
        b"https://evil-app.example.test",
        b"http://app.example.test",
        b"https://app.example.test:8443",
        b"https://app.example.test/",
        b"https://app.example.test/path",
        b"https://user@app.example.test",
        b"https://app.example.test, https://evil.example.test",
        b"file://",
        b"chrome-extension://abc",
        b"https://app.example.test\\@evil.example.test",
        b"\xff\xfe",
    ];
    for origin in foreign {
        assert_eq!(outcome(&with(list(), "origin", origin)), "invalid_origin");
    }
    let mut two = with(list(), "origin", b"https://app.example.test");
    two.head.headers.append("origin", HeaderValue::from_static("https://app.example.test"));
    assert_eq!(outcome(&two), "invalid_origin");
    let none = ResourceSettings { allowed_origins: Vec::new(), ..settings() };
    assert_eq!(outcome_of(none, &with(list(), "origin", b"https://app.example.test")), "invalid_origin");
    let mut get = with(list(), "origin", b"null");
    get.head.method = Method::GET;
    assert_eq!(outcome(&get), "invalid_origin");
}

// CORE-20, MCP-28, D-16
#[test]
fn a_resource_is_not_foreign_to_its_own_origin() {
    let none = || ResourceSettings { allowed_origins: Vec::new(), ..settings() };
    let of = |origin: &str| outcome_of(none(), &with(list(), "origin", origin.as_bytes()));
    assert_eq!(of("https://gw.example.test"), "open");
    for near in ["http://gw.example.test", "https://gw.example.test:8443", "https://gw.example.test/", "null"]
    {
        assert_eq!(of(near), "invalid_origin", "{near}");
    }
}

// CORE-59
#[test]
fn the_host_list_is_for_requests_whose_signature_says_nothing_of_the_host() {
    assert_eq!(outcome(&with(list(), "host", b"evil.example.test")), "misdirected_request");
    assert_eq!(
        outcome(&with(call("get_positions", "{}"), "host", b"evil.example.test")),
        "misdirected_request"
    );
    assert_eq!(outcome(&with(signed("get_positions", "{}"), "host", b"evil.example.test")), "get_positions");
    // Nobody verifies the signature of an open request, so it is no way past the list.
    let open = sign(list(), &key(0x22), NOW, "gw.example.test");
    assert_eq!(outcome(&open), "open");
    assert_eq!(outcome(&with(open, "host", b"evil.example.test")), "misdirected_request");
    let mut none = list();
    none.head.headers.remove("host");
    assert_eq!(outcome(&none), "misdirected_request");
    let mut absolute = list();
    absolute.head.target = "http://evil.example.test/mcp".parse().unwrap();
    assert_eq!(outcome(&absolute), "misdirected_request");
}

#[test]
fn other_http_methods_and_queries_are_refused() {
    for method in [Method::GET, Method::DELETE, Method::PUT, Method::OPTIONS, Method::HEAD] {
        let mut incoming = call("get_positions", "{}");
        incoming.head.method = method;
        assert_eq!(outcome(&incoming), "method_not_allowed");
    }
    for target in ["/mcp?", "/mcp?x=1"] {
        let mut incoming = call("get_positions", "{}");
        incoming.head.target = target.parse().unwrap();
        assert_eq!(outcome(&incoming), "invalid_request");
        let served = ResourceSettings { serve_query: true, ..settings() };
        assert_eq!(outcome_of(served, &incoming), "get_positions");
    }
}

#[test]
fn codings_and_content_types_are_the_one_that_is_parsed() {
    for coding in ["gzip", "GZIP", "x-gzip", "br", "identity, gzip", ""] {
        assert_eq!(outcome(&with(list(), "content-encoding", coding.as_bytes())), "unsupported_media_type");
    }
    assert_eq!(outcome(&with(list(), "content-encoding", b"Identity")), "open");
    let mut two = with(list(), "content-encoding", b"identity");
    two.head.headers.append("content-encoding", HeaderValue::from_static("gzip"));
    assert_eq!(outcome(&two), "unsupported_media_type");
    for coding in ["gzip, chunked", "identity", "chunked, chunked", ""] {
        assert_eq!(outcome(&with(list(), "transfer-encoding", coding.as_bytes())), "unsupported_media_type");
    }
    let mut chunked = with(list(), "transfer-encoding", b"Chunked");
    assert_eq!(outcome(&chunked), "open");
    chunked.head.headers.append("transfer-encoding", HeaderValue::from_static("chunked"));
    assert_eq!(outcome(&chunked), "400 -32020 header_body_mismatch");
    for good in ["application/json", "Application/JSON; charset=UTF-8", "application/json;charset=\"utf-8\";"]
    {
        assert_eq!(outcome(&with(list(), "content-type", good.as_bytes())), "open", "{good}");
    }
    for bad in
        ["application/json; charset=utf-16", "text/plain", "application/jsonp", "multipart/form-data", ""]
    {
        assert_eq!(outcome(&with(list(), "content-type", bad.as_bytes())), "unsupported_media_type", "{bad}");
    }
    let mut none = list();
    none.head.headers.remove("content-type");
    assert_eq!(outcome(&none), "unsupported_media_type");
    // Two of them are a header sent twice, whatever either says.
    for (first, second) in
        [("application/json", "text/plain"), ("text/plain", "application/json"), ("text/plain", "text/plain")]
    {
        let mut two = with(list(), "content-type", first.as_bytes());
        two.head.headers.append("content-type", HeaderValue::from_static(second));
        assert_eq!(outcome(&two), "400 -32020 header_body_mismatch", "{first}, {second}");
    }
}

// CORE-21, CORE-116, MCP-29, MCP-30
#[test]
fn a_body_that_may_be_cut_is_refused_by_that_name() {
    let mut cut = call("get_positions", "{}");
    cut.body = Body::Truncated;
    assert_eq!(outcome(&cut), "request_body_too_large");
    let length = crate::scripted::body_of(&list()).len();
    assert_eq!(outcome(&with(list(), "content-length", length.to_string().as_bytes())), "open");
    let longer = (length + 1).to_string();
    assert_eq!(outcome(&with(list(), "content-length", longer.as_bytes())), "request_body_too_large");
    assert_eq!(outcome(&with(list(), "content-length", b"-1")), "request_body_too_large");
    let small = ResourceSettings { body_limit: length - 1, ..settings() };
    assert_eq!(outcome_of(small, &list()), "request_body_too_large");
    // Not by the name of what a part of it looks like.
    let mut half = call("get_positions", "{}");
    let body = crate::scripted::body_of(&half);
    half.head.headers.insert("content-length", HeaderValue::from(body.len()));
    half.body = Body::Whole(body.slice(..20));
    assert_eq!(outcome(&half), "request_body_too_large");
}

// MCP-14, MCP-25, MCP-26, MCP-27
#[test]
fn headers_that_say_otherwise_are_faults() {
    let lying = "400 -32020 header_body_mismatch";
    assert_eq!(outcome(&with(call("execute_trade", "{}"), "mcp-method", b"tools/list")), lying);
    assert_eq!(outcome(&with(call("execute_trade", "{}"), "mcp-name", b"get_positions")), lying);
    let encoded = with(call("get_positions", "{}"), "mcp-name", b"=?base64?Z2V0X3Bvc2l0aW9ucw==?=");
    assert_eq!(outcome(&encoded), "get_positions");
    for header in ["mcp-method", "mcp-name"] {
        let mut incoming = call("get_positions", "{}");
        incoming.head.headers.remove(header);
        assert_eq!(outcome(&incoming), "400 -32020 missing_routing_headers");
    }
    let lowered = with(call("get_positions", "{}"), "mcp-protocol-version", b"2025-11-25");
    assert_eq!(outcome(&lowered), lying);
}

// D-10: what no signature covers and no registry knows is no part of what she approved.
#[test]
fn a_header_nobody_can_check_does_not_ride_on_a_single_call() {
    for name in ["mcp-param-quantity", "mcp-anything"] {
        assert_eq!(outcome(&with(call("execute_trade", "{}"), name, b"9")), "invalid_request", "{name}");
        assert_eq!(outcome(&with(call("get_positions", "{}"), name, b"9")), "get_positions", "{name}");
    }
    assert_eq!(outcome(&with(call("execute_trade", "{}"), "mcp-session-id", b"s")), "execute_trade");
    let mut mirrored = settings();
    let mirror = message::Mirror { header: "mcp-param-quantity".into(), path: vec!["quantity".into()] };
    mirrored.tools[1].mirrors = vec![mirror];
    let mirroring = with(call("execute_trade", r#"{"quantity":9}"#), "mcp-param-quantity", b"9");
    assert_eq!(outcome_of(mirrored, &mirroring), "execute_trade");
}
