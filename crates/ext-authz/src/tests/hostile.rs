//! Hostile bytes: spellings of a path, the bodies of the shared message vectors, and messages made of anything.

use super::cast::{DOORS, House, Request};
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::Value;
use std::path::Path;

// CORE-84
#[tokio::test]
async fn a_resource_has_one_spelling() {
    let spellings = [
        "//mcp",
        "/mcp/",
        "/%6Dcp",
        "/%6dcp",
        "/mcp%2F",
        "/mcp;x=1",
        "/./mcp",
        "/x/../mcp",
        "/x/%2e%2e/mcp",
        "/mcp%00",
        "/MCP",
        "/.well-known/oauth-protected-resource/../../mcp",
        "/mcp/%2e",
        "/check/mcp",
        "/mcp%0d%0aX:1",
        "/mcp?x=1",
        "/mcp?",
    ];
    for door in DOORS {
        let house = House::open();
        for spelling in spellings {
            for request in [Request::call("execute_trade", "{}"), Request::list()] {
                let said = house.ask(door, &request.to(spelling)).await;
                assert!([400, 404].contains(&said.status), "{door:?} {spelling}: {said:?}");
            }
            let signed = Request::call("get_positions", "{}").to(spelling).signed("reader");
            assert!([400, 404].contains(&house.ask(door, &signed).await.status), "{door:?} {spelling}");
        }
        assert_eq!(house.asked(), 0);
    }
}

fn vectors() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/message");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for vector in file["vectors"].as_array().unwrap() {
            found.push((format!("{} {}", path.display(), vector["name"]), vector.clone()));
        }
    }
    found
}

fn request(input: &Value) -> Option<Request> {
    let text = input["body"].as_str().map(|text| text.as_bytes().to_vec());
    let body = text.or_else(|| sayso_protocol::b64::decode_standard(input["body_base64"].as_str()?).ok())?;
    let mut request = Request::post("tools/call", Some("execute_trade"), body);
    if let Some(lines) = input["headers"].as_array() {
        request.lines.retain(|(name, _)| !name.starts_with("mcp-"));
        for line in lines {
            let (name, value) = (line[0].as_str()?, line[1].as_str()?);
            http::HeaderValue::from_str(value).ok()?;
            request = request.with(&name.to_ascii_lowercase(), value);
        }
    }
    Some(request)
}

// MCP-09, CORE-84
#[tokio::test]
async fn no_hostile_message_is_let_through() {
    let mut tried = 0;
    for (name, vector) in vectors().iter().filter(|(_, vector)| !vector["expect"]["fault"].is_null()) {
        let Some(request) = request(&vector["input"]) else { continue };
        for door in DOORS {
            let house = House::open();
            let said = house.ask(door, &request).await;
            assert!((400..500).contains(&said.status), "{door:?} {name}: {said:?}");
            assert!(!said.line("www-authenticate").starts_with("UMA"), "{door:?} {name}");
            assert_eq!((house.asked(), house.spent()), (0, 0), "{name}");
        }
        tried += 1;
    }
    assert!(tried > 100, "only {tried} hostile messages were found");
}

proptest! {
    // Whatever bytes a message is made of, there is an answer, whole, or it is no message.
    #[test]
    fn any_message_is_answered_whole(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            if let Some(answer) = House::open().authorizer.answer_bytes(Bytes::from(bytes)).await {
                assert!(answer.told.is_some() && answer.status.unwrap().code != 0);
            }
        });
    }
}
