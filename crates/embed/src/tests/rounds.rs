//! Further rounds of a call that was approved once (D-11), where the server that asks guards itself.

use super::cast::{House, TRADE, Turn};
use super::request::Call;
use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use serde_json::json;

const ASKS: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{},"requestState":"one"}}"#;

fn round(tool: &str, arguments: &str, state: &str) -> Call {
    let call = Call::tool(tool, arguments);
    let body = String::from_utf8(call.body.to_vec()).unwrap();
    let members = format!(r#""requestState":"{state}","inputResponses":{{}},"name""#);
    call.saying(body.replace(r#""name""#, &members))
}

fn asks() -> Turn {
    let mut response = Response::new(Full::<Bytes>::from(ASKS));
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    Turn::Answer(response)
}

// D-11
#[tokio::test]
async fn a_layer_lets_through_the_round_its_service_asked_for_and_no_other() {
    let house = House::open();
    house.inside.next(asks());
    let asked = house.send(&Call::tool("execute_trade", TRADE).signed("trade-asks-1")).await;
    assert_eq!((asked.status.as_u16(), asked.json()["result"]["requestState"].as_str()), (200, Some("one")));
    for (what, wrong, status, error) in [
        (
            "never asked",
            round("execute_trade", TRADE, "two").signed("trade-asks-1"),
            403,
            "continuation_refused",
        ),
        (
            "another call's",
            round("execute_trade", TRADE, "one").signed("trade-asks-2"),
            403,
            "continuation_refused",
        ),
        (
            "other arguments",
            round("execute_trade", "{}", "one").signed("trade-asks-1"),
            403,
            "operation_mismatch",
        ),
        ("another tool", round("get_positions", "{}", "one"), 401, "insufficient_authorization"),
    ] {
        let answer = house.send(&wrong).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]), (status, &json!(error)), "{what}");
    }
    assert_eq!(house.inside.count(), 1);
    let honest = round("execute_trade", TRADE, "one").signed("trade-asks-1");
    assert_eq!(house.send(&honest).await.status, 200);
    assert_eq!(house.inside.got.lock().unwrap()[1].body(), &honest.body);
    let again = house.send(&round("execute_trade", TRADE, "one").signed("trade-asks-1")).await;
    assert_eq!((again.status.as_u16(), &again.json()["error"]), (403, &json!("continuation_refused")));
    assert_eq!((house.inside.count(), house.authority.rounds.lock().unwrap().len()), (2, 1));
}

// D-11: as events, the round is known before the agent can read that it was asked for.
#[tokio::test]
async fn an_event_that_asks_passes_when_her_authority_knows() {
    let house = House::open();
    let (tell, told) = tokio::sync::mpsc::channel(4);
    house.inside.next(Turn::Stream(told));
    tell.send("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"input_required\",")
        .await
        .unwrap();
    tell.send("\"requestState\":\"one\"}}\n\n").await.unwrap();
    let open = house.open_answer(Call::tool("execute_trade", TRADE).signed("trade-asks-1").request()).await;
    let mut body = open.into_body();
    let mut read = String::new();
    while !read.ends_with("\n\n") {
        let frame = http_body_util::BodyExt::frame(&mut body).await.unwrap().unwrap();
        read.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
    assert_eq!(house.authority.offered.lock().unwrap().len(), 1);
    assert_eq!(house.send(&round("execute_trade", TRADE, "one").signed("trade-asks-1")).await.status, 200);
}

// D-11
#[tokio::test]
async fn without_her_leave_a_round_is_refused() {
    let house = House::open();
    house.inside.next(asks());
    assert_eq!(house.send(&Call::tool("execute_trade", TRADE).signed("trade-1")).await.status, 200);
    let answer = house.send(&round("execute_trade", TRADE, "one").signed("trade-1")).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["error"]), (403, &json!("continuation_refused")));
    assert_eq!((house.inside.count(), house.authority.offered.lock().unwrap().len()), (1, 0));
}
