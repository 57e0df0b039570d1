//! The pure checks and their order: each neighbour of the line is on the right side of it.

mod heads;

use super::*;
use crate::resource::{Enforcement, ResourceSettings};
use crate::scripted::{NOW, call, call_body, key, post, settings, sign, signed};
use http::HeaderValue;

fn outcome_of(settings: ResourceSettings, incoming: &Incoming) -> String {
    let resource = Resource::new(settings).unwrap();
    match admit(&resource, incoming, false, false) {
        Ok(Admitted::Policed(_)) => "policed".into(),
        Ok(Admitted::Open(_)) => "open".into(),
        Ok(Admitted::Protected(call)) => call.tool.settings.tool.to_string(),
        Err(TurnedAway::Refuse(refusal)) => refusal.code.as_str().into(),
        Err(TurnedAway::Fault(fault)) => {
            format!("{} {} {}", fault.http_status, fault.jsonrpc_code, fault.error.unwrap_or("-"))
        }
    }
}

fn outcome(incoming: &Incoming) -> String {
    outcome_of(settings(), incoming)
}

fn with(mut incoming: Incoming, name: &'static str, value: &[u8]) -> Incoming {
    incoming.head.headers.insert(name, HeaderValue::from_bytes(value).unwrap());
    incoming
}

