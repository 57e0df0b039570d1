//! What would carry a result out beside its approval, or change what was approved, at every host that sees HTTP: rounds
//! that follow, tasks, and what she did not see.

use super::authority::Stub;
use super::standing::{self, Standing, TRADE, grant, one_trade, reading, signed, with};
use super::vectors::STAGE;
use bytes::Bytes;
use futures::future::join_all;
use http::Request;
use sayso_enforce::Authority;
use serde_json::{Value, json};
use std::sync::Arc;

const STATE: &str = r#","requestState":"where it stood""#;
const ANSWERS: &str = r#","inputResponses":{"sure":{"action":"accept","content":{"sure":true}}}"#;

async fn hosts(introspection: &Value) -> (Arc<Stub>, Vec<Standing>) {
    let authority = Stub::granting(introspection);
    let hosts = standing::all(&STAGE, &(Arc::clone(&authority) as Arc<dyn Authority>)).await;
    (authority, hosts)
}

fn spent(authority: &Stub) -> usize {
    authority.asked().iter().filter(|asked| *asked == "consume").count()
}

fn trade(arguments: &str, more: &str) -> Request<Bytes> {
    signed(standing::call("execute_trade", arguments, more))
}

// D-10, D-11: by default no round follows a call that was approved once, however many come at once.
#[tokio::test]
async fn of_sixteen_rounds_that_follow_at_once_none_passes_any_host() {
    let (authority, hosts) = hosts(&one_trade()).await;
    for host in &hosts {
        let shapes = [STATE.to_owned(), ANSWERS.to_owned(), format!("{STATE}{ANSWERS}")];
        let rounds = (0..16).map(|nth| host.send(trade(TRADE, &shapes[nth % 3])));
        for (nth, answer) in join_all(rounds).await.into_iter().enumerate() {
            // Answers to nothing cannot be told from anybody's.
            let wanted = if nth % 3 == 1 { ("invalid_request", 400) } else { ("continuation_refused", 403) };
            let said = (answer.error(), answer.refused_with());
            assert_eq!(said, (wanted.0.into(), wanted.1), "{}: {answer:?}", host.name);
        }
        assert_eq!((host.reached(), spent(&authority)), (0, 0), "{}", host.name);
    }
}

// D-11: beside the one call that was approved, none of them gets there either.
#[tokio::test]
async fn rounds_that_race_the_call_they_follow_gain_nothing() {
    for nth in 0..5 {
        let (authority, hosts) = hosts(&one_trade()).await;
        let host = &hosts[nth];
        let more = format!("{STATE}{ANSWERS}");
        let first = host.send(trade(TRADE, ""));
        let rounds = join_all((0..16).map(|_| host.send(trade(TRADE, &more))));
        let (_, rounds) = tokio::join!(first, rounds);
        assert!(rounds.iter().all(|answer| answer.error() == "continuation_refused"), "{}", host.name);
        assert_eq!((host.reached(), spent(&authority)), (1, 1), "{}", host.name);
    }
}

