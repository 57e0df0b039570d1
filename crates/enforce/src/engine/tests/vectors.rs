//! The shared vectors of verdicts: requests written and signed by another program, judged here by the engine alone.

use super::*;
use crate::scripted::Scripted;
use bytes::Bytes;
use http::{HeaderName, Method};
use serde_json::{Value, json};

const FILES: [&str; 4] = [
    include_str!("../../../../../vectors/verdict/calls.json"),
    include_str!("../../../../../vectors/verdict/codings.json"),
    include_str!("../../../../../vectors/verdict/grants.json"),
    include_str!("../../../../../vectors/verdict/unsigned.json"),
];

fn request(vector: &Value) -> Incoming {
    let request = &vector["request"];
    let mut headers = http::HeaderMap::new();
    for line in request["headers"].as_array().unwrap() {
        let name = HeaderName::try_from(line[0].as_str().unwrap()).unwrap();
        headers.append(name, HeaderValue::from_str(line[1].as_str().unwrap()).unwrap());
    }
    let method: Method = request["method"].as_str().unwrap().parse().unwrap();
    let head = Head { method, target: request["target"].as_str().unwrap().parse().unwrap(), headers };
    let body = match request["body_base64"].as_str() {
        Some(text) => sayso_protocol::b64::decode_standard(text).unwrap(),
        None => request["body"].as_str().unwrap().as_bytes().to_vec(),
    };
    Incoming { head, body: crate::Body::Whole(Bytes::from(body)) }
}

fn script(authority: &Scripted, vector: &Value) {
    let gone = |word: &str| match word {
        "unreachable" => Unavailable::Unreachable,
        "interrupted" => Unavailable::Interrupted,
        other => panic!("no such word: {other}"),
    };
    let introspection = &vector["introspection"];
    *authority.introspection.lock().unwrap() = match introspection.as_str() {
        Some(word) => Err(gone(word)),
        None if introspection.is_null() => Err(Unavailable::Unreachable),
        None => Ok(Introspection::from_json(introspection.to_string().as_bytes()).unwrap()),
    };
    if let Some(word) = vector["permission"].as_str() {
        *authority.permission.lock().unwrap() = Err(gone(word));
    }
    let consume = &vector["consume"];
    *authority.consume.lock().unwrap() = match consume.as_str() {
        Some(word) => Some(Err(gone(word))),
        None if consume.is_null() => None,
        None => Some(Ok(serde_json::from_value(consume.clone()).unwrap())),
    };
}

/// A verdict in the vectors' form.
fn told_as_json(verdict: &Verdict<()>) -> Value {
    match verdict {
        Verdict::Permit(permit) => json!({ "kind": if permit.is_granted() { "permit" } else { "open" } }),
        Verdict::Challenge(challenge) => json!({
            "kind": "challenge", "status": 401, "scope": sayso_protocol::Scope::join(&challenge.scopes),
            "resource_id": challenge.remediation.authorization_details[0].identifier,
        }),
        Verdict::Refuse(refusal) => {
            let mut told = json!({
                "kind": "refuse", "error": refusal.code.as_str(), "status": refusal.code.status()
            });
            if refusal.spent {
                told["spent"] = true.into();
            }
            told
        }
        Verdict::Policy(refusal) => {
            json!({ "kind": "policy", "jsonrpc": refusal.code, "category": refusal.category })
        }
        Verdict::Bearer(challenge) => json!({ "kind": "bearer", "shown": challenge.shown }),
        Verdict::Fault(fault) => json!({
            "kind": "fault", "status": fault.http_status, "jsonrpc": fault.jsonrpc_code, "error": fault.error
        }),
    }
}

// CORE-17, CORE-22, CORE-86, CORE-92, FED-40, FED-42, MCP-20
#[tokio::test]
async fn every_vector_has_its_verdict() {
    let files = FILES.map(|file| serde_json::from_str::<Value>(file).unwrap());
    assert!(files.iter().all(|file| file["now"] == NOW.0));
    let vectors: Vec<&Value> = files.iter().flat_map(|file| file["vectors"].as_array().unwrap()).collect();
    assert!(vectors.len() > 50);
    for vector in vectors {
        let name = vector["name"].as_str().unwrap();
        let scene = Scene::with(reusable());
        script(&scene.authority, vector);
        let verdict = scene.decide(&request(vector)).await;
        assert_eq!(told_as_json(&verdict), vector["verdict"], "{name}");
        // To an authority that knows of no rounds, one is asked about as any call is.
        let word = |name| if name == "round" { "introspect" } else { name };
        let asked: Vec<Value> = scene.authority.names().into_iter().map(word).map(Value::from).collect();
        assert_eq!(&asked, vector["asked"].as_array().unwrap(), "{name}");
    }
}
