//! What is refused before or beside the question of a grant: who may ask, where, how.

use super::cast::{DOORS, Door, House, Request, TRADE};
use crate::grpc::message::{Entry, Line};
use bytes::Bytes;

// D-15
#[tokio::test]
async fn what_needs_a_channel_is_refused() {
    for door in DOORS {
        let house = House::open();
        for method in ["GET", "DELETE", "PUT", "OPTIONS", "HEAD"] {
            for request in [
                Request { method, ..Request::list() },
                Request { method, body: vec![], ..Request::list() }.with("mcp-session-id", "s"),
                Request { method, body: vec![], ..Request::list() }.signed("reader"),
            ] {
                let said = house.ask(door, &request).await;
                assert_eq!((said.status, said.line("allow")), (405, "POST"), "{door:?} {method}");
            }
        }
        let resumed = Request::list().with("last-event-id", "7");
        assert_eq!(house.ask(door, &resumed).await.error(), (400, "invalid_request".into()));
        let signed = Request::call("get_positions", "{}").with("last-event-id", "7").signed("reader");
        assert_eq!(house.ask(door, &signed).await.error(), (400, "invalid_request".into()));
        assert_eq!(house.asked(), 0);
    }
}

// D-16, CORE-20, MCP-28
#[tokio::test]
async fn hosts_and_origins_are_those_of_the_configuration() {
    for door in DOORS {
        let house = House::open();
        let elsewhere = Request::list().but("host", "evil.example.test");
        assert_eq!(house.ask(door, &elsewhere).await.error(), (421, "misdirected_request".into()));
        for origin in ["null", "https://evil.example.test", "https://app.example.test.evil.test", ""] {
            let said = house.ask(door, &Request::list().with("origin", origin)).await;
            assert_eq!(said.error(), (403, "invalid_origin".into()), "{door:?} {origin}");
        }
        let twice = Request::list().with("origin", "https://app.example.test").with("origin", "null");
        assert_eq!(house.ask(door, &twice).await.status, 403);
        let served = Request::list().with("origin", "https://app.example.test");
        assert_eq!(house.ask(door, &served).await.status, 200);
        // The host of a signed request is that of the configuration, whatever the gateway called itself.
        let signed = Request::call("get_positions", "{}").signed("reader").but("host", "10.0.0.1:8080");
        assert_eq!(house.ask(door, &signed).await.status, 200, "{door:?}");
    }
}

// CORE-19, CORE-17
#[tokio::test]
async fn an_ended_grant_is_told_so() {
    for door in DOORS {
        let house = House::open();
        *house.authority.ended.lock().unwrap() = Some("connection_revoked");
        let said = house.ask(door, &Request::call("get_positions", "{}").signed("reader")).await;
        assert_eq!(said.error(), (403, "access_revoked".into()), "{door:?}");
        assert_eq!(house.tickets(), 0);
    }
}

