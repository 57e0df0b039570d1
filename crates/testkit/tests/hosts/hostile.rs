//! Every hostile message of `vectors/message`, unsigned and signed by whoever holds a good grant, through every host that
//! sees HTTP: one answer, nobody behind it, nobody asked, nothing spent.

use super::authority::Stub;
use super::standing::{self, Answer, Standing, one_trade, signed};
use super::vectors::STAGE;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use sayso_enforce::Authority;
use sayso_testkit::source;
use serde_json::Value;
use std::sync::Arc;

/// The vectors of every file, by file and name.
pub(super) fn vectors() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(source::root().join("vectors/message")).unwrap() {
        let path = entry.unwrap().path();
        let file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for vector in file["vectors"].as_array().unwrap() {
            found.push((format!("{name}: {}", vector["name"].as_str().unwrap()), vector.clone()));
        }
    }
    found
}

/// The bytes a vector's body stands for.
fn body(input: &Value) -> Vec<u8> {
    if let Some(text) = input["body"].as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(text) = input["body_base64"].as_str() {
        return sayso_protocol::b64::decode_standard(text).unwrap();
    }
    let recipe = &input["body_repeat"];
    let text = |name: &str| recipe[name].as_str().unwrap().to_owned();
    let count = usize::try_from(recipe["count"].as_u64().unwrap()).unwrap();
    let (unit, close) = (text("unit").repeat(count), text("close").repeat(count));
    [text("prefix"), unit, text("middle"), close, text("suffix")].concat().into_bytes()
}

/// The request of a vector: with its own headers where it has any, and those of a call where it is about the body.
pub(super) fn request(input: &Value) -> Request<Bytes> {
    let mut request = standing::posted("tools/call", Some("execute_trade"), body(input));
    if let Some(lines) = input["headers"].as_array() {
        for own in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
            request.headers_mut().remove(own);
        }
        for line in lines {
            let name = HeaderName::try_from(line[0].as_str().unwrap()).unwrap();
            let value = HeaderValue::from_bytes(line[1].as_str().unwrap().as_bytes()).unwrap();
            request.headers_mut().append(name, value);
        }
    }
    request
}

/// What a fault says of itself; a listener may refuse before the message is looked at, and then says its own word.
pub(super) fn is_said(answer: &Answer, fault: &Value) -> bool {
    let said = answer.json();
    if said.get("jsonrpc").is_none() {
        let listeners = [
            (400, "invalid_request"),
            (403, "invalid_origin"),
            (413, "request_body_too_large"),
            (415, "unsupported_media_type"),
            (421, "misdirected_request"),
        ];
        return listeners.contains(&(answer.status, said["error"].as_str().unwrap_or_default()));
    }
    let text = |id: &str| answer.body.windows(id.len()).any(|window| window == id.as_bytes());
    said["error"]["code"] == fault["jsonrpc_code"]
        && u64::from(answer.status) == fault["http_status"]
        && (fault["error"].is_null() || said["error"]["data"]["error"] == fault["error"])
        && fault["id"].as_str().map_or_else(|| said["id"].is_null(), |id| text(&format!(r#""id":{id},"#)))
}

/// What the answer at one host must be equal to at another. A gateway of others is told of a header of MCP's that came with
/// a comma in a word of its own, because it may be two lines.
fn differs(host: &Standing, request: &Request<Bytes>) -> bool {
    let joined = request
        .headers()
        .iter()
        .any(|(name, value)| name.as_str().starts_with("mcp-") && value.as_bytes().contains(&b','));
    host.is_asked() && joined
}

// CORE-84, CORE-89, MCP-08, MCP-09, MCP-25, MCP-26, MCP-27
#[tokio::test]
async fn a_hostile_message_has_one_answer_at_every_host_and_reaches_nobody() {
    let authority = Stub::granting(&one_trade());
    let hosts = standing::all(&STAGE, &(Arc::clone(&authority) as Arc<dyn Authority>)).await;
    let mut tried = 0;
    for (name, vector) in vectors().iter().filter(|(_, vector)| !vector["expect"]["fault"].is_null()) {
        let plain = request(&vector["input"]);
        let granted = plain.headers().get("authorization").is_none().then(|| signed(plain.clone()));
        for (what, request) in [(Some(plain), "unsigned"), (granted, "signed")].map(|(one, what)| (what, one))
        {
            let Some(request) = request else { continue };
            let mut first: Option<Answer> = None;
            for host in &hosts {
                let what = format!("{name}, {what}, at {}", host.name);
                let answer = host.send(request.clone()).await;
                assert!(is_said(&answer, &vector["expect"]["fault"]), "{what}: {answer:?}");
                assert!(answer.headers.get("www-authenticate").is_none(), "{what}");
                assert_eq!((host.reached(), authority.asked()), (0, Vec::new()), "{what}");
                if !differs(host, &request) {
                    let one = first.get_or_insert_with(|| answer.clone());
                    assert_eq!((one.status, &one.body), (answer.status, &answer.body), "{what}");
                }
            }
        }
        tried += 1;
    }
    assert!(tried > 120, "only {tried} hostile messages were found");
    // The control: the same hosts, and nothing wrong with the message.
    for host in &hosts {
        host.send(standing::listing()).await;
        host.send(signed(standing::call("execute_trade", standing::TRADE, ""))).await;
        assert_eq!(host.reached(), 2, "{}", host.name);
    }
}
