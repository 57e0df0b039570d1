//! A JSON-RPC body with its headers: what is accepted, a laxer reader understands in the same way (D-3, D-10).
//! Honest headers are never refused, and every fault is an answer that can be sent.

use http::{HeaderMap, HeaderValue};
use sayso_protocol::Json;
use sayso_protocol::json::Limits;
use sayso_protocol::message::{
    META_VERSION, Message, MessageFault, Request, decode_value, encode_value, parse, reconcile,
};
use sayso_protocol::method::{Revision, lookup};
use serde_json::Value;

use super::{framed, same};

const LIMITS: Limits = Limits { bytes: 64 * 1024, depth: 64 };
const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
const NAMED: [&str; 3] = ["tools/call", "resources/read", "prompts/get"];

/// The body.
pub fn check(bytes: &[u8]) {
    let (headers, body) = framed::message(bytes);
    let message = match parse(body, LIMITS) {
        Err(fault) => {
            assert_eq!(fault.id, None, "no id of a message that was not read can be trusted");
            return answerable(&fault);
        }
        Ok(message) => message,
    };
    if let Ok(lax) = serde_json::from_slice::<Value>(body) {
        read_by_others(&message, &lax);
    }
    match reconcile(&headers, &message) {
        Err(fault) => {
            assert_eq!(fault.id.as_ref(), message.request_id());
            answerable(&fault);
        }
        Ok(revision) => agreeing(&headers, &message, revision),
    }
    if let Message::Request(request) = &message {
        honest(request, &message);
    }
}

fn answerable(fault: &MessageFault) {
    assert!(matches!(fault.http_status, 400 | 413), "{}", fault.http_status);
    let answer = Json::parse(&fault.body(), LIMITS).expect("a fault's body is JSON");
    let code = answer.get("error").and_then(|error| error.get("code")).and_then(Json::as_i64);
    assert_eq!(code, Some(fault.jsonrpc_code));
    let id = answer.get("id").expect("a fault's body has an id");
    match &fault.id {
        None => assert_eq!(id, &Json::Null),
        Some(sent) => assert_eq!(Json::parse(sent.text().as_bytes(), LIMITS).as_ref(), Ok(id)),
    }
}

/// A reader that ignores letter case and keeps the last of two members sees the same message.
fn read_by_others(message: &Message, lax: &Value) {
    let lax = lax.as_object().expect("a message is an object");
    for name in lax.keys().filter(|name| !ENVELOPE.contains(&name.as_str())) {
        assert!(
            !ENVELOPE.contains(&name.to_lowercase().as_str()),
            "another reader takes a member for a known one"
        );
        assert!(!ENVELOPE.contains(&name.to_uppercase().to_lowercase().as_str()));
    }
    assert_eq!(lax.get("method").and_then(Value::as_str), message.method());
    assert_eq!(lax.get("jsonrpc").and_then(Value::as_str), Some("2.0"));
    let Message::Request(request) = message else { return };
    let id = Json::parse(request.id.text().as_bytes(), LIMITS).expect("an id is JSON");
    assert!(lax.get("id").is_some_and(|lax| same::value(&id, lax)), "another reader sees another id");
    let params = lax.get("params");
    assert_eq!(params.is_some(), request.params.is_some());
    if let Some(call) = request.call() {
        let name = params.and_then(|params| params.get("name")).and_then(Value::as_str);
        assert_eq!(name, Some(call.name));
        let arguments = params.and_then(|params| params.get("arguments"));
        assert!(arguments.is_none_or(|lax| same::value(call.arguments(), lax)));
    }
    assert_eq!(request.method == "tools/call", request.call().is_some());
    assert!(request.declares_tasks() || params.and_then(|params| params.get("task")).is_none());
}

/// Whoever routes on the headers routes this message, and no other.
fn agreeing(headers: &HeaderMap, message: &Message, revision: Revision) {
    for name in headers.keys().filter(|name| name.as_str().starts_with("mcp-")) {
        assert_eq!(headers.get_all(name).iter().count(), 1, "{name} was accepted twice");
    }
    let text = |name| {
        let value: Option<&HeaderValue> = headers.get(name);
        value.map(|value| value.to_str().expect("visible ASCII").trim_matches([' ', '\t']))
    };
    let routed = text("mcp-method");
    assert!(routed.is_none() || routed == message.method());
    assert!(text("mcp-protocol-version").is_none_or(|version| version == revision.as_str()));
    let row = message.method().and_then(lookup);
    if let (Some(named), Some(row), Message::Request(request)) = (text("mcp-name"), row, message) {
        let params = request.params.as_ref();
        let member = row.name_from.and_then(|member| params?.get(member)?.as_str());
        assert!(member.is_some() && decode_value(named).as_deref() == member);
    }
    if let (true, Message::Request(request)) = (revision.is_modern(), message) {
        assert_eq!(routed, Some(request.method.as_str()));
        assert_eq!(version(request), Some(revision.as_str()));
        assert!(text("mcp-name").is_some() || !NAMED.contains(&request.method.as_str()));
    }
}

fn version(request: &Request) -> Option<&str> {
    request.params.as_ref()?.get("_meta")?.get(META_VERSION)?.as_str()
}

/// A modern request under the headers its sender owes it is accepted.
fn honest(request: &Request, message: &Message) {
    let Some(revision) = version(request).and_then(|version| version.parse::<Revision>().ok()) else {
        return;
    };
    let method = request.method.as_str();
    let Ok(routed) = HeaderValue::from_str(method) else { return };
    if !revision.is_modern() || method.trim_matches([' ', '\t']) != method || routed.to_str().is_err() {
        return;
    }
    let mut headers = HeaderMap::new();
    headers.insert("mcp-protocol-version", HeaderValue::from_static(revision.as_str()));
    headers.insert("mcp-method", routed);
    let member = lookup(method).and_then(|row| row.name_from);
    let named = member.and_then(|member| request.params.as_ref()?.get(member)?.as_str());
    if let Some(named) = named {
        let encoded = encode_value(named);
        assert_eq!(decode_value(&encoded).as_deref(), Some(named));
        headers.insert("mcp-name", HeaderValue::from_str(&encoded).expect("an encoded name fits a header"));
    } else if NAMED.contains(&method) {
        return;
    }
    assert_eq!(reconcile(&headers, message), Ok(revision));
}
