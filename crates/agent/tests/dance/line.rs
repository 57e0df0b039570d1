//! A host that speaks for a client of its own: its bytes go out as they are, and answers come back as they came.

use crate::house::{ARGUMENTS, House, Person, TOOL, challenged, honest, now, proven, result};
use crate::stub::{Answer as Said, Seen};
use bytes::Bytes;
use http::HeaderMap;
use sayso_agent::{Agent, Answer, Decision, Errand, Letter, Line, Narrower, Outcome, Stopper};
use sayso_protocol::message::RequestId;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A call as a client might write it, blanks, order and unknown members included.
fn letter(id: u64) -> Letter {
    let body = format!(
        r#"{{ "id":{id}, "odd":[1.0], "params":{{"arguments":{ARGUMENTS},"name":"{TOOL}"}},"method":"tools/call","jsonrpc":"2.0"}}"#
    );
    Letter::new(Bytes::from(body), Some(RequestId::from(id)))
}

async fn line(house: &House, agent: &Agent) -> Line {
    agent.line(&house.plan.resource).await.unwrap()
}

async fn body(answer: Answer) -> (u16, String) {
    let carried = match answer {
        Answer::Carried(answer) => Some(*answer),
        Answer::Ended(_) => None,
    };
    let answer = carried.unwrap();
    let status = answer.status().as_u16();
    (status, String::from_utf8(answer.into_body().rest(1 << 20).await.unwrap().to_vec()).unwrap())
}

fn outcome(answer: Answer) -> Outcome {
    let ended = match answer {
        Answer::Ended(outcome) => Some(outcome),
        Answer::Carried(_) => None,
    };
    ended.unwrap()
}

fn claims(house: &House) -> usize {
    house.presented().iter().filter(|seen| seen.form("claim_token").is_some()).count()
}

// MCP-16, MCP-18
#[tokio::test]
async fn a_clients_own_bytes_go_out_twice_and_the_answer_comes_back() {
    let house = House::honest(true, 1).await;
    let (agent, person) = (house.agent(), Person::willing());
    let answer = agent.call_on(&line(&house, &agent).await, &letter(7), &house.errand(30), &person).await;
    let (status, body) = body(answer.unwrap()).await;
    assert!(status == 200 && body.contains("\"filled\":3"), "{body}");
    let [first, second] = &house.calls()[..] else { panic!("two calls") };
    assert_eq!((&first.body[..], &second.body[..]), (&letter(7).body[..], &letter(7).body[..]));
    assert_eq!((first.header("authorization"), first.header("signature")), (None, None));
    assert_eq!(house.resource.paths()[..2], ["/mcp", "/.well-known/oauth-protected-resource/mcp"]);
}

// MCP-15
#[tokio::test]
async fn a_challenge_at_the_head_of_a_stream_is_one() {
    let words = |plan: &crate::house::Plan, seen: &Seen| {
        let asked = seen.json();
        (asked["method"] == "tools/call" && seen.header("authorization").is_none()).then(|| {
            let challenge = plan.challenge(&plan.authority, "ticket-0");
            let data = serde_json::to_value(challenge.object()).unwrap();
            let error = json!({"code": 5, "message": "x", "data": data});
            let message = json!({"jsonrpc": "2.0", "id": asked["id"], "error": error});
            Said::text(200, "text/event-stream", format!("id: 1\ndata:\n\ndata: {message}\n\n"))
        })
    };
    let house = House::start(false, 0, Box::new(words), honest()).await;
    let (agent, person) = (house.agent(), Person::willing());
    let answer = agent.call_on(&line(&house, &agent).await, &letter(1), &house.errand(5), &person).await;
    assert!(body(answer.unwrap()).await.1.contains("filled"));
}

