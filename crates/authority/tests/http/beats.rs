//! The beats of a negotiation over HTTP: terms, agreement, her decision, the grant, and each way it ends.
//!
//! A reply is checked with status, code, body and what the store holds afterwards.

use crate::house::{Agent, FORMAT, House};
use crate::wire::{Sent, fresh_key};
use sayso_protocol::canon::s256_bytes;
use sayso_protocol::payload::metadata::KeySet;
use sayso_protocol::payload::receipt::Receipt;
use sayso_protocol::payload::rpt::Rpt;
use sayso_protocol::{b64, payload::agreement};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

// BASE-04, BASE-05, BASE-08, CORE-33, CORE-39, CORE-101, TERMS-17, TERMS-18, TERMS-20
#[tokio::test(flavor = "multi_thread")]
async fn first_contact_asks_her_whatever_her_policy_says() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talk = agent.reach(&house, &house.alice, "get_positions").await;
    let before = house.dump();
    let answer = talk.present(&[]).await;
    assert_eq!(answer.status, 403);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let body = answer.json();
    assert_eq!(body["error"], "need_info");
    assert_eq!(body["required_claims"].as_array().unwrap().len(), 1);
    let claim = &body["required_claims"][0];
    assert_eq!(claim["claim_type"], "urn:uma4agents:claim:myterms-agreement");
    assert_eq!(claim["claim_token_format"][0], FORMAT);
    assert_eq!(claim["claim_token_format"].as_array().unwrap().len(), 2);
    assert_eq!(claim["terms_template"]["resource_id"], "alice-vault/get_positions");
    assert_ne!(house.dump(), before);
    assert_eq!(house.read(&house.alice, "/pending").await, json!([]));

    let answer = talk.commit().await;
    assert_eq!((answer.status, answer.json()["error"].as_str()), (403, Some("request_submitted")));
    assert_eq!(answer.json()["interval"], 1);
    let waiting = house.read(&house.alice, "/pending").await;
    assert_eq!(waiting[0]["kind"], "connection");
    assert_eq!(waiting[0]["family"], talk.template["family"]);
    assert_eq!(house.read(&house.alice, "/connections").await, json!([]));
    assert_eq!(house.read(&house.bob, "/pending").await, json!([]));

    house.decide(&house.alice, &talk.family(), "approved").await.ok();
    let answer = talk.present(&[]).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let body = answer.ok();
    assert_eq!((body["token_type"].as_str(), body.get("refresh_token")), (Some("PoP"), None));
    assert_eq!(house.read(&house.alice, "/connections").await[0]["handle"], agent.handle().as_str());
    assert_eq!(talk.present(&[]).await.refusal(), (400, "invalid_grant".into()));
}

// CORE-65, CORE-67..73, TERMS-25, TERMS-31, TERMS-36..39, TERMS-43
#[tokio::test(flavor = "multi_thread")]
async fn grant_and_receipt_say_what_was_agreed() {
    let house = House::new().await;
    let agent = Agent::new();
    agent.obtain(&house, &house.alice, "get_positions").await;
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    let mut claims = talk.claims();
    claims["expires_in"] = 60.into();
    claims["prohibited"].as_array_mut().unwrap().push("resale".into());
    let sent = talk.claim_token(&claims);
    let answer = talk.present(&[("claim_token", &sent), ("claim_token_format", FORMAT)]).await.ok();

    let keys: KeySet = serde_json::from_value(house.get("/jwks").await.ok()).unwrap();
    let keys = keys.keys();
    assert_eq!(keys.len(), 3);
    let token = answer["access_token"].as_str().unwrap();
    let (rpt, _) = keys.iter().find_map(|(_, key)| Rpt::read(token, key).ok()).unwrap();
    let compact = String::from_utf8(b64::decode(&sent).unwrap()).unwrap();
    assert_eq!((rpt.iss.as_str(), rpt.aud.as_str()), (house.issuer.as_str(), &*house.alice.server.origin));
    assert_eq!((&rpt.sub, &rpt.client_id), (&agent.handle(), &agent.handle()));
    assert_eq!(rpt.cnf.jwk, agent.key.verifying().jwk());
    assert_eq!(rpt.owner, house.alice.name);
    assert_eq!(rpt.contract, s256_bytes(compact.as_bytes()));
    assert!(rpt.exp <= house.now().plus(60) && rpt.permissions[0].exp <= Some(house.now().plus(60)));
    assert!(!rpt.single_use && rpt.operation.is_none());

    let receipt = Receipt::read(answer["receipt"].as_str().unwrap(), &keys).unwrap();
    assert_eq!((&receipt.agreement, &receipt.agreement_jws), (&rpt.contract, &compact));
    assert_eq!(receipt.family.as_str(), talk.family());
    assert_eq!(receipt.terms_uri, talk.template["terms_uri"]);
}

