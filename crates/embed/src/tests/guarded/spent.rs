//! What a call costs at a server written with rmcp when its answer does not come, and what is said of it (D-14).

use super::*;

// D-14
#[tokio::test]
async fn a_tool_that_breaks_off_after_the_spend_is_reported() {
    let http = Http::open(Answers::Http);
    http.accounts.faulty.store(true, Ordering::SeqCst);
    let said = http.send(&trade().signed("trade-1")).await.json();
    let data = &said["error"]["data"];
    assert_eq!((&said["error"]["code"], &data["error"]), (&json!(-32002), &json!("upstream_failed")));
    assert_eq!(
        (&data["spent"], &data["forwarded"], &data["status"]),
        (&json!(true), &json!("unknown"), &json!(502))
    );
    assert_eq!(http.authority.reports.lock().unwrap()[0].tool.as_str(), "execute_trade");
    let said = http.send(&read().signed("reader")).await.json();
    assert!(said["error"]["data"].get("spent").is_none());
    assert_eq!(http.authority.reports.lock().unwrap().len(), 2);
}

// D-14: what a server refuses by the head of a request is refused before a grant is spent on it.
#[tokio::test]
async fn a_call_whose_answer_cannot_be_taken_costs_nothing() {
    for answers in [Answers::Http, Answers::JsonRpc] {
        let http = Http::open(answers);
        for accept in [
            None,
            Some("application/json"),
            Some("text/event-stream"),
            Some("*/*"),
            Some("application/json, text/event-stream;q=0"),
            Some("application/jsonx, text/event-stream"),
        ] {
            let call = trade().without("accept");
            let call = accept.map_or(call.clone(), |accept| call.with("accept", accept)).signed("trade-1");
            let answer = http.send(&call).await;
            let said = answer.json();
            let (data, status) = match answers {
                Answers::Http => (&said, 400),
                Answers::JsonRpc => (&said["error"]["data"], 200),
            };
            assert_eq!(
                (answer.status.as_u16(), &data["error"]),
                (status, &json!("invalid_request")),
                "{said}"
            );
            assert!(http.did().is_empty());
            http.authority.assert_untouched("an answer nobody could take");
        }
        let spelled = trade()
            .without("accept")
            .with("accept", "Text/Event-Stream;q=0.5")
            .with("accept", "APPLICATION/json");
        assert_eq!(http.send(&spelled.signed("trade-1")).await.status, 200);
        assert_eq!(http.did(), ["execute_trade"]);
    }
}

// D-14: what the server refuses all the same, without running it, is told to the agent and to her record.
#[tokio::test]
async fn a_call_the_server_turned_away_after_the_spend_is_said_to_be_spent() {
    for answers in [Answers::Http, Answers::JsonRpc] {
        let http = Http::open(answers);
        // rmcp takes an older client's call in a session alone.
        let arguments: Value = serde_json::from_str(TRADE).unwrap();
        let call =
            || Call::older_request("tools/call", &json!({ "name": "execute_trade", "arguments": arguments }));
        let answer = http.send(&call().signed("trade-1")).await;
        let said = answer.json();
        let (data, status) = match answers {
            Answers::Http => (&said, 502),
            Answers::JsonRpc => (&said["error"]["data"], 200),
        };
        assert_eq!(
            (answer.status.as_u16(), &data["error"]),
            (status, &json!("upstream_failed")),
            "{answer:?}"
        );
        assert_eq!((&data["spent"], &data["forwarded"]), (&json!(true), &json!("no")), "{said}");
        let reports = http.authority.reports.lock().unwrap().clone();
        let summary = reports[0].summary.as_deref().unwrap();
        assert_eq!((reports.len(), summary), (1, "the call was not run: the server turned its request away"));
        assert!(http.did().is_empty());
        // Where nothing was spent the server's own answer passes.
        let read = Call::older_request("tools/call", &json!({ "name": "get_positions", "arguments": {} }));
        let refused = http.send(&read.signed("reader")).await;
        assert!(refused.status.is_client_error() && refused.status != 502, "{refused:?}");
    }
}
