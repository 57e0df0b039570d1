//! Every hostile message of `vectors/message`, unsigned and signed by whoever holds a good grant, through every host that
//! sees HTTP: one answer, nobody behind it, nobody asked, nothing spent.

use super::authority::Stub;
use super::standing::{self, Answer, Standing, one_trade, reading, signed};
use super::vectors::STAGE;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use sayso_enforce::Authority;
use sayso_protocol::message::vectors::body;
use sayso_testkit::source;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
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

/// What comes of an honest message.
enum Comes {
    /// It gets there.
    Open,
    /// It gets there with a grant.
    Protected,
    /// This is said to it, in JSON-RPC or as a word.
    No(u16, &'static str),
}

/// The tool a call names.
fn tool(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Params {
        name: String,
    }
    #[derive(Deserialize)]
    struct Call {
        params: Params,
    }
    serde_json::from_slice::<Call>(body).unwrap().params.name
}

fn comes(message: &Value, body: &[u8]) -> Comes {
    let refused = |word| Comes::No(403, word);
    let modern = message["revision"] == "2026-07-28";
    match (message["kind"].as_str().unwrap(), message["method"].as_str().unwrap_or_default()) {
        _ if body.len() > 1 << 20 => Comes::No(413, "request_body_too_large"),
        ("request", "tools/call") => match &*tool(body) {
            "get_positions" | "execute_trade" => Comes::Protected,
            _ => refused("unknown_tool"),
        },
        ("request", "tools/list" | "ping") | ("notification", _) => Comes::Open,
        ("request", _) if modern => Comes::No(404, "unknown_method"),
        _ => refused("unknown_method"),
    }
}

/// The vector's request; one that names no headers is an older client's.
fn older_or(input: &Value) -> Request<Bytes> {
    let mut request = request(input);
    if input["headers"].is_null() {
        for own in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
            request.headers_mut().remove(own);
        }
    }
    request
}

#[derive(Deserialize)]
struct Addressed {
    id: Box<RawValue>,
}

/// The id of an answer in JSON-RPC, to the letter.
fn id(answer: &Answer) -> Option<String> {
    let said: Addressed = serde_json::from_slice(&answer.body).ok()?;
    Some(said.id.get().to_owned())
}

/// What rmcp does not take and this does: ids and numbers beyond 64 bits.
const UNREAD: [&str; 2] = ["beyond 64 bits", "a long number"];

/// An honest call or word: to the letter under its own id, and no further than its method allows.
async fn is_taken_for_itself(host: &Standing, what: &str, vector: &Value) {
    let message = &vector["expect"]["message"];
    let plain = older_or(&vector["input"]);
    let before = host.reached();
    let answer = host.send(plain.clone()).await;
    let what = format!("{what} at {}: {answer:?}", host.name);
    let addressed = |answer: &Answer| {
        let own = message["id"].as_str().filter(|_| message["kind"] == "request").unwrap_or("null");
        // Results are the server's own.
        let ours = answer.json().get("error").is_some();
        assert!(!ours || id(answer).is_none_or(|id| id == own), "{what}");
    };
    addressed(&answer);
    match comes(message, plain.body()) {
        // rmcp answers what it can by itself.
        Comes::Open => {
            assert!((200..300).contains(&answer.status) && answer.json().get("error").is_none(), "{what}");
            assert!(host.name == "guard" || host.reached() == before + 1, "{what}");
        }
        Comes::No(status, word) => {
            assert_eq!((answer.refused_with(), answer.error()), (status.into(), word.into()), "{what}");
            assert_eq!(host.reached(), before, "{what}");
        }
        Comes::Protected => {
            let said = (answer.refused_with(), answer.error(), host.reached());
            assert_eq!(said, (401, "insufficient_authorization".into(), before), "{what}");
            if tool(plain.body()) == "get_positions" {
                let answer = host.send(signed(plain)).await;
                let unread = host.name == "guard" && UNREAD.iter().any(|name| what.contains(name));
                assert_eq!(host.reached(), before + usize::from(!unread), "{what}, signed: {answer:?}");
                addressed(&answer);
            }
        }
    }
}

// CORE-84, CORE-88, MCP-05, MCP-06, MCP-10, MCP-26: the neighbours of what is hostile, which are honest.
#[tokio::test]
async fn an_honest_message_is_taken_for_what_it_is_at_every_host() {
    let authority = Stub::granting(&reading());
    let hosts = standing::all(&STAGE, &(authority as Arc<dyn Authority>)).await;
    let mut tried = 0;
    for (name, vector) in vectors().iter().filter(|(_, vector)| !vector["expect"]["message"].is_null()) {
        for host in &hosts {
            is_taken_for_itself(host, name, vector).await;
        }
        tried += 1;
    }
    assert!(tried > 30, "only {tried} honest messages were found");
}
