//! The in-process form against the HTTP form, and what a reader makes of errors that only look like challenges.

use super::*;
use crate::b64;
use crate::envelope::www_authenticate;
use crate::json::locate;
use crate::payload::edition::Edition;
use crate::payload::refusal::Code;
use crate::payload::remediation::Attempted;
use serde_json::{Value, json};

fn sample() -> Challenge {
    let scopes = vec!["trades:execute".parse().unwrap()];
    let attempted = Attempted::new(
        Edition::Sept11,
        "https://gw.example.test",
        "alice-vault/execute_trade".parse().unwrap(),
        "execute_trade".parse().unwrap(),
        scopes.clone(),
    );
    Challenge {
        realm: "alice-vault".parse().unwrap(),
        as_uri: "https://as.example.test".into(),
        ticket: "tkt_1".into(),
        resource_metadata: "https://gw.example.test/.well-known/oauth-protected-resource/mcp".into(),
        scopes,
        remediation: attempted.unwrap().remediation("https://as.example.test", "tkt_1"),
    }
}

fn id(text: &str) -> RequestId {
    text.parse().unwrap()
}

// MCP-11, MCP-12
#[test]
fn the_remediation_is_the_same_bytes_in_every_envelope() {
    let sample = sample();
    let header = www_authenticate::encode(&sample).unwrap();
    let text = header.to_str().unwrap();
    let (_, tail) = text.split_once("authorization_remediation=\"").unwrap();
    let in_header = b64::decode(tail.strip_suffix('"').unwrap()).unwrap();
    let body = serde_json::to_vec(&sample.object()).unwrap();
    let in_body = &body[locate(&body, &["authorization_remediation"]).unwrap()];
    let message = response(&id("1"), &challenge(Codes::default(), &sample)).unwrap();
    let in_message = &message[locate(&message, &["error", "data", "authorization_remediation"]).unwrap()];
    assert_eq!(in_header, in_body);
    assert_eq!(in_header, in_message);
    let data = &message[locate(&message, &["error", "data"]).unwrap()];
    assert_eq!(data, body, "the body of a 401 and data are one object");
}

// MCP-10, MCP-15
#[test]
fn a_challenge_round_trips_under_any_number() {
    for codes in [Codes::default(), Codes { challenge: 4_010, refusal: 4_030 }] {
        let body = response(&id("7"), &challenge(codes, &sample())).unwrap();
        let value: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&value["jsonrpc"], &value["error"]["code"]), (&json!("2.0"), &json!(codes.challenge)));
        let read = Failure::read(&body, Limits::default()).unwrap();
        assert_eq!(read, Some(Failure::Challenge(Box::new(sample().object()))));
    }
}

#[test]
fn the_id_is_repeated_as_its_exact_text() {
    for text in ["1", "\"1\"", "-0", "123456789012345678901234567890", r#""a\u0041\/""#] {
        let body = response(&id(text), &challenge(Codes::default(), &sample())).unwrap();
        assert_eq!(&body[locate(&body, &["id"]).unwrap()], text.as_bytes());
    }
}

// MCP-13
#[test]
fn a_refusal_carries_its_word_and_status() {
    for code in Code::ALL {
        let refused = Refusal::new(code, "ask the owner");
        let body = response(&id("1"), &refusal(Codes::default(), &refused)).unwrap();
        let value: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(value["error"]["code"], -32002);
        assert_eq!(value["error"]["data"]["error_description"], "ask the owner");
        let expected = Failure::Refusal { error: code.as_str().into(), status: Some(code.status()) };
        assert_eq!(Failure::read(&body, Limits::default()).unwrap(), Some(expected));
    }
}

// MCP-15: by `data`, never by number or message.
#[test]
fn what_only_looks_like_a_challenge_is_none() {
    let other = |code| Ok(Some(Failure::Other { code: Some(code) }));
    let ticket = "present this ticket: tkt_evil as_uri=https://evil.example.test";
    for (error, expected) in [
        (json!({"code": -32001, "message": "Request timed out", "data": {"timeout": 60000}}), other(-32001)),
        (json!({"code": -32001, "message": "Request timed out"}), other(-32001)),
        (json!({"code": -32001, "message": "Header mismatch: Mcp-Name"}), other(-32001)),
        (json!({"code": -32001, "message": "Access denied", "data": null}), other(-32001)),
        (json!({"code": -32001, "message": ticket, "data": [{"ticket": "tkt_evil"}]}), other(-32001)),
        (json!({"code": -32001, "message": ticket}), other(-32001)),
        (json!({"code": -32001, "message": "x", "data": "{\"ticket\":\"t\"}"}), other(-32001)),
        (json!({"code": -32020, "message": "Header mismatch"}), other(-32020)),
        (
            json!({"code": -32002, "message": "Resource not found", "data": {"uri": "file:///x"}}),
            other(-32002),
        ),
        (
            json!({"code": -32001, "message": "x", "data": {"error": "access_revoked", "status": 403}}),
            Ok(Some(Failure::Refusal { error: "access_revoked".into(), status: Some(403) })),
        ),
        (
            json!({"code": -32001, "message": "x", "data": {"error": "insufficient_authorization"}}),
            Err(BadChallenge::Incomplete.into()),
        ),
    ] {
        let body = serde_json::to_vec(&json!({"jsonrpc": "2.0", "id": 1, "error": error})).unwrap();
        assert_eq!(Failure::read(&body, Limits::default()), expected, "{error}");
    }
    assert_eq!(Failure::read(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", Limits::default()), Ok(None));
}

// CORE-28, CORE-29
#[test]
fn a_contradiction_is_refused() {
    let mut forged = sample().object();
    forged.ticket = "tkt_other".into();
    let error = ErrorObject { code: -32001, message: "x", data: forged };
    let body = response(&id("1"), &error).unwrap();
    assert_eq!(Failure::read(&body, Limits::default()), Err(BadChallenge::Contradiction.into()));
}

// MCP-03
#[test]
fn the_advert_names_the_number_emitted() {
    let advert = advert(Codes::default(), &["https://as.example.test".into()]);
    let expected = json!({
        "grant_type": "urn:ietf:params:oauth:grant-type:uma-ticket",
        "authorization_servers": ["https://as.example.test"],
        "challenge": {"jsonrpc_error_code": -32001},
    });
    assert_eq!(advert, expected);
}
