//! Callers that hang up while others are asked for their sake: what was begun is finished, counted and remembered.
//!
//! So nobody is kept from being heard by them, and they make this authority ask no more than whoever stays does.

use crate::house::{Agent, FORMAT, House, Talk};
use crate::identified::{self, Issuer, KEYS, Told, commit, credential};
use crate::introductions::body;
use crate::wire::{Sent, fresh_key};
use sayso_protocol::payload::agreement::{self, AgreementClaims, Showing};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

const CLIENT: &str = "https://op.example/agents/ledger.json";

/// Every page takes this long, in milliseconds.
fn slow(house: &House, millis: u64) {
    house.web.slow.store(millis, Ordering::SeqCst);
    house.web.asked();
}

async fn settle(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
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

fn described(talk: &Talk<'_>, client_id: &str) -> Sent {
    let showing = Showing { client_id: Some(client_id), ..Showing::default() };
    let claims: AgreementClaims = serde_json::from_value(talk.claims()).unwrap();
    let token = agreement::sign_as(&talk.agent.key, &showing, &claims).unwrap();
    talk.request(&talk.ticket, &[("claim_token", &*token), ("claim_token_format", FORMAT)])
}

// D-41, POL-32
#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_is_looked_at_once_at_a_time_whoever_hangs_up() {
    let house = House::new().await;
    house.web.put(CLIENT, json!({ "client_id": CLIENT, "client_name": "Ledger bot" }));
    let agent = Agent::new();
    let talk = agent.negotiate(&house, &house.alice, "execute_trade").await;
    slow(&house, 1500);
    for _ in 0..10 {
        described(&talk, CLIENT).hung_up(house.address).await;
    }
    assert_eq!(house.web.asked().len(), 1);
    settle(1600).await;
    // The ticket is as good as it was, and what was found is there for everybody.
    let answer = house.send(described(&talk, CLIENT)).await;
    assert_eq!(answer.told(), (403, "request_submitted".into()));
    assert_eq!(house.web.asked(), []);
    let seen = house.read(&house.alice, &format!("/pending/{}", talk.family())).await;
    assert_eq!(seen["assurance"]["accountability"], 1);
}

// D-41
#[tokio::test(flavor = "multi_thread")]
async fn what_strangers_say_runs_them_is_looked_for_in_bounds_whoever_hangs_up() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talks = vec![];
    for _ in 0..48 {
        talks.push(agent.negotiate(&house, &house.alice, "get_positions").await);
    }
    slow(&house, 100);
    for (n, talk) in talks.iter().enumerate() {
        described(talk, &format!("https://op.example/{n}.json")).hung_up(house.address).await;
    }
    let asked = house.web.asked().len();
    assert!((1..=32).contains(&asked), "as often as one source may fail in a minute, not {asked}");
}

fn introduction(house: &House, place: usize) -> Sent {
    let body: Value = body("alice", &format!("https://rs.example/m{place}"));
    house.sign(Sent::new("POST", "/rs/register").json(&body), &fresh_key())
}

// FED-51, D-41
#[tokio::test(flavor = "multi_thread")]
async fn made_up_resources_are_looked_at_in_bounds_whoever_hangs_up() {
    let house = House::new().await;
    slow(&house, 100);
    for place in 0..30 {
        introduction(&house, place).hung_up(house.address).await;
    }
    let asked = house.web.asked().len();
    assert!((1..=8).contains(&asked), "as often as one origin may fail in a minute, not {asked}");
    let answer = house.send(introduction(&house, 99)).await;
    assert_eq!(answer.refusal(), (429, "too_many_requests".into()));
    // In the name of what failed nobody is asked either.
    let answer = house.send(introduction(&house, 0)).await;
    assert_eq!(answer.refusal(), (429, "too_many_requests".into()));
    house.pass(61);
    let answer = house.send(introduction(&house, 99)).await;
    assert_eq!(answer.refusal(), (401, "invalid_client".into()));
    assert_eq!(house.web.asked().len(), 1);
}
