//! Agents that an issuer names: whose word counts, who they are then, and each way in which it does not count.
//!
//! A credential that is not accepted has one answer whatever is wrong with it, spends nothing and stores nothing.

mod described;

use crate::house::{Agent, FORMAT, House, Talk};
use crate::wire::{Answer, Sent, fresh_key};
use sayso_protocol::jws::sign_under;
use sayso_protocol::payload::agreement::{self, AgreementClaims, Showing};
use sayso_protocol::payload::rpt::Rpt;
use sayso_protocol::{SigningKey, b64};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

pub const ISSUER: &str = "https://ps.example";
const DOCUMENT: &str = "https://ps.example/.well-known/aauth-agent.json";
pub const KEYS: &str = "https://ps.example/jwks.json";
const HANDLE: &str = "aauth:worker@ps.example";

/// An issuer of credentials, on the web of a house.
pub struct Issuer {
    key: SigningKey,
    kid: String,
}

impl Issuer {
    pub fn at(house: &House) -> Self {
        let issuer = Self { key: fresh_key(), kid: "k1".into() };
        house.web.put(DOCUMENT, json!({ "issuer": ISSUER, "jwks_uri": KEYS }));
        house.web.put(KEYS, json!({ "keys": [issuer.published()] }));
        issuer
    }

    pub fn published(&self) -> Value {
        let mut jwk = serde_json::to_value(self.key.verifying().jwk()).unwrap();
        jwk["alg"] = "Ed25519".into();
        jwk["kid"] = self.kid.clone().into();
        jwk
    }

    /// A credential for the key, altered.
    pub fn name(&self, house: &House, key: &SigningKey, header: Value, claims: Value) -> String {
        let mut jwk = serde_json::to_value(key.verifying().jwk()).unwrap();
        jwk["alg"] = "Ed25519".into();
        let mut head = json!({ "alg": "Ed25519", "typ": "aa-agent+jwt", "kid": self.kid });
        let mut body = json!({
            "iss": ISSUER, "sub": HANDLE, "dwk": "aauth-agent.json", "jti": "j", "iat": house.now(),
            "exp": house.now().plus(300), "cnf": { "jwk": jwk },
        });
        for (base, over) in [(&mut head, header), (&mut body, claims)] {
            for (name, value) in over.as_object().unwrap() {
                base[name] = value.clone();
            }
        }
        sign_under(&self.key, &head, &body).unwrap()
    }
}

/// Status and error of an answer, whether or not there is a next ticket.
pub trait Told {
    fn told(&self) -> (u16, String);
}

impl Told for Answer {
    fn told(&self) -> (u16, String) {
        (self.status, self.json()["error"].as_str().unwrap_or_default().to_owned())
    }
}

pub async fn house() -> House {
    House::with(|config| config.trusted_agent_issuers = vec![ISSUER.into()]).await
}

/// Commits in the name of a credential, or described.
pub async fn commit(talk: &mut Talk<'_>, showing: &Showing<'_>) -> Answer {
    let claims: AgreementClaims = serde_json::from_value(talk.claims()).unwrap();
    let token = agreement::sign_as(&talk.agent.key, showing, &claims).unwrap();
    talk.present(&[("claim_token", &token), ("claim_token_format", FORMAT)]).await
}

pub fn credential(compact: &str) -> Showing<'_> {
    Showing { credential: Some(compact), ..Showing::default() }
}

