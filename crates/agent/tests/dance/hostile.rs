//! Peers that cheat. What matters each time: who got how much, and that nothing was signed for it.

use crate::house::{House, Plan, Words, challenged, honest, jwks, key, now, result};
use crate::stub::{Answer, Bound, Seen, Site};
use sayso_agent::fault::{Fault, Kind, Uncorroborated};
use sayso_agent::{Errand, Outcome};
use sayso_protocol::envelope::jsonrpc;
use sayso_protocol::envelope::rfc9728::{self, BadDocument};
use sayso_protocol::jws::{self, KeyName};
use sayso_protocol::payload::challenge::{BadChallenge, Challenge};
use serde_json::{Value, json};

/// A server nobody should talk to.
pub(crate) async fn trap() -> Site {
    Bound::new().await.serve(|_| Answer::json(200, json!({})))
}

fn unsigned_call(seen: &Seen) -> bool {
    seen.json()["method"] == "tools/call" && seen.header("authorization").is_none()
}

/// The resource challenges with what `alter` makes of an honest challenge.
fn challenging(alter: impl Fn(&Plan, &mut Challenge) + Send + Sync + 'static) -> Words {
    Box::new(move |plan, seen| {
        unsigned_call(seen).then(|| {
            let mut challenge = plan.challenge(&plan.authority, "ticket-0");
            alter(plan, &mut challenge);
            challenged(&challenge)
        })
    })
}

/// The resource publishes what `alter` makes of an honest document.
fn publishing(alter: impl Fn(&Plan, &mut Value) + Send + Sync + 'static) -> Words {
    Box::new(move |plan, seen| {
        (seen.path == "/.well-known/oauth-protected-resource/mcp").then(|| {
            let mut document = plan.document();
            alter(plan, &mut document);
            Answer::json(200, document)
        })
    })
}

pub(crate) async fn fault(house: &House) -> Fault {
    house.call(3).await.unwrap_err()
}

fn uncorroborated(fault: &Fault) -> Option<Uncorroborated> {
    if let Fault::Uncorroborated(why) = fault { Some(*why) } else { None }
}

// CORE-32, MCP-04
#[tokio::test]
async fn an_authority_the_resource_does_not_publish_gets_not_one_byte() {
    let evil = trap().await;
    for as_uri in [
        evil.url.clone(),
        format!("{}/tenant", evil.url),
        // Its own name in front of somebody else's.
        format!("http://as.example.test@{}", evil.url.strip_prefix("http://").unwrap()),
    ] {
        let named = as_uri.clone();
        let words = challenging(move |plan, challenge| *challenge = plan.challenge(&named, "ticket-0"));
        let house = House::start(true, 0, words, honest()).await;
        let fault = fault(&house).await;
        assert_eq!(uncorroborated(&fault), Some(Uncorroborated::NotPublished), "{as_uri}");
        assert_eq!(fault.kind(), Kind::Refused);
        assert!(house.authority.seen().is_empty());
        assert_eq!(house.calls().len(), 1);
    }
    assert!(evil.seen().is_empty(), "not one byte");
}

/// A server that advertises one authority in its handshake and names another in its challenge.
fn advertising(advertised: String, named: Option<String>) -> Words {
    Box::new(move |plan, seen| {
        if seen.json()["method"] == "server/discover" {
            let advert = jsonrpc::advert(jsonrpc::Codes::default(), std::slice::from_ref(&advertised));
            let capabilities = json!({ "extensions": { (jsonrpc::EXTENSION): advert } });
            let told = json!({"supportedVersions": ["2026-07-28"], "resultType": "complete"});
            let mut told = told.as_object().cloned().unwrap();
            told.insert("capabilities".into(), capabilities);
            return Some(result(seen, told.into()));
        }
        let named = named.as_deref().unwrap_or(&plan.authority);
        unsigned_call(seen).then(|| challenged(&plan.challenge(named, "ticket-0")))
    })
}

// MCP-04: a handshake neither corroborates an authority nor speaks against the one that is published.
#[tokio::test]
async fn the_document_has_the_last_word_whatever_the_handshake_says() {
    let evil = trap().await;
    let house = House::start(true, 0, advertising(evil.url.clone(), None), honest()).await;
    assert!(matches!(house.call(3).await, Ok(Outcome::Result { .. })), "published and challenged with");
    let house = House::start(true, 0, advertising(evil.url.clone(), Some(evil.url.clone())), honest()).await;
    assert_eq!(uncorroborated(&fault(&house).await), Some(Uncorroborated::NotPublished));
    assert!(house.authority.seen().is_empty() && evil.seen().is_empty());
}