// D-12
#[tokio::test]
async fn a_call_as_a_task_is_a_403_here() {
    let call = Request::call("execute_trade", TRADE);
    let text = String::from_utf8(call.body.clone()).unwrap();
    let body = text.replace(r#"{"name""#, r#"{"task":{},"name""#).into_bytes();
    for door in DOORS {
        let house = House::open();
        let request = Request { body: body.clone(), ..call.clone() }.signed("trade-1");
        assert_eq!(house.ask(door, &request).await.error(), (403, "task_not_served".into()), "{door:?}");
        assert_eq!((house.asked(), house.spent()), (0, 0));
    }
}

// D-3, MCP-09
#[tokio::test]
async fn an_unserved_method_is_a_no_in_either_revision() {
    let modern = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body =
        |params: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tasks/list","params":{{{params}}}}}"#);
    let legacy = Request::post("tasks/list", None, body(""))
        .but("mcp-protocol-version", "2025-06-18")
        .without("mcp-method");
    let cases = [
        (Request::post("tasks/list", None, body(modern)), 404),
        (legacy.clone(), 403),
        // Inside a session of the server's this would be 200, which a gateway takes for a yes.
        (legacy.with("mcp-session-id", "s"), 403),
    ];
    for door in DOORS {
        for (request, status) in &cases {
            let said = House::open().ask(door, request).await;
            assert_eq!(said.status, *status, "{door:?}: {said:?}");
            let body = said.json();
            assert_eq!((body["id"].as_u64(), &body["error"]["code"]), (Some(7), &(-32601).into()), "{body}");
            assert!(body.get("result").is_none());
        }
    }
}

// MCP-25, MCP-26
#[tokio::test]
async fn a_header_that_is_there_twice_is_seen_twice() {
    let house = House::open();
    for (name, value) in [
        ("mcp-method", "tools/list"),
        ("mcp-name", "get_positions"),
        ("mcp-protocol-version", "2026-07-28"),
        ("authorization", "PoP other"),
        ("content-type", "application/json"),
    ] {
        let request = Request::call("execute_trade", TRADE).signed("trade-1").with(name, value);
        for door in DOORS {
            let said = house.ask(door, &request).await;
            assert!([400, 401, 415].contains(&said.status), "{door:?} {name}: {said:?}");
            assert!(!said.line("www-authenticate").starts_with("UMA"), "{door:?} {name}: {said:?}");
        }
    }
    // Two lines that a gateway joined are two lines to the server.
    for value in ["tools/list,tools/list", "a,b"] {
        let request = Request::list().with("mcp-session-id", value);
        for door in [Door::Http, Door::Joined] {
            assert_eq!(house.ask(door, &request).await.error(), (400, "invalid_request".into()), "{door:?}");
        }
        assert_eq!(house.ask(Door::Lines, &request).await.status, 200);
    }
    // An entry of the map that is there twice is not the last one.
    let mut message = Request::list().message(Door::Joined);
    message
        .headers
        .push(Entry { key: Bytes::from_static(b"mcp-method"), value: Bytes::from_static(b"tools/call") });
    assert_eq!(house.ask_grpc(message).await.status, 400);
    assert_eq!((house.spent(), house.tickets()), (0, 0));
}

#[tokio::test]
async fn a_message_that_says_two_things_is_refused() {
    let house = House::open();
    let base = || Request::list().message(Door::Lines);
    let line = |value: &'static str, raw: &'static str| Line {
        key: Bytes::from_static(b"accept"),
        value: Bytes::from_static(value.as_bytes()),
        raw_value: Bytes::from_static(raw.as_bytes()),
    };
    let with = |line: Line| {
        let mut message = base();
        message.header_map.as_mut().unwrap().headers.push(line);
        message
    };
    assert_eq!(house.ask_grpc(with(line("a", "a"))).await.status, 200);
    assert_eq!(house.ask_grpc(with(line("a", "b"))).await.status, 400);
    assert_eq!(house.ask_grpc(with(line("a\nb", ""))).await.status, 400);
    let unnamed = Line { key: Bytes::from_static(b"a b"), ..line("a", "") };
    assert_eq!(house.ask_grpc(with(unnamed)).await.status, 400);
    for change in [
        (|message| message.fragment = Bytes::from_static(b"f")) as fn(&mut crate::grpc::message::HttpRequest),
        |message| message.query = Bytes::from_static(b"x=1"),
        |message| message.method = Bytes::from_static(b"PO ST"),
        |message| message.host = Bytes::from_static(b"a\0b"),
        |message| message.path = Bytes::from_static(b"/mcp#f"),
        |message| message.path = Bytes::new(),
    ] {
        let mut message = base();
        change(&mut message);
        assert_eq!(house.ask_grpc(message).await.error(), (400, "invalid_request".into()));
    }
    // The flag is heeded wherever it is.
    let mut message = base();
    message.headers.push(Entry {
        key: Bytes::from_static(b"X-Envoy-Auth-Partial-Body"),
        value: Bytes::from_static(b"true"),
    });
    assert_eq!(house.ask_grpc(message).await.status, 413);
    // A second host is a second host.
    let mut message = base();
    message.host = Bytes::from_static(b"evil.example.test");
    message.header_map.as_mut().unwrap().headers.push(Line {
        key: Bytes::from_static(b"host"),
        value: Bytes::from_static(b"gw.example.test"),
        raw_value: Bytes::new(),
    });
    assert_eq!(house.ask_grpc(message).await.status, 421);
    assert_eq!(house.ask_grpc(Default::default()).await.status, 400);
    let empty = house.authorizer.answer(Default::default()).await;
    assert!(empty.status.unwrap().code != 0 && empty.told.is_some());
    assert_eq!(house.asked(), 0);
}