// CORE-46, CORE-48, CORE-49, CORE-69, CORE-70, AAUTH-01, AAUTH-11, AAUTH-16
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_an_issuer_names_has_one_connection_whatever_its_session_key() {
    let house = house().await;
    let issuer = Issuer::at(&house);
    let first = Agent::new();
    let mut talk = first.negotiate(&house, &house.alice, "get_positions").await;
    house.web.asked();
    let shown = issuer.name(&house, &first.key, json!({}), json!({}));
    let answer = commit(&mut talk, &credential(&shown)).await;
    assert_eq!(answer.told(), (403, "request_submitted".into()));
    let door = |url: &str| ("configured", url.to_owned());
    assert_eq!(house.web.asked(), [door(DOCUMENT), door(KEYS)]);

    let waiting = &house.read(&house.alice, "/pending").await[0];
    assert_eq!((&waiting["identity"], &waiting["agent"]), (&json!("identified"), &json!(HANDLE)));
    assert_eq!(waiting["assurance"], json!({ "binding": 1, "provenance": 1, "accountability": 0 }));
    assert!(waiting["assurance_notes"][1].as_str().unwrap().contains(ISSUER));
    assert_eq!(waiting["evidence"], json!({ "issuer": ISSUER, "subject": HANDLE }));
    house.decide(&house.alice, &talk.family(), "approved").await.ok();
    let token = talk.present(&[]).await.ok()["access_token"].as_str().unwrap().to_owned();
    let rpt = claims_of(&token);
    assert_eq!((rpt.sub.as_str(), rpt.client_id.as_str()), (HANDLE, HANDLE));
    assert_eq!(rpt.cnf.jwk, first.key.verifying().jwk());

    // Another session key of the same agent: let in already, and asked nobody again.
    let second = Agent::new();
    let mut talk = second.negotiate(&house, &house.alice, "get_positions").await;
    let shown = issuer.name(&house, &second.key, json!({}), json!({ "jti": "j2" }));
    let answer = commit(&mut talk, &credential(&shown)).await.ok();
    let rpt = claims_of(answer["access_token"].as_str().unwrap());
    assert_eq!((rpt.sub.as_str(), &rpt.cnf.jwk), (HANDLE, &second.key.verifying().jwk()));
    assert_eq!(house.web.asked(), []);
    let connections = house.read(&house.alice, "/connections").await;
    assert_eq!(connections.as_array().unwrap().len(), 1);
    assert_eq!(
        (&connections[0]["handle"], &connections[0]["identity"]),
        (&json!(HANDLE), &json!("identified"))
    );
    let promised = house.read(&house.alice, "/ledger").await;
    let promised: Vec<&Value> =
        promised.as_array().unwrap().iter().filter(|row| row["kind"] == "promised").collect();
    assert!(promised.iter().all(|row| row["entry"]["evidence"]["issuer"] == ISSUER), "{promised:?}");
}

fn claims_of(token: &str) -> Rpt {
    let body = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&b64::decode(body).unwrap()).unwrap()
}

// CORE-46, CORE-47, CORE-50, AAUTH-02, AAUTH-03, AAUTH-05, AAUTH-06, AAUTH-07, AAUTH-10, AAUTH-12, AAUTH-14
#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_does_not_count_has_one_answer_and_costs_nothing() {
    let house = house().await;
    let issuer = Issuer::at(&house);
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    let forger = Issuer { key: fresh_key(), kid: "k1".into() };
    let with = |header: Value, claims: Value| issuer.name(&house, &agent.key, header, claims);
    let other = |iss: &str| with(json!({}), json!({ "iss": iss, "sub": "bot" }));
    let none = json!({});
    let hopeless = [
        ("an issuer nobody lists", other("https://other.example")),
        ("a trusted issuer's name with a slash", other("https://ps.example/")),
        ("plain http", other("http://ps.example")),
        ("a path", other("https://ps.example/t1")),
        ("expired", with(none.clone(), json!({ "exp": house.now() }))),
        ("for another authority", with(none.clone(), json!({ "aud": "https://as.other.example" }))),
        ("from the future", with(none.clone(), json!({ "iat": house.now().plus(120) }))),
        ("another domain's name", with(none.clone(), json!({ "sub": "aauth:worker@other.example" }))),
        ("its own parent", with(none.clone(), json!({ "parent_agent": HANDLE }))),
        ("no key confirmed", with(none.clone(), json!({ "cnf": {} }))),
        ("alg none", with(json!({ "alg": "none" }), none.clone())),
        ("RS256", with(json!({ "alg": "RS256" }), none.clone())),
        ("another typ", with(json!({ "typ": "at+jwt" }), none.clone())),
        ("no credential", "a.b.c".into()),
    ];
    let before = house.dump();
    house.web.asked();
    let mut told = vec![];
    for (name, shown) in &hopeless {
        let answer = sent(&talk, &agent, shown).await;
        assert_eq!(answer.told(), (403, "request_denied".into()), "{name}");
        told.push((*name, answer.json()));
    }
    assert_eq!(house.web.asked(), [], "nobody is asked about what cannot hold");
    let heard = [
        ("a key that is not published", forger.name(&house, &agent.key, none.clone(), none.clone())),
        ("a key id nobody publishes", with(json!({ "kid": "k9" }), none.clone())),
    ];
    for (name, shown) in &heard {
        let answer = sent(&talk, &agent, shown).await;
        assert_eq!(answer.told(), (403, "request_denied".into()), "{name}");
        told.push((*name, answer.json()));
    }
    assert_eq!(house.web.asked().len(), 2, "asked once");
    for (name, body) in &told {
        assert_eq!(body, &told[0].1, "{name}: one answer, whatever it was");
    }
    assert_eq!(house.dump(), before, "nothing was spent or stored");
    assert_eq!(house.read(&house.alice, "/pending").await, json!([]));
    // The ticket is as good as it was.
    let shown = with(none.clone(), none);
    let answer = commit(&mut talk, &credential(&shown)).await;
    assert_eq!(answer.told(), (403, "request_submitted".into()));
}