#[tokio::test]
async fn an_issuer_is_compared_byte_for_byte() {
    for spoil in [
        |uri: &str| format!("{uri}/"),
        |uri: &str| format!("{uri}/Tenant"),
        |uri: &str| uri.replace("http", "HTTP"),
        |uri: &str| format!("{uri}.evil.test"),
    ] {
        let words =
            challenging(move |plan, challenge| *challenge = plan.challenge(&spoil(&plan.authority), "t"));
        let house = House::start(true, 0, words, honest()).await;
        assert_eq!(uncorroborated(&fault(&house).await), Some(Uncorroborated::NotPublished));
        assert!(house.authority.seen().is_empty());
    }
}

// CORE-30
#[tokio::test]
async fn a_metadata_document_of_somebody_elses_is_not_fetched() {
    let evil = trap().await;
    let named = format!("{}/prm", evil.url);
    let url = evil.url.clone();
    let words = challenging(move |plan, challenge| {
        *challenge = plan.challenge(&url, "ticket-0");
        challenge.resource_metadata = named.clone();
    });
    let house = House::start(true, 0, words, honest()).await;
    assert_eq!(uncorroborated(&fault(&house).await), Some(Uncorroborated::ForeignDocument));
    assert!(evil.seen().is_empty() && house.authority.seen().is_empty());
}

// CORE-31
#[tokio::test]
async fn a_document_about_another_resource_ends_it() {
    for resource in [json!("https://gw.example.test/mcp"), json!(null), json!(["x"])] {
        let words = publishing(move |_, document| document["resource"] = resource.clone());
        let house = House::start(true, 0, words, honest()).await;
        let why = uncorroborated(&fault(&house).await);
        assert_eq!(why, Some(Uncorroborated::Document(BadDocument::AnotherResource)));
        assert!(house.authority.seen().is_empty());
    }
    let house = House::start(
        true,
        0,
        publishing(|plan, d| d["resource"] = json!(format!("{}/", plan.resource))),
        honest(),
    );
    let house = house.await;
    let why = uncorroborated(&fault(&house).await);
    assert_eq!(why, Some(Uncorroborated::Document(BadDocument::AnotherResource)));
}

// FED-07
#[tokio::test]
async fn the_signed_copy_is_verified_and_must_agree() {
    let evil = trap().await;
    let url = evil.url.clone();
    let rogue = publishing(move |_, document| document["authorization_servers"] = json!([url]));
    let forged = publishing(|plan, document| {
        *document = rfc9728::document(&plan.metadata(), &key(9), now()).unwrap();
    });
    let foreign_keys =
        publishing(|plan, document| document["jwks_uri"] = json!(format!("{}/jwks", plan.authority)));
    let nobody = publishing(|_, document| document["authorization_servers"] = json!([]));
    let stale = publishing(|plan, document| {
        let mut claims = document.clone();
        let members = claims.as_object_mut().unwrap();
        members.remove("signed_metadata");
        members.insert("iss".into(), json!(plan.resource));
        members.insert("exp".into(), json!(now().plus(-1)));
        let signed = jws::sign(&key(1), rfc9728::TYP, &KeyName::Kid(&key(1).kid()), &claims).unwrap();
        document["signed_metadata"] = json!(signed);
    });
    for (words, why) in [
        (rogue, Uncorroborated::Document(BadDocument::Disagreement)),
        (forged, Uncorroborated::Document(BadDocument::Signature)),
        (foreign_keys, Uncorroborated::ForeignKeys),
        (nobody, Uncorroborated::Document(BadDocument::Disagreement)),
        (stale, Uncorroborated::Document(BadDocument::Time)),
    ] {
        let house = House::start(true, 0, words, honest()).await;
        assert_eq!(uncorroborated(&fault(&house).await), Some(why));
        assert!(house.authority.seen().is_empty());
    }
    assert!(evil.seen().is_empty());
    let silent = Box::new(|_: &Plan, seen: &Seen| {
        seen.path.starts_with("/.well-known/").then(|| Answer::json(404, json!({"error": "not_found"})))
    });
    let house = House::start(true, 0, silent, honest()).await;
    assert_eq!(uncorroborated(&fault(&house).await), Some(Uncorroborated::NoDocument(404)));
}

