//! What is served, to whom, and what is answered to what is no request. The decision point is one that remembers.

mod costs;

use super::*;
use http::HeaderMap;
use http_body_util::BodyExt as _;
use sayso_coaz::answer::{AnswerFault, Decision, Decisions};
use sayso_coaz::{Deciding, Fault, Why};
use serde_json::Value;
use std::sync::Mutex;
use tower::ServiceExt as _;

/// Says yes to the action `read`, fails at `fail` and `unfit`, and says no to all else.
#[derive(Default)]
struct Point(Mutex<Vec<(authzen::Request, String)>>);

impl DecisionPoint for Point {
    fn decide<'a>(&'a self, request: &'a authzen::Request, request_id: &'a str) -> Deciding<'a> {
        self.0.lock().unwrap().push((request.clone(), request_id.to_owned()));
        let authzen::Request::Evaluation(one) = request else { panic!("one at a time") };
        let fault = |place: &str, why| Err(Fault { place: place.to_owned(), why: Why::Answer(why) });
        let answer = match one.action.name.as_str() {
            "fail" => fault("", AnswerFault::Unevaluated),
            "unfit" => fault("context.amount", AnswerFault::Number),
            name => Decisions::new(request, vec![Decision { decision: name == "read", context: None }]),
        };
        Box::pin(std::future::ready(answer))
    }
}

const URL: &str = "http://127.0.0.1:8444";
const HOST: &str = "127.0.0.1:8444";
const SECRET: &str = "0123456789abcdef0123456789abcdef";

struct House {
    point: Arc<Point>,
    router: Router,
}

fn house(secret: Option<&str>) -> House {
    let point = Arc::new(Point::default());
    let router = router(Served {
        point: Arc::clone(&point) as Arc<dyn DecisionPoint>,
        url: URL.to_owned(),
        hosts: vec![HOST.to_owned()],
        secret: secret.map(|secret| Secret::new(secret).unwrap()),
        observer: None,
    });
    House { point, router }
}

impl House {
    async fn send(&self, request: Request<Body>) -> (StatusCode, HeaderMap, String) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (parts.status, parts.headers, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn post(
        &self,
        path: &str,
        body: impl Into<Body>,
        more: &[(&str, &str)],
    ) -> (StatusCode, HeaderMap, String) {
        let mut request = Request::post(path);
        let set = |name: &str| more.iter().any(|(more, _)| more.eq_ignore_ascii_case(name));
        for (name, value) in [("host", HOST), ("content-type", "application/json")] {
            if !set(name) {
                request = request.header(name, value);
            }
        }
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.into()).unwrap()).await
    }

    async fn ask(&self, path: &str, body: Value) -> Value {
        let (status, headers, body) = self.post(path, body.to_string(), &[]).await;
        assert_eq!(
            (status, headers["content-type"].to_str().unwrap()),
            (StatusCode::OK, "application/json"),
            "{body}"
        );
        serde_json::from_str(&body).unwrap()
    }

    fn asked(&self) -> usize {
        self.point.0.lock().unwrap().len()
    }
}

fn one(action: &str) -> Value {
    json!({ "subject": { "type": "user", "id": "ann" }, "action": { "name": action }, "resource": { "type": "record", "id": "r" } })
}

#[tokio::test]
async fn a_decision_travels_with_200_whatever_it_is() {
    let house = house(None);
    assert_eq!(house.ask(EVALUATION, one("read")).await, json!({ "decision": true }));
    assert_eq!(house.ask(EVALUATION, one("write")).await, json!({ "decision": false }));
    assert_eq!(house.ask(EVALUATIONS, one("read")).await, json!({ "decision": true }));
    let mut empty = one("read");
    empty["evaluations"] = json!([]);
    assert_eq!(house.ask(EVALUATIONS, empty).await, json!({ "decision": true }));
    let mut unknown = one("read");
    unknown["future"] = json!({ "a": [1] });
    unknown["context"] = json!({ "time": "now" });
    assert_eq!(house.ask(EVALUATION, unknown).await, json!({ "decision": true }));
}

