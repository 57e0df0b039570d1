//! For whom an agent acts: asked before the terms, by the word of a provider that is believed, once, and no way in.

use crate::house::{Agent, FORMAT, House, Talk};
use crate::wire::{Answer, Sent, fresh_key};
use sayso_protocol::SigningKey;
use sayso_protocol::jws::sign_under;
use sayso_protocol::payload::assertion;
use serde_json::{Value, json};

const PROVIDER: &str = "https://idp.example/t1";
const DOCUMENT: &str = "https://idp.example/t1/.well-known/openid-configuration";
const FIRST: &str = "https://idp.example/.well-known/oauth-authorization-server/t1";
const KEYS: &str = "https://idp.example/t1/keys";

/// An identity provider on the web of a house.
struct Provider {
    key: SigningKey,
}

impl Provider {
    fn at(house: &House) -> Self {
        let provider = Self { key: fresh_key() };
        house.web.put(DOCUMENT, json!({ "issuer": PROVIDER, "jwks_uri": KEYS }));
        house.web.put(KEYS, json!({ "keys": [provider.key.verifying().jwk()] }));
        provider
    }

    /// Its word for an agent, altered.
    fn says(&self, house: &House, agent: &Agent, header: Value, claims: Value) -> String {
        let mut head = json!({ "alg": "EdDSA", "typ": assertion::TYP });
        let mut body = json!({
            "iss": PROVIDER, "sub": "kim", "aud": house.issuer, "client_id": "c-1", "jti": fresh_key().kid(),
            "iat": house.now(), "exp": house.now().plus(300), "cnf": { "jkt": agent.key.verifying().thumbprint() },
        });
        for (base, over) in [(&mut head, header), (&mut body, claims)] {
            for (name, value) in over.as_object().unwrap() {
                base[name] = value.clone();
            }
        }
        sign_under(&self.key, &head, &body).unwrap()
    }
}

async fn house() -> House {
    House::with(|config| config.identity_providers = vec![PROVIDER.into()]).await
}

async fn show(talk: &mut Talk<'_>, token: &str) -> Answer {
    talk.present(&[("claim_token", token), ("claim_token_format", assertion::FORMAT)]).await
}

fn told(answer: &Answer) -> (u16, String) {
    (answer.status, answer.json()["error"].as_str().unwrap_or_default().to_owned())
}

// CORE-35, CORE-36, CORE-38, CORE-04
#[tokio::test(flavor = "multi_thread")]
async fn the_first_answer_asks_for_a_name_and_the_second_brings_the_terms() {
    let house = house().await;
    let provider = Provider::at(&house);
    let agent = Agent::new();
    let mut talk = agent.reach(&house, &house.alice, "get_positions").await;
    house.web.asked();
    let first = talk.present(&[]).await;
    assert_eq!(told(&first), (403, "need_info".into()));
    let demands = first.json()["required_claims"].clone();
    assert_eq!(demands.as_array().unwrap().len(), 1);
    let demand = &demands[0];
    assert!(demand.get("terms_template").is_none(), "{demand}");
    assert_eq!(demand["claim_token_format"], json!([assertion::FORMAT]));
    assert_eq!((&demand["issuer"], &demand["audience"]), (&json!([PROVIDER]), &json!(house.issuer)));
    assert_eq!(demand["resource"], json!(house.alice.server.origin));
    assert_eq!(demand["scope"], "positions:read");
    assert_eq!(house.web.asked(), [], "nobody has named a provider yet");

    let word = provider.says(&house, &agent, json!({}), json!({ "scope": "positions:read x" }));
    let second = show(&mut talk, &word).await;
    assert_eq!(told(&second), (403, "need_info".into()));
    assert!(second.json()["required_claims"][0]["terms_template"]["terms_uri"].is_string());
    let asked: Vec<String> = house.web.asked().into_iter().map(|(_, url)| url).collect();
    assert_eq!(asked, [FIRST, DOCUMENT, KEYS]);

    let third = talk.commit().await;
    assert_eq!(told(&third), (403, "request_submitted".into()), "a name lets nobody in");
    let seen = house.read(&house.alice, &format!("/pending/{}", talk.family())).await;
    assert_eq!(seen["evidence"]["asserted"]["subject"], "kim");
    assert_eq!(seen["identity"], "pseudonymous", "it shapes no handle");
    let notes = seen["assurance_notes"].as_array().unwrap();
    let note = notes[3].as_str().unwrap();
    assert!(notes.len() == 4 && note.contains("\u{201c}kim\u{201d}") && note.contains(PROVIDER), "{note}");
    house.decide(&house.alice, &talk.family(), "approved").await.ok();
    talk.present(&[]).await.ok();
    let metadata = house.send(Sent::new("GET", "/.well-known/uma2-configuration")).await.ok();
    let formats = metadata["claim_token_formats_supported"].as_array().unwrap().clone();
    assert!(formats.contains(&json!(assertion::FORMAT)));
    assert!(metadata["grant_types_supported"].as_array().unwrap().len() == 2, "it is no grant");
}

