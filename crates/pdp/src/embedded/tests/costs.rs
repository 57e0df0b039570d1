//! What one request may put before the policies, of all its decisions together.

use super::*;
use sayso_coaz::Tally;
use sayso_coaz::authzen::Evaluations;

const OPEN: &str = r#"permit (principal, action == Action::"delete", resource is document)
    when { resource has tags && resource.tags.contains("open") };"#;

/// A document with so many tags.
fn tagged(tags: usize) -> Value {
    let mut all = vec![json!("open")];
    all.extend((1..tags).map(|at| json!(at.to_string())));
    json!({ "type": "document", "id": "d", "properties": { "owner": "u-ann", "tags": all } })
}

fn several(top: Value, entries: Vec<Value>) -> Request {
    let mut body = json!({ "subject": { "type": "identity", "id": "u-ann" }, "action": { "name": "delete" }, "evaluations": entries });
    let Value::Object(top) = top else { panic!("an object") };
    body.as_object_mut().unwrap().extend(top);
    Request::Evaluations(Box::new(Evaluations::read(&Json::from(body)).unwrap()))
}

// D-35: what a mapping says once for all of its entries is put before the policies for each of them.
#[tokio::test]
async fn all_decisions_of_a_request_have_one_meter() {
    let (_dir, embedded) = opened(&[("a.cedar", OPEN), ("schema.cedarschema", SCHEMA)]);
    let too_much = AnswerFault::TooMuch;
    let fits = several(json!({ "resource": tagged(200) }), vec![json!({}); 64]);
    assert_eq!(embedded.decide(&fits, "r-1").await.unwrap().each().len(), 64);
    let much = several(json!({ "resource": tagged(5_000) }), vec![json!({}); 64]);
    let fault = embedded.decide(&much, "r-1").await.unwrap_err();
    assert_eq!((fault.category(), fault.why), (Category::Policy, Why::Answer(too_much)));
    // Asked about one by one it is the same request, and the next one is another.
    let asked = |tags| {
        let body = json!({ "action": { "name": "delete" }, "resource": tagged(tags) });
        Request::Evaluation(Box::new(call(body)))
    };
    for _ in 0..2 {
        let tally = Tally::default();
        let decide = async |tags| embedded.decide_among(&asked(tags), "r-1", &tally).await;
        assert!(decide(12_000).await.is_ok());
        assert_eq!(decide(12_000).await.unwrap_err().why, Why::Answer(too_much));
        assert!(embedded.decide(&asked(12_000), "r-1").await.is_ok());
    }
}

// D-35
#[test]
fn a_null_counts_as_a_value_that_is_there() {
    let (_dir, embedded) = opened(&[("a.cedar", OPEN), ("schema.cedarschema", SCHEMA)]);
    let ask = |nulls: usize| {
        let mut tags = vec![json!("open")];
        tags.resize(1 + nulls, json!(null));
        let properties = json!({ "owner": "u-ann", "tags": tags });
        json!({ "action": { "name": "delete" }, "resource": { "type": "document", "id": "d", "properties": properties } })
    };
    assert!(says(&embedded, ask(12_000)));
    let (place, why) = fault(&embedded, ask(190_000));
    assert_eq!((place.as_str(), why), ("resource.properties.tags", AnswerFault::TooMuch));
}
