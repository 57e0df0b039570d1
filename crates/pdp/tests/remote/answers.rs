//! Every way of answering that is no yes, and the two that are.

use std::time::{Duration, Instant};

use sayso_coaz::answer::AnswerFault::{self, Count, MediaType, NotADecision, NotJson, Status};
use sayso_coaz::{Category, Fault, Why};
use sayso_pdp::client::RemoteSettings;

use crate::engine::{Act, Engine, JSON, answer, asked, denied, no_answer, ok, one, remote, several};

type Expected = Result<(), Fault>;

async fn answered(act: Act, expected: Expected, name: &str) {
    let engine = Engine::saying(act).await;
    let remote = remote(&engine.configured());
    assert_eq!(asked(&remote, &one()).await, expected, "{name}");
    assert_eq!(engine.lines(), ["POST /one"], "{name}: asked once");
}

// ERR-07, ERR-22, ERR-23, AZ-17, AZ-18, AZ-19
#[tokio::test]
async fn yes_and_no_in_every_dress() {
    let obliged = Err(Fault { place: String::new(), why: Why::Obligations });
    let cases: [(&str, Expected); 10] = [
        (r#"{"decision":true}"#, Ok(())),
        (r#"{"decision":true,"context":{"id":"1"},"x-new":1}"#, Ok(())),
        (r#"{"future":1,"decision":true}"#, Ok(())),
        (r#"{"decision":true,"context":{"obligations":[]}}"#, Ok(())),
        (r#"{"decision":true,"context":{"obligations":[{"id":"log"}]}}"#, obliged.clone()),
        (r#"{"decision":true,"context":{"obligations":"log"}}"#, obliged),
        (r#"{"decision":false}"#, denied()),
        (
            r#"{"decision":false,"context":{"reason_user":{"en":"<b>no</b>"},"error":{"status":401}}}"#,
            denied(),
        ),
        (r#"{"decision":false,"context":{"access_request":{"binding_token":"t"}}}"#, denied()),
        (r#"{"decision":false,"context":{"obligations":[{}]}}"#, denied()),
    ];
    for (body, expected) in cases {
        answered(Act::Say(ok(body)), expected, body).await;
    }
    let dressed = "Content-Type: Application/JSON ;charset=utf-8\r\n";
    answered(Act::Say(answer(200, dressed, r#"{"decision":true}"#)), Ok(()), dressed).await;
}

// ERR-11, ERR-12, ERR-13, ERR-14, ERR-15, ERR-20, ERR-21, COAZ-FW-42, COAZ-FW-43
#[tokio::test]
async fn a_body_that_is_no_decision_is_no() {
    let cases: [(&str, AnswerFault); 22] = [
        (r#"{"decision":"true"}"#, NotADecision),
        (r#"{"decision":1}"#, NotADecision),
        (r#"{"decision":null}"#, NotADecision),
        (r#"{"decision":[true]}"#, NotADecision),
        (r#"{"decision":{"decision":true}}"#, NotADecision),
        ("{}", NotADecision),
        ("[true]", NotADecision),
        ("true", NotADecision),
        (r#"{"Decision":true}"#, NotADecision),
        (r#"{"decision ":true}"#, NotADecision),
        (r#"{"result":{"decision":true}}"#, NotADecision),
        (r#"{"result":true}"#, NotADecision),
        (r#"{"evaluations":[{"decision":true}]}"#, NotADecision),
        (r#"{"decision":true,"context":"x"}"#, NotADecision),
        (r#"{"decision":true,"context":null}"#, NotADecision),
        (r#"{"decision":false,"decision":true}"#, NotJson),
        (r#"{"decision":true,"context":{"a":1,"a":2}}"#, NotJson),
        (r#"{"decision":true"#, NotJson),
        (r#"{"decision":true}{"decision":false}"#, NotJson),
        ("\u{feff}{\"decision\":true}", NotJson),
        ("<html>", NotJson),
        ("", NotJson),
    ];
    for (body, fault) in cases {
        answered(Act::Say(ok(body)), no_answer(fault), body).await;
    }
    let deep = format!(r#"{{"decision":true,"context":{{"a":{}1{}}}}}"#, "[".repeat(90), "]".repeat(90));
    answered(Act::Say(ok(&deep)), no_answer(NotJson), "deep").await;
    let mut bytes = answer(200, JSON, "{\"decision\":true,\"x\":\"?\"}");
    let at = bytes.iter().rposition(|byte| *byte == b'?').unwrap();
    bytes[at] = 0xff;
    answered(Act::Say(bytes), no_answer(NotJson), "not UTF-8").await;
}

// ERR-10, ERR-16, ERR-19
#[tokio::test]
async fn another_status_or_media_type_is_no() {
    let yes = r#"{"decision":true}"#;
    for status in [201, 202, 203, 206, 300, 304, 400, 401, 403, 404, 409, 429, 500, 502, 503] {
        answered(Act::SayAndClose(answer(status, JSON, yes)), no_answer(Status), &status.to_string()).await;
    }
    answered(Act::Say(b"HTTP/1.1 204 X\r\n\r\n".to_vec()), no_answer(Status), "204").await;
    let steering =
        format!("www-authenticate: UMA as_uri=\"https://evil.example.test\", ticket=\"t\"\r\n{JSON}");
    answered(Act::Say(answer(401, &steering, yes)), no_answer(Status), "a challenge is nobody's").await;
    answered(Act::Say(answer(429, &format!("retry-after: 0\r\n{JSON}"), yes)), no_answer(Status), "429")
        .await;
    let hinted = format!(
        "HTTP/1.1 103 X\r\nlink: </a>\r\n\r\nHTTP/1.1 500 X\r\n{JSON}content-length: 17\r\n\r\n{yes}"
    );
    answered(Act::SayAndClose(hinted.into_bytes()), no_answer(Status), "after a hint").await;
    let types = [
        "",
        "content-type: text/html\r\n",
        "content-type: text/plain\r\n",
        "content-type: application/jsonp\r\n",
        "content-type: application/json+x\r\n",
        "content-type: application/problem+json\r\n",
        "content-type: text/html, application/json\r\n",
        "content-type: application/json\r\ncontent-type: text/html\r\n",
        "content-type: text/html\r\ncontent-type: application/json\r\n",
        "content-type: \r\n",
    ];
    for head in types {
        answered(Act::Say(answer(200, head, yes)), no_answer(MediaType), head).await;
    }
    let packed = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
    answered(Act::Say(answer(200, packed, "\u{1f}\u{8b}")), no_answer(NotJson), packed).await;
}

// ERR-17, AZ-14
#[tokio::test]
async fn a_redirect_leads_nowhere() {
    let other = Engine::saying(Act::Say(ok(r#"{"decision":true}"#))).await;
    for status in [301, 302, 303, 307, 308] {
        let head = format!("location: {}\r\n{JSON}", other.url("/allow"));
        let act = Act::Say(answer(status, &head, r#"{"decision":true}"#));
        answered(act, no_answer(Status), &status.to_string()).await;
    }
    assert_eq!(other.connections(), 0);
}

// AZ-15
#[tokio::test]
async fn an_answer_has_an_end() {
    let padded = format!(r#"{}{{"decision":true}}"#, " ".repeat(1 << 20));
    answered(Act::SayAndClose(ok(&padded)), no_answer(NotJson), "announced").await;
    let head = format!("HTTP/1.1 200 X\r\n{JSON}\r\n");
    let unannounced = [head.as_bytes(), padded.as_bytes()].concat();
    answered(Act::SayAndClose(unannounced), no_answer(NotJson), "unannounced").await;
    let announced = format!("HTTP/1.1 200 X\r\n{JSON}content-length: 52428800\r\n\r\n{{\"decision\":true}}");
    answered(Act::SayAndClose(announced.into_bytes()), no_answer(NotJson), "fifty megabytes").await;
}

#[tokio::test]
async fn an_answer_cut_off_is_none() {
    let nothing = no_answer(AnswerFault::None);
    let cut = format!("HTTP/1.1 200 X\r\n{JSON}content-length: 30\r\n\r\n{{\"decision\":true}}");
    answered(Act::SayAndClose(cut.into_bytes()), nothing.clone(), "the body").await;
    answered(Act::SayAndClose(b"HTTP/1.1 200 X\r\ncontent-ty".to_vec()), nothing.clone(), "the head").await;
    answered(Act::SayAndClose(Vec::new()), nothing.clone(), "everything").await;
    answered(Act::SayAndClose(b"nonsense\r\n\r\n".to_vec()), nothing.clone(), "not HTTP").await;
    let chunked =
        format!("HTTP/1.1 200 X\r\n{JSON}transfer-encoding: chunked\r\n\r\n11\r\n{{\"decision\":true}}\r\n");
    answered(Act::SayAndClose(chunked.into_bytes()), nothing, "no last chunk").await;
}

// ERR-18
#[tokio::test]
async fn waiting_has_an_end() {
    for act in [Act::Hang, Act::Drip(ok(r#"{"decision":true}"#))] {
        let engine = Engine::saying(act).await;
        let settings = RemoteSettings { time_limit: Duration::from_millis(400), ..engine.configured() };
        let begun = Instant::now();
        assert_eq!(asked(&remote(&settings), &one()).await, no_answer(AnswerFault::None));
        assert!((300..1500).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
        assert_eq!(engine.lines().len(), 1, "not asked again");
    }
}

// AZ-20
#[tokio::test]
async fn nobody_there_is_no() {
    let port = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    };
    let settings = RemoteSettings {
        evaluation_endpoint: Some(format!("http://127.0.0.1:{port}/one")),
        development: true,
        ..RemoteSettings::default()
    };
    let fault = asked(&remote(&settings), &one()).await.unwrap_err();
    assert_eq!(fault.category(), Category::Policy);
    assert_eq!(fault.message(), "Authorization service unavailable", "whoever asked is told nothing else");
}

// EVS-04, EVS-05, EVS-06, EVS-07, EVS-08, EVS-09, EVS-10, EVS-11, EVS-12, EVS-13, EVS-14, EVS-21, EVS-22
#[tokio::test]
async fn every_decision_is_counted() {
    const YES: &str = r#"{"decision":true}"#;
    const NO: &str = r#"{"decision":false}"#;
    let list = |all: &[&str]| format!(r#"{{"evaluations":[{}]}}"#, all.join(","));
    let (two, three) = (several(&["1", "1"], None), several(&["1", "2", "3"], Some("deny_on_first_deny")));
    let missing = r#"{"decision":false,"context":{"error":{"status":404}}}"#;
    let cases = [
        (&two, list(&[YES, YES]), Ok(())),
        (&two, list(&[YES, NO]), denied()),
        (&two, list(&[NO, YES]), denied()),
        (&two, list(&[YES]), no_answer(Count)),
        (&two, list(&[NO]), no_answer(Count)),
        (&two, list(&[]), no_answer(Count)),
        (&two, list(&[YES, YES, YES]), no_answer(Count)),
        (&two, YES.to_owned(), no_answer(NotADecision)),
        (
            &two,
            r#"{"decision":true,"evaluations":[{"decision":true},{"decision":false}]}"#.to_owned(),
            denied(),
        ),
        (
            &two,
            r#"{"decision":true,"evaluations":{"0":{"decision":true}}}"#.to_owned(),
            no_answer(NotADecision),
        ),
        (&two, list(&[YES, r#"{"context":{}}"#]), no_answer(NotADecision)),
        (&two, list(&[YES, r#"{"decision":"true"}"#]), no_answer(NotADecision)),
        (&two, list(&[YES, "true"]), no_answer(NotADecision)),
        (&two, list(&[YES, missing]), denied()),
        (&two, format!(r#"{{"evaluations":[{NO}],"evaluations":[{YES},{YES}]}}"#), no_answer(NotJson)),
        (&three, list(&[YES, NO]), denied()),
        (&three, list(&[YES, YES]), no_answer(Count)),
        (&three, list(&[YES, YES, YES]), Ok(())),
    ];
    for (request, body, expected) in cases {
        let engine = Engine::saying(Act::Say(ok(&body))).await;
        assert_eq!(asked(&remote(&engine.configured()), request).await, expected, "{body}");
        assert_eq!(engine.lines(), ["POST /many"], "{body}");
    }
    for status in [404, 405, 500, 501] {
        let engine = Engine::saying(Act::Say(answer(status, JSON, &list(&[YES, YES])))).await;
        assert_eq!(asked(&remote(&engine.configured()), &two).await, no_answer(Status), "{status}");
        assert_eq!(engine.lines(), ["POST /many"], "an endpoint that somebody named is not fallen back from");
    }
}