#[tokio::test]
async fn what_nobody_guards_comes_back_as_it_is() {
    let stream = "id: 1\ndata:\n\ndata: {\"method\":\"notifications/progress\"}\n\ndata: {\"odd\" : 1.0}\n\n";
    for (status, kind, text) in [
        (200, "text/event-stream", stream),
        (200, "application/json", "{ \"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"odd\": 1.0} }"),
        (
            404,
            "application/json",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"m\"}}",
        ),
        (500, "text/html", "<h1>"),
        (401, "application/json", "{}"),
    ] {
        let words = move |_: &crate::house::Plan, seen: &Seen| {
            (seen.json()["method"] == "tools/call").then(|| Said::text(status, kind, text))
        };
        let house = House::start(false, 0, Box::new(words), honest()).await;
        let agent = house.agent();
        let answer = agent
            .call_on(&line(&house, &agent).await, &letter(1), &house.errand(5), &Person::willing())
            .await;
        assert_eq!(body(answer.unwrap()).await, (status, text.to_owned()));
        assert!(house.authority.seen().is_empty());
    }
}

// One negotiation for callers that race on the same thing.
#[tokio::test]
async fn of_many_callers_one_negotiates() {
    // Whoever comes is given the same opening ticket, so that each could negotiate.
    let words = |plan: &crate::house::Plan, seen: &Seen| {
        let bare = seen.json()["method"] == "tools/call" && seen.header("authorization").is_none();
        bare.then(|| challenged(&plan.challenge(&plan.authority, "ticket-0")))
    };
    let opens = |plan: &crate::house::Plan, seen: &Seen| {
        (seen.form("ticket")? == "ticket-0").then(|| plan.need_info(|_| {}))
    };
    let house = House::start(false, 1, Box::new(words), Box::new(opens)).await;
    let (agent, person) = (house.agent(), Person::willing());
    let line = line(&house, &agent).await;
    let errands: Vec<Errand> = (0..6)
        .map(|quantity| {
            let arguments = json!({ "quantity": quantity }).to_string();
            let mut errand = Errand::new(&house.plan.resource, TOOL.parse().unwrap(), &arguments).unwrap();
            errand.wait = 20;
            errand
        })
        .collect();
    let (agent, line, person) = (&agent, &line, &person);
    let calls = errands.iter().map(|errand| async move {
        let answer = agent.call_on(line, &letter(1), errand, person).await;
        body(answer.unwrap()).await.0
    });
    let answered = futures_all(calls).await;
    assert_eq!(answered, [200; 6]);
    assert_eq!((claims(&house), person.asked.lock().unwrap().len()), (1, 1));
    assert_eq!(agent.wallet().receipts().unwrap().len(), 1);
}