#[tokio::test]
async fn what_is_no_request_reaches_nobody() {
    let house = house(None);
    let without = |part: &str| {
        let mut body = one("read");
        body.as_object_mut().unwrap().remove(part);
        body.to_string()
    };
    let with = |part: &str, value: Value| {
        let mut body = one("read");
        body[part] = value;
        body.to_string()
    };
    for body in [
        String::new(),
        "{".into(),
        "[]".into(),
        "null".into(),
        "{\"subject\":1,\"subject\":2}".into(),
        one("read").to_string() + "x",
        format!("\u{feff}{}", one("read")),
        without("subject"),
        without("action"),
        without("resource"),
        with("subject", json!("ann")),
        with("subject", json!({ "id": "ann" })),
        with("subject", json!({ "type": "user" })),
        with("subject", json!({ "type": "user", "id": 5 })),
        with("subject", json!({ "type": "user", "id": "ann", "properties": [] })),
        with("action", json!({ "name": 123 })),
        with("action", json!({})),
        with("resource", json!({ "type": "record" })),
        with("resource", json!(null)),
        with("context", json!("x")),
        with("context", serde_json::from_str(&("[".repeat(40) + &"]".repeat(40))).unwrap()),
        with("deep", serde_json::from_str(&("[".repeat(40) + &"]".repeat(40))).unwrap()),
    ] {
        for path in [EVALUATION, EVALUATIONS] {
            let (status, headers, said) = house.post(path, body.clone(), &[]).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {said}");
            assert!(headers["content-type"].to_str().unwrap().starts_with("text/plain") && !said.is_empty());
        }
    }
    for (evaluations, options) in [
        (json!({}), json!({})),
        (json!([{}]), json!([])),
        (json!([{}]), json!({ "evaluations_semantic": "permit_on_first" })),
        (json!([{}]), json!({ "evaluations_semantic": 1 })),
        (json!(vec![json!({}); MAX_ENTRIES + 1]), json!({})),
    ] {
        let mut body = one("read");
        body["evaluations"] = evaluations;
        body["options"] = options;
        assert_eq!(house.post(EVALUATIONS, body.to_string(), &[]).await.0, StatusCode::BAD_REQUEST, "{body}");
    }
    let mut top = one("read");
    top["evaluations"] = json!([{}]);
    top["subject"] = json!("ann");
    assert_eq!(house.post(EVALUATIONS, top.to_string(), &[]).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(house.asked(), 0);
}

#[tokio::test]
async fn bodies_have_a_type_no_coding_and_a_size() {
    let house = house(None);
    let body = || one("read").to_string();
    for kind in ["text/plain", "application/jsonx", "application/x-www-form-urlencoded", ""] {
        let (status, ..) = house.post(EVALUATION, body(), &[("content-type", kind)]).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{kind}");
    }
    let twice = [("content-type", "application/json"), ("content-type", "application/json")];
    assert_eq!(house.post(EVALUATION, body(), &twice).await.0, StatusCode::BAD_REQUEST);
    let coded = [("content-encoding", "gzip")];
    assert_eq!(house.post(EVALUATION, body(), &coded).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let padded = |size: usize| body() + &" ".repeat(size - body().len());
    assert_eq!(house.post(EVALUATION, padded(MAX_REQUEST + 1), &[]).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(house.asked(), 0);
    assert_eq!(house.post(EVALUATION, padded(MAX_REQUEST), &[]).await.0, StatusCode::OK);
    let charset = [("content-type", "application/json; charset=utf-8")];
    assert_eq!(house.post(EVALUATION, body(), &charset).await.0, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let house = house(None);
    let never = Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    assert_eq!(house.post(EVALUATION, never, &[]).await.0, StatusCode::REQUEST_TIMEOUT);
    assert_eq!(house.asked(), 0);
}

#[tokio::test]
async fn only_the_host_it_has_and_no_page_is_served() {
    let house = house(None);
    for host in ["localhost:8444", "127.0.0.1", "127.0.0.1:8445", "evil.example", ""] {
        let (status, ..) = house.post(EVALUATION, one("read").to_string(), &[("host", host)]).await;
        assert_eq!(status, StatusCode::MISDIRECTED_REQUEST, "{host}");
    }
    for origin in ["null", "http://127.0.0.1:8444", "https://evil.example"] {
        let (status, ..) = house.post(EVALUATION, one("read").to_string(), &[("origin", origin)]).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{origin}");
    }
    let twice = [("host", HOST), ("host", HOST)];
    assert_eq!(
        house.post(EVALUATION, one("read").to_string(), &twice).await.0,
        StatusCode::MISDIRECTED_REQUEST
    );
    assert_eq!(house.asked(), 0);
}

#[tokio::test]
async fn a_secret_is_shown_or_nothing_is_decided() {
    let house = house(Some(SECRET));
    let body = || one("read").to_string();
    let bearer = format!("Bearer {SECRET}");
    for shown in
        ["", "Bearer", "Bearer ", "Basic abc", &bearer[..bearer.len() - 1], &format!("{bearer}x"), SECRET]
    {
        for path in [EVALUATION, EVALUATIONS] {
            let (status, headers, _) = house.post(path, body(), &[("authorization", shown)]).await;
            assert_eq!(
                (status, &headers["www-authenticate"]),
                (StatusCode::UNAUTHORIZED, &"Bearer".parse().unwrap())
            );
        }
    }
    assert_eq!(house.post(EVALUATION, body(), &[]).await.0, StatusCode::UNAUTHORIZED);
    let twice = [("authorization", bearer.as_str()), ("authorization", bearer.as_str())];
    assert_eq!(house.post(EVALUATION, body(), &twice).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(house.asked(), 0);
    assert_eq!(house.post(EVALUATION, body(), &[("authorization", &bearer)]).await.0, StatusCode::OK);
    for weak in ["short", &"x".repeat(31), &format!("{SECRET} "), &format!("{SECRET}\u{e9}")] {
        assert!(Secret::new(weak).is_err());
    }
}

#[tokio::test]
async fn a_request_keeps_its_name_on_every_answer() {
    let house = house(None);
    let named = [("x-request-id", "bfe9eb29 ab87?")];
    let (status, headers, _) = house.post(EVALUATION, one("read").to_string(), &named).await;
    assert_eq!((status, headers["x-request-id"].to_str().unwrap()), (StatusCode::OK, "bfe9eb29 ab87?"));
    assert_eq!(house.point.0.lock().unwrap()[0].1, "bfe9eb29ab87?");
    let (status, headers, _) = house.post(EVALUATION, "{", &named).await;
    assert_eq!(
        (status, headers["x-request-id"].to_str().unwrap()),
        (StatusCode::BAD_REQUEST, "bfe9eb29 ab87?")
    );
    let (_, headers, _) = house.post(EVALUATION, one("read").to_string(), &[]).await;
    assert!(!headers.contains_key("x-request-id"));
}

#[tokio::test]
async fn several_decisions_follow_their_semantic() {
    let house = house(None);
    let ask = |actions: &[&str], semantic: Option<&str>| {
        let mut body = one("read");
        body.as_object_mut().unwrap().remove("action");
        body["evaluations"] = actions.iter().map(|name| json!({ "action": { "name": name } })).collect();
        if let Some(semantic) = semantic {
            body["options"] = json!({ "evaluations_semantic": semantic, "more": 1 });
        }
        body
    };
    let decided = async |body: Value| {
        let before = house.asked();
        let answer = house.ask(EVALUATIONS, body).await;
        assert_eq!(answer.as_object().unwrap().len(), 1, "no decision of them all");
        let all: Vec<bool> = answer["evaluations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["decision"].as_bool().unwrap())
            .collect();
        assert_eq!(house.asked() - before, all.len(), "what is not answered is not asked");
        all
    };
    let actions = ["write", "read", "fail", "read"];
    assert_eq!(decided(ask(&actions, None)).await, [false, true, false, true]);
    assert_eq!(decided(ask(&actions, Some("execute_all"))).await, [false, true, false, true]);
    assert_eq!(decided(ask(&actions, Some("deny_on_first_deny"))).await, [false]);
    assert_eq!(decided(ask(&["read", "fail", "read"], Some("deny_on_first_deny"))).await, [true, false]);
    assert_eq!(decided(ask(&actions, Some("permit_on_first_permit"))).await, [false, true]);
    assert_eq!(decided(ask(&["fail", "write"], Some("permit_on_first_permit"))).await, [false, false]);
}

#[tokio::test]
async fn what_fails_is_said_where_it_belongs_and_is_never_a_yes() {
    let house = house(None);
    let (status, _, said) = house.post(EVALUATION, one("unfit").to_string(), &[]).await;
    assert_eq!((status, said.starts_with("context.amount: ")), (StatusCode::BAD_REQUEST, true), "{said}");
    let (status, ..) = house.post(EVALUATION, one("fail").to_string(), &[]).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    let body = json!({
        "subject": { "type": "user", "id": "ann" }, "action": { "name": "read" },
        "resource": { "type": "record", "id": "r" },
        "evaluations": [
            { "resource": { "type": "record", "id": "r", "properties": { "a": 1 } } },
            { "resource": { "id": "r" } }, { "resource": "r" }, "x", { "action": { "name": "unfit" } },
            { "action": { "name": "fail" } }, { "context": 5 },
        ],
    });
    let answer = house.ask(EVALUATIONS, body).await;
    let all = answer["evaluations"].as_array().unwrap();
    let decisions: Vec<bool> = all.iter().map(|one| one["decision"].as_bool().unwrap()).collect();
    assert_eq!(decisions, [true, false, false, false, false, false, false]);
    let statuses: Vec<_> =
        all[1..].iter().map(|one| one["context"]["error"]["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [400, 400, 400, 400, 500, 400]);
    assert_eq!(house.asked(), 5, "what is no request of its own is not asked");
}

#[tokio::test]
async fn metadata_names_what_there_is_and_search_is_not_there() {
    let house = house(Some(SECRET));
    let get = async |path: &str| {
        house.send(Request::get(path).header("host", HOST).body(Body::empty()).unwrap()).await
    };
    let (status, headers, body) = get(METADATA).await;
    assert_eq!((status, headers["content-type"].to_str().unwrap()), (StatusCode::OK, "application/json"));
    let known: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        known,
        json!({
            "policy_decision_point": URL,
            "access_evaluation_endpoint": "http://127.0.0.1:8444/access/v1/evaluation",
            "access_evaluations_endpoint": "http://127.0.0.1:8444/access/v1/evaluations",
        })
    );
    assert_eq!(get("/health").await.0, StatusCode::OK);
    for kind in ["subject", "resource", "action"] {
        let path = format!("/access/v1/search/{kind}");
        assert_eq!(house.post(&path, "{}", &[]).await.0, StatusCode::NOT_FOUND);
    }
    let (status, headers, _) = get(EVALUATION).await;
    assert_eq!((status, headers["allow"].to_str().unwrap()), (StatusCode::METHOD_NOT_ALLOWED, "POST"));
    assert_eq!(house.post(METADATA, "{}", &[]).await.0, StatusCode::METHOD_NOT_ALLOWED);
}
