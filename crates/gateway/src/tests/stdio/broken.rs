//! Children that die, hang, cannot be started, or answer what cannot be passed on.

use super::{Fixture, habit, is_alive, legacy, read, said, trade, until_gone};
use crate::tests::cast::{Canary, House};
use crate::tests::wire::{Request, Response};
use crate::{StdioCommand, Upstream};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

fn assert_unknown(response: &Response) {
    let body = response.json();
    assert_eq!((response.status, &body["error"]), (502, &json!("upstream_failed")), "{body}");
    assert_eq!(body["forwarded"], "unknown");
}

// D-14, D-31
#[tokio::test]
async fn everybody_in_flight_is_told_and_nobody_is_sent_again() {
    let fixture = Fixture::with("");
    let house = Arc::new(fixture.house().await);
    let waiting: Vec<_> = (0..5)
        .map(|nth| {
            let house = Arc::clone(&house);
            tokio::spawn(async move { house.send(&read(&json!({ "habit": "hang", "nth": nth }))).await })
        })
        .collect();
    while fixture.heard_calls().len() < 5 {
        sleep(Duration::from_millis(20)).await;
    }
    assert_unknown(&house.send(&habit("die")).await);
    for caller in waiting {
        assert_unknown(&timeout(Duration::from_secs(5), caller).await.unwrap().unwrap());
    }
    assert!(said(&house.send(&habit("echo")).await).contains("echo"));
    // Six calls before the end and one after it.
    assert_eq!(fixture.heard_calls().len(), 7);
    assert_eq!(fixture.pids().len(), 2);
}

// D-14
#[tokio::test]
async fn a_death_after_spending_is_told_and_recorded() {
    let fixture = Fixture::with("--trade die");
    let house = fixture.house().await;
    let response = house.send(&trade().signed("trade-1")).await;
    assert_unknown(&response);
    assert_eq!(response.json()["spent"], true);
    assert_eq!(fixture.heard_calls().len(), 1);
    let reports = house.authority.reports.lock().unwrap().clone();
    assert!(reports.len() == 1 && reports[0].summary.as_ref().unwrap().contains("not known"));
}

#[tokio::test]
async fn a_death_in_the_middle_of_a_stream_ends_it_with_a_refusal() {
    let fixture = Fixture::with("");
    let house = fixture.house().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": "p",
    });
    let params =
        json!({ "name": "get_positions", "arguments": { "habit": "progress_then_die" }, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": "z", "method": "tools/call", "params": params }).to_string();
    let response =
        house.send(&Request::post("tools/call", Some("get_positions"), body).signed("reader")).await;
    let text = String::from_utf8(response.body).unwrap();
    let last = text.trim().rsplit("data: ").next().unwrap();
    let last: serde_json::Value = serde_json::from_str(last).unwrap();
    assert_eq!((&last["id"], &last["error"]["data"]["error"]), (&json!("z"), &json!("upstream_failed")));
    assert_eq!(last["error"]["data"]["forwarded"], "unknown");
}

#[tokio::test]
async fn an_answer_too_long_or_unreadable_is_told_and_hurts_nobody_else() {
    let fixture = Fixture::with("");
    let house = Arc::new(fixture.house().await);
    let patient = tokio::spawn({
        let house = Arc::clone(&house);
        async move { house.send(&read(&json!({ "habit": "sleep", "seconds": 2 }))).await }
    });
    for name in ["big", "surrogate"] {
        let response = timeout(Duration::from_secs(20), house.send(&habit(name))).await.unwrap();
        assert_unknown(&response);
    }
    assert!(said(&patient.await.unwrap()).contains("seconds"));
    assert_eq!(fixture.pids().len(), 1);
}

// D-5, CORE-22
#[tokio::test]
async fn a_command_that_does_not_run_costs_nothing() {
    let command = StdioCommand::parse("/nonexistent/server --x", &[], |_| None).unwrap();
    let house = House::before(Arc::new(Canary::default()), command).await;
    let response = house
        .send(
            &legacy(
                "tools/call",
                &json!({ "name": "execute_trade", "arguments": { "symbol": "VTI", "quantity": 3 } }),
            )
            .signed("trade-1"),
        )
        .await;
    assert_eq!((response.status, response.json()["error"].as_str()), (503, Some("temporarily_unavailable")));
    house.assert_untouched("no child");
    let response = house.send(&legacy("tools/list", &json!({}))).await;
    let body = response.json();
    assert_eq!(
        (response.status, &body["error"], &body["forwarded"]),
        (502, &json!("upstream_failed"), &json!("no"))
    );
}

#[tokio::test]
async fn a_child_that_keeps_dying_is_not_started_without_pause() {
    let command = StdioCommand::parse("false", &[], |name| std::env::var_os(name)).unwrap();
    let upstream = Upstream::open(command).unwrap();
    let asked = std::time::Instant::now();
    assert!(upstream.survey().await.is_err());
    assert!(asked.elapsed() < Duration::from_secs(12));
}

#[tokio::test]
async fn the_child_and_its_own_children_end_with_the_upstream() {
    for options in ["--brood", "--brood --stubborn"] {
        let fixture = Fixture::with(options);
        let upstream = Upstream::open(fixture.command.clone()).unwrap();
        upstream.survey().await.unwrap();
        let pids = fixture.pids();
        assert!(pids.len() == 2 && pids.iter().all(|pid| is_alive(*pid)));
        drop(upstream);
        until_gone(&pids).await;
    }
}

#[tokio::test]
async fn what_a_dead_child_left_running_ends_too() {
    let fixture = Fixture::with("--brood");
    let house = fixture.house().await;
    assert_unknown(&house.send(&habit("die")).await);
    until_gone(&fixture.pids()[..2]).await;
}

#[test]
fn a_runtime_that_ends_takes_the_child_with_it() {
    let fixture = Fixture::with("--brood --stubborn");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let upstream = Upstream::open(fixture.command.clone()).unwrap();
    runtime.block_on(upstream.survey()).unwrap();
    let pids = fixture.pids();
    runtime.shutdown_timeout(Duration::from_secs(1));
    for _ in 0..200 {
        if !pids.iter().any(|pid| is_alive(*pid)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    panic!("still there: {pids:?}");
}
