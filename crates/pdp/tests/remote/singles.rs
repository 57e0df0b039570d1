//! Several decisions from an engine that makes one at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sayso_coaz::Why;
use sayso_coaz::answer::AnswerFault;
use sayso_coaz::authzen::{Evaluation, Request};
use sayso_pdp::client::RemoteSettings;

use crate::engine::{
    Act, Engine, JSON, Seen, answer, asked, decisions, denied, json, no_answer, ok, remote, several,
};

/// An engine that denies, fails, or permits by the resource's id.
fn by_name(seen: &Seen) -> Act {
    let has = |name: &str| seen.body.contains(&format!(r#""id":"{name}""#));
    if has("no") {
        Act::Say(ok(r#"{"decision":false}"#))
    } else if has("broken") {
        Act::Say(answer(500, JSON, "{}"))
    } else if has("odd") {
        Act::Say(ok("{}"))
    } else {
        Act::Say(ok(r#"{"decision":true}"#))
    }
}

async fn engine() -> (Engine, RemoteSettings) {
    let engine = Engine::start(by_name).await;
    let settings = RemoteSettings { evaluations_endpoint: None, ..engine.configured() };
    (engine, settings)
}

// COAZ-FW-29, COAZ-FW-30, EVS-17, SUB-15
#[tokio::test]
async fn each_entry_is_asked_with_what_holds_for_all() {
    let (engine, settings) = engine().await;
    let request = r#"{"subject":{"type":"identity","id":"u-ann"},"action":{"name":"top"},"context":{"a":1},
        "evaluations":[{"resource":{"type":"r","id":"1"}},
                       {"resource":{"type":"r","id":"2"},"action":{"name":"own"},"context":{"b":2}}],
        "options":{"evaluations_semantic":"execute_all"}}"#;
    let request = sayso_coaz::authzen::Evaluations::read(&json(request)).unwrap();
    let request = Request::Evaluations(Box::new(request));
    assert_eq!(asked(&remote(&settings), &request).await, Ok(()));
    let mut seen = engine.seen();
    seen.sort_by_key(|seen| seen.header("x-request-id").unwrap().to_owned());
    let expected = [
        r#"{"subject":{"type":"identity","id":"u-ann"},"action":{"name":"top"},"resource":{"type":"r","id":"1"},"context":{"a":1}}"#,
        r#"{"subject":{"type":"identity","id":"u-ann"},"action":{"name":"own"},"resource":{"type":"r","id":"2"},"context":{"b":2}}"#,
    ];
    for (number, (seen, expected)) in seen.iter().zip(expected).enumerate() {
        assert_eq!(seen.line, "POST /one HTTP/1.1");
        assert_eq!(seen.header("x-request-id").unwrap(), format!("id-1-{}", number + 1));
        assert_eq!(Evaluation::read(&json(&seen.body)), Evaluation::read(&json(expected)));
        assert!(!seen.body.contains("evaluations") && !seen.body.contains("options"));
    }
    assert_eq!(seen.len(), 2);
}

// EVS-18, EVS-19, COAZ-FW-29, COAZ-MCP-22
#[tokio::test]
async fn the_first_that_is_no_yes_decides() {
    let none = |fault| no_answer(fault);
    let cases: [(&[&str], Result<(), sayso_coaz::Fault>); 8] = [
        (&["1", "2", "3"], Ok(())),
        (&["1", "no", "3"], denied()),
        (&["no", "no"], denied()),
        (&["1", "broken"], none(AnswerFault::Status)),
        (&["odd", "1"], none(AnswerFault::NotADecision)),
        (&["broken", "no"], none(AnswerFault::Status)),
        (&["no", "broken"], denied()),
        (&["1", "no", "odd"], denied()),
    ];
    for (names, expected) in cases {
        for semantic in [None, Some("execute_all"), Some("deny_on_first_deny")] {
            let (_engine, settings) = engine().await;
            let request = several(names, semantic);
            assert_eq!(asked(&remote(&settings), &request).await, expected, "{names:?} {semantic:?}");
        }
    }
}

// EVS-13
#[tokio::test]
async fn a_request_that_ends_with_the_first_no_asks_no_further() {
    let (engine, settings) = engine().await;
    let request = several(&["1", "no", "3", "4"], Some("deny_on_first_deny"));
    let answer = decisions(&remote(&settings), &request).await.unwrap();
    assert_eq!(answer.each().iter().map(|it| it.decision).collect::<Vec<_>>(), [true, false]);
    assert_eq!(engine.lines().len(), 2);
    let (engine, settings) = self::engine().await;
    let request = several(&["1", "no", "3", "4"], Some("execute_all"));
    let answer = decisions(&remote(&settings), &request).await.unwrap();
    assert_eq!(answer.each().iter().map(|it| it.decision).collect::<Vec<_>>(), [true, false, true, true]);
    assert_eq!(engine.lines().len(), 4);
}

// EVS-07, EVS-15, EVS-16, EVS-22
#[tokio::test]
async fn what_cannot_be_answered_is_not_asked() {
    let (engine, settings) = engine().await;
    let remote = remote(&settings);
    for semantic in ["permit_on_first_permit", "whatever"] {
        let fault = asked(&remote, &several(&["1", "2"], Some(semantic))).await.unwrap_err();
        assert_eq!(fault.why, Why::Semantic, "{semantic}");
    }
    assert_eq!(asked(&remote, &several(&[], None)).await, no_answer(AnswerFault::Count));
    let many: Vec<&str> = vec!["1"; settings.most_singles + 1];
    assert_eq!(asked(&remote, &several(&many, None)).await, no_answer(AnswerFault::None));
    assert_eq!(engine.lines().len(), 0);
    assert_eq!(asked(&remote, &several(&many[1..], None)).await, Ok(()));
    assert_eq!(engine.lines().len(), settings.most_singles, "equal entries are asked one by one, too");
}

#[tokio::test]
async fn only_so_many_are_asked_at_once() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (up, high) = (now.clone(), most.clone());
    let engine = Engine::start(move |_| {
        high.fetch_max(up.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(5));
        up.fetch_sub(1, Ordering::SeqCst);
        Act::Say(ok(r#"{"decision":true}"#))
    })
    .await;
    let settings = RemoteSettings {
        evaluations_endpoint: None,
        singles_at_once: 3,
        time_limit: Duration::from_secs(10),
        ..engine.configured()
    };
    assert_eq!(asked(&remote(&settings), &several(&["1"; 30], None)).await, Ok(()));
    assert!(engine.connections() <= 3, "{}", engine.connections());
}
