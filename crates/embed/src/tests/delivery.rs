//! At most once: what happens between the spending of a grant and the service's answer (D-5, D-14, D-21).

use super::cast::{House, TRADE, Turn};
use super::request::{Answer, Call};
use http::Response;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

fn trade() -> Call {
    Call::tool("execute_trade", TRADE).signed("trade-1")
}

fn told(answer: &Answer) -> (u16, Value, Value, Value) {
    let body = answer.json();
    (answer.status.as_u16(), body["error"].clone(), body["spent"].clone(), body["forwarded"].clone())
}

fn redirect() -> Response<Full<bytes::Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = http::StatusCode::TEMPORARY_REDIRECT;
    response
}

// D-14
#[tokio::test]
async fn a_service_that_breaks_off_after_the_spend_is_reported() {
    for turn in [Turn::Panic, Turn::Fail, Turn::Answer(redirect())] {
        let house = House::open();
        house.inside.next(turn);
        let answer = house.send(&trade()).await;
        assert_eq!(told(&answer), (502, json!("upstream_failed"), json!(true), json!("unknown")));
        let reports = house.authority.reports.lock().unwrap();
        let [report] = &reports[..] else { panic!("{} reports", reports.len()) };
        assert_eq!(report.summary.as_deref(), Some("whether the server ran the call is not known"));
        assert_eq!((report.tool.as_str(), house.inside.count()), ("execute_trade", 1));
    }
}

#[tokio::test]
async fn in_json_rpc_the_loss_has_the_same_members() {
    let house = House::open();
    house.inside.next(Turn::Fail);
    let layered = tower_layer::Layer::layer(&house.site.layer().in_json_rpc(), house.inside.clone());
    let answer = tower::ServiceExt::oneshot(layered, trade().request()).await.unwrap();
    let said = Answer::read(answer).await.json();
    let data = &said["error"]["data"];
    assert_eq!((&said["error"]["code"], &data["error"]), (&json!(-32002), &json!("upstream_failed")));
    assert_eq!((&data["spent"], &data["status"]), (&json!(true), &json!(502)));
    assert_eq!(house.authority.reports.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn without_a_grant_for_one_call_nothing_is_said_to_be_spent() {
    let house = House::open();
    house.inside.next(Turn::Panic);
    let answer = house.send(&Call::tool("get_positions", "{}").signed("reader")).await;
    assert_eq!(told(&answer), (502, json!("upstream_failed"), Value::Null, json!("unknown")));
}

fn answered(status: u16, body: &'static str) -> Response<Full<bytes::Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    response
}

const UNKNOWN: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such thing"}}"#;

// D-14: a service that is no guard of ours answers a call that was paid for with a status of its own: that the grant is gone
// is said all the same, and what is not known is not claimed.
#[tokio::test]
async fn a_service_that_refuses_a_spent_call_by_a_status_is_reported() {
    for status in [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 429, 500, 501, 503] {
        for body in ["", "{}", UNKNOWN, "<html>"] {
            let house = House::open();
            house.inside.next(Turn::Answer(answered(status, body)));
            let answer = house.send(&trade()).await;
            assert_eq!(
                told(&answer),
                (502, json!("upstream_failed"), json!(true), json!("unknown")),
                "{status}"
            );
            assert!(answer.json()["error_description"].as_str().unwrap().contains(&status.to_string()));
            let reports = house.authority.reports.lock().unwrap();
            let [report] = &reports[..] else { panic!("{} reports", reports.len()) };
            assert_eq!(report.summary.as_deref(), Some("whether the server ran the call is not known"));
            assert_eq!((report.tool.as_str(), house.inside.count()), ("execute_trade", 1));
        }
    }
}

// D-10: where no grant was spent, and where the call has an answer, it passes as it is.
#[tokio::test]
async fn an_error_that_costs_nothing_or_answers_the_call_passes_untouched() {
    for (call, status, body) in [
        (Call::tool("get_positions", "{}").signed("reader"), 404, UNKNOWN),
        (Call::tool("get_positions", "{}").signed("reader"), 500, "<html>"),
        (trade(), 200, UNKNOWN),
    ] {
        let house = House::open();
        house.inside.next(Turn::Answer(answered(status, body)));
        let answer = house.send(&call).await;
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (status, body.as_bytes()));
        assert!(house.authority.reports.lock().unwrap().iter().all(|report| report.summary.is_none()));
    }
}

// D-5: the service is ready before anything is spent.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_ready_costs_nothing() {
    let house = House::open();
    house.inside.unready.store(true, Ordering::SeqCst);
    let signed = trade();
    let answer = house.send(&signed).await;
    assert_eq!(told(&answer), (503, json!("temporarily_unavailable"), Value::Null, Value::Null));
    house.assert_untouched("not ready");
    house.inside.unready.store(false, Ordering::SeqCst);
    assert_eq!(house.send(&signed).await.status, 200);
}

// D-14: hanging up does not lose what was spent.
#[tokio::test(start_paused = true)]
async fn a_caller_that_hangs_up_after_the_spend_is_in_her_record() {
    let house = House::open();
    let (_open, pieces) = mpsc::channel(1);
    house.inside.next(Turn::Stream(pieces));
    *house.authority.slow_consume.lock().unwrap() = Duration::from_millis(500);
    let hung = timeout(Duration::from_millis(100), house.open_answer(trade().request())).await;
    assert!(hung.is_err());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((house.inside.count(), house.authority.spent.lock().unwrap().len()), (0, 1));
    let reports = house.authority.reports.lock().unwrap();
    assert_eq!(reports[0].summary.as_deref(), Some("the call was not forwarded: its caller hung up"));
}

// D-21: the layer carries the response, so it closes the stream of a revoked grant.
#[tokio::test(start_paused = true)]
async fn the_stream_of_a_revoked_grant_ends_within_five_seconds() {
    let house = House::open();
    let (open, pieces) = mpsc::channel(4);
    house.inside.next(Turn::Stream(pieces));
    let call = Call::tool("get_positions", "{}").signed("reader");
    let mut body = house.open_answer(call.request()).await.into_body();
    open.send("data: {}\n\n").await.unwrap();
    assert!(body.frame().await.unwrap().is_ok());
    *house.authority.ended.lock().unwrap() = Some("connection_revoked");
    let since = Instant::now();
    assert!(body.frame().await.is_none());
    assert!(since.elapsed() < Duration::from_secs(5));
}
