//! The dance as it should go: every beat in its order, and every way it may end.

use crate::house::{ARGUMENTS, House, Person, TOOL, honest, result};
use crate::stub::Answer;
use sayso_agent::{Decision, Errand, Narrower, Outcome};
use sayso_protocol::envelope::jsonrpc::{self, Codes};
use sayso_protocol::message::RequestId;
use sayso_protocol::payload::negotiation::{TokenError, TokenReply};
use serde_json::json;

fn done(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Result { failed: false, json } if json.contains("\"filled\":3"))
}

// CORE-30, CORE-33, CORE-55, CORE-56, CORE-66, MCP-17, MCP-18
#[tokio::test]
async fn a_stranger_agrees_waits_and_calls_again_unchanged() {
    let house = House::honest(true, 2).await;
    let person = Person::willing();
    let outcome = house.agent().call(&house.errand(30), &person).await.unwrap();
    assert!(done(&outcome), "{outcome:?}");
    let paths = ["/mcp", "/mcp", "/.well-known/oauth-protected-resource/mcp", "/jwks", "/mcp"];
    assert_eq!(house.resource.paths(), paths);
    let [first, second] = &house.calls()[..] else { panic!("two calls") };
    assert_eq!(first.body, second.body, "the same bytes");
    assert_eq!(first.header("mcp-name"), Some(TOOL));
    for name in ["authorization", "signature", "signature-input"] {
        assert_eq!(first.header(name), None, "the first call is unsigned");
    }
    let presented = house.presented();
    let tickets: Vec<_> = presented.iter().map(|seen| seen.form("ticket").unwrap()).collect();
    assert_eq!(tickets, ["ticket-1", "ticket-2", "ticket-3", "ticket-4"], "each once");
    let signed: Vec<bool> = presented.iter().map(|seen| seen.header("signature").is_some()).collect();
    assert_eq!(signed, [false, false, true, true], "polls are signed");
    assert!(presented.iter().all(|seen| seen.header("authorization").is_none()));
    let asked = person.asked.lock().unwrap();
    assert_eq!(asked[0], house.plan.proffer(), "shown whole, once");
    assert_eq!(asked.len(), 1);
    // CORE-43
    let heard = person.heard.lock().unwrap().join("\n");
    assert!(heard.contains("Waiting") && heard.contains("Granted"), "{heard}");
}

// TERMS-26, TERMS-30
#[tokio::test]
async fn the_agreement_names_the_operation_when_the_terms_are_per_operation() {
    for per_operation in [true, false] {
        let house = House::honest(per_operation, 0).await;
        assert!(done(&house.call(5).await.unwrap()));
        let agreement = house.plan.agreement().unwrap();
        let operation = agreement.claims().operation.clone();
        assert_eq!(operation.is_some(), per_operation);
        if let Some(operation) = operation {
            let arguments: serde_json::Value = serde_json::from_str(ARGUMENTS).unwrap();
            assert_eq!((operation.tool.as_str(), json!(operation.params)), (TOOL, arguments));
        }
    }
}

// MCP-15, MCP-16
#[tokio::test]
async fn a_challenge_in_process_leads_to_the_same_negotiation() {
    let inside = House::start(
        true,
        1,
        Box::new(|plan, seen| {
            let asked = seen.json();
            if asked["method"] != "tools/call" || seen.header("authorization").is_some() {
                return None;
            }
            let challenge = plan.challenge(&plan.authority, "ticket-0");
            let id: RequestId = asked["id"].to_string().parse().unwrap();
            let codes = Codes { challenge: -7, refusal: -8 };
            let body = jsonrpc::response(&id, &jsonrpc::challenge(codes, &challenge)).unwrap();
            Some(Answer::text(200, "application/json", String::from_utf8(body).unwrap()))
        }),
        honest(),
    )
    .await;
    let outside = House::honest(true, 1).await;
    assert!(done(&inside.call(30).await.unwrap()));
    assert!(done(&outside.call(30).await.unwrap()));
    let trace = |house: &House| {
        let presented = house.presented();
        presented
            .iter()
            .map(|seen| (seen.form("claim_token_format"), seen.form("decline")))
            .collect::<Vec<_>>()
    };
    assert_eq!(trace(&inside), trace(&outside));
    assert_eq!(inside.authority.paths(), outside.authority.paths());
}

// TERMS-40
#[tokio::test]
async fn a_no_to_the_terms_is_said_once_and_ends_it() {
    let house = House::honest(true, 0).await;
    let person = Person::saying([], Decision::Decline);
    let outcome = house.agent().call(&house.errand(5), &person).await.unwrap();
    assert_eq!(outcome, Outcome::NotAccepted { declined: true });
    let presented = house.presented();
    assert_eq!(presented.last().unwrap().form("decline").as_deref(), Some("true"));
    assert!(presented.iter().all(|seen| seen.form("claim_token").is_none()));
    assert_eq!(house.calls().len(), 1);
}