// CORE-78, CORE-79, CORE-80, TERMS-09, TERMS-30
#[tokio::test(flavor = "multi_thread")]
async fn a_trade_is_one_operation() {
    let house = House::new().await;
    let agent = Agent::new();
    agent.obtain(&house, &house.alice, "get_positions").await;
    let mut talk = agent.negotiate(&house, &house.alice, "execute_trade").await;
    assert_eq!(talk.template["per_operation"], true);
    talk.commit().await;
    let waiting = house.read(&house.alice, "/pending").await;
    assert_eq!(waiting[0]["kind"], "operation");
    let wanted = json!({ "tool": "execute_trade", "params": { "symbol": "VTI", "quantity": 3 } });
    assert_eq!(waiting[0]["operation"], wanted);
    house.decide(&house.alice, &talk.family(), "approved").await.ok();
    let token = talk.present(&[]).await.ok()["access_token"].as_str().unwrap().to_owned();
    let claims: Value =
        serde_json::from_slice(&b64::decode(token.split('.').nth(1).unwrap()).unwrap()).unwrap();
    assert_eq!((claims["single_use"].as_bool(), &claims["operation"]["tool"]), (Some(true), &wanted["tool"]));
    assert_eq!(claims["operation"]["params_s256"], waiting[0]["params_s256"]);
}

// BASE-06, OWN-08
#[tokio::test(flavor = "multi_thread")]
async fn a_denial_ends_it() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    talk.commit().await;
    house.decide(&house.alice, &talk.family(), "denied").await.ok();
    let answer = talk.present(&[]).await;
    assert_eq!(answer.refusal(), (403, "request_denied".into()));
    assert_eq!(answer.json()["ticket"], Value::Null);
    let after = house.dump();
    assert_eq!(talk.present(&[]).await.refusal(), (400, "invalid_grant".into()));
    assert_eq!(house.decide(&house.alice, &talk.family(), "approved").await.detail(), 404);
    assert_eq!(house.dump(), after);
    assert_eq!(house.read(&house.alice, "/connections").await, json!([]));
}

// TERMS-40, TERMS-41, TERMS-42, CORE-40
#[tokio::test(flavor = "multi_thread")]
async fn a_decline_is_held_against_the_terms_alone() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    assert_eq!(talk.present(&[("decline", "true")]).await.refusal(), (403, "request_denied".into()));
    assert_eq!(talk.present(&[]).await.refusal(), (400, "invalid_grant".into()));
    let ledger = house.read(&house.alice, "/ledger").await;
    let row = ledger.as_array().unwrap().last().unwrap();
    assert_eq!((&row["kind"], &row["handle"]), (&json!("refused"), &Value::Null));
    assert_eq!(row["entry"]["terms_uri"], talk.template["terms_uri"]);
    assert!(!ledger.to_string().contains(agent.handle().as_str()));
}

// CORE-40: outside the awaited state there is nothing to decline, and nothing is spent.
#[tokio::test(flavor = "multi_thread")]
async fn a_decline_at_another_time_changes_nothing() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    talk.commit().await;
    let before = house.dump();
    assert_eq!(talk.present(&[("decline", "true")]).await.refusal(), (400, "invalid_request".into()));
    assert_eq!(house.dump(), before);
    assert_eq!(talk.present(&[]).await.json()["error"], "request_submitted");
    let mut fresh = agent.reach(&house, &house.alice, "get_positions").await;
    assert_eq!(fresh.present(&[("decline", "true")]).await.refusal(), (400, "invalid_request".into()));
}

// TERMS-20, TERMS-22..30
#[tokio::test(flavor = "multi_thread")]
async fn an_altered_agreement_ends_it() {
    let house = House::new().await;
    let agent = Agent::new();
    agent.obtain(&house, &house.alice, "get_positions").await;
    let other = fresh_key();
    let altered: [(&str, Value); 8] = [
        ("purpose", "anything".into()),
        ("nonce", "AAAAAAAAAAAAAAAAAAAAAA".into()),
        ("expires_in", 172_801.into()),
        ("expires_in", 0.into()),
        ("scope", json!(["positions:read", "trades:execute"])),
        ("prohibited", json!([])),
        ("aud", "https://evil.example".into()),
        ("reason", "x".repeat(513).into()),
    ];
    for (member, value) in altered {
        let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
        let mut claims = talk.claims();
        claims[member] = value;
        assert_eq!(talk.commit_to(&claims).await.refusal(), (403, "request_denied".into()), "{member}");
        assert_eq!(talk.present(&[]).await.refusal(), (400, "invalid_grant".into()), "{member}");
    }
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    let claims = serde_json::from_value(talk.claims()).unwrap();
    let good =
        String::from_utf8(b64::decode(agreement::sign(&agent.key, &claims).unwrap()).unwrap()).unwrap();
    let forged = String::from_utf8(b64::decode(agreement::sign(&other, &claims).unwrap()).unwrap()).unwrap();
    let swapped = format!("{}.{}", good.rsplit_once('.').unwrap().0, forged.rsplit_once('.').unwrap().1);
    let answer =
        talk.present(&[("claim_token", &b64::encode(swapped)), ("claim_token_format", FORMAT)]).await;
    assert_eq!(answer.refusal(), (403, "request_denied".into()));
    assert_eq!(house.read(&house.alice, "/pending").await, json!([]));
    let grants = house.dump().of("grants");
    assert_eq!(grants, 1);
}

