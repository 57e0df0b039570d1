//! What is sent, to whom, and how often.

use sayso_coaz::authzen::{Evaluation, Evaluations, Request};
use sayso_coaz::{DecisionPoint, Why};
use sayso_pdp::client::{BadRemote, Identity, Remote, RemoteSettings};

use crate::engine::{Act, Engine, JSON, answer, asked, json, no_answer, ok, one, remote, several};
use sayso_coaz::answer::AnswerFault;

const YES: &str = r#"{"decision":true}"#;

// AZ-01, AZ-09, AZ-12, COAZ-FW-27, COAZ-MCP-73, EVS-01, EVS-02, EVS-03
#[tokio::test]
async fn each_envelope_goes_to_its_endpoint_as_it_is() {
    let engine = Engine::start(|seen| {
        let list = r#"{"evaluations":[{"decision":true}]}"#;
        Act::Say(ok(if seen.line.contains("/many") { list } else { YES }))
    })
    .await;
    let settings = RemoteSettings { bearer: Some("our-own".to_owned()), ..engine.configured() };
    let remote = remote(&settings);
    asked(&remote, &one()).await.unwrap();
    remote.decide(&several(&["7"], None), "id-2").await.unwrap();
    let seen = engine.seen();
    assert_eq!(engine.lines(), ["POST /one", "POST /many"]);
    for (seen, id) in seen.iter().zip(["id-1", "id-2"]) {
        assert_eq!(seen.header("content-type"), Some("application/json"));
        assert_eq!(seen.header("accept"), Some("application/json"));
        assert_eq!(seen.header("x-request-id"), Some(id));
        assert_eq!(seen.header("authorization"), Some("Bearer our-own"));
        assert!(seen.line.ends_with(" HTTP/1.1"));
    }
    let read = Evaluation::read(&json(&seen[0].body)).unwrap();
    assert_eq!(Request::Evaluation(Box::new(read)), one());
    let read = Evaluations::read(&json(&seen[1].body)).unwrap();
    assert_eq!(Request::Evaluations(Box::new(read)), several(&["7"], None));
    assert!(!seen[1].body.contains("options"));
    assert_eq!(engine.connections(), 1, "a connection is used again");
}

// AZ-10
#[tokio::test]
async fn another_request_id_in_the_answer_changes_nothing() {
    for echo in ["", "x-request-id: id-1\r\n", "x-request-id: another\r\n"] {
        let head = format!("{echo}{JSON}");
        let engine = Engine::saying(Act::Say(answer(200, &head, YES))).await;
        assert_eq!(asked(&remote(&engine.configured()), &one()).await, Ok(()), "{echo}");
    }
    let engine = Engine::saying(Act::Say(ok(YES))).await;
    let remote = remote(&engine.configured());
    remote.decide(&one(), "no\r\nheader").await.unwrap();
    assert_eq!(engine.seen()[0].header("x-request-id"), None, "what no header can carry is left away");
}

// AZ-16
#[tokio::test]
async fn a_connection_outlives_a_refusal_and_its_end_is_no_fault() {
    let engine = Engine::start(|seen| match seen.header("x-request-id") {
        Some("bad") => Act::Say(answer(500, JSON, "no")),
        Some("last") => Act::SayAndClose(ok(YES)),
        _ => Act::Say(ok(YES)),
    })
    .await;
    let remote = remote(&engine.configured());
    for id in ["good", "bad", "good", "last"] {
        let answered = remote.decide(&one(), id).await;
        assert_eq!(answered.is_ok(), id != "bad", "{id}");
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
    assert_eq!(engine.connections(), 1);
    assert!(remote.decide(&one(), "good").await.is_ok());
    assert_eq!(engine.connections(), 2);
}

// AZ-20
#[tokio::test]
async fn what_may_have_arrived_is_not_sent_again() {
    let engine = Engine::saying(Act::SayAndClose(Vec::new())).await;
    assert_eq!(asked(&remote(&engine.configured()), &one()).await, no_answer(AnswerFault::None));
    assert_eq!((engine.lines().len(), engine.connections()), (1, 1));
}

#[tokio::test]
async fn a_number_that_cannot_be_written_is_not_sent() {
    let engine = Engine::saying(Act::Say(ok(YES))).await;
    let text = r#"{"subject":{"type":"i","id":"u"},"action":{"name":"a"},"resource":{"type":"r","id":"1"},
        "context":{"n":1e999}}"#;
    let request = Request::Evaluation(Box::new(Evaluation::read(&json(text)).unwrap()));
    let fault = asked(&remote(&engine.configured()), &request).await.unwrap_err();
    assert_eq!(fault.why, Why::Number);
    assert_eq!(engine.connections(), 0);
}

