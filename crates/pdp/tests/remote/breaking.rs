//! The engine that is not there, and the one that comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sayso_coaz::Category;
use sayso_coaz::answer::AnswerFault;
use sayso_coaz::authzen::Request;
use sayso_pdp::client::RemoteSettings;

use crate::engine::{Act, Engine, JSON, answer, asked, no_answer, ok, one, remote};

fn quick(engine: &Engine) -> RemoteSettings {
    RemoteSettings {
        time_limit: Duration::from_millis(500),
        faults: 3,
        pause: Duration::from_millis(400),
        ..engine.configured()
    }
}

#[tokio::test]
async fn an_engine_without_answers_is_left_alone_and_then_tried_by_one() {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = up.clone();
    let engine = Engine::start(move |_| {
        if is_up.load(Ordering::SeqCst) { Act::Say(ok(r#"{"decision":true}"#)) } else { Act::Hang }
    })
    .await;
    let remote = Arc::new(remote(&quick(&engine)));
    for _ in 0..3 {
        assert_eq!(asked(&remote, &one()).await, no_answer(AnswerFault::None));
    }
    let begun = Instant::now();
    for _ in 0..100 {
        let fault = asked(&remote, &one()).await.unwrap_err();
        assert_eq!(fault.category(), Category::Policy, "refused, and never let through");
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "at once: {:?}", begun.elapsed());
    assert_eq!(engine.lines().len(), 3);

    tokio::time::sleep(Duration::from_millis(450)).await;
    let probes = (0..10).map(|_| {
        let remote = remote.clone();
        tokio::spawn(async move { asked(&remote, &one()).await })
    });
    let probes: Vec<_> = probes.collect();
    for probe in probes {
        assert_eq!(probe.await.unwrap(), no_answer(AnswerFault::None));
    }
    assert_eq!(engine.lines().len(), 4, "one asks for everybody");

    up.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(450)).await;
    for _ in 0..5 {
        assert_eq!(asked(&remote, &one()).await, Ok(()));
    }
}

// COAZ-FW-42, COAZ-MCP-80, COAZ-MCP-85: what it answers is about one message, and that one is refused.
#[tokio::test]
async fn only_an_engine_that_seems_down_is_left_alone() {
    for (status, body, left) in [
        (502, "", true),
        (503, "", true),
        (504, "", true),
        (429, "", false),
        (500, "", false),
        (501, "", false),
        (505, "", false),
        (599, "", false),
        (400, "", false),
        (403, "", false),
        (404, "", false),
        (302, "", false),
        (200, "<html>", false),
        (200, r#"{"decision":1}"#, false),
        (200, r#"{"decision":false}"#, false),
    ] {
        let engine = Engine::saying(Act::Say(answer(status, JSON, body))).await;
        let settings = RemoteSettings { pause: Duration::from_secs(60), ..quick(&engine) };
        let remote = remote(&settings);
        for _ in 0..6 {
            asked(&remote, &one()).await.unwrap_err();
        }
        let expected = if left { 3 } else { 6 };
        assert_eq!(engine.lines().len(), expected, "{status} {body}");
    }
}

// COAZ-MCP-80
#[tokio::test]
async fn messages_an_engine_chokes_on_leave_those_of_others_alone() {
    let engine = Engine::start(|request| {
        Act::Say(if request.body.contains("u-eve") {
            answer(500, JSON, "")
        } else {
            ok(r#"{"decision":true}"#)
        })
    })
    .await;
    let remote = remote(&RemoteSettings { pause: Duration::from_secs(60), ..quick(&engine) });
    let of = |who: &str| {
        let mut request = one();
        if let Request::Evaluation(one) = &mut request {
            who.clone_into(&mut one.subject.id);
        }
        request
    };
    for _ in 0..10 {
        assert_eq!(asked(&remote, &of("u-eve")).await, no_answer(AnswerFault::Status));
        assert_eq!(asked(&remote, &of("u-ann")).await, Ok(()));
    }
    for _ in 0..10 {
        assert_eq!(asked(&remote, &of("u-eve")).await, no_answer(AnswerFault::Status));
    }
    assert_eq!(asked(&remote, &of("u-ann")).await, Ok(()));
}