fn list() -> Incoming {
    let body =
        call_body("x", "{}").replace("tools/call", "tools/list").replace(r#""name":"x","arguments":{},"#, "");
    post(body, "tools/list", None)
}

// CORE-84, MCP-05, MCP-06
#[test]
fn what_is_not_known_to_be_open_or_protected_is_refused() {
    assert_eq!(outcome(&list()), "open");
    assert_eq!(outcome(&call("get_positions", "{}")), "get_positions");
    assert_eq!(outcome(&call("wire_money", "{}")), "unknown_tool");
    for method in ["tasks/get", "foo/bar", "resources/read", "completion/complete", "subscriptions/listen"] {
        let body = call_body("x", "{}").replace("tools/call", method);
        let refused = outcome(&post(body, method, None));
        assert!(
            refused == "404 -32601 unknown_method" || refused.starts_with("400 -32020"),
            "{method}: {refused}"
        );
    }
    let older = r#"{"jsonrpc":"2.0","id":7,"method":"foo/bar","params":{}}"#;
    let mut incoming = post(older, "foo/bar", None);
    incoming.head.headers.insert("mcp-protocol-version", HeaderValue::from_static("2025-11-25"));
    assert_eq!(outcome(&incoming), "403 -32601 unknown_method");
    let answer = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
    let mut incoming = post(answer, "x", None);
    incoming.head.headers.remove("mcp-method");
    incoming.head.headers.remove("mcp-protocol-version");
    assert_eq!(outcome(&incoming), "403 -32601 unknown_method");
}

// D-6
#[test]
fn where_nothing_is_enforced_whatever_is_a_message_is_open_and_nothing_else() {
    let outcome = |incoming: &Incoming| {
        outcome_of(
            ResourceSettings { enforcement: Enforcement::Nothing, tools: vec![], ..settings() },
            incoming,
        )
    };
    let older = |body: &str| {
        let mut incoming = with(post(body, "x", None), "mcp-protocol-version", b"2025-11-25");
        incoming.head.headers.remove("mcp-method");
        incoming
    };
    assert_eq!(outcome(&call("wire_money", "{}")), "open");
    assert_eq!(outcome(&older(r#"{"jsonrpc":"2.0","id":7,"method":"foo/bar","params":{}}"#)), "open");
    assert_eq!(outcome(&older(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#)), "open");
    assert_eq!(outcome(&older(r#"{"jsonrpc":"2.0","id":7,"method":"a","method":"b"}"#)), "400 -32600 -");
    assert_eq!(outcome(&older("[]")), "400 -32600 -");
    assert_eq!(outcome(&with(call("x", "{}"), "mcp-name", b"y")), "400 -32020 header_body_mismatch");
    assert_eq!(outcome(&with(call("x", "{}"), "host", b"elsewhere.example")), "misdirected_request");
    assert_eq!(outcome(&with(call("x", "{}"), "origin", b"https://elsewhere.example")), "invalid_origin");
}

#[test]
fn a_resource_may_open_a_method_by_name() {
    let body = call_body("x", "{}").replace("tools/call", "completion/complete");
    let incoming = post(body.replace(r#""name":"x","#, ""), "completion/complete", None);
    let open = ResourceSettings { open_methods: vec!["completion/complete".into()], ..settings() };
    assert_eq!(outcome_of(open, &incoming), "open");
    assert_eq!(outcome(&incoming), "404 -32601 unknown_method");
}

// D-12: opened by name, a subscription hears of lists and of nothing they hold.
#[test]
fn a_subscription_is_to_changed_lists_alone() {
    let listening = |wanted: &str| {
        let body = String::from_utf8(whole(&list(), 1 << 20).unwrap().to_vec()).unwrap();
        let params = format!(r#""params":{{"notifications":{wanted},"#);
        let body = body.replace("tools/list", "subscriptions/listen").replace(r#""params":{"#, &params);
        let open = ResourceSettings { open_methods: vec!["subscriptions/listen".into()], ..settings() };
        let incoming = post(body, "subscriptions/listen", None);
        assert_eq!(outcome(&incoming), "404 -32601 unknown_method", "where it is not opened");
        outcome_of(open, &incoming)
    };
    assert_eq!(listening("{}"), "open");
    assert_eq!(listening(r#"{"toolsListChanged":true,"promptsListChanged":true}"#), "open");
    for more in [
        r#"{"resourceSubscriptions":["file:///x"]}"#,
        r#"{"toolsListChanged":true,"taskIds":["t"]}"#,
        r#"{"toolslistchanged":true}"#,
        "[]",
        r#""all""#,
    ] {
        assert_eq!(listening(more), "400 -32602 not_subscribable", "{more}");
    }
}

// D-6, D-10: a host that carries the request asks for what of it may be heard, and changes nothing else.
#[test]
fn a_carried_subscription_is_trimmed_to_changed_lists() {
    let open = ResourceSettings { open_methods: vec!["subscriptions/listen".into()], ..settings() };
    let resource = Resource::new(open).unwrap();
    let asking = |wanted: &str| {
        let body = String::from_utf8(whole(&list(), 1 << 20).unwrap().to_vec()).unwrap();
        let params = format!(r#""params": {{ "notifications" : {wanted} ,"#);
        body.replace("tools/list", "subscriptions/listen").replace(r#""params":{"#, &params)
    };
    let carried = |wanted: &str| {
        let incoming = post(asking(wanted), "subscriptions/listen", None);
        match admit(&resource, &incoming, false, true) {
            Ok(Admitted::Open(opened)) => String::from_utf8(opened.body.to_vec()).unwrap(),
            Ok(Admitted::Protected(_)) => panic!("a call"),
            Err(TurnedAway::Fault(fault)) => fault.error.unwrap().to_owned(),
            Ok(Admitted::Policed(_)) => "policed".to_owned(),
            Err(TurnedAway::Refuse(refusal)) => refusal.code.as_str().to_owned(),
        }
    };
    for all in ["{}", r#"{ "toolsListChanged" : true }"#, r#"{"promptsListChanged":1}"#] {
        assert_eq!(carried(all), asking(all), "the same bytes");
    }
    for (wanted, heard) in [
        (
            r#"{"resourceSubscriptions":["file:///x"],"toolsListChanged":true,"taskIds":["t"]}"#,
            r#"{"toolsListChanged":true}"#,
        ),
        (
            r#"{"toolsListChanged": true, "x": {"taskIds":[]}, "resourcesListChanged": true}"#,
            r#"{"toolsListChanged":true,"resourcesListChanged":true}"#,
        ),
        (
            r#"{"toolsListChanged":true,"promptsListChanged":"x","ToolsListChanged":true}"#,
            r#"{"toolsListChanged":true}"#,
        ),
        (r#"{"\u0074oolsListChanged":true,"taskIds":["}"]}"#, r#"{"toolsListChanged":true}"#),
    ] {
        assert_eq!(carried(wanted), asking(heard), "{wanted}");
    }
    for nothing in [r#"{"taskIds":["t"]}"#, r#"{"toolsListChanged":false,"taskIds":["t"]}"#, "[]", r#""all""#]
    {
        assert_eq!(carried(nothing), "not_subscribable", "{nothing}");
    }
    let nothing = ResourceSettings { enforcement: Enforcement::Nothing, ..settings() };
    let wanted = asking(r#"{"taskIds":["t"]}"#);
    let incoming = post(wanted.clone(), "subscriptions/listen", None);
    let nothing = Resource::new(nothing).unwrap();
    let Ok(Admitted::Open(opened)) = admit(&nothing, &incoming, false, true) else { panic!("not open") };
    assert_eq!(opened.body, wanted.as_bytes(), "where nobody is asked, nothing is changed");
}

// D-6: what begins a session in older revisions begins nothing in this one, whoever is asked.
#[test]
fn a_revision_without_sessions_has_no_first_word() {
    let body = String::from_utf8(whole(&list(), 1 << 20).unwrap().to_vec()).unwrap();
    let modern = post(body.replace("tools/list", "initialize"), "initialize", None);
    let nothing = ResourceSettings { enforcement: Enforcement::Nothing, ..settings() };
    assert_eq!(outcome(&modern), "404 -32601 unknown_method");
    assert_eq!(outcome_of(nothing, &modern), "404 -32601 unknown_method");
    let older = post(
        body.replace("tools/list", "initialize").replace("2026-07-28", "2025-11-25"),
        "initialize",
        None,
    );
    assert_eq!(outcome(&with(older, "mcp-protocol-version", b"2025-11-25")), "open");
}

#[test]
fn mirrored_arguments_equal_their_headers() {
    let mut mirrored = settings();
    mirrored.tools[0].mirrors =
        vec![message::Mirror { header: "mcp-param-account".into(), path: vec!["account".into()] }];
    let call = || call("get_positions", r#"{"account":"a"}"#);
    let outcome = |incoming: &Incoming| outcome_of(mirrored.clone(), incoming);
    assert_eq!(outcome(&with(call(), "mcp-param-account", b"a")), "get_positions");
    assert_eq!(outcome(&with(call(), "mcp-param-account", b"b")), "400 -32020 header_body_mismatch");
    assert_eq!(outcome(&call()), "400 -32020 missing_routing_headers");
}

#[test]
fn a_call_approved_one_at_a_time_says_no_more_than_was_approved() {
    let body = call_body("execute_trade", "{}");
    let extras = [
        body.replace(r#""name""#, r#""note":1,"name""#),
        body.replace(r#""name""#, r#""requestState":7,"name""#),
        body.replace(r#""name""#, r#""inputResponses":{},"name""#),
        body.replace(r#""_meta":{"#, r#""_meta":{"com.example/amount":9,"#),
    ];
    for extra in extras {
        assert_eq!(
            outcome(&post(extra.clone(), "tools/call", Some("execute_trade"))),
            "invalid_request",
            "{extra}"
        );
        let reader = extra.replace("execute_trade", "get_positions");
        assert_eq!(outcome(&post(reader, "tools/call", Some("get_positions"))), "get_positions");
    }
    let meta = body.replace(r#""_meta":{"#, r#""_meta":{"progressToken":1,"#);
    assert_eq!(outcome(&post(meta, "tools/call", Some("execute_trade"))), "execute_trade");
}

#[test]
fn protected_calls_are_not_run_as_tasks() {
    let body = call_body("get_positions", "{}");
    let legacy = body.replace(r#""name""#, r#""task":{"ttl":1},"name""#);
    let modern = body.replace(
        r#"clientCapabilities":{}"#,
        r#"clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
    );
    for body in [legacy, modern] {
        assert_eq!(outcome(&post(body, "tools/call", Some("get_positions"))), "task_not_served");
    }
}

/// Several faults at once are answered by the first check of the order.
#[test]
fn the_first_fault_in_the_order_is_the_answer() {
    let mut incoming = call("wire_money", "{}");
    let headers = &mut incoming.head.headers;
    headers.insert("mcp-method", HeaderValue::from_static("tools/list"));
    headers.insert("content-encoding", HeaderValue::from_static("gzip"));
    headers.insert("origin", HeaderValue::from_static("null"));
    headers.insert("host", HeaderValue::from_static("evil.example.test"));
    incoming.head.target = "/mcp?x".parse().unwrap();
    incoming.head.method = Method::PUT;
    incoming.body = Body::Truncated;
    assert_eq!(outcome(&incoming), "misdirected_request");
    incoming.head.headers.insert("host", HeaderValue::from_static("gw.example.test"));
    assert_eq!(outcome(&incoming), "invalid_origin");
    incoming.head.headers.remove("origin");
    assert_eq!(outcome(&incoming), "method_not_allowed");
    incoming.head.method = Method::POST;
    assert_eq!(outcome(&incoming), "invalid_request");
    incoming.head.target = "/mcp".parse().unwrap();
    assert_eq!(outcome(&incoming), "unsupported_media_type");
    incoming.head.headers.remove("content-encoding");
    assert_eq!(outcome(&incoming), "request_body_too_large");
    incoming.body = Body::Whole(Bytes::from_static(b"{"));
    assert_eq!(outcome(&incoming), "400 -32700 -");
    incoming.body = Body::Whole(call_body("wire_money", "{}").into());
    assert_eq!(outcome(&incoming), "400 -32020 header_body_mismatch");
    incoming.head.headers.insert("mcp-method", HeaderValue::from_static("tools/call"));
    assert_eq!(outcome(&incoming), "unknown_tool");
}