#[tokio::test]
async fn with_nobody_to_ask_nothing_is_said() {
    let house = House::honest(true, 0).await;
    let person = Person::saying([], Decision::NotNow);
    let outcome = house.agent().call(&house.errand(5), &person).await.unwrap();
    assert_eq!(outcome, Outcome::NotAccepted { declined: false });
    assert_eq!(house.presented().len(), 1, "only the question for the terms");
}

// TERMS-27, TERMS-28
#[tokio::test]
async fn less_than_the_terms_is_agreed_to_when_that_is_wished() {
    let house = House::honest(true, 0).await;
    let less = Narrower { expires_in: Some(60), also_promise: vec!["marketing".into()], scope: None };
    let person = Person::saying([], Decision::Agree(less));
    assert!(done(&house.agent().call(&house.errand(5), &person).await.unwrap()));
    let agreement = house.plan.agreement().unwrap();
    assert_eq!(agreement.claims().expires_in, 60);
    assert_eq!(agreement.claims().prohibited, ["resale", "marketing"]);
}

// CORE-42, MCP-21
#[tokio::test]
async fn a_wait_is_handed_back_and_taken_up_by_the_same_call() {
    let house = House::honest(true, 3).await;
    let outcome = house.call(0).await.unwrap();
    let Outcome::Waiting { authority, family } = outcome else { panic!("{outcome:?}") };
    assert_eq!((authority, family.unwrap().as_str()), (house.plan.authority.clone(), "family-1"));
    assert_eq!(house.presented().len(), 2, "asked, agreed");
    // Each time it asks once more, and never for the terms again.
    assert!(matches!(house.call(0).await.unwrap(), Outcome::Waiting { .. }));
    assert!(matches!(house.call(0).await.unwrap(), Outcome::Waiting { .. }));
    assert_eq!(house.calls().len(), 1, "nothing is called while the owner thinks");
    let person = Person::saying([], Decision::Decline);
    let outcome = house.agent().call(&house.errand(0), &person).await.unwrap();
    assert!(done(&outcome), "{outcome:?}");
    assert!(person.asked.lock().unwrap().is_empty());
    assert_eq!(house.presented().len(), 5);
    let other = Errand::new(&house.plan.resource, TOOL.parse().unwrap(), r#"{"quantity":4}"#).unwrap();
    house.agent().call(&other, &Person::saying([], Decision::NotNow)).await.unwrap();
    assert_eq!(house.calls().len(), 3, "another call is another matter");
}

#[tokio::test]
async fn a_ticket_the_authority_forgot_is_replaced_by_a_new_challenge() {
    let house = House::start(
        true,
        0,
        honest(),
        Box::new(|plan, seen| {
            let first = seen.form("ticket")? == "ticket-1" && plan.agreement().is_none();
            first.then(|| crate::house::reply(&TokenReply::refused(TokenError::InvalidGrant, "gone")))
        }),
    )
    .await;
    assert!(done(&house.call(5).await.unwrap()));
    assert_eq!(house.calls().len(), 3, "challenged twice, then called");
}

// CORE-40
#[tokio::test]
async fn a_denial_ends_it_with_the_authoritys_words() {
    let house = House::start(
        true,
        0,
        honest(),
        Box::new(|_, seen| {
            seen.form("claim_token")?;
            Some(crate::house::reply(&TokenReply::refused(TokenError::RequestDenied, "not \u{1b}[31mtoday")))
        }),
    )
    .await;
    let outcome = house.call(5).await.unwrap();
    assert_eq!(outcome, Outcome::Denied { words: Some("not \u{1b}[31mtoday".into()) });
    assert_eq!(house.calls().len(), 1);
}

#[tokio::test]
async fn a_refusal_that_negotiating_cannot_cure_is_not_negotiated() {
    let refuse = |seen: &crate::stub::Seen| seen.json()["method"] == "tools/call";
    let house = House::start(
        true,
        0,
        Box::new(move |_, seen| refuse(seen).then(|| Answer::json(403, json!({"error": "access_revoked"})))),
        honest(),
    )
    .await;
    let outcome = house.call(5).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Refused(refused) if refused.code.as_deref() == Some("access_revoked"))
    );
    assert!(house.authority.seen().is_empty());
}

#[tokio::test]
async fn the_tools_failure_and_the_servers_error_are_told_apart() {
    for failing in [json!({"isError": true, "content": []}), json!(null)] {
        let house = House::start(
            true,
            0,
            Box::new(move |_, seen| {
                let asked = seen.json();
                let call = asked["method"] == "tools/call";
                let error = || json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32602, "message": "x"}});
                call.then(|| if failing.is_null() { Answer::json(200, error()) } else { result(seen, failing.clone()) })
            }),
            honest(),
        )
        .await;
        let outcome = house.call(5).await.unwrap();
        assert!(
            matches!(outcome, Outcome::Result { failed: true, .. } | Outcome::ServerError { .. }),
            "{outcome:?}"
        );
    }
}
