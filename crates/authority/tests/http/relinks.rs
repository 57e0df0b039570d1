//! An agent's new key in the place of its old one: by both keys and her hand, and by nothing less.

use crate::house::{Agent, House, Person};
use crate::wire::{Answer, Sent, fresh_key};
use sayso_protocol::SigningKey;
use sayso_protocol::key::Signer;
use sayso_protocol::payload::relink::{MAX_LIFE, Relink};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const PATH: &str = "/owner/connections/relink";

async fn relink(house: &House, person: &Person, statement: &Value) -> Answer {
    house.hers(person, Sent::new("POST", PATH).json(statement)).await
}

fn stated(house: &House, old: &Agent, new: &Agent) -> Value {
    let statement = Relink::sign(&old.key, &new.key, &house.issuer, house.now(), MAX_LIFE).unwrap();
    serde_json::to_value(statement).unwrap()
}

// CORE-103, CORE-104, OWN-02
#[tokio::test(flavor = "multi_thread")]
async fn both_keys_and_her_hand_put_a_new_key_in_the_place_of_the_old() {
    let house = House::new().await;
    let (old, new) = (Agent::new(), Agent::new());
    let token = old.obtain(&house, &house.alice, "get_positions").await;
    let answer = relink(&house, &house.alice, &stated(&house, &old, &new)).await.ok();
    assert_eq!(answer, json!({ "from": old.handle(), "to": new.handle(), "rpts_deactivated": 1 }));
    let pat = house.pat(&house.alice).await;
    let asked = Sent::new("POST", "/introspect").form(&[("token", &token)]);
    let dead = house.send(asked.with("authorization", &format!("Bearer {pat}"))).await.ok();
    assert_eq!(dead, json!({ "active": false, "error": "connection_revoked" }));
    let mut talk = new.negotiate(&house, &house.alice, "get_positions").await;
    assert_eq!(talk.commit().await.status, 200, "she is not asked about the new key");
    let mut talk = old.negotiate(&house, &house.alice, "get_positions").await;
    assert_eq!(talk.commit().await.json()["error"], "request_submitted", "and is about the old one");
}

#[tokio::test(flavor = "multi_thread")]
async fn anything_less_changes_nothing() {
    let house = House::new().await;
    let (old, new, ended) = (Agent::new(), Agent::new(), Agent::new());
    for agent in [&old, &ended] {
        agent.obtain(&house, &house.alice, "get_positions").await;
    }
    let end = Sent::new("POST", "/owner/connections/revoke").json(&json!({ "handle": ended.handle() }));
    house.hers(&house.alice, end).await.ok();
    let good = stated(&house, &old, &new);
    let elsewhere =
        Relink::sign(&old.key, &new.key, "https://as.other.example", house.now(), MAX_LIFE).unwrap();
    let past = Relink::sign(&old.key, &new.key, &house.issuer, house.now().plus(-700), 600).unwrap();
    let mut more = good.clone();
    more["more"] = 1.into();
    let before = house.dump();
    let alice = &house.alice;
    for (name, status, statement) in [
        ("half of it", 400, json!({ "by_old": good["by_old"] })),
        ("one half twice", 400, json!({ "by_old": good["by_old"], "by_new": good["by_old"] })),
        ("the other way round", 400, json!({ "by_old": good["by_new"], "by_new": good["by_old"] })),
        ("another member", 400, more),
        ("for another authority", 400, serde_json::to_value(elsewhere).unwrap()),
        ("run out", 400, serde_json::to_value(past).unwrap()),
        ("from an agent she does not know", 404, stated(&house, &new, &Agent::new())),
        ("from one she ended", 400, stated(&house, &ended, &new)),
        ("to one she ended", 400, stated(&house, &old, &ended)),
        ("to itself", 400, stated(&house, &old, &old)),
    ] {
        assert_eq!(relink(&house, alice, &statement).await.detail(), status, "{name}");
    }
    assert_eq!(relink(&house, &house.bob, &good).await.detail(), 404, "another owner's agent");
    let unsigned = Sent::new("POST", PATH).json(&good);
    assert_eq!(house.send(unsigned.clone()).await.detail(), 401);
    for key in [&fresh_key(), &old.key, &new.key] {
        assert_eq!(house.send(house.sign(unsigned.clone(), key)).await.detail(), 401, "not her key");
    }
    assert_eq!(house.dump(), before);
}

/// What is to be signed, and where the signature goes.
type Question = (Vec<u8>, mpsc::Sender<[u8; 64]>);

/// A key that another thread holds: only what is to be signed goes there, and only the signature comes back.
struct Thread {
    public: [u8; 32],
    ask: Mutex<mpsc::Sender<Question>>,
}

impl Signer for Thread {
    fn public_key(&self) -> [u8; 32] {
        self.public
    }

    fn sign(&self, message: &[u8]) -> Option<[u8; 64]> {
        let (answer, answered) = mpsc::channel();
        self.ask.lock().unwrap().send((message.to_vec(), answer)).ok()?;
        answered.recv_timeout(Duration::from_secs(5)).ok()
    }
}

fn held_elsewhere() -> Agent {
    let key = fresh_key();
    let public = *key.verifying().as_bytes();
    let (ask, asked) = mpsc::channel::<Question>();
    std::thread::spawn(move || {
        for (message, answer) in asked {
            let _ = answer.send(key.sign(&message).unwrap());
        }
    });
    let signer = Thread { public, ask: Mutex::new(ask) };
    Agent { key: SigningKey::elsewhere(Arc::new(signer)).unwrap() }
}

// CORE-103, CORE-104
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_somebody_else_holds_negotiate_and_succeed_each_other() {
    let house = House::new().await;
    let (old, new) = (held_elsewhere(), held_elsewhere());
    old.obtain(&house, &house.alice, "get_positions").await;
    let answer = relink(&house, &house.alice, &stated(&house, &old, &new)).await.ok();
    assert_eq!((&answer["from"], &answer["to"]), (&json!(old.handle()), &json!(new.handle())));
    let mut talk = new.negotiate(&house, &house.alice, "get_positions").await;
    assert_eq!(talk.commit().await.status, 200, "she is not asked about the new key");
}
