//! Proof of possession at every host that sees HTTP: every vector of `vectors/sig` that is a call here, and the same
//! bytes again. And what the hosts publish, which is one thing.

use super::authority::Stub;
use super::standing::{self, Answer, grant, one_trade, reading, signed, signed_by};
use super::vectors::{self, PUBLIC, STAGE, Stage};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request};
use sayso_enforce::Authority;
use sayso_protocol::envelope::{aauth, rfc9728};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::metadata::KeySet;
use sayso_protocol::{SigningKey, Timestamp};
use sayso_testkit::source;
use serde_json::{Value, json};
use std::sync::Arc;

/// Where the signature vectors are set, and the key they are made by.
const THERE: Stage = Stage { public: "https://gateway.example", now: Timestamp(1_800_000_000), ..STAGE };

fn vectors_of_signatures() -> Vec<Value> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(source::root().join("vectors/sig")).unwrap() {
        let file: Value = serde_json::from_slice(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap();
        found.extend(file["vectors"].as_array().unwrap().iter().cloned());
    }
    found
}

/// The vector as a call, if it is one at the address of the resource; what nobody signed is added where it is missing.
fn called(vector: &Value, within_query: bool) -> Option<Request<Bytes>> {
    let sent = &vector["request"];
    let query = sent["query"].as_str();
    if query.is_some() != within_query {
        return None;
    }
    let here = sent["authority"] == "gateway.example" && sent["path"] == "/mcp" && sent["scheme"] == "https";
    let plain = vector["profile"].is_null() && sent["method"] == "POST";
    let body = sent["body"].as_str().filter(|body| body.contains("tools/call"))?;
    if !(here && plain) {
        return None;
    }
    let mut request = Request::new(Bytes::from(body.to_owned()));
    *request.method_mut() = Method::POST;
    let target = query.map_or_else(|| "/mcp".to_owned(), |query| format!("/mcp?{query}"));
    *request.uri_mut() = target.parse().ok()?;
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

// CORE-55, CORE-56, CORE-57, CORE-59, CORE-60, CORE-61, CORE-62, CORE-63, E5, E21
#[tokio::test]
async fn every_signature_counts_at_every_host_for_what_it_is() {
    let (mut good, mut bad) = (0, 0);
    for vector in vectors_of_signatures() {
        let Some(request) = called(&vector, false) else { continue };
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

// D-9, E21: where a query is served it is covered, and where it cannot be it is refused.
#[tokio::test]
async fn a_query_is_signed_or_it_is_not_served() {
    let stage = Stage { serve_query: true, ..THERE };
    let (mut good, mut bad) = (0, 0);
    for vector in vectors_of_signatures() {
        let Some(request) = called(&vector, true) else { continue };
        let authority = Stub::granting(&grant_there());
        let hosts = standing::all(&stage, &(Arc::clone(&authority) as Arc<dyn Authority>)).await;
        for host in &hosts {
            let what = format!("{} at {}", vector["name"], host.name);
            let serves = !["layer", "guard"].contains(&host.name);
            let holds = serves && vector["expect"]["verified"] == true;
            let answer = host.send(request.clone()).await;
            assert_eq!(host.reached(), usize::from(holds), "{what}: {answer:?}");
            if !holds {
                let wanted = if serves { ("invalid_token", 401) } else { ("invalid_request", 400) };
                let said = (answer.error(), answer.refused_with());
                assert_eq!(said, (wanted.0.into(), wanted.1), "{what}: {answer:?}");
            }
            good += usize::from(holds);
            bad += usize::from(!holds);
        }
    }
    assert!(good > 3 && bad > 20, "{good} good and {bad} bad ones were sent");
}

// CORE-89, D-9, E6: a signature is good once at every host, whatever the grant would allow.
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
        assert!(!authority.forget().contains(&"consume".to_owned()), "{}", host.name);
        // What was refused is as good as before, and whoever names another host on the way changes nothing.
        let mut honest = signed(trade());
        honest.headers_mut().insert("host", HeaderValue::from_static("evil.example.test"));
        host.send(honest).await;
        assert_eq!(host.reached(), 1, "{}", host.name);
        assert_eq!(authority.forget(), ["introspect", "consume"], "{}", host.name);
    }
}

// CORE-10, CORE-115, FED-01, FED-02, FED-03, FED-06, FED-08, MCP-01, MCP-02, E19: one registry, and so one document at
// whichever host it is asked for, in either encoding; and what a challenge names is what is published.
#[tokio::test]
async fn every_host_publishes_the_same_documents() {
    for edition in Edition::ALL {
        let stage = Stage { edition, ..STAGE };
        let authority = Stub::granting(&reading());
        let hosts = standing::all(&stage, &(authority as Arc<dyn Authority>)).await;
        let mut found = Vec::new();
        for path in PUBLISHED {
            let mut first: Option<Answer> = None;
            for host in hosts.iter().filter(|host| host.name != "checked over grpc") {
                let answer = host.send(asked_for(path)).await;
                assert_eq!(answer.status, 200, "{path} at {}", host.name);
                assert!(!String::from_utf8_lossy(&answer.body).contains("alice"), "{path} at {}", host.name);
                let one = first.get_or_insert_with(|| answer.clone());
                assert_eq!(one.body, answer.body, "{path} at {}", host.name);
                assert_eq!(host.reached(), 0, "{}", host.name);
            }
            found.push(first.unwrap());
        }
        says_what_is_configured(&found);
    }
}

const PUBLISHED: [&str; 4] = [
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-protected-resource",
    "/.well-known/aauth-resource.json",
    "/jwks",
];

fn asked_for(path: &str) -> Request<Bytes> {
    let mut request = Request::new(Bytes::new());
    *request.uri_mut() = path.parse().unwrap();
    standing::with(&mut request, "host", "gw.example.test");
    request
}

/// Four documents, from one table.
fn says_what_is_configured(found: &[Answer]) {
    let newer = found[0].json();
    assert_eq!(found[0].body, found[1].body);
    let surfaces = json!([
        { "tool": "execute_trade", "resource_scopes": ["trades:execute"] },
        { "tool": "get_positions", "resource_scopes": ["positions:read"] },
    ]);
    let mut said = newer["tool_surfaces"].as_array().unwrap().clone();
    said.sort_by_key(|surface| surface["tool"].to_string());
    assert_eq!(Value::from(said), surfaces);
    for (member, value) in [
        ("resource", json!(format!("{PUBLIC}/mcp"))),
        ("authorization_servers", json!([vectors::AS_URI])),
        ("jwks_uri", json!(format!("{PUBLIC}/jwks"))),
        ("owner_resources_endpoint", json!(format!("{PUBLIC}/owner-resources"))),
    ] {
        assert_eq!(newer[member], value, "{member}");
    }
    let keys: KeySet = serde_json::from_slice(&found[3].body).unwrap();
    let url = format!("{PUBLIC}/mcp");
    let newer = rfc9728::read(&found[0].body, &url).unwrap().trust(&keys.keys(), STAGE.now).unwrap();
    let older = aauth::read(&found[2].body, &url).unwrap().trust(&keys.keys(), STAGE.now).unwrap();
    assert_eq!(aauth::metadata(&older), newer.metadata());
}

// CORE-58, FED-09, FED-10, FED-11, E6: her authority reads her instances, each question once, at every host that publishes; and
// nobody else does.
#[tokio::test]
async fn the_listing_is_one_thing_and_is_read_once_with_one_signature() {
    let authority = Stub::granting(&reading());
    let hosts = standing::all(&STAGE, &(authority as Arc<dyn Authority>)).await;
    let hers = |path| signed_by(asked_for(path), &vectors::authority_key(), None);
    let mut first: Option<Value> = None;
    for host in hosts.iter().filter(|host| host.name != "checked over grpc") {
        let once = hers("/owner-resources");
        let answer = host.send(once.clone()).await;
        assert_eq!(answer.status, 200, "{}: {answer:?}", host.name);
        let ids = answer.json()["resources"].as_array().unwrap().len();
        assert_eq!(ids, 2, "{}: {answer:?}", host.name);
        assert_eq!(first.get_or_insert_with(|| answer.json()), &answer.json(), "{}", host.name);
        let swapped = |other: Request<Bytes>| {
            let mut request = once.clone();
            *request.uri_mut() = other.uri().clone();
            request
        };
        for (what, request) in [
            ("again", once.clone()),
            ("again, otherwise labelled", relabelled(&once)),
            ("again, in other white space", respelled(&once)),
            ("unsigned", asked_for("/owner-resources")),
            ("an agent", signed_by(asked_for("/owner-resources"), &standing::agent(), None)),
            ("for another", swapped(asked_for("/owner-resources?owner=bob"))),
        ] {
            let answer = host.send(request).await;
            let said = (answer.status, answer.error());
            assert_eq!(said, (401, "invalid_signature".into()), "{what} at {}: {answer:?}", host.name);
            assert!(answer.json().get("resources").is_none(), "{what} at {}", host.name);
        }
        assert_eq!(host.reached(), 0, "{}", host.name);
    }
}