async fn futures_all<T>(calls: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut calls: Vec<_> = calls.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<T>> = calls.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (call, done) in calls.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(value) = call.as_mut().poll(context)
            {
                *done = Some(value);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

// CORE-42, MCP-21
#[tokio::test]
async fn a_call_told_to_stop_is_taken_up_where_it_was() {
    let house = House::honest(true, 3).await;
    let agent = house.agent();
    let line = line(&house, &agent).await;
    let (stopper, stop) = Stopper::new();
    let mut errand = house.errand(60);
    errand.stop = Some(stop);
    let person = Person::willing();
    let stopping = async {
        tokio::time::sleep(Duration::from_millis(1300)).await;
        stopper.stop();
    };
    let letter = letter(1);
    let (answer, ()) = tokio::join!(agent.call_on(&line, &letter, &errand, &person), stopping);
    assert_eq!(outcome(answer.unwrap()), Outcome::Stopped);
    let before = house.presented().len();
    let nobody = Person::saying([], Decision::NotNow);
    let answer = agent.call_on(&line, &letter, &house.errand(30), &nobody).await.unwrap();
    assert!(body(answer).await.1.contains("filled"));
    assert!(nobody.asked.lock().unwrap().is_empty() && house.presented().len() > before);
    assert_eq!(claims(&house), 1);
}

// D-14: what was sent with a grant may be running, whoever stops waiting for it.
#[tokio::test]
async fn a_call_on_its_way_is_not_said_to_have_stopped() {
    let words = |_: &crate::house::Plan, seen: &Seen| {
        let called = seen.json()["method"] == "tools/call" && seen.header("authorization").is_some();
        called.then(|| result(seen, json!({"content": []})).after(Duration::from_secs(3)))
    };
    let house = House::start(true, 0, Box::new(words), honest()).await;
    let agent = house.agent();
    let line = line(&house, &agent).await;
    let (stopper, stop) = Stopper::new();
    let mut errand = house.errand(5);
    errand.stop = Some(stop);
    let stopping = async {
        while house.calls().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stopper.stop();
    };
    let (letter, person) = (letter(1), Person::willing());
    let (answer, ()) = tokio::join!(agent.call_on(&line, &letter, &errand, &person), stopping);
    assert_eq!(outcome(answer.unwrap()), Outcome::Unknown { why: None });
}

#[tokio::test]
async fn terms_put_off_are_taken_up_by_the_same_call() {
    for per_operation in [true, false] {
        let house = House::honest(per_operation, 0).await;
        let agent = house.agent();
        let line = line(&house, &agent).await;
        let later = Person::saying([], Decision::Later);
        let answer = agent.call_on(&line, &letter(1), &house.errand(5), &later).await.unwrap();
        assert_eq!(outcome(answer), Outcome::Later);
        // Started anew in between, and asked about the very same terms.
        let agent = house.agent();
        let person = Person::saying([], Decision::Agree(Narrower::default()));
        let answer = agent.call_on(&line, &letter(2), &house.errand(5), &person).await.unwrap();
        assert!(body(answer).await.1.contains("filled"));
        assert_eq!(*person.asked.lock().unwrap(), *later.asked.lock().unwrap());
        assert_eq!(house.calls().len(), 2, "challenged once, then called");
    }
}

fn older(forgets: Arc<AtomicUsize>) -> crate::house::Words {
    let began = AtomicUsize::new(0);
    Box::new(move |_, seen| {
        let asked = seen.json();
        let named = seen.header("mcp-session-id").map(str::to_owned);
        match (seen.method.as_str(), asked["method"].as_str().unwrap_or_default()) {
            ("POST", "initialize") => {
                let name = format!("s{}", began.fetch_add(1, Ordering::SeqCst));
                let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
                Some(result(seen, hello).with("mcp-session-id", &name))
            }
            ("POST", "notifications/initialized") => Some(Said::text(202, "text/plain", "")),
            ("POST", "tools/list") => {
                let lost = named == Some(format!("s{}", forgets.load(Ordering::SeqCst)));
                Some(if lost {
                    Said::text(404, "text/plain", "")
                } else {
                    result(seen, json!({"tools": []}))
                })
            }
            ("GET", _) if seen.path == "/mcp" => Some(Said::text(200, "text/event-stream", "data: {}\n\n")),
            _ => None,
        }
    })
}

fn said(text: &'static str, id: Option<u64>) -> Letter {
    Letter::new(Bytes::from_static(text.as_bytes()), id.map(RequestId::from))
}

const HELLO: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

// D-13: from the first call on everything in the session is signed by the key that called.
#[tokio::test]
async fn a_session_bound_to_a_key_is_spoken_in_with_it() {
    let house = House::start(true, 0, older(Arc::new(AtomicUsize::new(usize::MAX))), honest()).await;
    let agent = house.agent();
    let line = line(&house, &agent).await;
    agent.greet(&line, said(HELLO, Some(0))).await.unwrap();
    agent.relay(&line, &said(LIST, Some(1))).await.unwrap();
    let before = house.resource.seen().pop().unwrap();
    assert_eq!(before.header("mcp-session-id"), Some("s0"));
    assert_eq!(
        before.header("mcp-protocol-version"),
        Some("2025-06-18"),
        "what was agreed on, not what was asked"
    );
    assert_eq!(before.header("signature"), None);
    let answer = agent.call_on(&line, &letter(2), &house.errand(5), &Person::willing()).await.unwrap();
    body(answer).await;
    agent.relay(&line, &said(LIST, Some(3))).await.unwrap();
    agent.listen(&line, &HeaderMap::new()).await.unwrap();
    agent.leave(&line, &HeaderMap::new()).await.unwrap();
    let seen = house.resource.seen();
    let [.., listed, heard, left] = &seen[..] else { panic!("three more") };
    proven(listed, &house.plan.gateway, &house.plan.agent_key());
    assert_eq!((heard.method.as_str(), left.method.as_str()), ("GET", "DELETE"));
    for after in [listed, heard, left] {
        assert!(after.header("signature").is_some() && after.header("authorization").is_none());
    }
}

// D-13, D-14
#[tokio::test]
async fn a_session_that_was_lost_is_begun_anew_by_who_began_it() {
    let forgets = Arc::new(AtomicUsize::new(0));
    let house = House::start(true, 0, older(forgets.clone()), honest()).await;
    let agent = house.agent();
    let line = line(&house, &agent).await;
    agent.greet(&line, said(HELLO, Some(0))).await.unwrap();
    let answer = agent.relay(&line, &said(LIST, Some(1))).await.unwrap();
    assert_eq!(answer.status(), 200);
    let named: Vec<Value> = house
        .resource
        .seen()
        .iter()
        .map(|seen| json!([seen.json()["method"], seen.header("mcp-session-id")]))
        .collect();
    let expected = [
        json!(["initialize", null]),
        json!(["tools/list", "s0"]),
        json!(["initialize", null]),
        json!(["notifications/initialized", "s1"]),
        json!(["tools/list", "s1"]),
    ];
    assert_eq!(named, expected);
    // Where the client began it, it is the client's to begin anew.
    forgets.store(7, Ordering::SeqCst);
    let mut own = said(LIST, Some(1));
    own.headers.insert("mcp-session-id", "s7".parse().unwrap());
    let other = agent.line(&house.plan.resource).await.unwrap();
    assert_eq!(agent.relay(&other, &own).await.unwrap().status(), 404);
}

// D-14: a call that broke off is not sent again, and its grant counts as spent.
#[tokio::test]
async fn a_signed_call_is_sent_once() {
    let words =
        |_: &crate::house::Plan, seen: &Seen| seen.header("authorization").map(|_| Said::drop_connection());
    let house = House::start(true, 0, Box::new(words), honest()).await;
    let (agent, person) = (house.agent(), Person::willing());
    let answer = agent.call_on(&line(&house, &agent).await, &letter(1), &house.errand(5), &person).await;
    assert!(matches!(outcome(answer.unwrap()), Outcome::Unknown { .. }));
    assert_eq!(house.calls().len(), 2);
    assert!(agent.wallet().grants(now()).unwrap().is_empty());
    assert_eq!(agent.wallet().receipts().unwrap().len(), 1, "what was agreed to stays");
}

// CORE-32, MCP-04
#[tokio::test]
async fn a_rogue_authority_hears_nothing_on_a_line_either() {
    let rogue = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let named = format!("http://{}", rogue.local_addr().unwrap());
    let words = move |plan: &crate::house::Plan, seen: &Seen| {
        (seen.json()["method"] == "tools/call").then(|| challenged(&plan.challenge(&named, "t")))
    };
    let house = House::start(true, 0, Box::new(words), honest()).await;
    let (agent, person) = (house.agent(), Person::willing());
    assert!(agent.call_on(&line(&house, &agent).await, &letter(1), &house.errand(5), &person).await.is_err());
    assert!(tokio::time::timeout(Duration::from_millis(200), rogue.accept()).await.is_err());
    assert!(house.authority.seen().is_empty() && person.asked.lock().unwrap().is_empty());
}
