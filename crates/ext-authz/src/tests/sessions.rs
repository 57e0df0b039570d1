//! What a stranger posts in an older client's session: refused, at every door, wherever it can be seen whose it is (D-13,
//! D-15).

use super::cast::{DOORS, Door, HOST, House, NOW, Request, Said, TRADE, key};
use http::{HeaderMap, HeaderName, HeaderValue};
use sayso_protocol::SigningKey;
use sayso_protocol::sig::{self, Facts, SignOptions};
use std::sync::atomic::{AtomicU64, Ordering};

const CANCELLED: &str = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;

/// What an older client posts, in a session if one is named.
fn older(body: &str, session: Option<&str>) -> Request {
    let request =
        Request::post("", None, body).without("mcp-method").but("mcp-protocol-version", "2025-11-25");
    session.into_iter().fold(request, |request, session| request.with("mcp-session-id", session))
}

fn call(tool: &str, arguments: &str, session: &str) -> Request {
    let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
    older(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#), Some(session))
}

/// Signed without a token, by this key.
fn signed_by(request: Request, key: &SigningKey) -> Request {
    static NONCE: AtomicU64 = AtomicU64::new(1 << 32);
    let nonce = NONCE.fetch_add(1, Ordering::SeqCst).to_string();
    let headers = request
        .lines
        .iter()
        .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value).unwrap()));
    let headers: HeaderMap = headers.collect();
    let facts = Facts {
        method: "POST",
        scheme: "http",
        authority: HOST,
        path: "/mcp",
        query: None,
        headers: &headers,
        body: sig::Body::Whole(&request.body),
    };
    let options = SignOptions { nonce: Some(&nonce), ..SignOptions::default() };
    let mut added = HeaderMap::new();
    sig::sign(&facts, key, NOW, &options).unwrap().insert_into(&mut added);
    added.iter().fold(request, |request, (name, value)| request.with(name.as_str(), value.as_bytes()))
}

fn own(request: Request) -> Request {
    signed_by(request, &key(0x22))
}

/// Refused as what this host does not serve: nothing passes, and nobody was asked.
fn unserved(house: &House, said: &Said, what: &str) {
    assert_eq!(said.status, 403, "{what}: {said:?}");
    let error = &said.json()["error"];
    assert_eq!(
        (&error["code"], &error["data"]["error"]),
        (&(-32601).into(), &"unknown_method".into()),
        "{what}"
    );
    assert_eq!((house.asked(), house.spent()), (0, 0), "{what}");
}

// MCP-20, D-13, D-15
#[tokio::test]
async fn nobody_takes_back_or_answers_what_is_not_known_to_be_his() {
    for door in DOORS {
        let house = House::open();
        for session in [None, Some("s"), Some("")] {
            for body in [CANCELLED, ANSWER] {
                let request = || older(body, session);
                unserved(&house, &house.ask(door, &request()).await, body);
                unserved(&house, &house.ask(door, &own(request())).await, body);
                unserved(&house, &house.ask(door, &request().signed("reader")).await, body);
            }
        }
        // What is open to everybody says nothing of anybody's request, and passes as before.
        for body in [LIST, PING, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#] {
            assert_eq!(house.ask(door, &older(body, Some("s"))).await.status, 200, "{door:?} {body}");
        }
    }
}

// D-13
#[tokio::test]
async fn the_first_call_that_is_let_through_makes_a_session_its_keys() {
    for (door, other) in [(Door::Http, Door::Lines), (Door::Lines, Door::Joined), (Door::Joined, Door::Http)]
    {
        let house = House::open();
        assert_eq!(house.ask(door, &call("get_positions", "{}", "s")).await.status, 401, "no call yet");
        unserved_still(&house, door).await;
        assert_eq!(house.ask(door, &call("get_positions", "{}", "s").signed("reader")).await.status, 200);
        // The session is known at every door of the process.
        for body in [CANCELLED, LIST, PING] {
            let request = || older(body, Some("s"));
            for (what, stranger) in [
                ("unsigned", request()),
                ("another's", signed_by(request(), &key(0x33))),
                ("with another's token", request().with("authorization", "PoP other")),
            ] {
                let said = house.ask(other, &stranger).await;
                assert_eq!(said.error(), (401, "invalid_token".into()), "{other:?} {what} {body}");
            }
            let once = own(request());
            assert_eq!(house.ask(other, &once).await.status, 200, "{other:?} {body}");
            assert_eq!(
                house.ask(door, &once).await.error(),
                (401, "invalid_token".into()),
                "the same bytes again"
            );
        }
        // No answer fits a question that nobody here has seen asked, whoever signs it.
        assert_eq!(house.ask(door, &own(older(ANSWER, Some("s")))).await.status, 403);
        // Another key's call in it is refused before anything is spent; another session is nobody's.
        let thief =
            signed_by(call("get_positions", "{}", "s").with("authorization", "PoP other"), &key(0x33));
        assert_eq!(house.ask(other, &thief).await.error(), (403, "session_bound".into()));
        assert_eq!(house.ask(other, &older(LIST, Some("t"))).await.status, 200);
        assert_eq!(house.ask(other, &older(CANCELLED, Some("t"))).await.status, 403);
        assert_eq!(house.spent(), 0);
    }
}

async fn unserved_still(house: &House, door: Door) {
    assert_eq!(house.ask(door, &own(older(CANCELLED, Some("s")))).await.status, 403);
}

// D-13, CORE-90: a call that was refused makes a session nobody's, and one that was spent makes it its key's.
#[tokio::test]
async fn a_call_that_is_refused_leaves_a_session_as_it_was() {
    for door in DOORS {
        let house = House::open();
        let trade = || call("execute_trade", TRADE, "s");
        assert_eq!(house.ask(door, &trade().signed("reader")).await.status, 401);
        unserved_still(&house, door).await;
        assert_eq!(house.ask(door, &trade().signed("trade-1")).await.status, 200);
        assert_eq!(
            house.ask(door, &trade().signed("trade-1")).await.error(),
            (403, "already_consumed".into())
        );
        assert_eq!(house.ask(door, &own(older(CANCELLED, Some("s")))).await.status, 200);
        assert_eq!(house.ask(door, &older(CANCELLED, Some("s"))).await.status, 401);
    }
}
