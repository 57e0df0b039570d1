//! Whose signature it is, over what, for whom and when: the third step, and that none counts twice.

use super::*;

// CORE-55, CORE-87, CORE-93
#[tokio::test]
async fn possession_is_proven_with_the_key_introspection_returns() {
    let scene = Scene::with(reusable());
    let mut unsigned = call("get_positions", "{}");
    unsigned.head.headers.insert("authorization", HeaderValue::from_static("PoP header.claims.signature"));
    assert_eq!(scene.code(&unsigned).await, Code::InvalidToken);
    let stranger = sign(call("get_positions", "{}"), &key(0x33), NOW, "gw.example.test");
    assert_eq!(scene.code(&stranger).await, Code::InvalidToken);
    let mut grant = reusable();
    grant.cnf.jwk = key(0x33).verifying().jwk();
    let scene = Scene::with(grant);
    assert_eq!(told(&scene.decide(&stranger).await), "permit");
    assert_eq!(scene.code(&signed("get_positions", "{}")).await, Code::InvalidToken);
    assert_eq!(scene.authority.tickets(), 0);
}

// CORE-56, CORE-58, CORE-59, CORE-61, CORE-62, CORE-63
#[tokio::test]
async fn the_signature_is_of_this_request_to_this_authority_now() {
    let scene = Scene::with(reusable());
    let plain = || call("get_positions", "{}");
    let elsewhere = sign(plain(), &key(0x22), NOW, "evil.example.test");
    let mut matching = elsewhere.clone();
    matching.head.headers.insert("host", HeaderValue::from_static("evil.example.test"));
    let stale = sign(plain(), &key(0x22), NOW.plus(-61), "gw.example.test");
    let early = sign(plain(), &key(0x22), NOW.plus(61), "gw.example.test");
    let mut flipped = signed("get_positions", "{}");
    flipped.body = crate::Body::Whole(call_body("get_positions", "{ }").into());
    let mut digest = signed("get_positions", "{}");
    let other = sayso_protocol::sig::content_digest(b"{}");
    digest.head.headers.insert("content-digest", HeaderValue::from_str(&other).unwrap());
    let mut uncovered = plain();
    let body = std::mem::replace(&mut uncovered.body, crate::Body::Whole(bytes::Bytes::new()));
    uncovered = sign(uncovered, &key(0x22), NOW, "gw.example.test");
    uncovered.body = body;
    for incoming in [elsewhere, matching, stale, early, flipped, digest, uncovered.clone()] {
        assert_eq!(scene.code(&incoming).await, Code::InvalidToken);
    }
    let mut host = signed("get_positions", "{}");
    host.head.headers.insert("host", HeaderValue::from_static("gw-internal.svc:8080"));
    assert_eq!(told(&scene.decide(&host).await), "permit");
    let lax = crate::ResourceSettings { accept_uncovered_body: true, ..settings() };
    assert_eq!(told(&Scene::of(reusable(), lax).decide(&uncovered).await), "permit");
}

// CORE-62
#[tokio::test]
async fn a_single_approved_call_is_always_covered() {
    let lax = crate::ResourceSettings { accept_uncovered_body: true, ..settings() };
    let mut incoming = call("execute_trade", ARGUMENTS);
    let body = std::mem::replace(&mut incoming.body, crate::Body::Whole(bytes::Bytes::new()));
    incoming = sign(incoming, &key(0x22), NOW, "gw.example.test");
    incoming.body = body;
    let scene = Scene::of(single_use(), lax);
    assert_eq!(scene.code(&incoming).await, Code::InvalidToken);
    assert_eq!(scene.authority.consumed(), 0);
}

#[tokio::test]
async fn a_signature_is_used_once_whatever_became_of_it() {
    let scene = Scene::with(reusable());
    let once = signed("get_positions", "{}");
    assert_eq!(told(&scene.decide(&once).await), "permit");
    assert_eq!(scene.code(&once).await, Code::InvalidToken);
    let scene = Scene::with(single_use());
    let mismatch = signed("execute_trade", "{}");
    assert_eq!(scene.code(&mismatch).await, Code::OperationMismatch);
    assert_eq!(scene.code(&mismatch).await, Code::InvalidToken);
    assert_eq!((scene.authority.consumed(), scene.authority.tickets()), (0, 0));
}
