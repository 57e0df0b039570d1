//! Proof of possession at every host that sees HTTP: every vector of `vectors/sig` that is a call here, and the same
//! bytes again. And what the hosts publish, which is one thing.

use super::authority::Stub;
use super::standing::{self, Answer, grant, one_trade, reading, signed, signed_by};
use super::vectors::{self, STAGE, Stage};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request};
use sayso_enforce::{Authority, Enforcement};
use sayso_protocol::{SigningKey, Timestamp};
use sayso_testkit::source;
use serde_json::Value;
use std::sync::Arc;

/// Where the signature vectors are set, and the key they are made by.
const THERE: Stage =
    Stage { public: "https://gateway.example", now: Timestamp(1_800_000_000), enforcement: Enforcement::Uma };

fn vectors_of_signatures() -> Vec<Value> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(source::root().join("vectors/sig")).unwrap() {
        let file: Value = serde_json::from_slice(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap();
        found.extend(file["vectors"].as_array().unwrap().iter().cloned());
    }
    found
}

/// The vector as a call, if it is one at the address of the resource; what nobody signed is added where it is missing.
fn called(vector: &Value) -> Option<Request<Bytes>> {
    let sent = &vector["request"];
    let here = sent["authority"] == "gateway.example" && sent["path"] == "/mcp" && sent["scheme"] == "https";
    let plain = vector["profile"].is_null() && sent["query"].is_null() && sent["method"] == "POST";
    let body = sent["body"].as_str().filter(|body| body.contains("tools/call"))?;
    if !(here && plain) {
        return None;
    }
    let mut request = Request::new(Bytes::from(body.to_owned()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = "/mcp".parse().unwrap();
    for line in sent["headers"].as_array().unwrap() {
        let name = HeaderName::try_from(line[0].as_str().unwrap()).ok()?;
        request.headers_mut().append(name, HeaderValue::from_str(line[1].as_str().unwrap()).ok()?);
    }
    for (name, value) in
        [("accept", "application/json, text/event-stream"), ("content-type", "application/json")]
    {
        request.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    Some(request)
}

/// A live grant there, of the key of the vectors.
fn grant_there() -> Value {
    let mut grant = grant(&SigningKey::from_seed(&[7; 32]).unwrap(), "get_positions", "positions:read", None);
    grant["aud"] = THERE.public.into();
    grant["iat"] = (THERE.now.0 - 10).into();
    grant["exp"] = (THERE.now.0 + 600).into();
    grant
}

// CORE-56, CORE-57, CORE-58, CORE-61, CORE-91, CORE-95, E5, E21
#[tokio::test]
async fn every_signature_counts_at_every_host_for_what_it_is() {
    let (mut good, mut bad) = (0, 0);
    for vector in vectors_of_signatures() {
        let Some(request) = called(&vector) else { continue };
        let holds = vector["expect"]["verified"] == true;
        let authority = Stub::granting(&grant_there());
        let hosts = standing::all(&THERE, &(Arc::clone(&authority) as Arc<dyn Authority>)).await;
        let mut first: Option<Answer> = None;
        for host in &hosts {
            let what = format!("{} at {}", vector["name"], host.name);
            let answer = host.send(request.clone()).await;
            assert_eq!(host.reached(), usize::from(holds), "{what}: {answer:?}");
            if host.reached() > 0 {
                good += 1;
                continue;
            }
            bad += 1;
            assert!([400, 401, 421].contains(&answer.refused_with()), "{what}: {answer:?}");
            assert!(answer.headers.get("mcp-session-id").is_none(), "{what}");
            let one = first.get_or_insert_with(|| answer.clone());
            assert_eq!((one.error(), one.refused_with()), (answer.error(), answer.refused_with()), "{what}");
        }
        assert!(!authority.asked().contains(&"consume".to_owned()), "{}", vector["name"]);
    }
    assert!(good > 50 && bad > 200, "{good} good and {bad} bad ones were sent");
}

// CORE-95, D-9, E6: a signature is good once at every host, whatever the grant would allow.
#[tokio::test]
async fn the_same_bytes_again_are_refused_at_every_host() {
    let authority = Stub::granting(&reading());
    let read = || standing::call("get_positions", "{}", "");
    for host in standing::all(&STAGE, &(Arc::clone(&authority) as Arc<dyn Authority>)).await {
        let once = signed(read());
        host.send(once.clone()).await;
        assert_eq!(host.reached(), 1, "{}", host.name);
        for again in [once.clone(), relabelled(&once), respelled(&once)] {
            let answer = host.send(again).await;
            let said = (answer.error(), answer.refused_with(), host.reached());
            assert_eq!(said, ("invalid_token".into(), 401, 1), "{}: {answer:?}", host.name);
        }
        host.send(signed(read())).await;
        assert_eq!(host.reached(), 2, "{}", host.name);
    }
}

/// The same signature under another label.
fn relabelled(request: &Request<Bytes>) -> Request<Bytes> {
    rewritten(request, |text| text.replacen("sig1=", "again=", 1))
}

/// The same in other white space.
fn respelled(request: &Request<Bytes>) -> Request<Bytes> {
    rewritten(request, |text| format!(" {text}  "))
}

fn rewritten(request: &Request<Bytes>, change: impl Fn(&str) -> String) -> Request<Bytes> {
    let mut changed = request.clone();
    for name in ["signature", "signature-input"] {
        let line = request.headers()[name].to_str().unwrap();
        changed.headers_mut().insert(name, HeaderValue::from_bytes(change(line).as_bytes()).unwrap());
    }
    changed
}

// CORE-61, CORE-89, E5: what was signed is what runs, and a single call is covered whole.
#[tokio::test]
async fn a_body_or_target_changed_on_its_way_proves_nothing() {
    let authority = Stub::granting(&one_trade());
    let trade = || standing::call("execute_trade", standing::TRADE, "");
    let stranger = SigningKey::from_seed(&[0x33; 32]).unwrap();
    let swapped = |from: &str, to: &str| {
        let mut request = signed(trade());
        let text = String::from_utf8(request.body().to_vec()).unwrap();
        assert!(text.contains(from));
        *request.body_mut() = text.replacen(from, to, 1).into();
        request
    };
    let without = |name: &str| {
        let mut request = signed(trade());
        request.headers_mut().remove(name);
        request
    };
    let redigested = {
        let mut request = swapped("\"quantity\":3", "\"quantity\":9");
        let digest = signed(trade().map(|_| request.body().clone())).headers()["content-digest"].clone();
        request.headers_mut().insert("content-digest", digest);
        request
    };
    for host in standing::all(&STAGE, &(Arc::clone(&authority) as Arc<dyn Authority>)).await {
        for (what, request) in [
            ("other arguments", swapped("\"quantity\":3", "\"quantity\":9")),
            ("other white space", swapped("\"quantity\":3", "\"quantity\": 3")),
            ("another id", swapped("\"id\":1", "\"id\":2")),
            ("another digest", redigested.clone()),
            ("no digest", without("content-digest")),
            ("no signature", without("signature")),
            ("no input", without("signature-input")),
            ("another key", signed_by(trade(), &stranger, Some("t.o.k"))),
        ] {
            let answer = host.send(request).await;
            let said = (answer.error(), answer.refused_with(), host.reached());
            assert_eq!(said, ("invalid_token".into(), 401, 0), "{what} at {}: {answer:?}", host.name);
        }
        assert!(!authority.asked().contains(&"consume".to_owned()), "{}", host.name);
    }
}

// CORE-10, CORE-115, FED-01, MCP-01, MCP-02, E19: one registry, and so one document at whichever host it is asked for.
#[tokio::test]
async fn every_host_publishes_the_same_documents() {
    let authority = Stub::granting(&reading());
    let hosts = standing::all(&STAGE, &(authority as Arc<dyn Authority>)).await;
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/aauth-resource.json"] {
        let mut first: Option<Answer> = None;
        for host in hosts.iter().filter(|host| host.name != "checked over grpc") {
            let mut request = Request::new(Bytes::new());
            *request.uri_mut() = path.parse().unwrap();
            standing::with(&mut request, "host", "gw.example.test");
            let answer = host.send(request).await;
            assert_eq!(answer.status, 200, "{path} at {}", host.name);
            assert!(
                answer.json()["resource"] == format!("{}/mcp", vectors::PUBLIC) || path.contains("aauth")
            );
            let one = first.get_or_insert_with(|| answer.clone());
            assert_eq!(one.json(), answer.json(), "{path} at {}", host.name);
        }
    }
}
