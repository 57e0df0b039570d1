//! Servers of both eras, and answers as JSON and as streams.

use crate::house::{House, Plan, honest, now, result};
use crate::stub::{Answer, Seen};
use sayso_agent::Outcome;
use sayso_agent::fault::{BadServer, Fault};
use sayso_protocol::sig::{self, Body, Facts, Profile};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

fn method(seen: &Seen) -> String {
    seen.json()["method"].as_str().unwrap_or_default().to_owned()
}

fn legacy(version: &'static str, discover: fn(&Seen) -> Answer) -> crate::house::Words {
    Box::new(move |_, seen| match method(seen).as_str() {
        "server/discover" => Some(discover(seen)),
        "initialize" => Some(
            result(seen, json!({"protocolVersion": version, "capabilities": {}}))
                .with("mcp-session-id", "s1"),
        ),
        "notifications/initialized" => Some(Answer::text(202, "text/plain", "")),
        _ => None,
    })
}

#[tokio::test]
async fn an_older_server_is_met_the_older_way() {
    let discovers: [fn(&Seen) -> Answer; 5] = [
        |_| Answer::text(404, "text/plain", "not found"),
        |_| {
            Answer::json(
                400,
                json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "no session"}}),
            )
        },
        |_| Answer::text(400, "text/plain", ""),
        |seen| {
            let error = json!({"code": -32601, "message": "Method not found"});
            Answer::json(200, json!({"jsonrpc": "2.0", "id": seen.json()["id"], "error": error}))
        },
        |seen| result(seen, json!({"supportedVersions": ["2025-11-25"]})),
    ];
    for discover in discovers {
        let house = House::start(false, 0, legacy("2025-11-25", discover), honest()).await;
        let outcome = house.call(5).await.unwrap();
        assert!(matches!(outcome, Outcome::Result { failed: false, .. }), "{outcome:?}");
        let calls = house.calls();
        for call in &calls {
            assert_eq!(call.header("mcp-protocol-version"), Some("2025-11-25"));
            assert_eq!(call.header("mcp-session-id"), Some("s1"));
            assert_eq!(call.header("mcp-method"), None);
            assert_eq!(call.json()["params"]["_meta"], Value::Null);
        }
    }
}

// D-13: what a server keeps for a session is not kept for nobody.
#[tokio::test]
async fn a_session_is_ended_by_whoever_called_in_it() {
    let unknown = |_: &Seen| Answer::text(404, "text/plain", "");
    let house = House::start(false, 0, legacy("2025-11-25", unknown), honest()).await;
    house.call(5).await.unwrap();
    let last = house.resource.seen().pop().unwrap();
    assert_eq!((last.method.as_str(), last.header("mcp-session-id")), ("DELETE", Some("s1")));
    assert_eq!(last.header("authorization"), None);
    let facts = Facts {
        method: "DELETE",
        scheme: "http",
        authority: house.plan.gateway.strip_prefix("http://").unwrap(),
        path: "/mcp",
        query: None,
        headers: &last.headers,
        body: Body::Whole(b""),
    };
    let signed = sig::read(&last.headers).unwrap();
    assert!(signed.verify(&facts, &house.plan.agent_key(), &Profile::default(), now()).is_ok());
    // Where nothing was signed, the end is not either: it would name a key for no need.
    let before = house.resource.seen().len();
    let _ = house.agent().tools(&house.plan.resource).await;
    let seen = house.resource.seen();
    let last = seen.last().unwrap();
    assert!(seen.len() > before && last.method == "DELETE" && last.header("signature").is_none());
}