async fn sent(talk: &Talk<'_>, agent: &Agent, shown: &str) -> Answer {
    talk.house.send(request(talk, agent, shown)).await
}

/// An agreement under this credential, by the agent's key, header and all as it would write it.
pub fn request(talk: &Talk<'_>, agent: &Agent, shown: &str) -> Sent {
    let header = json!({ "alg": "Ed25519", "typ": agreement::TYP, "agent_token": shown });
    let compact = sign_under(&agent.key, &header, &talk.claims()).unwrap();
    talk.request(&talk.ticket, &[("claim_token", &*b64::encode(compact)), ("claim_token_format", FORMAT)])
}

// TERMS-23, TERMS-24, AAUTH-10, D-41
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_before_the_agreement_verifies() {
    let house = house().await;
    let issuer = Issuer::at(&house);
    let (agent, thief) = (Agent::new(), fresh_key());
    let shown = issuer.name(&house, &agent.key, json!({}), json!({}));
    let described =
        json!({ "client_id": "https://op.example/a.json", "signature_agent": "https://op.example" });
    let header = |more: Value| {
        let mut header = json!({ "alg": "Ed25519", "typ": agreement::TYP });
        for (name, value) in more.as_object().unwrap().iter().chain(described.as_object().unwrap()) {
            header[name] = value.clone();
        }
        header
    };
    let jwk = serde_json::to_value(agent.key.verifying().jwk()).unwrap();
    house.web.asked();
    for (name, header, signer) in [
        ("a stolen credential", header(json!({ "agent_token": shown })), &thief),
        ("a stolen bare key", header(json!({ "jwk": jwk })), &thief),
        ("two keys", header(json!({ "jwk": jwk, "agent_token": shown })), &agent.key),
        ("no key", header(json!({})), &agent.key),
    ] {
        let talk = agent.negotiate(&house, &house.alice, "get_positions").await;
        let compact = sign_under(signer, &header, &talk.claims()).unwrap();
        let more = [("claim_token", &*b64::encode(compact)), ("claim_token_format", FORMAT)];
        let answer = house.send(talk.request(&talk.ticket, &more)).await;
        assert_eq!(answer.told(), (403, "request_denied".into()), "{name}");
        assert_eq!(house.web.asked(), [], "{name}");
    }
    // Nor for a ticket that is not live, or one that nothing has been demanded for yet.
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    let spent = talk.ticket.clone();
    commit(&mut talk, &Showing::default()).await;
    let compact = sign_under(&agent.key, &header(json!({ "agent_token": shown })), &talk.claims()).unwrap();
    let more = [("claim_token", &*b64::encode(&compact)), ("claim_token_format", FORMAT)];
    assert_eq!(house.send(talk.request(&spent, &more)).await.told(), (400, "invalid_grant".into()));
    let answer = talk.present(&more).await;
    assert_eq!(answer.told(), (403, "request_submitted".into()), "it waits, whatever is said meanwhile");
    let fresh = agent.reach(&house, &house.alice, "get_positions").await;
    let answer = house.send(fresh.request(&fresh.ticket, &more)).await;
    assert_eq!(answer.told(), (403, "need_info".into()));
    assert_eq!(house.web.asked(), []);
}

