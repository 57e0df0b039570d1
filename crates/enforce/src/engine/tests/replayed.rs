//! Signatures that come again: what counts is who signed what, not the nonce they chose or the label they wrote.

use super::*;
use sayso_protocol::SigningKey;
use sayso_protocol::payload::protection::LiveGrant;
use sayso_protocol::sig::{Body, Facts, SignOptions};

const NONCE: &str = "one-and-the-same";

/// The honest call, signed by this key under the one nonce.
fn with_nonce(key: &SigningKey) -> Incoming {
    let mut incoming = signed("get_positions", "{}");
    let body = crate::scripted::body_of(&incoming);
    let facts = Facts {
        method: "POST",
        scheme: "https",
        authority: "gw.example.test",
        path: "/mcp",
        query: None,
        headers: &incoming.head.headers,
        body: Body::Whole(&body),
    };
    let options = SignOptions { nonce: Some(NONCE), ..SignOptions::default() };
    let signature = sayso_protocol::sig::sign(&facts, key, NOW, &options).unwrap();
    signature.insert_into(&mut incoming.head.headers);
    incoming
}

fn replace(incoming: &mut Incoming, field: &'static str, from: &str, to: &str) {
    let text = incoming.head.headers[field].to_str().unwrap().replacen(from, to, 1);
    incoming.head.headers.insert(field, HeaderValue::from_str(&text).unwrap());
}

async fn of(scene: &Scene, incoming: &Incoming) -> String {
    told(&scene.decide(incoming).await)
}

#[tokio::test]
async fn two_agents_may_choose_one_nonce() {
    let scene = Scene::with(reusable());
    assert_eq!(of(&scene, &with_nonce(&key(0x22))).await, "permit");
    let mut others: LiveGrant = reusable();
    others.cnf.jwk = key(0x33).verifying().jwk();
    *scene.authority.introspection.lock().unwrap() = Ok(Introspection::Live(Box::new(others)));
    assert_eq!(of(&scene, &with_nonce(&key(0x33))).await, "permit");
}

#[tokio::test]
async fn a_stranger_cannot_use_up_somebodys_nonce() {
    let scene = Scene::with(reusable());
    assert_eq!(of(&scene, &with_nonce(&key(0x33))).await, "invalid_token");
    assert_eq!(of(&scene, &with_nonce(&key(0x22))).await, "permit");
}

#[tokio::test]
async fn another_label_is_no_other_signature() {
    let scene = Scene::with(reusable());
    let mut again = with_nonce(&key(0x22));
    assert_eq!(of(&scene, &again).await, "permit");
    for field in ["signature-input", "signature"] {
        replace(&mut again, field, "sig1=", "other=");
    }
    assert_eq!(of(&scene, &again).await, "invalid_token");
    // It is the label's own fault no more than any: under a fresh signature it is as good.
    let mut fresh = signed("get_positions", "{}");
    for field in ["signature-input", "signature"] {
        replace(&mut fresh, field, "sig1=", "other=");
    }
    assert_eq!(of(&scene, &fresh).await, "permit");
}

#[tokio::test]
async fn what_never_verified_leaves_no_mark() {
    let scene = Scene::with(reusable());
    let honest = with_nonce(&key(0x22));
    let mut spoilt = honest.clone();
    let other = sayso_protocol::sig::content_digest(b"{}");
    spoilt.head.headers.insert("content-digest", HeaderValue::from_str(&other).unwrap());
    assert_eq!(of(&scene, &spoilt).await, "invalid_token");
    assert_eq!(of(&scene, &honest).await, "permit");
}
