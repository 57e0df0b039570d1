//! An authority that asks for whom an agent acts, and one that does not believe a credential.

use crate::house::{House, Person, Plan, Words, honest, reply};
use crate::stub::{Answer, Seen};
use async_trait::async_trait;
use sayso_agent::fault::BadDemand;
use sayso_agent::{Assertions, Credentials, Errand, Fault, Outcome, Shows, Wanted};
use sayso_protocol::jws::sign_under;
use sayso_protocol::payload::agreement::Presented;
use sayso_protocol::payload::assertion::{FORMAT, RequiredIdentity};
use sayso_protocol::payload::negotiation::TokenReply;
use sayso_protocol::{SigningKey, VerifyingKey};
use serde_json::json;
use std::sync::{Arc, Mutex};

const PROVIDER: &str = "https://idp.example";

/// The program's own source of assertions, and what it was asked for.
#[derive(Default)]
struct Program(Mutex<Vec<RequiredIdentity>>);

#[async_trait]
impl Assertions for Program {
    async fn assertion(&self, wanted: &Wanted<'_>) -> Result<Option<String>, Fault> {
        self.0.lock().unwrap().push(wanted.demand.clone());
        Ok(Some("the.very.word".into()))
    }
}

/// An authority that asks for a name with every presentation that brings none, as often as it is told to.
fn asks(audience: Option<&'static str>, ever: bool) -> Words {
    let named = Mutex::new(false);
    Box::new(move |plan: &Plan, seen: &Seen| {
        if seen.path != "/token" {
            return None;
        }
        let mut named = named.lock().unwrap();
        if seen.form("claim_token_format").as_deref() == Some(FORMAT) {
            *named = true;
            if !ever {
                return Some(plan.need_info(|_| {}));
            }
        }
        if *named && !ever {
            return None;
        }
        let audience = audience.unwrap_or(&plan.authority);
        let claim = RequiredIdentity::of(&[PROVIDER.to_owned()], audience, &plan.gateway, &[]);
        Some(reply(&TokenReply::Identify { ticket: plan.next_ticket(), claim: Box::new(claim) }))
    })
}

async fn call(house: &House, shows: Shows) -> Result<Outcome, Fault> {
    let mut errand = house.errand(5);
    errand.shows = shows;
    house.agent().call(&errand, &Person::willing()).await
}

// CORE-35, CORE-38
#[tokio::test]
async fn a_name_is_given_where_it_is_asked_for_and_the_terms_follow() {
    let house = House::start(true, 0, honest(), asks(None, false)).await;
    let program = Arc::new(Program::default());
    let outcome = call(&house, Shows::default().asserted_by(program.clone())).await.unwrap();
    assert!(matches!(outcome, Outcome::Result { failed: false, .. }), "{outcome:?}");
    let asked = program.0.lock().unwrap();
    assert_eq!((asked.len(), &asked[0].audience), (1, &house.plan.authority));
    let presented = house.presented();
    let given: Vec<_> = presented.iter().filter_map(|seen| seen.form("claim_token_format")).collect();
    assert_eq!((given.len(), given[0].as_str()), (2, FORMAT));
    assert_eq!(presented[1].form("claim_token").as_deref(), Some("the.very.word"));
}

// CORE-37
#[tokio::test]
async fn an_agent_that_has_no_word_says_so_and_signs_nothing() {
    let house = House::start(true, 0, honest(), asks(None, false)).await;
    let outcome = call(&house, Shows::default()).await.unwrap();
    assert_eq!(outcome, Outcome::Unnamed { providers: vec![PROVIDER.into()] });
    assert!(house.plan.agreement().is_none() && house.presented().len() == 1);
}

// CORE-37
#[tokio::test]
async fn a_word_for_somebody_else_is_not_even_looked_for() {
    let house = House::start(true, 0, honest(), asks(Some("https://other.example"), false)).await;
    let program = Arc::new(Program::default());
    let fault = call(&house, Shows::default().asserted_by(program.clone())).await.unwrap_err();
    assert!(matches!(fault, Fault::Demand(BadDemand::Identity)), "{fault}");
    assert!(program.0.lock().unwrap().is_empty() && house.presented().len() == 1);
    // And it is given once, however often it is asked for.
    let house = House::start(true, 0, honest(), asks(None, true)).await;
    let fault = call(&house, Shows::default().asserted_by(program.clone())).await.unwrap_err();
    assert!(matches!(fault, Fault::Demand(BadDemand::Identity)), "{fault}");
    assert_eq!((program.0.lock().unwrap().len(), house.presented().len()), (1, 2));
}