// O-25: nothing was agreed, so the demand is repeated on a fresh ticket.
#[tokio::test(flavor = "multi_thread")]
async fn another_format_is_asked_again() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    for format in [&[("claim_token_format", "urn:x")][..], &[]] {
        let more = [&[("claim_token", "x")], format].concat();
        let answer = talk.present(&more).await;
        assert_eq!((answer.status, &answer.json()["error"]), (403, &json!("need_info")));
    }
    assert_eq!(talk.commit().await.json()["error"], "request_submitted");
}

// CORE-105, TERMS-13: she edits the terms while the agent reads them; it meets the new ones.
#[tokio::test(flavor = "multi_thread")]
async fn terms_that_moved_on_are_proffered_again() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    let old = talk.template["template_id"].clone();
    let edit = Sent::new("PUT", "/owner/policies/holdings").json(&json!({ "ask_me": true }));
    house.hers(&house.alice, edit).await.ok();
    let answer = talk.commit().await;
    assert_eq!((answer.status, &answer.json()["error"]), (403, &json!("need_info")));
    assert_ne!(talk.template["template_id"], old);
    assert_eq!(talk.commit().await.json()["error"], "request_submitted");
}

// D-17: a hasty poll is held until it is due, and its ticket is spent only then.
#[tokio::test(flavor = "multi_thread")]
async fn a_hasty_poll_is_held() {
    let house = House::with(|config| config.interval = 3).await;
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    assert_eq!(talk.commit().await.json()["interval"], 3);
    let started = Instant::now();
    let poll = talk.request(&talk.ticket, &[]);
    let held = tokio::time::timeout(Duration::from_millis(800), house.send(poll)).await;
    assert!(held.is_err(), "answered early: {held:?}");
    // The connection is gone; the ticket is still good.
    assert_eq!(talk.present(&[]).await.json()["error"], "request_submitted");
    assert!(started.elapsed() >= Duration::from_secs(2), "{:?}", started.elapsed());
}

// D-17: from commit on a signature is the agreement's key's, and a wrong one spends nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_poll_by_another_key_is_refused_unspent() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    talk.commit().await;
    house.decide(&house.alice, &talk.family(), "approved").await.ok();
    let before = house.dump();
    let poll = talk.request(&talk.ticket, &[]);
    let authority = house.address.to_string();
    let mut changed = house.sign(poll.clone(), &agent.key);
    changed.body.extend_from_slice(b"&x=1");
    for hostile in [
        house.sign(poll.clone(), &fresh_key()),
        poll.clone().signed(&agent.key, &authority, house.now().plus(-120)),
        poll.clone().signed(&agent.key, "other.example", house.now()),
        house.sign(poll.clone(), &agent.key).without("signature"),
        house.sign(poll.clone(), &agent.key).without("content-digest"),
        changed,
    ] {
        assert_eq!(house.send(hostile).await.refusal(), (401, "invalid_client".into()));
        assert_eq!(house.dump(), before);
    }
    let signed = house.sign(poll, &agent.key);
    house.send(signed.clone()).await.ok();
    assert_eq!(house.send(signed).await.refusal(), (400, "invalid_grant".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_house_may_demand_signed_polls() {
    let house = House::with(|config| config.require_signed_polls = true).await;
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    assert_eq!(talk.commit().await.json()["error"], "request_submitted");
    let before = house.dump();
    assert_eq!(talk.present(&[]).await.refusal(), (401, "invalid_client".into()));
    assert_eq!(house.dump(), before);
    let answer = house.send(house.sign(talk.request(&talk.ticket, &[]), &agent.key)).await;
    assert_eq!(answer.json()["error"], "request_submitted");
}

// CORE-101, CORE-103, CORE-105: an approval nobody claimed does not outlive the connection.
#[tokio::test(flavor = "multi_thread")]
async fn an_unclaimed_approval_dies_with_the_connection() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    talk.commit().await;
    house.decide(&house.alice, &talk.family(), "approved").await.ok();
    let revoke = Sent::new("POST", "/owner/connections/revoke").json(&json!({ "handle": agent.handle() }));
    house.hers(&house.alice, revoke).await.ok();
    let answer = talk.present(&[]).await;
    let refusal = answer.refusal();
    assert!(
        [(403, "request_denied".into()), (400, "invalid_grant".into())].contains(&refusal),
        "{refusal:?}"
    );
    assert!(house.dump().of("grants") == 0);
}

// FED-35: a negotiation of a resource server she withdrew goes nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_server_ends_what_it_started() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talk = agent.reach(&house, &house.alice, "get_positions").await;
    let decision = json!({ "client_id": house.alice.server.origin, "decision": "revoked" });
    let sent = Sent::new("POST", "/owner/resource-servers/decision").json(&decision);
    house.hers(&house.alice, sent).await.ok();
    assert_eq!(talk.present(&[]).await.refusal().0, 403);
    assert!(house.dump().of("grants") == 0);
}