// CORE-32
#[tokio::test]
async fn a_document_that_names_nobody_names_no_authority() {
    for nobody in [json!([]), json!(null), json!("x"), json!([7])] {
        let words = publishing(move |_, document| {
            document.as_object_mut().unwrap().remove("signed_metadata");
            document["authorization_servers"] = nobody.clone();
        });
        let house = House::start(true, 0, words, honest()).await;
        assert_eq!(uncorroborated(&fault(&house).await), Some(Uncorroborated::NotPublished));
        assert!(house.authority.seen().is_empty());
    }
}

#[tokio::test]
async fn an_unsigned_document_is_taken_until_a_signed_one_was_seen() {
    let unsigned = || {
        publishing(|_, document| {
            document.as_object_mut().unwrap().remove("signed_metadata");
        })
    };
    let house = House::start(false, 0, unsigned(), honest()).await;
    assert!(matches!(house.call(3).await.unwrap(), Outcome::Result { failed: false, .. }));
    let stripped = std::sync::atomic::AtomicBool::new(false);
    let words: Words = Box::new(move |plan, seen| {
        if !stripped.swap(
            seen.path == "/jwks" || stripped.load(std::sync::atomic::Ordering::SeqCst),
            std::sync::atomic::Ordering::SeqCst,
        ) {
            return None;
        }
        unsigned()(plan, seen)
    });
    let house = House::start(true, 0, words, honest()).await;
    house.call(3).await.unwrap();
    assert_eq!(uncorroborated(&fault(&house).await), Some(Uncorroborated::PinChanged));
}

#[tokio::test]
async fn an_authority_says_itself_who_it_is() {
    for (alter, why) in [
        (json!({"issuer": "https://evil.example.test"}), Uncorroborated::Issuer),
        (json!({"issuer": null}), Uncorroborated::Issuer),
        (json!({"token_endpoint": "https://evil.example.test/token"}), Uncorroborated::ForeignEndpoint),
        (json!({"jwks_uri": "https://evil.example.test/jwks"}), Uncorroborated::ForeignEndpoint),
        (json!({"grant_types_supported": ["authorization_code"]}), Uncorroborated::NoTickets),
    ] {
        let words = Box::new(move |plan: &Plan, seen: &Seen| {
            let mut metadata = plan.issuer_metadata();
            metadata.as_object_mut().unwrap().extend(alter.as_object().unwrap().clone());
            seen.path.starts_with("/.well-known/").then(|| Answer::json(200, metadata))
        });
        let house = House::start(true, 0, honest(), words).await;
        assert_eq!(uncorroborated(&fault(&house).await), Some(why));
        assert!(house.presented().is_empty(), "no ticket was presented");
    }
}

#[tokio::test]
async fn keys_seen_first_over_http_are_pinned() {
    let changed = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let switch = changed.clone();
    let words = Box::new(move |_: &Plan, seen: &Seen| {
        let other = seen.path == "/jwks" && switch.load(std::sync::atomic::Ordering::SeqCst);
        other.then(|| Answer::json(200, jwks(9)))
    });
    let house = House::start(true, 0, honest(), words).await;
    house.call(3).await.unwrap();
    changed.store(true, std::sync::atomic::Ordering::SeqCst);
    let before = house.presented().len();
    assert_eq!(uncorroborated(&fault(&house).await), Some(Uncorroborated::PinChanged));
    assert_eq!(house.presented().len(), before);
}

// CORE-28, CORE-29
#[tokio::test]
async fn a_challenge_that_contradicts_itself_is_dropped() {
    let evil = trap().await;
    let url = evil.url.clone();
    for words in [
        challenging(|_, challenge| challenge.ticket = "another".into()),
        challenging(move |_, challenge| challenge.remediation.authorization_server = url.clone()),
    ] {
        let house = House::start(true, 0, words, honest()).await;
        assert!(matches!(fault(&house).await, Fault::Challenge(BadChallenge::Contradiction)));
        assert!(house.authority.seen().is_empty());
    }
    assert!(evil.seen().is_empty());
}

#[tokio::test]
async fn arguments_that_cannot_be_bound_are_not_sent() {
    for arguments in
        ["[]", "", "{\"a\":1,\"a\":2}", "{\"a\":9007199254740993}", "{\"a\":1e999}", "{\"a\":\"\\ud800\"}"]
    {
        let errand = Errand::new("http://127.0.0.1:1/mcp", "t".parse().unwrap(), arguments);
        assert!(matches!(errand.err(), Some(Fault::Arguments(_))), "{arguments}");
    }
    assert!(Errand::new("http://127.0.0.1:1/mcp", "t".parse().unwrap(), "{\"a\":1.50,\"b\":-0.0}").is_ok());
}