fn fault(settings: &RemoteSettings) -> BadRemote {
    Remote::new(settings).err().unwrap()
}

// COAZ-FW-49, COAZ-MCP-86, AZ-05
#[test]
fn settings_that_cannot_be_asked_say_what_to_write() {
    let base = RemoteSettings { pdp: Some("https://pdp.test/t1".to_owned()), ..RemoteSettings::default() };
    assert!(Remote::new(&base).is_ok());
    let named = |pdp: &str, development| RemoteSettings {
        pdp: Some(pdp.to_owned()),
        development,
        ..RemoteSettings::default()
    };
    let endpoints = |one: Option<&str>, many: Option<&str>| RemoteSettings {
        evaluation_endpoint: one.map(str::to_owned),
        evaluations_endpoint: many.map(str::to_owned),
        ..RemoteSettings::default()
    };
    assert_eq!(fault(&RemoteSettings::default()), BadRemote::Nowhere);
    assert_eq!(fault(&endpoints(None, Some("https://pdp.test/m"))), BadRemote::Alone);
    assert_eq!(
        fault(&RemoteSettings { evaluation_endpoint: Some("https://pdp.test/o".into()), ..base.clone() }),
        BadRemote::Twice
    );
    assert_eq!(
        fault(&RemoteSettings { evaluations_endpoint: Some("https://pdp.test/m".into()), ..base.clone() }),
        BadRemote::Twice
    );
    for url in ["pdp.test", "", "ftp://pdp.test", "https://u:p@pdp.test", "https://pdp.test/#x", "https://"] {
        assert_eq!(fault(&named(url, true)), BadRemote::Url("pdp"), "{url}");
        assert_eq!(fault(&endpoints(Some(url), None)), BadRemote::Url("evaluation_endpoint"), "{url}");
    }
    assert_eq!(fault(&named("https://pdp.test/?t=1", false)), BadRemote::Query);
    for (url, development) in [
        ("http://pdp.test", false),
        ("http://pdp.test", true),
        ("http://127.0.0.1:1", false),
        ("http://localhost:1", false),
        ("http://10.0.0.1", true),
        ("http://localhost.pdp.test", true),
        ("http://169.254.169.254", true),
    ] {
        assert_eq!(fault(&named(url, development)), BadRemote::Plain("pdp"), "{url}");
    }
    for url in ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "http://127.9.9.9"] {
        assert!(Remote::new(&named(url, true)).is_ok(), "{url}");
    }
    for bearer in ["", "two words", "line\n", "t\u{e4}"] {
        let settings = RemoteSettings { bearer: Some(bearer.to_owned()), ..base.clone() };
        assert_eq!(fault(&settings), BadRemote::Bearer, "{bearer:?}");
    }
    for origin in ["other.test", "https://other.test/path", "http://other.test", "https://other.test/?a"] {
        let settings = RemoteSettings { credential_origins: vec![origin.to_owned()], ..base.clone() };
        assert_eq!(fault(&settings), BadRemote::CredentialOrigins, "{origin}");
    }
    assert_eq!(
        fault(&RemoteSettings { time_limit: std::time::Duration::ZERO, ..base.clone() }),
        BadRemote::Zero("time_limit")
    );
    assert_eq!(fault(&RemoteSettings { faults: 0, ..base.clone() }), BadRemote::Zero("faults"));
    let roots = RemoteSettings { roots: Some(b"nothing".to_vec()), ..base.clone() };
    assert!(fault(&roots).to_string().contains("as PEM"));
    let identity = Some(Identity { chain: Vec::new(), key: Vec::new() });
    assert!(fault(&RemoteSettings { identity, ..base }).to_string().contains("client certificate"));
}
