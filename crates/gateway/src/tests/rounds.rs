//! Further rounds of a call that was approved once (D-11), before a server that asks: in one message, in events, in pieces.

use super::cast::{Canary, House, TRADE};
use super::wire::{Request, Response};
use sayso_protocol::canon::s256_bytes;

const ASKS: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{},"requestState":"one"}}"#;

fn call(members: &str) -> Request {
    let call = Request::call("execute_trade", TRADE);
    let body =
        String::from_utf8(call.body.clone()).unwrap().replace(r#""name""#, &format!(r#"{members}"name""#));
    Request { body: body.into_bytes(), ..call }
}

fn round(state: &str) -> Request {
    call(&format!(r#""requestState":"{state}","inputResponses":{{"sure":{{"action":"accept"}}}},"#))
}

fn json(body: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn chunked(kind: &str, pieces: &[&str]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
    for piece in pieces {
        answer.push_str(&format!("{:x}\r\n{piece}\r\n", piece.len()));
    }
    answer.push_str("0\r\n\r\n");
    answer.into_bytes()
}

fn answers(canary: &Canary, answer: Vec<u8>) {
    *canary.answer.lock().unwrap() = answer;
}

fn error(response: &Response) -> (u16, String) {
    (response.status, response.json()["error"].as_str().unwrap_or_default().to_owned())
}

fn refused() -> (u16, String) {
    (403, "continuation_refused".into())
}

// D-11
#[tokio::test]
async fn a_round_that_the_server_asked_for_is_forwarded_once() {
    let (start, end) = ASKS.split_at(40);
    let told = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
    let events = format!("data: {told}\n\nid: 4\ndata: {ASKS}\n\n");
    let (first, second) = events.split_at(90);
    for answer in [
        json(ASKS),
        chunked("application/json", &[start, end]),
        chunked("text/event-stream", &[&events]),
        chunked("text/event-stream", &[first, second]),
    ] {
        let house = House::open().await;
        answers(&house.canary, answer);
        let asked = house.send(&call("").signed("trade-asks-1")).await;
        assert_eq!(asked.status, 200);
        let body = String::from_utf8(asked.body.clone()).unwrap();
        assert!(body.contains(r#""requestState":"one""#), "its bytes pass as they are: {body}");
        // As soon as the agent has read that it is asked, it may answer.
        answers(&house.canary, json(super::cast::RESULT));
        let sent = round("one").signed("trade-asks-1");
        let answered = house.send(&sent).await;
        assert_eq!((answered.status, house.canary.count()), (200, 2), "{answered:?}");
        assert!(house.canary.requests.lock().unwrap()[1].ends_with(&sent.body), "the bytes that were judged");
        let taken = house.authority.rounds.lock().unwrap().clone();
        let [taken] = &taken[..] else { panic!("{} rounds", taken.len()) };
        assert_eq!(taken.state, s256_bytes(b"one"));
        assert_eq!(taken.answers, Some(s256_bytes(br#"{"sure":{"action":"accept"}}"#)));
        assert_eq!(house.authority.spent.lock().unwrap().len(), 1);

        assert_eq!(error(&house.send(&round("one").signed("trade-asks-1")).await), refused());
        assert_eq!(house.canary.count(), 2, "twice is once too often");
    }
}

// D-11
#[tokio::test]
async fn what_the_server_asks_next_is_another_round() {
    let house = House::open().await;
    for state in ["one", "two", "three"] {
        answers(&house.canary, json(&ASKS.replace("one", state)));
        let members = match state {
            "one" => call(""),
            "two" => round("one"),
            _ => round("two"),
        };
        assert_eq!(house.send(&members.signed("trade-asks-1")).await.status, 200, "{state}");
    }
    assert_eq!((house.canary.count(), house.authority.rounds.lock().unwrap().len()), (3, 2));
}

// D-11, CORE-91
#[tokio::test]
async fn a_round_nobody_allowed_or_asked_for_reaches_nobody() {
    let house = House::open().await;
    answers(&house.canary, json(ASKS));
    let sent = call("").signed("trade-1");
    assert_eq!(house.send(&sent).await.status, 200);
    assert_eq!(error(&house.send(&round("one").signed("trade-1")).await), refused(), "she allowed none");
    assert!(house.authority.offered.lock().unwrap().is_empty(), "and nothing is read for it");

    assert_eq!(house.send(&call("").signed("trade-asks-1")).await.status, 200);
    let by = |request: Request, seed| {
        request.shown("trade-asks-1").signed_by(&super::cast::key(seed), super::cast::NOW, super::cast::HOST)
    };
    let other = Request::call("execute_trade", r#"{"symbol":"VTI","quantity":4}"#);
    let other = Request {
        body: String::from_utf8(other.body.clone())
            .unwrap()
            .replace(r#""name""#, r#""requestState":"one","name""#)
            .into_bytes(),
        ..other
    };
    for (what, request, answer) in [
        ("changed state", round("One").signed("trade-asks-1"), refused()),
        ("of another call", round("one").signed("trade-asks-2"), refused()),
        ("no state", call(r#""inputResponses":{},"#).signed("trade-asks-1"), (400, "invalid_request".into())),
        ("another key", by(round("one"), 0x33), (401, "invalid_token".into())),
        ("other arguments", other.signed("trade-asks-1"), (403, "operation_mismatch".into())),
        ("unsigned", round("one"), refused()),
    ] {
        assert_eq!(error(&house.send(&request).await), answer, "{what}");
    }
    *house.authority.ended.lock().unwrap() = Some("connection_revoked");
    let ended = house.send(&round("one").signed("trade-asks-1")).await;
    assert_eq!(error(&ended), (403, "access_revoked".into()));
    *house.authority.ended.lock().unwrap() = None;
    assert_eq!((house.canary.count(), house.authority.rounds.lock().unwrap().len()), (2, 0));
    assert_eq!(house.send(&round("one").signed("trade-asks-1")).await.status, 200, "nothing of it was taken");
}

// D-11: what asks for nothing that could be told again, is too long, or cannot be told, opens no round.
#[tokio::test]
async fn an_answer_that_asks_for_no_round_opens_none() {
    let long = ASKS.replace("one", &"s".repeat(1 << 20));
    let complete = ASKS.replace("input_required", "complete");
    for answer in [ASKS.replace(r#""requestState":"one""#, r#""x":1"#), long, complete] {
        let house = House::open().await;
        answers(&house.canary, json(&answer));
        let asked = house.send(&call("").signed("trade-asks-1")).await;
        assert_eq!((asked.status, asked.body.len()), (200, answer.len()), "and passes whole");
        assert!(house.authority.offered.lock().unwrap().is_empty());
    }
    let house = House::open().await;
    house.authority.no_reports.store(true, std::sync::atomic::Ordering::SeqCst);
    answers(&house.canary, json(ASKS));
    assert_eq!(house.send(&call("").signed("trade-asks-1")).await.status, 200);
    assert_eq!(error(&house.send(&round("one").signed("trade-asks-1")).await), refused());
}

// D-11: under a grant for many calls a round is a call like any other.
#[tokio::test]
async fn a_grant_for_many_calls_needs_no_leave_for_rounds() {
    let house = House::open().await;
    let call = Request::call("get_positions", "{}");
    let body = String::from_utf8(call.body.clone()).unwrap();
    let body = body.replace(r#""name""#, r#""requestState":"never asked","inputResponses":{},"name""#);
    let request = Request { body: body.into_bytes(), ..call };
    for _ in 0..2 {
        assert_eq!(house.send(&request.clone().signed("reader")).await.status, 200);
    }
    assert_eq!(house.canary.count(), 2);
}
