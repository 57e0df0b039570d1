//! A legacy session before a child process: a child of its own, its whole conversation, and its end (D-13, D-31).

use super::{Fixture, House, is_alive, said, until_gone};
use crate::tests::sessions::cast::{Stream, answer, delete, get, message, note, post, read};
use crate::tests::wire::Request;
use crate::upstream::stdio::CHILDREN;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

fn introduction() -> Request {
    post(
        "initialize",
        &json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "sampling": {}, "elicitation": {} },
            "clientInfo": { "name": "client", "version": "0" },
        }),
    )
}

async fn open(house: &House) -> String {
    let response = house.send(&introduction()).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.json()["result"]["protocolVersion"], "2025-06-18");
    let [id] = response.all("mcp-session-id").try_into().expect("a session");
    assert_eq!(id.len(), 43);
    id.to_owned()
}

fn within(request: Request, session: &str) -> Request {
    request.but("MCP-Protocol-Version", "2025-06-18").with("Mcp-Session-Id", session)
}

fn habit(arguments: &Value) -> Request {
    read(arguments).signed("reader")
}

// D-31: the client's own words, and nobody else's child.
#[tokio::test]
async fn each_session_has_a_child_of_its_own() {
    let fixture = Fixture::with("--eras legacy");
    let house = fixture.house().await;
    assert_eq!(house.send(&post("ping", &json!({}))).await.status, 200);
    let shared = fixture.pids();
    let (one, other) = (open(&house).await, open(&house).await);
    assert!(one != other && fixture.pids().len() == shared.len() + 2);
    let heard = fixture.heard();
    let introduced: Vec<&String> = heard.iter().filter(|line| line.contains("\"client\"")).collect();
    assert_eq!(introduced.len(), 2);
    assert!(
        introduced.iter().all(|line| line.contains(r#""elicitation":{}"#) && line.contains(r#""id":1,"#))
    );
    for session in [&one, &other] {
        assert_eq!(house.send(&within(note("notifications/initialized"), session)).await.status, 202);
        let call = house.send(&within(read(&json!({})), session).signed("reader")).await;
        assert!(said(&call).contains("arguments"));
        assert_eq!(call.all("mcp-session-id"), [session.as_str()]);
    }
    // One ends; its child does, and no other.
    let pids = fixture.pids();
    assert_eq!(house.send(&within(delete(), &one).signed("reader")).await.status, 204);
    until_gone(&pids[pids.len() - 2..pids.len() - 1]).await;
    assert!(is_alive(*pids.last().unwrap()) && shared.iter().all(|pid| is_alive(*pid)));
    let gone = house.send(&within(post("ping", &json!({})), &one)).await;
    assert_eq!((gone.status, gone.json()["error"].as_str()), (404, Some("session_not_found")));
    assert_eq!(house.send(&within(post("ping", &json!({})), &other).signed("reader")).await.status, 200);
}

// D-13, D-31: what the child asks reaches its client on the stream of the call, and is answered once.
#[tokio::test]
async fn a_child_asks_its_client_and_is_answered_once() {
    let fixture = Fixture::with("--eras legacy");
    let house = fixture.house().await;
    let session = open(&house).await;
    let call = within(read(&json!({ "habit": "ask", "method": "elicitation/create" })), &session);
    let mut stream = Stream::open(house.gateway, &call.signed("reader")).await;
    stream.until(r#""method": "elicitation/create""#).await;
    let answered = |id: &str| within(answer(id), &session).signed("reader");
    let invented = house.send(&answered("\"q9\"")).await;
    assert_eq!((invented.status, invented.json()["error"].as_str()), (400, Some("invalid_request")));
    assert_eq!(house.send(&answered("\"q2\"")).await.status, 202);
    stream.until("accept").await;
    assert_eq!(house.send(&answered("\"q2\"")).await.status, 400);
    let answers = fixture.heard().iter().filter(|line| line.contains("accept")).count();
    assert_eq!(answers, 1);
}

// D-13: gossip that is dropped between strangers is the client's own here.
#[tokio::test]
async fn what_the_child_tells_reaches_its_client() {
    let fixture = Fixture::with("--eras legacy");
    let house = fixture.house().await;
    let session = open(&house).await;
    let call = || within(habit(&json!({ "habit": "garbage" })), &session).but("Accept", "application/json");
    assert!(said(&house.send(&call()).await).contains("garbage"));
    // Nobody listened; what was told is there for whoever does, once.
    let mut stream = Stream::open(house.gateway, &within(get(), &session).signed("reader")).await;
    stream.until("gossip").await;
    stream.until("resources/updated").await;
    let text = stream.read_so_far().await.to_owned();
    assert!(text.contains("text/event-stream") && !text.contains("not json"), "{text}");
    assert!(!text.contains("nobody's") && !text.contains("progressToken"), "{text}");
    let mut other = Stream::open(house.gateway, &within(get(), &session).signed("reader")).await;
    assert!(stream.ends_within(Duration::from_secs(5)).await, "another listens now");
    assert!(!other.read_so_far().await.contains("gossip"));
}

#[tokio::test]
async fn a_client_cancels_its_call_by_its_own_id() {
    let fixture = Fixture::with("--eras legacy");
    let house = fixture.house().await;
    let session = open(&house).await;
    let body = json!({ "jsonrpc": "2.0", "id": "mine", "method": "tools/call",
        "params": { "name": "get_positions", "arguments": { "habit": "hang" } } });
    let call = within(message(&body), &session).signed("reader");
    let _stream = Stream::open(house.gateway, &call).await;
    let heard: Value = serde_json::from_str(&fixture.until_heard("\"hang\"").await).unwrap();
    for (id, told) in [(json!("another"), false), (json!("mine"), true)] {
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        let response = house.send(&within(message(&cancel), &session).signed("reader")).await;
        assert_eq!(response.status, 202);
        if told {
            let cancelled: Value = serde_json::from_str(&fixture.until_heard("cancelled").await).unwrap();
            assert_eq!(cancelled["params"]["requestId"], heard["id"]);
        } else {
            assert!(!fixture.heard().concat().contains("cancelled"));
        }
    }
}

// D-31: every caller is told, and nothing is started again under a session that cannot be what it was.
#[tokio::test]
async fn a_child_that_dies_takes_its_session_with_it() {
    let fixture = Fixture::with("--eras legacy");
    let house = fixture.house().await;
    let session = open(&house).await;
    let mut listening = Stream::open(house.gateway, &within(get(), &session)).await;
    listening.until("200").await;
    let died = house.send(&within(read(&json!({ "habit": "die" })), &session).signed("reader")).await;
    assert_eq!((died.status, died.json()["error"].as_str()), (502, Some("upstream_failed")));
    assert!(listening.ends_within(Duration::from_secs(5)).await);
    let started = fixture.pids().len();
    let gone = house.send(&within(post("ping", &json!({})), &session).signed("reader")).await;
    assert_eq!((gone.status, gone.json()["error"].as_str()), (404, Some("session_not_found")));
    assert_eq!(fixture.pids().len(), started);
}

// CORE-89: a child that is gone costs nobody a grant.
#[tokio::test]
async fn nothing_is_spent_in_a_session_without_a_child() {
    let fixture = Fixture::with("--eras legacy");
    let house = fixture.house().await;
    let session = open(&house).await;
    let mut listening = Stream::open(house.gateway, &within(get(), &session)).await;
    listening.until("200").await;
    let pid = *fixture.pids().last().unwrap();
    let status = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(status.success());
    until_gone(&[pid]).await;
    assert!(listening.ends_within(Duration::from_secs(5)).await);
    let trade: Value = serde_json::from_str(crate::tests::cast::TRADE).unwrap();
    let trade = post("tools/call", &json!({ "name": "execute_trade", "arguments": trade }));
    let response = house.send(&within(trade, &session).signed("trade-1")).await;
    assert_eq!((response.status, response.json()["error"].as_str()), (503, Some("temporarily_unavailable")));
    house.assert_untouched("without a child");
}

// As long as its session, whatever is said in it or not.
#[tokio::test]
async fn a_child_lives_while_nothing_is_said() {
    let fixture = Fixture::with("--eras legacy");
    let house = fixture.house().await;
    let session = open(&house).await;
    sleep(Duration::from_millis(2500)).await;
    assert_eq!(house.send(&within(post("ping", &json!({})), &session)).await.status, 200);
    assert!(is_alive(*fixture.pids().last().unwrap()));
}

/// Consumes when it is told to, and says that it is asked.
fn held_up(house: &House) -> Arc<tokio::sync::Semaphore> {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    *house.authority.gate.lock().unwrap() = Some(Arc::clone(&gate));
    gate
}

// D-14: strangers cannot take the place of a session in which a grant is being spent, and a grant that was spent on a
// child that ended meanwhile is a loss she is told of.
#[tokio::test]
async fn what_is_spent_in_a_session_has_somewhere_to_go_or_is_told_as_lost() {
    let fixture = Fixture::with("--eras legacy");
    let house = fixture.house().await;
    let session = open(&house).await;
    let pid = *fixture.pids().last().unwrap();
    let gate = held_up(&house);
    let trade: Value = serde_json::from_str(crate::tests::cast::TRADE).unwrap();
    let trade = post("tools/call", &json!({ "name": "execute_trade", "arguments": trade }));
    let call = within(trade, &session).signed("trade-1");
    let answered = async { house.send(&call).await };
    let meanwhile = async {
        while house.authority.spent.lock().unwrap().is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
        for _ in 0..=CHILDREN {
            open(&house).await;
        }
        assert!(is_alive(pid), "a stranger ended it");
        std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
        until_gone(&[pid]).await;
        sleep(Duration::from_millis(300)).await;
        gate.add_permits(1);
    };
    let (response, ()) = tokio::join!(answered, meanwhile);
    let body = response.json();
    assert_eq!(
        (response.status, &body["error"], &body["spent"]),
        (502, &json!("upstream_failed"), &json!(true))
    );
    assert_eq!(house.authority.reports.lock().unwrap().len(), 1);
    assert!(fixture.heard_calls().is_empty());
}

// A process each, so strangers are given few, and one that is nobody's makes room.
#[tokio::test]
async fn strangers_start_few_children() {
    let fixture = Fixture::with("--eras legacy");
    let house = fixture.house().await;
    let first = open(&house).await;
    for _ in 0..CHILDREN {
        open(&house).await;
    }
    let alive = fixture.pids().into_iter().filter(|pid| is_alive(*pid)).count();
    assert!(alive <= CHILDREN + 3, "{alive}");
    assert_eq!(house.send(&within(post("ping", &json!({})), &first)).await.status, 404);
}

#[tokio::test]
async fn a_child_that_refuses_its_client_leaves_no_session() {
    let fixture = Fixture::with("--eras legacy");
    let house = fixture.house().await;
    assert_eq!(house.send(&post("ping", &json!({}))).await.status, 200);
    let before = fixture.pids();
    let response = house.send(&post("initialize", &json!({}))).await;
    assert_eq!((response.status, response.json()["error"]["code"].as_i64()), (200, Some(-32602)));
    assert!(response.all("mcp-session-id").is_empty());
    let started = fixture.pids();
    assert_eq!(started.len(), before.len() + 1);
    until_gone(&started[before.len()..]).await;
}