// CORE-36
#[tokio::test(flavor = "multi_thread")]
async fn an_assertion_that_does_not_count_has_one_answer_and_costs_nothing() {
    let house = house().await;
    let provider = Provider::at(&house);
    let agent = Agent::new();
    let mut talk = agent.reach(&house, &house.alice, "get_positions").await;
    talk.present(&[]).await;
    let with = |header: Value, claims: Value| provider.says(&house, &agent, header, claims);
    let none = || json!({});
    let forger = Provider { key: fresh_key() };
    let hopeless = [
        ("another authority", with(none(), json!({ "aud": "https://as.other.example" }))),
        ("two audiences", with(none(), json!({ "aud": [house.issuer, "https://x.example"] }))),
        ("a provider nobody lists", with(none(), json!({ "iss": "https://other.example" }))),
        ("another tenant", with(none(), json!({ "iss": "https://idp.example/t2" }))),
        ("expired", with(none(), json!({ "exp": house.now(), "iat": house.now().plus(-300) }))),
        ("good for too long", with(none(), json!({ "exp": house.now().plus(3601) }))),
        (
            "from the future",
            with(none(), json!({ "iat": house.now().plus(120), "exp": house.now().plus(300) })),
        ),
        ("another typ", with(json!({ "typ": "JWT" }), none())),
        ("a credential's typ", with(json!({ "typ": "aa-agent+jwt" }), none())),
        ("alg none", with(json!({ "alg": "none" }), none())),
        ("HS256", with(json!({ "alg": "HS256" }), none())),
        ("bound to no key", with(none(), json!({ "cnf": {} }))),
        ("another resource", with(none(), json!({ "resource": "https://elsewhere.example/mcp" }))),
        ("too short a reach", with(none(), json!({ "scope": "trades:execute" }))),
        ("no assertion", "a.b.c".into()),
    ];
    house.web.asked();
    let before = house.dump();
    let mut all = vec![];
    for (name, word) in &hopeless {
        let answer = show(&mut talk, word).await;
        assert_eq!(told(&answer), (403, "request_denied".into()), "{name}");
        all.push((*name, answer.json()));
    }
    assert_eq!(house.web.asked(), [], "nobody is asked about what cannot hold");
    let forged = forger.says(&house, &agent, json!({}), json!({}));
    all.push(("a key that is not published", show(&mut talk, &forged).await.json()));
    for (name, body) in &all {
        assert_eq!(body, &all[0].1, "{name}: one answer, whatever it was");
        assert_eq!(body["ticket"], talk.ticket, "{name}: the ticket is as good as before");
    }
    assert_eq!(house.dump(), before, "nothing was spent or stored");
    assert_eq!(told(&show(&mut talk, &with(json!({}), json!({}))).await), (403, "need_info".into()));
}

