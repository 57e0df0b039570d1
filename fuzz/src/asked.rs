//! What a served decision point is asked: `several` or anything else in the first line, then a body. Who decides says yes to the
//! action `read` alone, and remembers what it was asked.
//! Whatever comes is answered, every yes was said, and what was asked stands in the body, in an entry or at the top.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use sayso_coaz::answer::{Decision, Decisions};
use sayso_coaz::authzen::{Evaluation, Object, Request};
use sayso_coaz::{Deciding, DecisionPoint};
use sayso_pdp::serve::{EVALUATION, EVALUATIONS, MAX_ENTRIES, Served, router};
use sayso_protocol::Json;
use sayso_protocol::json::Limits;
use tower::ServiceExt as _;

use super::{framed, ready, same};

const HOST: &str = "127.0.0.1:8444";
const LIMITS: Limits = Limits { bytes: 1 << 20, depth: 32 };

#[derive(Default)]
struct Point(Mutex<Vec<Evaluation>>);

impl DecisionPoint for Point {
    fn decide<'a>(&'a self, request: &'a Request, _request_id: &'a str) -> Deciding<'a> {
        let decisions = match request {
            Request::Evaluation(one) => {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).push((**one).clone());
                vec![Decision { decision: says_yes(one), context: None }]
            }
            Request::Evaluations(_) => Vec::new(),
        };
        Box::pin(std::future::ready(Decisions::new(request, decisions)))
    }
}

fn says_yes(one: &Evaluation) -> bool {
    one.action.name == "read"
}

/// The body.
pub fn check(bytes: &[u8]) {
    let (line, body) = framed::first_line(bytes);
    let several = line == "several";
    let point = Arc::new(Point::default());
    let served = Served {
        point: Arc::<Point>::clone(&point),
        url: format!("http://{HOST}"),
        hosts: vec![HOST.to_owned()],
        secret: None,
        observer: None,
    };
    let request = http::Request::post(if several { EVALUATIONS } else { EVALUATION })
        .header("host", HOST)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::copy_from_slice(body)))
        .expect("a request");
    let (status, answer) = ready::with_tasks(async {
        let answer = router(served).oneshot(request).await.unwrap_or_else(|never| match never {});
        let status = answer.status().as_u16();
        (status, answer.into_body().collect().await.expect("a body that is there").to_bytes())
    });
    let asked = point.0.lock().unwrap_or_else(PoisonError::into_inner);
    if status != 200 {
        assert!(matches!(status, 400 | 413), "{status}");
        assert!(asked.is_empty(), "asked about what is no request");
        return;
    }
    let body = Json::parse(body, LIMITS).expect("what was answered was strict JSON");
    let entries = body.get("evaluations").and_then(Json::as_array).filter(|_| several).unwrap_or_default();
    let answer = Json::parse(&answer, LIMITS).expect("an answer is strict JSON");
    let said: Vec<bool> = match answer.get("evaluations").and_then(Json::as_array) {
        Some(all) => all.iter().map(decision).collect(),
        None => vec![decision(&answer)],
    };
    assert!((1..=MAX_ENTRIES).contains(&said.len()) && said.len() <= entries.len().max(1));
    let yes = said.iter().filter(|said| **said).count();
    assert_eq!(yes, asked.iter().filter(|one| says_yes(one)).count(), "a yes that nobody said");
    asked.iter().for_each(|one| stands(one, &body, entries));
}

fn decision(said: &Json) -> bool {
    said.get("decision").and_then(Json::as_bool).expect("a decision")
}

/// Whether each part is from the body: a text or an object of an entry, or of the top.
fn stands(one: &Evaluation, top: &Json, entries: &[Json]) {
    let said = |part: &str, member: &str, text: &str| {
        let says = |place: &Json| place.get(part).and_then(|part| part.get(member)?.as_str()) == Some(text);
        assert!(says(top) || entries.iter().any(says), "{part}.{member} is from nowhere");
    };
    said("subject", "type", &one.subject.kind);
    said("subject", "id", &one.subject.id);
    said("action", "name", &one.action.name);
    said("resource", "type", &one.resource.kind);
    said("resource", "id", &one.resource.id);
    let context = one.context.as_ref().map(Object::json);
    let has = |place: &Json| match (place.get("context"), context) {
        (Some(said), Some(context)) => same::meaning(said, context),
        (None, None) => true,
        _ => false,
    };
    assert!(has(top) || entries.iter().any(has), "a context from nowhere");
}
