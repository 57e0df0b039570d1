//! Messages and their headers against the vectors in `vectors/message`, and what the vectors cannot say.

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::vectors::body;
use super::*;
use crate::method::Revision;

fn vectors(text: &str) -> Vec<Value> {
    serde_json::from_str::<Value>(text).unwrap()["vectors"].as_array().unwrap().clone()
}

fn headers(input: &Value) -> Option<HeaderMap> {
    let mut map = HeaderMap::new();
    for line in input["headers"].as_array()? {
        let name = HeaderName::from_bytes(line[0].as_str().unwrap().as_bytes()).unwrap();
        map.append(name, HeaderValue::from_bytes(line[1].as_str().unwrap().as_bytes()).unwrap());
    }
    Some(map)
}

fn seen(message: &Message, revision: Option<Revision>) -> Value {
    let (kind, id) = match message {
        Message::Request(request) => ("request", Some(request.id.text())),
        Message::Notification(_) => ("notification", None),
        Message::Response { id } => ("response", Some(id.text())),
    };
    let mut seen = json!({ "kind": kind, "id": id, "method": message.method(), "revision": revision.map(Revision::as_str) });
    if let Message::Request(request) = message
        && let Some(call) = request.call()
    {
        seen["tool"] = call.name.into();
        seen["arguments"] = serde_json::to_string(call.arguments()).unwrap_or_default().into();
    }
    seen
}

fn run(text: &str) {
    for vector in vectors(text) {
        let name = vector["name"].as_str().unwrap();
        let outcome = parse(&body(&vector["input"]), Limits::default()).and_then(|message| {
            let revision =
                headers(&vector["input"]).map(|headers| reconcile(&headers, &message)).transpose()?;
            Ok(seen(&message, revision))
        });
        match (outcome, &vector["expect"]["fault"], &vector["expect"]["message"]) {
            (Err(fault), expected @ Value::Object(_), _) => {
                let id = fault.id.as_ref().map(RequestId::text);
                let got = json!({ "http_status": fault.http_status, "jsonrpc_code": fault.jsonrpc_code,
                    "error": fault.error, "id": id });
                assert_eq!(&got, expected, "{name}: {fault}");
                check_body(&fault);
            }
            (Ok(seen), _, Value::Object(expected)) => {
                for (member, value) in expected {
                    assert_eq!(&seen[member], value, "{name}: {member}");
                }
            }
            (outcome, _, _) => panic!("{name}: {outcome:?}"),
        }
    }
}

/// The answer is strict JSON and repeats the id byte for byte.
fn check_body(fault: &MessageFault) {
    let body = fault.body();
    let answer = Json::parse(&body, Limits::default()).unwrap();
    let error = answer.get("error").unwrap();
    assert_eq!(error.get("code").unwrap().as_i64(), Some(fault.jsonrpc_code));
    assert_eq!(error.get("data").and_then(|data| data.get("error")).and_then(Json::as_str), fault.error);
    let id = &body[crate::json::locate(&body, &["id"]).unwrap()];
    assert_eq!(id, fault.id.as_ref().map_or("null", RequestId::text).as_bytes());
}

