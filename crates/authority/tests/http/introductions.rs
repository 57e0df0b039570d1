//! A resource server introduces itself: proven by its origin, decided by her, and every failed check answered alike.
//!
//! What is refused leaves no row, makes no owner, and asks nobody twice within a minute.

mod expected;
mod reached;

use crate::house::House;
use crate::server::{Lie, Server};
use crate::wire::{Answer, JSON, Sent, fresh_key};
use sayso_fetch::Reach;
use sayso_protocol::SigningKey;
use serde_json::{Value, json};

pub fn body(owner: &str, resource: &str) -> Value {
    json!({ "owner": owner, "resource_uri": resource, "name": "New <b>vault</b>" })
}

fn unsigned(owner: &str, resource: &str) -> Sent {
    Sent::new("POST", "/rs/register").json(&body(owner, resource))
}

pub async fn newcomer(house: &House) -> Server {
    Server::start(&house.issuer, "new-vault").await
}

pub async fn introduce(house: &House, server: &Server, owner: &str) -> Answer {
    house.send(house.sign(unsigned(owner, &server.resource()), &server.key)).await
}

async fn ask_token(house: &House, server: &Server, owner: &str) -> Answer {
    let sent = Sent::new("POST", "/token").form(&[
        ("grant_type", "client_credentials"),
        ("scope", "uma_protection"),
        ("client_id", &server.origin),
        ("owner", owner),
    ]);
    house.send(house.sign(sent, &server.key)).await
}

async fn judge(house: &House, server: &Server, decision: &str) -> Answer {
    let body = json!({ "client_id": server.origin, "decision": decision });
    house.hers(&house.alice, Sent::new("POST", "/owner/resource-servers/decision").json(&body)).await
}

pub async fn row(house: &House, server: &Server) -> Value {
    let servers = house.read(&house.alice, "/resource-servers").await;
    let rows = servers.as_array().unwrap().clone();
    rows.into_iter().find(|row| row["client_id"] == server.origin.as_str()).unwrap_or_default()
}

async fn perm(house: &House, pat: &str) -> Answer {
    let wanted = json!({ "resource_id": "new-vault/get_positions", "resource_scopes": ["positions:read"] });
    let sent = Sent::new("POST", "/perm").with("authorization", &format!("Bearer {pat}")).json(&wanted);
    house.send(sent).await
}

// FED-20, FED-26, FED-27, FED-28, FED-32, OWN-15, BASE-08
#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_waits_for_her() {
    let house = House::new().await;
    let server = newcomer(&house).await;
    let answer = introduce(&house, &server, "alice").await;
    assert_eq!((answer.status, answer.header("cache-control")), (202, Some("no-store")));
    let reply = answer.json();
    assert_eq!(reply["client_id"], server.origin.as_str());
    assert_eq!((&reply["status"], &reply["error"]), (&json!("pending"), &json!("authorization_pending")));
    assert!(reply["error_description"].as_str().unwrap().contains("approves"));
    assert_eq!(reply.as_object().unwrap().len(), 4);
    let row = row(&house, &server).await;
    assert_eq!((&row["status"], &row["name"]), (&json!("pending"), &json!("New <b>vault</b>")));
    assert_eq!((&row["introduced_by"], &row["auth_method"]), (&json!("itself"), &json!("signature")));
    assert_eq!(ask_token(&house, &server, "alice").await.refusal(), (403, "authorization_pending".into()));
    assert_eq!(ask_token(&house, &server, "bob").await.refusal(), (401, "invalid_client".into()));

    // Saying it again changes nothing, and asks her nothing again.
    let before = house.dump();
    assert_eq!(introduce(&house, &server, "alice").await.json(), reply);
    assert_eq!(house.dump(), before);
}