/// A credential by nobody in particular.
struct Badge;

impl Credentials for Badge {
    fn credential(&self, _: &str, key: &VerifyingKey) -> Result<Option<String>, Fault> {
        let header = json!({ "alg": "EdDSA", "typ": "aa-agent+jwt" });
        let claims = json!({ "iss": "https://ps.example", "sub": "bot", "exp": crate::house::now().plus(60),
                             "cnf": { "jwk": key.jwk() } });
        sign_under(&SigningKey::from_seed(&[9; 32]).unwrap(), &header, &claims)
            .map(Some)
            .map_err(|_| Fault::Random)
    }
}

/// An authority that believes no credential, and leaves the ticket as it is.
fn doubts() -> Words {
    Box::new(|_, seen| {
        let named = matches!(Presented::read(&seen.form("claim_token")?), Ok(Presented::Named(_)));
        let ticket = seen.form("ticket")?;
        named.then(|| reply(&TokenReply::Doubted { ticket, description: "not believed here".into() }))
    })
}

fn challenges(house: &House) -> usize {
    house.calls().iter().filter(|seen| seen.header("authorization").is_none()).count()
}

#[tokio::test]
async fn a_credential_that_is_not_believed_is_no_denial_and_its_ticket_goes_on() {
    let house = House::start(true, 0, honest(), doubts()).await;
    let shows = Shows::default().named_by(Arc::new(Badge));
    let outcome = call(&house, shows).await.unwrap();
    assert_eq!(outcome, Outcome::NotBelieved { words: Some("not believed here".into()) });
    assert!(house.plan.agreement().is_none(), "nothing was agreed to under the bare key");
    assert_eq!((challenges(&house), house.calls().len()), (1, 1));
    // The same call with something else takes the very terms up; the resource is not asked for another ticket.
    let outcome = call(&house, Shows::default()).await.unwrap();
    assert!(matches!(outcome, Outcome::Result { .. }), "{outcome:?}");
    assert_eq!(challenges(&house), 1);
    assert_eq!(house.plan.agreement().unwrap().handle(), house.handle());
}

#[tokio::test]
async fn an_agent_goes_on_under_its_bare_key_where_it_was_told_to() {
    let house = House::start(true, 1, honest(), doubts()).await;
    let shows = Shows::default().named_by(Arc::new(Badge)).or_bare();
    let outcome = call(&house, shows).await.unwrap();
    assert!(matches!(outcome, Outcome::Result { .. }), "{outcome:?}");
    let claims: Vec<Seen> =
        house.presented().into_iter().filter(|seen| seen.form("claim_token").is_some()).collect();
    assert_eq!(claims.len(), 2);
    assert_eq!(claims[0].form("ticket"), claims[1].form("ticket"), "one ticket, as good as before");
    // A bare key that is doubted is the end of it.
    let never: Words = Box::new(|_, seen| {
        seen.form("claim_token")?;
        Some(reply(&TokenReply::Doubted { ticket: seen.form("ticket")?, description: "no".into() }))
    });
    let house = House::start(true, 0, honest(), never).await;
    let outcome = call(&house, Shows::default().named_by(Arc::new(Badge)).or_bare()).await.unwrap();
    assert_eq!(outcome, Outcome::NotBelieved { words: Some("no".into()) });
    let claims = house.presented().into_iter().filter(|seen| seen.form("claim_token").is_some()).count();
    assert_eq!(claims, 2);
}

/// What a hostile authority makes of the member: a no stays a no.
#[tokio::test]
async fn a_no_that_brings_a_ticket_to_a_poll_ends_nothing_for_good() {
    let words: Words =
        Box::new(|plan, seen| {
            (seen.path == "/token" && plan.agreement().is_some()).then(|| Answer::json(
            403,
            json!({ "error": "request_denied", "ticket": seen.form("ticket"), "error_description": "x" }),
        ))
        });
    let house = House::start(true, 3, honest(), words).await;
    let errand: Errand = house.errand(5);
    let outcome = house.agent().call(&errand, &Person::willing()).await.unwrap();
    assert_eq!(outcome, Outcome::NotBelieved { words: Some("x".into()) });
    assert_eq!(house.calls().len(), 1);
}