// D-13, D-14: her answer took longer than the session lived; of that call its server heard nothing.
#[tokio::test]
async fn a_session_that_was_lost_is_begun_anew_once() {
    for forgets in [1, usize::MAX] {
        let began = AtomicUsize::new(0);
        let words = move |_: &Plan, seen: &Seen| match method(seen).as_str() {
            "server/discover" => Some(Answer::text(404, "text/plain", "")),
            "initialize" => {
                let name = format!("s{}", began.fetch_add(1, Ordering::SeqCst));
                let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
                Some(result(seen, hello).with("mcp-session-id", &name))
            }
            "notifications/initialized" => Some(Answer::text(202, "text/plain", "")),
            "tools/call" if seen.header("authorization").is_some() => {
                let number: usize = seen.header("mcp-session-id")?.strip_prefix('s')?.parse().ok()?;
                let gone = json!({"error": "session_not_found", "error_description": "initialize anew"});
                (number < forgets).then(|| Answer::json(404, gone))
            }
            _ => None,
        };
        let house = House::start(true, 0, Box::new(words), honest()).await;
        let outcome = house.call(5).await.unwrap();
        let signed: Vec<Seen> =
            house.calls().into_iter().filter(|call| call.header("signature").is_some()).collect();
        assert_eq!(signed.len(), 2);
        assert_ne!(signed[0].header("signature"), signed[1].header("signature"));
        let sessions: Vec<_> = signed.iter().map(|call| call.header("mcp-session-id")).collect();
        assert_eq!(sessions, [Some("s0"), Some("s1")]);
        match forgets {
            1 => assert!(matches!(outcome, Outcome::Result { failed: false, .. }), "{outcome:?}"),
            _ => assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}"),
        }
    }
}

// MCP-03
#[tokio::test]
async fn the_version_is_asserted() {
    for version in ["2026-07-28", "2099-01-01", "latest", ""] {
        let discover = |_: &Seen| Answer::text(404, "text/plain", "");
        let house = House::start(false, 0, legacy(version, discover), honest()).await;
        let fault = house.call(5).await.unwrap_err();
        assert!(matches!(fault, Fault::Server(BadServer::Version)), "{version}: {fault}");
        assert!(house.calls().is_empty());
    }
}

#[tokio::test]
async fn a_modern_server_that_dislikes_the_request_is_not_met_the_older_way() {
    for (status, code) in [(400, -32020), (400, -32021)] {
        let words = Box::new(move |_: &crate::house::Plan, seen: &Seen| {
            let error = json!({"code": code, "message": "x"});
            let body = json!({"jsonrpc": "2.0", "id": seen.json()["id"], "error": error});
            (method(seen) == "server/discover").then(|| Answer::json(status, body))
        });
        let house = House::start(false, 0, words, honest()).await;
        assert!(matches!(house.call(5).await.unwrap_err(), Fault::Server(BadServer::Answer)));
        assert_eq!(house.resource.seen().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_in_a_stream_is_found() {
    let words = Box::new(|_: &crate::house::Plan, seen: &Seen| {
        let asked = seen.json();
        seen.header("authorization")?;
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"structuredContent": {"x": 1}}});
        Some(Answer::text(200, "text/event-stream", format!("data: {progress}\n\ndata: {answer}\n\n")))
    });
    let house = House::start(false, 0, words, honest()).await;
    let outcome = house.call(5).await.unwrap();
    assert!(
        matches!(&outcome, Outcome::Result { json, failed: false } if json.contains("\"x\":1")),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn an_answer_to_something_else_is_no_answer() {
    for body in ["{}", "[]", "", "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}"] {
        let words = Box::new(move |_: &crate::house::Plan, seen: &Seen| {
            (method(seen) == "tools/call").then(|| Answer::text(200, "application/json", body))
        });
        let house = House::start(false, 0, words, honest()).await;
        assert!(matches!(house.call(5).await.unwrap_err(), Fault::Server(BadServer::Answer)), "{body}");
    }
}

#[tokio::test]
async fn tools_are_listed_page_by_page() {
    let words = Box::new(|_: &crate::house::Plan, seen: &Seen| {
        let asked = seen.json();
        let page = match asked["params"]["cursor"].as_str() {
            None => json!({"tools": [{"name": "a"}], "nextCursor": "2"}),
            Some(_) => json!({"tools": [{"name": "b"}]}),
        };
        (method(seen) == "tools/list").then(|| result(seen, page))
    });
    let house = House::start(false, 0, words, honest()).await;
    let tools = house.agent().tools(&house.plan.resource).await.unwrap();
    assert_eq!(tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>(), ["a", "b"]);
}