// FED-30, FED-34, FED-35, FED-36, FED-37, FED-53, OWN-16
#[tokio::test(flavor = "multi_thread")]
async fn her_answer_opens_and_ends_it() {
    let house = House::new().await;
    let server = newcomer(&house).await;
    introduce(&house, &server, "alice").await.ok();
    assert_eq!(judge(&house, &server, "approved").await.ok()["status"], "active");
    assert_eq!(judge(&house, &server, "approved").await.detail(), 404);
    let token = ask_token(&house, &server, "alice").await.ok()["access_token"].as_str().unwrap().to_owned();
    assert_eq!(
        perm(&house, &token).await.status,
        201,
        "the first question makes the authority read what is there"
    );

    let before = house.dump().without("resources");
    let again = introduce(&house, &server, "alice").await;
    assert_eq!((again.status, again.json()["status"].clone()), (200, json!("active")));
    assert_eq!(house.dump().without("resources"), before);

    assert_eq!(judge(&house, &server, "revoked").await.ok()["status"], "revoked");
    assert_eq!(perm(&house, &token).await.refusal(), (401, "invalid_token".into()));
    assert_eq!(ask_token(&house, &server, "alice").await.refusal(), (403, "access_denied".into()));

    assert_eq!(introduce(&house, &server, "alice").await.status, 202);
    assert_eq!(row(&house, &server).await["status"], "pending");
    assert_eq!(perm(&house, &token).await.refusal(), (401, "invalid_token".into()));
    assert_eq!(ask_token(&house, &server, "alice").await.refusal(), (403, "authorization_pending".into()));
    judge(&house, &server, "approved").await.ok();
    assert_eq!(perm(&house, &token).await.refusal(), (401, "invalid_token".into()), "the old one stays dead");
    ask_token(&house, &server, "alice").await.ok();
}

// FED-21, FED-22, FED-23, FED-24, FED-25, FED-29, CORE-59, CORE-61, CORE-62, D-9, O-24
#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_is_answered_alike_and_nothing_is_kept() {
    let house = House::new().await;
    let (address, now) = (house.address.to_string(), house.now());
    let before = house.dump();
    let expected = unproven(&house).await;
    for lie in [
        Lie::Unsigned,
        Lie::ForeignKey,
        Lie::WrongIssuer,
        Lie::AnotherResource,
        Lie::AnotherAuthority,
        Lie::KeysElsewhere,
        Lie::ListingElsewhere,
        Lie::OddConsequence,
        Lie::Down,
    ] {
        let server = newcomer(&house).await;
        server.lie(Some(lie));
        let answer = introduce(&house, &server, "alice").await;
        assert_eq!((answer.status, answer.text()), (401, expected.as_str()), "{lie:?}");
        assert_eq!(server.read(), 1, "{lie:?}");
    }
    let key = fresh_key();
    type Change = fn(Sent) -> Sent;
    let altered: [(&str, Change); 4] = [
        ("no digest", |sent| sent.without("content-digest")),
        ("no signature", |sent| sent.without("signature")),
        ("another body", |mut sent| {
            sent.body.push(b' ');
            sent
        }),
        ("a credential", |sent| sent.with("authorization", "Bearer x")),
    ];
    for (what, change) in altered {
        let server = newcomer(&house).await;
        let sent = change(house.sign(unsigned("alice", &server.resource()), &server.key));
        let answer = house.send(sent).await;
        assert_eq!((answer.status, answer.text()), (401, expected.as_str()), "{what}");
        assert_eq!(server.read(), 0, "{what}: what could prove nothing makes nobody ask");
    }
    for (created, authority) in [(-61, address.as_str()), (62, &address), (0, "other.example")] {
        let server = newcomer(&house).await;
        let sent = unsigned("alice", &server.resource()).signed(&server.key, authority, now.plus(created));
        let answer = house.send(sent).await;
        assert_eq!((answer.status, answer.text()), (401, expected.as_str()), "{created} {authority}");
    }
    let server = newcomer(&house).await;
    let other = house.sign(unsigned("alice", &house.bob.server.resource()), &server.key);
    let unpublished = house.sign(unsigned("alice", &server.resource()), &key);
    let nobody = house.sign(unsigned("nobody", &newcomer(&house).await.resource()), &server.key);
    let closed = house.sign(unsigned("alice", "http://127.0.0.1:9/mcp"), &server.key);
    for (sent, what) in
        [(other, "another's resource"), (unpublished, "another key"), (nobody, "nobody"), (closed, "closed")]
    {
        let answer = house.send(sent).await;
        assert_eq!((answer.status, answer.text()), (401, expected.as_str()), "{what}");
    }
    assert_eq!(house.dump(), before);
}