// CORE-88, CORE-89, D-10, D-11: what she approved is what is called, and nothing is said beside it.
#[tokio::test]
async fn no_round_changes_what_she_approved() {
    let marked = |meta: &str| {
        let mut request = standing::call("execute_trade", TRADE, "");
        let text = String::from_utf8(request.body().to_vec()).unwrap();
        *request.body_mut() = text.replacen(r#""_meta":{"#, &format!(r#""_meta":{{{meta},"#), 1).into();
        signed(request)
    };
    let headed = |name: &str| {
        let mut request = trade(TRADE, "");
        with(&mut request, name, "9000");
        request
    };
    let (authority, hosts) = hosts(&one_trade()).await;
    for host in &hosts {
        for (what, request, error, status) in [
            ("other arguments", trade(r#"{"symbol":"VTI","quantity":4}"#, ""), "operation_mismatch", 403),
            ("none", trade("{}", ""), "operation_mismatch", 403),
            (
                "another tool",
                signed(standing::call("get_positions", "{}", "")),
                "insufficient_authorization",
                401,
            ),
            ("a state", trade(TRADE, STATE), "continuation_refused", 403),
            ("answers", trade(TRADE, ANSWERS), "invalid_request", 400),
            ("answers to other arguments", trade(r#"{"quantity":4}"#, ANSWERS), "invalid_request", 400),
            ("something more", trade(TRADE, r#","also":"sell""#), "invalid_request", 400),
            ("something more in _meta", marked(r#""com.example/also":"sell""#), "invalid_request", 400),
            ("a header of MCP's", headed("mcp-param-quantity"), "invalid_request", 400),
        ] {
            let answer = host.send(request).await;
            let said = (answer.error(), answer.refused_with());
            assert_eq!(said, (error.into(), status), "{what} at {}: {answer:?}", host.name);
            assert_eq!((host.reached(), spent(&authority)), (0, 0), "{what} at {}", host.name);
        }
        // The order of members is no change.
        host.send(trade(r#"{"quantity":3,"symbol":"VTI"}"#, "")).await;
        assert_eq!((host.reached(), spent(&authority)), (1, 1), "{}", host.name);
        assert!(authority.forget().contains(&"consume".to_owned()));
    }
}

// D-11: what a tool does not say of itself its grant does.
#[tokio::test]
async fn a_grant_for_one_call_takes_no_rounds_at_a_tool_nobody_marked() {
    let digest = "s256:RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o";
    let operation = json!({ "tool": "get_positions", "params_s256": digest });
    let once = grant(&standing::agent(), "get_positions", "positions:read", Some(operation));
    let (authority, hosts) = hosts(&once).await;
    for host in &hosts {
        for (more, error, status) in [
            (STATE, "continuation_refused", 403),
            (ANSWERS, "invalid_request", 400),
            (r#","also":1"#, "invalid_request", 400),
        ] {
            let answer = host.send(signed(standing::call("get_positions", "{}", more))).await;
            let said = (answer.error(), answer.refused_with());
            assert_eq!(said, (error.into(), status), "{more} at {}: {answer:?}", host.name);
        }
        assert_eq!((host.reached(), spent(&authority)), (0, 0), "{}", host.name);
    }
}

// D-12, MCP-06: no result leaves as a task's, and no task is begun, asked about or ended.
#[tokio::test]
async fn no_task_carries_a_result_out_of_any_host() {
    let declaring = |tool: &str, arguments: &str| {
        let mut request = standing::call(tool, arguments, "");
        let text = String::from_utf8(request.body().to_vec()).unwrap();
        let (none, some) = (
            r#""io.modelcontextprotocol/clientCapabilities":{}"#,
            r#""io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
        );
        assert!(text.contains(none));
        *request.body_mut() = text.replacen(none, some, 1).into();
        signed(request)
    };
    for introspection in [one_trade(), reading()] {
        let (authority, hosts) = hosts(&introspection).await;
        for host in &hosts {
            let status = if host.is_asked() { 403 } else { 400 };
            for request in [
                declaring("execute_trade", TRADE),
                declaring("get_positions", "{}"),
                trade(TRADE, r#","task":{"ttl":1000}"#),
                signed(standing::call("get_positions", "{}", r#","task":{}"#)),
            ] {
                let answer = host.send(request).await;
                let said = (answer.error(), answer.refused_with());
                assert_eq!(said, ("task_not_served".into(), status), "{}: {answer:?}", host.name);
            }
            // Only those of this revision are named in a header.
            for (method, named) in [
                ("tasks/get", Some("t")),
                ("tasks/update", Some("t")),
                ("tasks/cancel", Some("t")),
                ("tasks/result", None),
                ("tasks/list", None),
            ] {
                let params = format!(r#"{{"taskId":"t","_meta":{}}}"#, standing::META);
                let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
                let answer = host.send(signed(standing::posted(method, named, body))).await;
                let said = (answer.status, &answer.json()["error"]["code"].clone(), answer.error());
                assert_eq!(
                    said,
                    (404, &(-32601).into(), "unknown_method".into()),
                    "{method} at {}",
                    host.name
                );
            }
            assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{}", host.name);
        }
    }
}

// D-14: one grant, sixteen calls signed each for itself: the statement that spends it says who won.
#[tokio::test]
async fn of_sixteen_calls_on_one_grant_each_is_spent_or_refused() {
    let (authority, hosts) = hosts(&one_trade()).await;
    for host in &hosts {
        let before = spent(&authority);
        join_all((0..16).map(|_| host.send(trade(TRADE, "")))).await;
        // The stub says yes to each; as many got there as were spent, and none without.
        assert_eq!(host.reached(), spent(&authority) - before, "{}", host.name);
    }
}

// D-14: a server may refuse a call by its head, and nothing of that would show that a grant was spent for it.
#[tokio::test]
async fn a_call_whose_answer_cannot_be_taken_costs_nothing_at_any_host() {
    let (authority, hosts) = hosts(&one_trade()).await;
    for host in &hosts {
        for accept in [None, Some("application/json"), Some("text/event-stream"), Some("*/*")] {
            let mut request = standing::call("execute_trade", TRADE, "");
            request.headers_mut().remove("accept");
            if let Some(accept) = accept {
                with(&mut request, "accept", accept);
            }
            let answer = host.send(signed(request)).await;
            let said = (answer.error(), answer.refused_with());
            assert_eq!(said, ("invalid_request".into(), 400), "{accept:?} at {}: {answer:?}", host.name);
            assert_eq!((host.reached(), spent(&authority)), (0, 0), "{accept:?} at {}", host.name);
        }
    }
}
