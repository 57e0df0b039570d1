//! Finding the endpoints: whose metadata is believed, for how long, and what happens without.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sayso_coaz::answer::AnswerFault;
use sayso_pdp::client::{NoMetadata, RemoteSettings};

use crate::engine::{Act, Engine, JSON, Seen, answer, asked, no_answer, ok, one, remote, several};

const YES: &str = r#"{"decision":true}"#;
const WELL_KNOWN: &str = "GET /.well-known/authzen-configuration";

/// An engine whose metadata is made from its own port, and which says yes at any endpoint.
async fn publishing(metadata: impl Fn(&str) -> Act + Send + Sync + 'static) -> Engine {
    Engine::start(move |seen| {
        if seen.line.starts_with("GET ") {
            return metadata(&format!("http://{}", seen.header("host").unwrap()));
        }
        Act::Say(yes(seen))
    })
    .await
}

fn yes(seen: &Seen) -> Vec<u8> {
    let entries = seen.body.matches(r#""resource""#).count();
    let list = format!(r#"{{"evaluations":[{}]}}"#, vec![YES; entries].join(","));
    ok(if seen.body.contains("evaluations") { &list } else { YES })
}

fn document(identifier: &str, host: &str) -> String {
    format!(
        r#"{{"policy_decision_point":"{identifier}","access_evaluation_endpoint":"{host}/e/one","access_evaluations_endpoint":"{host}/e/many","signed_metadata":"x","capabilities":["urn:x"]}}"#
    )
}

// AZ-01, AZ-02
#[tokio::test]
async fn the_metadata_names_the_endpoints() {
    for (path, well_known) in [
        ("", WELL_KNOWN.to_owned()),
        ("/t1", format!("{WELL_KNOWN}/t1")),
        ("/t1/", format!("{WELL_KNOWN}/t1")),
        ("/a/b", format!("{WELL_KNOWN}/a/b")),
    ] {
        let engine = publishing(move |host| Act::Say(ok(&document(&format!("{host}{path}"), host)))).await;
        let remote = remote(&engine.identified(path));
        assert_eq!(remote.prepare().await, Ok(()));
        assert_eq!(asked(&remote, &one()).await, Ok(()), "{path}");
        assert_eq!(asked(&remote, &several(&["1", "2"], None)).await, Ok(()), "{path}");
        assert_eq!(
            engine.lines(),
            [well_known.as_str(), "POST /e/one", "POST /e/many"],
            "kept, and asked once"
        );
    }
}

// AZ-03, AZ-05, COAZ-FW-28, COAZ-MCP-21
#[tokio::test]
async fn metadata_of_another_or_without_an_endpoint_is_not_used() {
    let with = |text: &'static str| move |host: &str| text.replace("HOST", host);
    type Make = Box<dyn Fn(&str) -> String + Send + Sync>;
    let cases: Vec<(Make, NoMetadata)> = vec![
        (Box::new(|host| document(&format!("{host}/"), host)), NoMetadata::Identifier),
        (Box::new(|host| document(&host.to_uppercase(), host)), NoMetadata::Identifier),
        (Box::new(|host| document("https://evil.example.test", host)), NoMetadata::Identifier),
        (Box::new(with(r#"{"access_evaluation_endpoint":"HOST/e/one"}"#)), NoMetadata::Identifier),
        (
            Box::new(with(r#"{"policy_decision_point":["HOST"],"access_evaluation_endpoint":"HOST/o"}"#)),
            NoMetadata::Identifier,
        ),
        (Box::new(with(r#"{"policy_decision_point":"HOST"}"#)), NoMetadata::NoEvaluation),
        (
            Box::new(with(r#"{"policy_decision_point":"HOST","access_evaluations_endpoint":"HOST/m"}"#)),
            NoMetadata::NoEvaluation,
        ),
        (
            Box::new(with(
                r#"{"policy_decision_point":"HOST","access_evaluation_endpoint":"http://pdp.test/o"}"#,
            )),
            NoMetadata::Endpoint("access_evaluation_endpoint"),
        ),
        (
            Box::new(with(r#"{"policy_decision_point":"HOST","access_evaluation_endpoint":"/o"}"#)),
            NoMetadata::Endpoint("access_evaluation_endpoint"),
        ),
        (
            Box::new(with(
                r#"{"policy_decision_point":"HOST","access_evaluation_endpoint":"HOST/o","access_evaluations_endpoint":null}"#,
            )),
            NoMetadata::Endpoint("access_evaluations_endpoint"),
        ),
        (
            Box::new(with(
                r#"{"policy_decision_point":"x","policy_decision_point":"HOST","access_evaluation_endpoint":"HOST/o"}"#,
            )),
            NoMetadata::NotJson,
        ),
        (Box::new(with("<html>")), NoMetadata::NotJson),
        (Box::new(with("[]")), NoMetadata::Identifier),
    ];
    for (make, expected) in cases {
        let example = make("HOST");
        let engine = publishing(move |host| Act::Say(ok(&make(host)))).await;
        let remote = remote(&engine.identified(""));
        assert_eq!(remote.prepare().await, Err(expected), "{example}");
        assert!(!expected.passes(), "a start should fail");
        assert_eq!(asked(&remote, &one()).await, no_answer(AnswerFault::None), "{example}");
        assert!(engine.lines().iter().all(|line| line == WELL_KNOWN), "{example}");
    }
}

// AZ-06, AZ-07, EVS-20
#[tokio::test]
async fn without_metadata_there_are_default_paths_and_after_a_fault_there_are_none() {
    let none = publishing(|_| Act::Say(answer(404, "", ""))).await;
    let remote = remote(&none.identified("/t1"));
    assert_eq!(asked(&remote, &one()).await, Ok(()));
    assert_eq!(asked(&remote, &several(&["1", "2"], None)).await, Ok(()));
    let expected =
        [&format!("{WELL_KNOWN}/t1"), "POST /t1/access/v1/evaluation", "POST /t1/access/v1/evaluations"];
    assert_eq!(none.lines(), expected);

    for status in [500, 503, 401, 403, 429, 302, 204, 410] {
        let engine = publishing(move |_| Act::Say(answer(status, JSON, "{}"))).await;
        let remote = crate::engine::remote(&engine.identified(""));
        assert_eq!(remote.prepare().await, Err(NoMetadata::Status(status)));
        assert_eq!(asked(&remote, &one()).await, no_answer(AnswerFault::None), "{status}");
        assert!(engine.lines().iter().all(|line| line == WELL_KNOWN), "{status}");
    }
    let slow = publishing(|_| Act::Hang).await;
    let settings = RemoteSettings { time_limit: Duration::from_millis(300), ..slow.identified("") };
    let remote = crate::engine::remote(&settings);
    assert!(remote.prepare().await.unwrap_err().passes());
    assert_eq!(asked(&remote, &one()).await, no_answer(AnswerFault::None));
    let huge = format!(r#"{{"policy_decision_point":"{}"}}"#, "x".repeat(64 << 10));
    let huge = publishing(move |_| Act::SayAndClose(ok(&huge))).await;
    assert!(crate::engine::remote(&huge.identified("")).prepare().await.is_err());
}

// EVS-20, EVS-21
#[tokio::test]
async fn a_guessed_endpoint_that_is_not_there_is_asked_once() {
    for status in [404, 405, 501] {
        let engine = Engine::start(move |seen| match &*seen.line {
            line if line.starts_with("GET") => Act::Say(answer(404, "", "")),
            line if line.contains("/evaluations") => Act::Say(answer(status, "", "")),
            _ => Act::Say(ok(YES)),
        })
        .await;
        let remote = remote(&engine.identified(""));
        for _ in 0..2 {
            assert_eq!(asked(&remote, &several(&["1"], None)).await, Ok(()));
        }
        let expected = [
            WELL_KNOWN,
            "POST /access/v1/evaluations",
            "POST /access/v1/evaluation",
            "POST /access/v1/evaluation",
        ];
        assert_eq!(engine.lines(), expected, "{status}");
    }
    for status in [400, 403, 500, 503] {
        let engine = Engine::start(move |seen| {
            Act::Say(answer(if seen.line.starts_with("GET") { 404 } else { status }, "", ""))
        })
        .await;
        let remote = remote(&engine.identified(""));
        assert_eq!(asked(&remote, &several(&["1"], None)).await, no_answer(AnswerFault::Status));
        assert_eq!(engine.lines().len(), 2, "{status}: no fallback");
    }
}

// EVS-17
#[tokio::test]
async fn metadata_without_the_endpoint_means_one_at_a_time() {
    let engine = publishing(|host| {
        let text = format!(r#"{{"policy_decision_point":"{host}","access_evaluation_endpoint":"{host}/o"}}"#);
        Act::Say(ok(&text))
    })
    .await;
    assert_eq!(asked(&remote(&engine.identified("")), &several(&["1", "2"], None)).await, Ok(()));
    assert_eq!(engine.lines(), [WELL_KNOWN, "POST /o", "POST /o"]);
}

/// An engine whose n-th metadata is the n-th of these, the last for ever.
async fn changing(answers: Vec<fn(&str) -> Vec<u8>>) -> (Engine, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let looks = count.clone();
    let engine = publishing(move |host| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        Act::Say(answers[number.min(answers.len() - 1)](host))
    })
    .await;
    (engine, looks)
}

fn for_four_seconds(host: &str) -> Vec<u8> {
    answer(200, &format!("cache-control: max-age=4\r\n{JSON}"), &document(host, host))
}

// AZ-07, AZ-08
#[tokio::test]
async fn metadata_is_renewed_and_a_good_copy_lasts_to_its_end() {
    let (engine, looks) = changing(vec![for_four_seconds, |_| answer(500, "", "")]).await;
    let remote = remote(&RemoteSettings { faults: 100, ..engine.identified("") });
    assert_eq!(asked(&remote, &one()).await, Ok(()));
    tokio::time::sleep(Duration::from_millis(3200)).await;
    assert_eq!(looks.load(Ordering::SeqCst), 1, "not before it is due");
    assert_eq!(asked(&remote, &one()).await, Ok(()), "the copy is good while it is renewed");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(looks.load(Ordering::SeqCst), 2);
    assert_eq!(asked(&remote, &one()).await, Ok(()), "and after that has failed");
    assert_eq!(looks.load(Ordering::SeqCst), 2, "which is not tried with every message");
    tokio::time::sleep(Duration::from_millis(1000)).await;
    assert_eq!(asked(&remote, &one()).await, no_answer(AnswerFault::None), "but not beyond its end");
}

// AZ-03, COAZ-FW-28
#[tokio::test]
async fn metadata_that_became_wrong_ends_the_good_copy() {
    let (engine, _) =
        changing(vec![for_four_seconds, |host| ok(&document("https://evil.example.test", host))]).await;
    let remote = remote(&engine.identified(""));
    assert_eq!(asked(&remote, &one()).await, Ok(()));
    tokio::time::sleep(Duration::from_millis(3200)).await;
    let _ = asked(&remote, &one()).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(asked(&remote, &one()).await, no_answer(AnswerFault::None));
}

#[tokio::test]
async fn one_looks_and_the_others_wait() {
    let engine = publishing(|host| {
        std::thread::sleep(Duration::from_millis(50));
        Act::Say(ok(&document(host, host)))
    })
    .await;
    let remote = Arc::new(remote(&engine.identified("")));
    let all = (0..20).map(|_| {
        let remote = remote.clone();
        tokio::spawn(async move { asked(&remote, &one()).await })
    });
    for one in all.collect::<Vec<_>>() {
        assert_eq!(one.await.unwrap(), Ok(()));
    }
    assert_eq!(engine.lines().iter().filter(|line| *line == WELL_KNOWN).count(), 1);
}

// AZ-04, AZ-11
#[tokio::test]
async fn our_credential_is_not_shown_to_a_host_that_only_the_metadata_names() {
    let other = Engine::start(|seen| Act::Say(yes(seen))).await;
    let elsewhere = other.url("");
    let engine = publishing(move |host| Act::Say(ok(&document(host, &elsewhere)))).await;
    let plain = RemoteSettings { bearer: Some("our-own".to_owned()), ..engine.identified("") };
    assert_eq!(asked(&remote(&plain), &one()).await, Ok(()));
    let allowed = RemoteSettings { credential_origins: vec![other.url("")], ..plain };
    assert_eq!(asked(&remote(&allowed), &one()).await, Ok(()));
    let shown: Vec<_> =
        other.seen().iter().map(|seen| seen.header("authorization").map(str::to_owned)).collect();
    assert_eq!(shown, [None, Some("Bearer our-own".to_owned())]);
    assert!(engine.seen().iter().all(|seen| seen.header("authorization").is_none()), "nor with the GET");
}