/// What an unknown owner is told by whom it proves itself to; no other failure looks different.
async fn unproven(house: &House) -> String {
    let server = newcomer(house).await;
    let answer = introduce(house, &server, "nobody").await;
    assert_eq!(answer.refusal(), (401, "invalid_client".into()));
    answer.text().to_owned()
}

// FED-51, O-24
#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_not_fetched_again_within_a_minute() {
    let house = House::new().await;
    let server = newcomer(&house).await;
    let before = house.dump();
    let bad = |key: SigningKey| house.sign(unsigned("alice", &server.resource()), &key);
    assert_eq!(house.send(bad(fresh_key())).await.refusal(), (401, "invalid_client".into()));
    assert_eq!(server.read(), 1);
    for _ in 0..3 {
        let answer = house.send(bad(fresh_key())).await;
        assert_eq!(answer.refusal(), (429, "too_many_requests".into()));
        assert_eq!(answer.header("retry-after"), Some("60"));
    }
    assert_eq!((server.read(), house.dump()), (1, before));
    // Bad requests in its name do not keep the one it is from asking: what it publishes is known.
    assert_eq!(introduce(&house, &server, "alice").await.status, 202);
    assert_eq!(server.read(), 1);

    let down = newcomer(&house).await;
    down.lie(Some(Lie::Down));
    assert_eq!(introduce(&house, &down, "alice").await.status, 401);
    down.lie(None);
    assert_eq!(introduce(&house, &down, "alice").await.status, 429);
    assert_eq!(down.read(), 1);
    house.pass(61);
    assert_eq!(introduce(&house, &down, "alice").await.status, 202);
    assert_eq!(down.read(), 2);
}

// O-24, FED-29: who has valid documents may guess a few owners' names, and a right guess shows no more after those.
#[tokio::test(flavor = "multi_thread")]
async fn names_of_owners_cannot_be_tried_out() {
    let house = House::new().await;
    let server = newcomer(&house).await;
    let before = house.dump();
    for (name, status) in [("nobody", 401), ("no-one", 429), ("none", 429)] {
        assert_eq!(introduce(&house, &server, name).await.status, status, "{name}");
    }
    let seen = signatures(&house);
    let miss = introduce(&house, &server, "neither").await;
    assert_eq!(miss.refusal(), (429, "too_many_requests".into()));
    for name in ["alice", "bob"] {
        let hit = introduce(&house, &server, name).await;
        assert_eq!((hit.status, hit.text(), hit.header("retry-after")), (429, miss.text(), Some("60")));
    }
    assert_eq!((house.dump(), signatures(&house)), (before, seen), "nothing is kept, no signature either");
    // Nobody else is kept waiting, nor this one for long.
    assert_eq!(introduce(&house, &newcomer(&house).await, "alice").await.status, 202);
    house.pass(61);
    assert_eq!(introduce(&house, &server, "alice").await.status, 202);
}

// D-22: each that proves itself leaves its signature in the store, so no source is heard without end.
#[tokio::test(flavor = "multi_thread")]
async fn one_source_is_not_heard_without_end() {
    let house = House::new().await;
    let server = newcomer(&house).await;
    for _ in 0..10 {
        assert_eq!(introduce(&house, &server, "alice").await.status, 202);
    }
    let seen = signatures(&house);
    for _ in 0..3 {
        assert_eq!(introduce(&house, &server, "alice").await.refusal(), (429, "too_many_requests".into()));
    }
    assert_eq!(signatures(&house), seen);
    house.pass(61);
    assert_eq!(introduce(&house, &server, "alice").await.status, 202);
}

fn signatures(house: &House) -> i64 {
    let db = rusqlite::Connection::open(house.database()).unwrap();
    db.query_row("SELECT count(*) FROM replay", [], |row| row.get(0)).unwrap()
}

