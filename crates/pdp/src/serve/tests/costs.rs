//! What one request may cost, whatever it holds: what its entries share is there once, and all of them have one measure.

use super::*;
use sayso_coaz::Tally;
use std::time::Duration;

/// Takes one of two from the tally for each decision, and its time.
struct Dear(Duration);

impl DecisionPoint for Dear {
    fn decide<'a>(&'a self, request: &'a authzen::Request, request_id: &'a str) -> Deciding<'a> {
        Box::pin(async move { self.decide_among(request, request_id, &Tally::default()).await })
    }

    fn decide_among<'a>(
        &'a self,
        request: &'a authzen::Request,
        _request_id: &'a str,
        tally: &'a Tally,
    ) -> Deciding<'a> {
        Box::pin(async move {
            tokio::time::sleep(self.0).await;
            if tally.take(1, 2) {
                return Decisions::new(request, vec![Decision { decision: true, context: None }]);
            }
            Err(Fault { place: "context".to_owned(), why: Why::Answer(AnswerFault::TooMuch) })
        })
    }
}

fn dear(time: Duration) -> Router {
    router(Served {
        point: Arc::new(Dear(time)),
        url: URL.to_owned(),
        hosts: vec![HOST.to_owned()],
        secret: None,
        observer: None,
    })
}

async fn asks(router: &Router, entries: usize) -> (StatusCode, Value) {
    let house = House { point: Arc::default(), router: router.clone() };
    let mut body = one("read");
    body["evaluations"] = json!(vec![json!({}); entries]);
    let (status, _, said) = house.post(EVALUATIONS, body.to_string(), &[]).await;
    (status, serde_json::from_str(&said).unwrap_or_default())
}

// D-35: one measure for a request, however many entries it has, and a fresh one for the next.
#[tokio::test]
async fn all_decisions_of_a_request_have_one_measure() {
    let router = dear(Duration::ZERO);
    for _ in 0..2 {
        let (status, said) = asks(&router, 4).await;
        assert_eq!(status, StatusCode::OK);
        let all: Vec<bool> =
            said["evaluations"].as_array().unwrap().iter().map(|one| one["decision"] == true).collect();
        assert_eq!(all, [true, true, false, false]);
        assert_eq!(said["evaluations"][2]["context"]["error"]["status"], 400);
    }
}

// D-10
#[tokio::test(start_paused = true)]
async fn all_decisions_of_a_request_have_one_time() {
    let router = dear(Duration::from_secs(6));
    assert_eq!(asks(&router, 1).await.0, StatusCode::OK);
    assert_eq!(asks(&router, 2).await.0, StatusCode::INTERNAL_SERVER_ERROR);
}

// AuthZEN section 7.1.1: what an entry has is its own and overrides what stands at the top; nothing is put together of both.
#[tokio::test]
async fn what_an_entry_takes_from_the_top_is_whole() {
    let house = house(None);
    let body = json!({
        "subject": { "type": "user", "id": "ann", "properties": { "a": 1 } }, "action": { "name": "read" },
        "resource": { "type": ["record"], "id": "r" }, "context": { "c": 1 },
        "evaluations": [
            { "resource": { "type": "record", "id": "r" }, "subject": { "type": "user", "id": "bob" }, "context": {} },
            { "resource": { "id": "s" } }, {}, { "resource": { "type": "record", "id": "s" } },
            { "resource": { "type": "record", "id": "s" }, "action": { "properties": { "p": 2 } } },
            { "resource": { "type": "record", "id": "s" }, "subject": { "id": "bob" } },
        ],
    });
    let said = house.ask(EVALUATIONS, body).await;
    let all: Vec<bool> =
        said["evaluations"].as_array().unwrap().iter().map(|one| one["decision"] == true).collect();
    assert_eq!(all, [true, false, false, true, false, false], "a type that is no text is nobody's");
    let asked = house.point.0.lock().unwrap();
    let asked: Vec<Value> = asked.iter().map(|(request, _)| serde_json::to_value(request).unwrap()).collect();
    assert_eq!(
        asked,
        [
            json!({ "subject": { "type": "user", "id": "bob" }, "action": { "name": "read" },
                "resource": { "type": "record", "id": "r" }, "context": {} }),
            json!({ "subject": { "type": "user", "id": "ann", "properties": { "a": 1 } },
                "action": { "name": "read" }, "resource": { "type": "record", "id": "s" }, "context": { "c": 1 } })
        ]
    );
}
