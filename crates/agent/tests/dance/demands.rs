//! An authority that demands, grants or sends elsewhere what it may not, once the agent negotiates with it.

use crate::hostile::{fault, trap};
use crate::house::{House, Person, Plan, Words, challenged, honest, reply};
use crate::stub::{Answer, Seen};
use sayso_agent::fault::{BadDemand, Fault};
use sayso_agent::{Decision, Narrower, Outcome};
use sayso_protocol::payload::negotiation::TokenReply;
use sayso_protocol::payload::terms::RequiredClaim;
use serde_json::{Value, json};

/// The authority answers a presentation with what the test says.
fn answering(words: impl Fn(&Plan, &Seen) -> Option<Answer> + Send + Sync + 'static) -> Words {
    Box::new(move |plan, seen| if seen.path == "/token" { words(plan, seen) } else { None })
}

fn demand(fault: &Fault) -> Option<BadDemand> {
    if let Fault::Demand(why) = fault { Some(*why) } else { None }
}

#[tokio::test]
async fn a_challenge_after_the_grant_ends_it() {
    let words: Words = Box::new(|plan, seen| {
        seen.header("authorization").map(|_| challenged(&plan.challenge(&plan.authority, "ticket-9")))
    });
    let house = House::start(true, 0, words, honest()).await;
    assert_eq!(demand(&fault(&house).await), Some(BadDemand::CounterChallenge));
    assert_eq!(house.calls().len(), 2);
    assert_eq!(house.presented().len(), 2, "negotiated once");
}

// TERMS-20
#[tokio::test]
async fn only_one_agreement_can_be_demanded() {
    let with = |alter: fn(&mut Vec<Value>)| {
        answering(move |plan, seen| {
            seen.form("claim_token").is_none().then(|| {
                let edition = sayso_protocol::payload::edition::Edition::Sept11;
                let claim = serde_json::to_value(RequiredClaim::agreement(edition, plan.proffer())).unwrap();
                let mut claims = vec![claim];
                alter(&mut claims);
                Answer::json(403, json!({"error": "need_info", "ticket": "t", "required_claims": claims}))
            })
        })
    };
    for (words, why) in [
        (with(|claims| claims.push(claims[0].clone())), BadDemand::Claims),
        (with(Vec::clear), BadDemand::Claims),
        (with(|claims| claims[0]["claim_type"] = json!("urn:ssn")), BadDemand::ClaimType),
        (with(|claims| claims[0]["claim_token_format"] = json!(["urn:pdf"])), BadDemand::Format),
        (with(|claims| claims[0]["terms_template"]["resource_id"] = json!("vault/other")), BadDemand::Terms),
        (
            with(|claims| claims[0]["terms_template"]["proffered_by"] = json!("https://evil.test")),
            BadDemand::Terms,
        ),
        (
            with(|claims| claims[0]["terms_template"]["terms_uri"] = json!("https://evil.test/t")),
            BadDemand::Terms,
        ),
        (with(|claims| claims[0]["terms_template"]["expires_in"] = json!(0)), BadDemand::Nothing),
        (with(|claims| claims[0]["terms_template"]["scope"] = json!([])), BadDemand::Nothing),
        (with(|claims| claims[0] = json!({"claim_type": "urn:x"})), BadDemand::Answer),
    ] {
        let house = House::start(true, 0, honest(), words).await;
        assert_eq!(demand(&fault(&house).await), Some(why));
        assert!(
            house.presented().iter().all(|seen| seen.form("claim_token").is_none()),
            "nothing was signed"
        );
    }
}

#[tokio::test]
async fn terms_that_change_are_asked_about_again_and_not_for_ever() {
    let widening = || answering(|plan, _| Some(plan.need_info(|proffer| proffer.terms.prohibited.clear())));
    let house = House::start(true, 0, honest(), widening()).await;
    let person = Person::saying([Decision::Agree(Narrower::default())], Decision::NotNow);
    let outcome = house.agent().call(&house.errand(3), &person).await.unwrap();
    assert_eq!(outcome, Outcome::NotAccepted { declined: false });
    assert_eq!(person.asked.lock().unwrap().len(), 2, "shown again, not agreed to again");
    let house = House::start(true, 0, honest(), widening()).await;
    assert_eq!(demand(&fault(&house).await), Some(BadDemand::Restless));
    assert_eq!(house.presented().len(), 4);
}

// TERMS-36, TERMS-38, TERMS-39
#[tokio::test]
async fn a_grant_without_its_receipt_is_not_used() {
    let committed =
        |seen: &Seen, plan: &Plan| seen.form("claim_token").is_some() || plan.agreement().is_some();
    let grant = |receipt: Option<&str>, token: &str, kind: &str| {
        let mut body = json!({"access_token": token, "token_type": kind, "expires_in": 60});
        if let Some(receipt) = receipt {
            body["receipt"] = json!(receipt);
        }
        body
    };
    for (body, why) in [
        (grant(None, "t", "PoP"), BadDemand::Receipt),
        (grant(Some("a.b.c"), "t", "PoP"), BadDemand::Receipt),
        (grant(Some("x"), "t", "Bearer"), BadDemand::Answer),
    ] {
        let words =
            answering(move |plan, seen| committed(seen, plan).then(|| Answer::json(200, body.clone())));
        let house = House::start(true, 0, honest(), words).await;
        assert_eq!(demand(&fault(&house).await), Some(why));
        assert_eq!(house.calls().len(), 1);
        assert!(house.agent().wallet().receipts().unwrap().is_empty());
    }
}

// TERMS-37
#[tokio::test]
async fn a_receipt_for_something_else_is_no_receipt() {
    type Alter = fn(&mut sayso_protocol::payload::receipt::Receipt);
    let alters: [Alter; 5] = [
        |receipt| receipt.iss = "https://evil.test".into(),
        |receipt| receipt.family = "other".parse().unwrap(),
        |receipt| receipt.template_id = "a/trading/v2".parse().unwrap(),
        |receipt| receipt.terms_uri.push('x'),
        |receipt| receipt.agreement_jws.push('x'),
    ];
    for alter in alters {
        // The honest authority records the agreement and asks; the grant then comes with the wrong receipt.
        let words = answering(move |plan, seen| {
            (seen.form("claim_token").is_none() && plan.agreement().is_some()).then(|| plan.granted(alter))
        });
        let house = House::start(true, 1, honest(), words).await;
        assert_eq!(demand(&fault(&house).await), Some(BadDemand::Receipt));
        assert_eq!(house.calls().len(), 1);
    }
}

#[tokio::test]
async fn nothing_is_granted_or_submitted_before_anybody_agreed() {
    let granted = TokenReply::Granted { access_token: "t".into(), expires_in: 5, receipt: "r".into() };
    let submitted = TokenReply::Submitted { ticket: "t".into(), interval: 1 };
    for answer in [granted, submitted] {
        let house = House::start(true, 0, honest(), answering(move |_, _| Some(reply(&answer)))).await;
        assert_eq!(demand(&fault(&house).await), Some(BadDemand::Unasked));
        assert_eq!(house.calls().len(), 1);
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let evil = trap().await;
    let location = evil.url.clone();
    let words = answering(move |_, _| Some(Answer::text(307, "text/plain", "").with("location", &location)));
    let house = House::start(true, 0, honest(), words).await;
    assert_eq!(demand(&fault(&house).await), Some(BadDemand::Answer));
    assert!(evil.seen().is_empty());
}