macro_rules! vector_tests {
    ($($(#[$attribute:meta])* $name:ident: $file:literal),* $(,)?) => {
        $($(#[$attribute])* #[test] fn $name() { run(include_str!(concat!("../../../../vectors/message/", $file))); })*
    };
}

// D-3, D-4, D-10; MCP-25, MCP-26, MCP-27
vector_tests! {
    member_names: "member-names.json",
    duplicate_members: "duplicates.json",
    ids_are_echoed_exactly: "ids.json",
    parser_bombs: "bombs.json",
    bodies_that_are_not_one_message: "shape.json",
    headers_against_the_body: "headers.json",
    repeated_header_lines: "header-lines.json",
}

fn request(text: &str) -> Request {
    match parse(text.as_bytes(), Limits::default()).unwrap() {
        Message::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect()
}

#[test]
fn an_unknown_version_is_answered_with_the_known_ones() {
    let message = parse(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#, Limits::default()).unwrap();
    let fault = reconcile(&map(&[("mcp-protocol-version", "9999-01-01")]), &message).unwrap_err();
    assert_eq!(
        String::from_utf8(fault.body()).unwrap(),
        r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32022,"message":"unsupported protocol version","data":{"supported":["2025-03-26","2025-06-18","2025-11-25","2026-07-28"],"requested":"9999-01-01"}}}"#
    );
    let fault = MessageFault::not_served(404, message.request_id().cloned());
    assert_eq!(
        String::from_utf8(fault.body()).unwrap(),
        r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"method not served here","data":{"error":"unknown_method"}}}"#
    );
}

#[test]
fn ids_match_by_what_they_say() {
    let id = |text: &str| text.parse::<RequestId>().unwrap();
    assert!(id(r#""a\/b""#).says_same(&id(r#""a/b""#)) && id(r#""a\/b""#) != id(r#""a/b""#));
    assert!(!id("1").says_same(&id(r#""1""#)));
    assert_eq!(RequestId::from(7), id("7"));
    assert_eq!(serde_json::to_string(&id(r#""a\/b""#)).unwrap(), r#""a\/b""#);
    assert!("1.0".parse::<RequestId>().is_err() && "null".parse::<RequestId>().is_err());
}

// D-10
#[test]
fn members_nobody_defines_are_named() {
    let call = |params: &str, extra: &str| {
        request(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t"{params}}}{extra}}}"#
        ))
    };
    assert_eq!(
        call(r#","arguments":{"x":1},"_meta":{"progressToken":1,"traceparent":"t"}"#, "").unknown_member(),
        None
    );
    assert_eq!(call(r#","priority":1"#, "").unknown_member(), Some("priority"));
    assert_eq!(call(r#","uri":"x""#, "").unknown_member(), Some("uri"));
    assert_eq!(call(r#","_meta":{"com.example/k":1}"#, "").unknown_member(), Some("com.example/k"));
    assert_eq!(call("", r#","session":1"#).unknown_member(), Some("session"));
}

// D-12
#[test]
fn tasks_are_noticed_however_they_are_spelled() {
    let call = |params: &str| {
        request(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t"{params}}}}}"#
        ))
    };
    let capable = |text: &str| call(&format!(r#","_meta":{{"{META_CAPABILITIES}":{text}}}"#));
    assert!(!call("").declares_tasks() && !capable("{}").declares_tasks());
    assert!(!capable(r#"{"extensions":{"com.example/x":{}}}"#).declares_tasks());
    assert!(call(r#","task":{"ttl":1}"#).declares_tasks());
    for text in [
        r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
        r#"{"Extensions":{"IO.modelcontextprotocol/Tasks":{}}}"#,
        r#"{"exten\u017fions":{"io.modelcontextprotocol/tasks\u0000":{}}}"#,
        r#"{"extensions":{},"EXTENSIONS":{"io.modelcontextprotocol/tasks":{}}}"#,
        r#"{"tasks":{}}"#,
    ] {
        assert!(capable(text).declares_tasks(), "{text}");
    }
}

#[test]
fn mirrored_values_survive_their_encoding() {
    for text in ["get_positions", "", " x", "x\t", "grüße", "=?base64?YQ==?=", "a\nb", "file:///a b"] {
        assert_eq!(decode_value(&encode_value(text)).as_deref(), Some(text), "{text:?}");
    }
    assert_eq!(encode_value("get_positions"), "get_positions");
    assert_eq!(encode_value("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
}

// D-10: Mcp-Param-* equals the mirrored argument of the known schema
#[test]
fn mirrored_arguments_are_compared() {
    let schema = br#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"},
        "opts":{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"dry":{"type":"boolean","x-mcp-header":"Dry"}}}"#;
    let mirrors = mirrors(&Json::parse(schema, Limits::default()).unwrap()).unwrap();
    let call = |arguments: &str| {
        request(&format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
        ))
    };
    let outcome = |arguments: &str, lines: &[(&'static str, &'static str)], revision| {
        let fault = reconcile_mirrors(&map(lines), &mirrors, &call(arguments), revision).err()?;
        assert_eq!(
            (fault.http_status, fault.jsonrpc_code, fault.id),
            (400, -32020, Some(RequestId::from(7)))
        );
        fault.error
    };
    let (modern, legacy) = (Revision::V20260728, Revision::V20251125);
    let all = [("mcp-param-region", "eu"), ("mcp-param-n", "42"), ("mcp-param-dry", "true")];
    assert_eq!(outcome(r#"{"region":"eu","opts":{"n":42.0},"dry":true}"#, &all, modern), None);
    assert_eq!(
        outcome(r#"{"region":"us","opts":{"n":42},"dry":true}"#, &all, modern),
        Some("header_body_mismatch")
    );
    assert_eq!(
        outcome(r#"{"region":"us","opts":{"n":42},"dry":true}"#, &all, legacy),
        Some("header_body_mismatch")
    );
    assert_eq!(outcome(r#"{"opts":{"n":42},"dry":true}"#, &all, modern), Some("header_body_mismatch"));
    assert_eq!(outcome(r#"{"region":"eu"}"#, &[], modern), Some("missing_routing_headers"));
    assert_eq!(outcome(r#"{"region":"eu"}"#, &[], legacy), None);
    assert_eq!(outcome(r#"{"region":"é"}"#, &[("mcp-param-region", "=?base64?w6k=?=")], modern), None);
    assert_eq!(
        outcome(r#"{"opts":{"n":9007199254740993}}"#, &[("mcp-param-n", "9007199254740992")], modern),
        Some("header_body_mismatch")
    );
    assert_eq!(outcome(r#"{"region":null}"#, &[("mcp-param-other", "x")], modern), None);
}

#[test]
fn mirrors_that_break_the_rules_are_refused() {
    for property in [
        r#""a":{"type":"number","x-mcp-header":"A"}"#,
        r#""a":{"type":"string","x-mcp-header":"A b"}"#,
        r#""a":{"type":"string","x-mcp-header":""}"#,
        r#""a":{"type":"string","x-mcp-header":1}"#,
        r#""a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}"#,
    ] {
        let schema =
            Json::parse(format!(r#"{{"properties":{{{property}}}}}"#).as_bytes(), Limits::default()).unwrap();
        assert_eq!(mirrors(&schema), Err(NotMirrored), "{property}");
    }
}

proptest! {
    #[test]
    fn random_bodies_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(fault) = parse(&bytes, Limits::default()) {
            check_body(&fault);
        }
    }

    #[test]
    fn a_member_name_that_lower_cases_to_a_known_one_never_passes(upper in proptest::collection::vec(any::<bool>(), 4)) {
        let name: String = "name".chars().zip(&upper).map(|(c, up)| if *up { c.to_ascii_uppercase() } else { c }).collect();
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"{name}":"t"}}}}"#);
        prop_assert_eq!(parse(text.as_bytes(), Limits::default()).is_ok(), name == "name");
    }
}
