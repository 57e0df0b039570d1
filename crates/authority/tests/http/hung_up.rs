//! Callers that hang up while others are asked for their sake: what was begun is finished, counted and remembered.
//!
//! So nobody is kept from being heard by them, and they make this authority ask no more than whoever stays does.

use crate::house::{Agent, House};
use crate::identified::{self, Issuer, KEYS, Told, commit, credential};
use serde_json::json;
use std::sync::atomic::Ordering;

/// Every page takes this long, in milliseconds.
fn slow(house: &House, millis: u64) {
    house.web.slow.store(millis, Ordering::SeqCst);
    house.web.asked();
}

/// A made-up credential of the issuer's, shown by whoever does not wait for what comes of it.
async fn strike(house: &House, issuer: &Issuer) {
    let stranger = Agent::new();
    let talk = stranger.negotiate(house, &house.alice, "get_positions").await;
    let made_up = issuer.name(house, &stranger.key, json!({ "kid": "made-up" }), json!({}));
    identified::request(&talk, &stranger, &made_up).hung_up(house.address).await;
}

/// What comes of a good credential.
async fn shown(house: &House, issuer: &Issuer) -> (u16, String) {
    let agent = Agent::new();
    let mut talk = agent.negotiate(house, &house.alice, "get_positions").await;
    let good = issuer.name(house, &agent.key, json!({}), json!({}));
    commit(&mut talk, &credential(&good)).await.told()
}

// AAUTH-09, CORE-46
#[tokio::test(flavor = "multi_thread")]
async fn nobody_keeps_an_issuer_from_being_heard() {
    let house = identified::house().await;
    let issuer = Issuer::at(&house);
    slow(&house, 300);
    strike(&house, &issuer).await;
    assert_eq!(shown(&house, &issuer).await, (403, "request_submitted".into()));
    assert_eq!(house.web.asked().len(), 2, "it was asked once, and both heard it");
}

// AAUTH-09, CORE-46
#[tokio::test(flavor = "multi_thread")]
async fn nobody_keeps_a_withdrawal_from_being_heard() {
    let house = identified::house().await;
    let issuer = Issuer::at(&house);
    assert_eq!(shown(&house, &issuer).await, (403, "request_submitted".into()));
    let mut other = issuer.published();
    other["kid"] = "k2".into();
    house.web.put(KEYS, json!({ "keys": [other] }));
    slow(&house, 100);
    house.pass(299);
    strike(&house, &issuer).await;
    house.pass(1);
    assert_eq!(shown(&house, &issuer).await, (403, "request_denied".into()));
}
