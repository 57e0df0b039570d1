//! Asks a policy engine about MCP messages, as a host does: `policy_question PDP LISTING`, one question a line on stdin.
//! A question is `{"message":…,"claims":…}` with claims that somebody has validated; the answer is a line with the request
//! that was sent and what came of it.

#![expect(clippy::expect_used, reason = "a tool for tests that is called wrongly has nothing better to say")]

use std::io::BufRead as _;

use sayso_coaz::{DecisionPoint as _, Engine, Fault, Projection, Registry, Sample, Settings};
use sayso_pdp::client::{Remote, RemoteSettings};
use sayso_protocol::Json;
use sayso_protocol::json::{Limits, locate};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let pdp = arguments.next().expect("the identifier of a policy engine");
    let listing = std::fs::read(arguments.next().expect("a listing")).expect("the listing can be read");
    let listing = read(&listing);
    let registry = Registry::read(&[&listing], i64::MAX).expect("a listing");
    let engine = Engine::new(Settings::default()).expect("the default mappings compile");
    let settings = RemoteSettings { pdp: Some(pdp), development: true, ..RemoteSettings::default() };
    let remote = Remote::new(&settings).expect("a policy engine");
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line.expect("a line");
        let answer =
            question(&engine, &registry, &remote, line.as_bytes(), &format!("question-{number}")).await;
        println!("{answer}");
    }
}

async fn question(engine: &Engine, registry: &Registry, remote: &Remote, line: &[u8], id: &str) -> Value {
    let part = |name: &str| {
        let place = locate(line, &[name]).expect("a message and claims");
        line.get(place).expect("a place in the line")
    };
    read(line);
    let sample = Sample::read(part("message")).expect("an MCP message");
    let asked = match engine.project(sample.operation(), registry, 0, &read(part("claims"))) {
        Ok(Projection::Ask(asked)) => asked,
        Ok(Projection::PassThrough) => return json!({"outcome": "passes"}),
        Err(fault) => return refused(&fault, &Value::Null),
    };
    let request = serde_json::to_value(&asked.request).expect("a request in JSON");
    match remote.decide(&asked.request, id).await.and_then(|decisions| decisions.permit()) {
        Ok(_) => json!({"outcome": "permit", "request": request}),
        Err(fault) => refused(&fault, &request),
    }
}

fn refused(fault: &Fault, request: &Value) -> Value {
    let category = fault.category();
    json!({"outcome": category.as_str(), "code": category.code(), "message": fault.message(), "request": request})
}

fn read(bytes: &[u8]) -> Json {
    Json::parse(bytes, Limits::default()).expect("strict JSON")
}