// CORE-36
#[tokio::test(flavor = "multi_thread")]
async fn a_word_counts_once_and_for_the_key_it_names() {
    let house = house().await;
    let provider = Provider::at(&house);
    let (agent, thief) = (Agent::new(), Agent::new());
    let word = provider.says(&house, &agent, json!({}), json!({}));
    let mut talk = agent.reach(&house, &house.alice, "get_positions").await;
    talk.present(&[]).await;
    show(&mut talk, &word).await;
    // The same word again, in another negotiation.
    let mut again = agent.reach(&house, &house.alice, "get_positions").await;
    again.present(&[]).await;
    assert_eq!(told(&show(&mut again, &word).await), (403, "request_denied".into()));
    // A word about another key opens terms, and nobody can agree to them under it.
    let word = provider.says(&house, &agent, json!({}), json!({}));
    let mut stolen = thief.reach(&house, &house.alice, "get_positions").await;
    stolen.present(&[]).await;
    assert_eq!(told(&show(&mut stolen, &word).await), (403, "need_info".into()));
    assert_eq!(told(&stolen.commit().await), (403, "request_denied".into()));
    assert_eq!(told(&stolen.present(&[]).await), (400, "invalid_grant".into()), "and that is its end");
    assert_eq!(house.read(&house.alice, "/pending").await, json!([]));
}

// CORE-36, CORE-38
#[tokio::test(flavor = "multi_thread")]
async fn terms_are_not_to_be_had_around_it() {
    let house = house().await;
    let provider = Provider::at(&house);
    let agent = Agent::new();
    let word = provider.says(&house, &agent, json!({}), json!({}));
    // With the first presentation nothing was asked for yet, and nothing is looked at.
    let mut talk = agent.reach(&house, &house.alice, "get_positions").await;
    house.web.asked();
    let early = show(&mut talk, &word).await;
    assert!(early.json()["required_claims"][0].get("terms_template").is_none());
    assert_eq!(house.web.asked(), []);
    // An agreement in its place, made for terms of another negotiation.
    let more = [("claim_token", &*talk.sign_raw("{}")), ("claim_token_format", FORMAT)];
    let answer = talk.present(&more).await;
    assert!(
        answer.status == 403 && answer.json()["required_claims"][0].get("issuer").is_some(),
        "{answer:?}"
    );
    // As a grant of its own, or without a ticket.
    for (members, code) in [
        (
            vec![("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", &*word)],
            "unsupported_grant_type",
        ),
        (
            vec![
                ("grant_type", "urn:ietf:params:oauth:grant-type:uma-ticket"),
                ("claim_token", &*word),
                ("claim_token_format", assertion::FORMAT),
            ],
            "invalid_request",
        ),
    ] {
        assert_eq!(
            house.send(Sent::new("POST", "/token").form(&members)).await.refusal(),
            (400, code.into())
        );
    }
    let mut dead = agent.reach(&house, &house.alice, "get_positions").await;
    dead.ticket = "never-given".into();
    assert_eq!(told(&show(&mut dead, &word).await), (400, "invalid_grant".into()));
    assert_eq!(told(&show(&mut talk, &word).await), (403, "need_info".into()), "and is as good as it was");
}

// CORE-35, CORE-04
#[tokio::test(flavor = "multi_thread")]
async fn where_it_is_not_asked_for_it_is_not_looked_at() {
    let house = House::new().await;
    let provider = Provider::at(&house);
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    house.web.asked();
    let answer = show(&mut talk, &provider.says(&house, &agent, json!({}), json!({}))).await;
    assert_eq!(told(&answer), (403, "need_info".into()));
    assert!(answer.json()["required_claims"][0]["terms_template"].is_object());
    assert_eq!(house.web.asked(), []);
    let metadata = house.send(Sent::new("GET", "/.well-known/uma2-configuration")).await.ok();
    assert!(!metadata.to_string().contains("id-jag"));
}