// AAUTH-09
#[tokio::test(flavor = "multi_thread")]
async fn unknown_key_ids_ask_once_a_minute_and_a_rotation_is_seen() {
    let house = house().await;
    let old = Issuer::at(&house);
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    let new = Issuer { key: fresh_key(), kid: "k2".into() };
    house.web.asked();
    for n in 0..50 {
        let shown = new.name(&house, &agent.key, json!({ "kid": format!("made-up-{n}") }), json!({}));
        assert_eq!(sent(&talk, &agent, &shown).await.status, 403);
    }
    assert_eq!(house.web.asked().len(), 2, "one document, one set");
    house.web.put(KEYS, json!({ "keys": [old.published(), new.published()] }));
    let shown = new.name(&house, &agent.key, json!({}), json!({}));
    assert_eq!(sent(&talk, &agent, &shown).await.told(), (403, "request_denied".into()), "not yet");
    house.pass(60);
    let answer = commit(&mut talk, &credential(&shown)).await;
    assert_eq!(answer.told(), (403, "request_submitted".into()));
    assert_eq!(house.web.asked().len(), 2);
}

// AAUTH-04, AAUTH-15
#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_is_not_to_be_believed_vouches_for_nobody_and_ends_nothing() {
    let house = house().await;
    let issuer = Issuer::at(&house);
    let agent = Agent::new();
    let shown = issuer.name(&house, &agent.key, json!({}), json!({}));
    for document in [
        json!({ "issuer": "https://ps.example/", "jwks_uri": KEYS }),
        json!({ "issuer": ISSUER, "jwks_uri": "https://elsewhere.example/jwks.json" }),
        json!([]),
    ] {
        house.pass(60);
        house.web.put(DOCUMENT, document.clone());
        let talk = agent.negotiate(&house, &house.alice, "get_positions").await;
        assert_eq!(sent(&talk, &agent, &shown).await.told(), (403, "request_denied".into()), "{document}");
    }
    house.pass(60);
    house.web.put(DOCUMENT, json!({ "issuer": ISSUER, "jwks_uri": KEYS }));
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    let shown = issuer.name(&house, &agent.key, json!({}), json!({}));
    commit(&mut talk, &credential(&shown)).await;
    house.decide(&house.alice, &talk.family(), "approved").await.ok();
    let token = talk.present(&[]).await.ok()["access_token"].as_str().unwrap().to_owned();
    // The issuer withdraws its word: the connection is hers to end, and what was granted lives its time.
    house.web.remove(KEYS);
    house.pass(301);
    let pat = house.pat(&house.alice).await;
    let asked = Sent::new("POST", "/introspect").form(&[("token", &token)]);
    let live = house.send(asked.with("authorization", &format!("Bearer {pat}"))).await.ok();
    assert_eq!(live["active"], true);
    assert_eq!(house.read(&house.alice, "/connections").await[0]["status"], "active");
}

// CORE-50
#[tokio::test(flavor = "multi_thread")]
async fn without_a_list_nobody_vouches_for_anybody() {
    let house = House::new().await;
    let issuer = Issuer::at(&house);
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    house.web.asked();
    let shown = issuer.name(&house, &agent.key, json!({}), json!({}));
    assert_eq!(commit(&mut talk, &credential(&shown)).await.told(), (403, "request_denied".into()));
    assert_eq!(house.web.asked(), []);
    assert_eq!(
        talk.commit().await.told(),
        (403, "request_submitted".into()),
        "a bare key is as good as ever"
    );
}
