//! What is kept: receipts for ever, reusable grants while they live, single-use grants until one call leaves.

use crate::house::{House, agent, honest, now};
use crate::stub::Answer;
use sayso_agent::{Outcome, Wallet};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test]
async fn a_reusable_grant_is_used_again_without_asking() {
    let house = House::honest(false, 0).await;
    for _ in 0..3 {
        assert!(matches!(house.call(5).await.unwrap(), Outcome::Result { failed: false, .. }));
    }
    assert_eq!(house.presented().len(), 2, "negotiated once");
    let calls = house.calls();
    assert_eq!(calls.len(), 4);
    let inputs: std::collections::BTreeSet<_> =
        calls.iter().filter_map(|seen| seen.header("signature-input").map(str::to_owned)).collect();
    assert_eq!(inputs.len(), 3, "every signature has a nonce of its own");
    assert_eq!(house.agent().wallet().grants(now()).unwrap().len(), 1);
    assert_eq!(house.agent().wallet().grants(now().plus(601)).unwrap().len(), 0);
}

// TERMS-36, TERMS-37
#[tokio::test]
async fn the_receipt_of_a_spent_grant_stays() {
    let house = House::honest(true, 0).await;
    house.call(5).await.unwrap();
    let wallet = Wallet::open(house.dir.path()).unwrap();
    assert!(wallet.grants(now()).unwrap().is_empty(), "spent");
    let receipts = wallet.receipts().unwrap();
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].family.as_str(), "family-1");
    let identities = house.agent().keys().identities().unwrap();
    assert_eq!(identities[0].handle, house.handle());
    assert_eq!(identities[0].authority, house.plan.authority);
}

// D-14
#[tokio::test]
async fn a_signed_call_whose_answer_is_lost_is_not_sent_again() {
    for per_operation in [true, false] {
        let house = House::start(
            per_operation,
            0,
            Box::new(|_, seen| seen.header("authorization").map(|_| Answer::drop_connection())),
            honest(),
        )
        .await;
        let outcome = house.call(5).await.unwrap();
        assert!(matches!(outcome, Outcome::Unknown { why: Some(_) }), "{outcome:?}");
        assert_eq!(house.calls().len(), 2);
        let left = house.agent().wallet().grants(now()).unwrap().len();
        assert_eq!(left, usize::from(!per_operation), "a single-use grant counts as spent");
    }
}

#[tokio::test]
async fn a_grant_the_enforcement_point_did_not_spend_is_kept() {
    let tried = AtomicUsize::new(0);
    let house = House::start(
        true,
        0,
        Box::new(move |_, seen| {
            seen.header("authorization")?;
            let first = tried.fetch_add(1, Ordering::SeqCst) == 0;
            first.then(|| Answer::json(503, json!({"error": "temporarily_unavailable"})))
        }),
        honest(),
    )
    .await;
    let outcome = house.call(5).await.unwrap();
    assert!(matches!(outcome, Outcome::Refused(refused) if refused.status == 503));
    assert!(matches!(house.call(5).await.unwrap(), Outcome::Result { failed: false, .. }));
    assert_eq!(house.presented().len(), 2, "the owner was asked once");
}

#[tokio::test]
async fn a_grant_said_to_be_spent_is_gone() {
    let spent = json!({"error": "upstream_failed", "spent": true, "forwarded": "unknown"});
    for body in [spent, json!({})] {
        let house = House::start(
            true,
            0,
            Box::new(move |_, seen| seen.header("authorization").map(|_| Answer::json(502, body.clone()))),
            honest(),
        )
        .await;
        assert_eq!(house.call(5).await.unwrap(), Outcome::Unknown { why: None });
        assert!(house.agent().wallet().grants(now()).unwrap().is_empty());
    }
}

// CORE-44
#[tokio::test]
async fn a_key_of_ones_own_is_used_when_it_is_named() {
    let house = House::honest(false, 0).await;
    let mut errand = house.errand(5);
    errand.key = Some(crate::house::key(7));
    house.agent().call(&errand, &crate::house::Person::willing()).await.unwrap();
    assert_eq!(&house.plan.agent_key(), crate::house::key(7).verifying());
    assert!(agent(house.dir.path()).keys().identities().unwrap().is_empty(), "none was drawn");
    // The grant is bound to that key: without it the owner has to be asked again.
    let before = house.calls().len();
    let _ = house.call(0).await;
    assert_eq!(house.calls()[before].header("authorization"), None);
}