// FED-36, D-22: what she has put out twice is not back on her page at once.
#[tokio::test(flavor = "multi_thread")]
async fn she_is_not_asked_again_and_again() {
    let house = House::new().await;
    let server = newcomer(&house).await;
    for _ in 0..2 {
        assert_eq!(introduce(&house, &server, "alice").await.status, 202);
        judge(&house, &server, "revoked").await.ok();
    }
    let before = house.dump();
    let answer = introduce(&house, &server, "alice").await;
    assert_eq!(answer.refusal(), (429, "too_many_requests".into()));
    assert!(answer.header("retry-after").is_some());
    assert_eq!((house.dump(), &row(&house, &server).await["status"]), (before, &json!("revoked")));
    house.pass(24 * 3600 + 1);
    assert_eq!(introduce(&house, &server, "alice").await.status, 202);
}

// D-9
#[tokio::test(flavor = "multi_thread")]
async fn a_signed_introduction_counts_once() {
    let house = House::new().await;
    let server = newcomer(&house).await;
    let sent = house.sign(unsigned("alice", &server.resource()), &server.key);
    assert_eq!(house.send(sent.clone()).await.status, 202);
    judge(&house, &server, "revoked").await.ok();
    assert_eq!(house.send(sent).await.refusal(), (401, "invalid_client".into()));
    assert_eq!(row(&house, &server).await["status"], "revoked", "an old word does not ask her again");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_bodies_ask_nobody() {
    let house = House::new().await;
    let server = newcomer(&house).await;
    let before = house.dump();
    let uri = server.resource();
    let twice = format!(r#"{{"owner":"alice","owner":"bob","resource_uri":"{uri}","name":"n"}}"#);
    let long = json!({ "owner": "alice", "resource_uri": uri, "name": "n".repeat(300) }).to_string();
    let nameless = json!({ "owner": "alice", "resource_uri": uri }).to_string();
    for (bytes, status) in [
        (vec![], 400),
        (b"{".to_vec(), 400),
        (b"\xff\xfe".to_vec(), 400),
        (twice.into(), 400),
        (long.into(), 400),
        (nameless.into(), 400),
        (b"[]".to_vec(), 400),
        (vec![b'['; 60_000], 400),
        (vec![b'['; 100_000], 413),
        (vec![b' '; 3_000_000], 413),
    ] {
        let sent = Sent::new("POST", "/rs/register").body(JSON, bytes);
        assert_eq!(house.send(house.sign(sent, &server.key)).await.refusal().0, status);
    }
    let form = Sent::new("POST", "/rs/register").form(&[("owner", "alice"), ("resource_uri", &uri)]);
    assert_eq!(house.send(house.sign(form, &server.key)).await.refusal().0, 415);
    assert_eq!((server.read(), house.dump()), (0, before));
}

// D-22
#[tokio::test(flavor = "multi_thread")]
async fn no_more_wait_than_she_can_look_at() {
    let house = House::new().await;
    for _ in 0..sayso_owner::registry::MOST_PENDING {
        assert_eq!(introduce(&house, &newcomer(&house).await, "alice").await.status, 202);
    }
    let (before, late) = (house.dump(), newcomer(&house).await);
    let answer = introduce(&house, &late, "alice").await;
    assert_eq!(answer.refusal(), (429, "too_many_requests".into()));
    assert!(answer.header("retry-after").is_some());
    assert_eq!(house.dump(), before);
    assert_eq!(introduce(&house, &late, "bob").await.status, 202);
}

// OWN-25, O-38
#[tokio::test(flavor = "multi_thread")]
async fn her_record_says_who_asks_and_nothing_it_calls_itself() {
    let house = House::new().await;
    let server = newcomer(&house).await;
    introduce(&house, &server, "alice").await.ok();
    let ledger = house.read(&house.alice, "/ledger").await;
    let last = ledger.as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["kind"], &last["entry"]["asks"]), (&json!("promised"), &json!("resource_server")));
    assert_eq!(last["entry"]["resource_server"], server.origin.as_str());
    assert_eq!(last["author"], json!({ "resource_server": server.origin }));
    assert!(!ledger.to_string().contains("<b>"));
}
