//! Who gets a protection API token: the resource server whose published key signed, and nobody with a secret.
//!
//! A refusal stores no token.

use crate::house::{House, known};
use crate::wire::{Sent, fresh_key};
use sayso_protocol::SigningKey;
use serde_json::json;

fn request(client_id: &str, more: &[(&str, &str)]) -> Sent {
    let members =
        [("grant_type", "client_credentials"), ("scope", "uma_protection"), ("client_id", client_id)];
    Sent::new("POST", "/token").form(&[&members[..], more].concat())
}

fn pats(house: &House) -> i64 {
    let db = rusqlite::Connection::open(house.database()).unwrap();
    db.query_row("SELECT count(*) FROM pats", [], |row| row.get(0)).unwrap()
}

// FED-30, CORE-81, BASE-08
#[tokio::test(flavor = "multi_thread")]
async fn a_signature_by_a_published_key_gets_a_token() {
    let house = House::new().await;
    let sent = house.sign(request(&house.alice.server.origin, &[]), &house.alice.server.key);
    let answer = house.send(sent).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let body = answer.ok();
    assert_eq!((&body["token_type"], &body["expires_in"]), (&json!("Bearer"), &json!(3600)));
    assert_eq!(body["scope"], "uma_protection");
    let token = body["access_token"].as_str().unwrap();
    assert_eq!(token.len(), 43);
    for file in std::fs::read_dir(house.database().parent().unwrap()).unwrap() {
        let path = file.unwrap().path();
        let raw = if path.is_file() { std::fs::read(&path).unwrap() } else { vec![] };
        assert!(!raw.windows(token.len()).any(|window| window == token.as_bytes()), "{path:?}");
    }
}

// FED-30, FED-31, CORE-59, CORE-61, CORE-62
#[tokio::test(flavor = "multi_thread")]
async fn nothing_else_gets_one() {
    let house = House::new().await;
    let key = &house.alice.server.key;
    let origin = &house.alice.server.origin;
    let address = house.address.to_string();
    let sign = |sent: Sent, key: &SigningKey| house.sign(sent, key);
    let mut changed = sign(request(origin, &[]), key);
    changed.body.extend_from_slice(b"&x=1");
    let basic = request(origin, &[]).with("authorization", "Basic Z2F0ZXdheTpzZWNyZXQ=");
    let scoped = |scope: &str| {
        let members = [("grant_type", "client_credentials"), ("client_id", origin), ("scope", scope)];
        house.sign(Sent::new("POST", "/token").form(&members), key)
    };
    for (sent, status, code) in [
        (request(origin, &[]), 401, "invalid_client"),
        (sign(request(origin, &[]), &fresh_key()), 401, "invalid_client"),
        (sign(request(origin, &[]), &house.bob.server.key), 401, "invalid_client"),
        (sign(request(&house.bob.server.origin, &[]), key), 401, "invalid_client"),
        (sign(request("https://nobody.example", &[]), key), 401, "invalid_client"),
        (sign(request(origin, &[("owner", "bob")]), key), 401, "invalid_client"),
        (request(origin, &[]).signed(key, &address, house.now().plus(-61)), 401, "invalid_client"),
        (request(origin, &[]).signed(key, &address, house.now().plus(62)), 401, "invalid_client"),
        (request(origin, &[]).signed(key, "other.example", house.now()), 401, "invalid_client"),
        (sign(request(origin, &[]), key).without("content-digest"), 401, "invalid_client"),
        (changed, 401, "invalid_client"),
        (sign(request(origin, &[("client_secret", "s")]), key), 401, "invalid_client"),
        (request(origin, &[("client_secret", "s")]), 401, "invalid_client"),
        (sign(request(origin, &[("client_assertion", "x")]), key), 401, "invalid_client"),
        (sign(basic, key), 401, "invalid_client"),
        (scoped("openid"), 400, "invalid_scope"),
        (scoped("uma_protection openid"), 400, "invalid_scope"),
        (scoped(""), 400, "invalid_scope"),
    ] {
        assert_eq!(house.send(sent).await.refusal(), (status, code.to_owned()));
    }
    assert_eq!(pats(&house), 0);
}

// D-9
#[tokio::test(flavor = "multi_thread")]
async fn a_signed_request_counts_once() {
    let house = House::new().await;
    let sent = house.sign(request(&house.alice.server.origin, &[]), &house.alice.server.key);
    house.send(sent.clone()).await.ok();
    assert_eq!(house.send(sent).await.refusal(), (401, "invalid_client".into()));
    assert_eq!(pats(&house), 1);
}

// FED-28, FED-32, FED-33
#[tokio::test(flavor = "multi_thread")]
async fn standing_decides() {
    let house = House::new().await;
    let server = known(&house.bob.name, &house.alice.server, house.now());
    house.authority.store().settle_resource_server(&server, house.now()).await.unwrap();
    let pending = "UPDATE resource_servers SET status = 'pending' WHERE owner = 'bob' AND client_id = ?1";
    let db = rusqlite::Connection::open(house.database()).unwrap();
    assert_eq!(db.execute(pending, [&house.alice.server.origin]).unwrap(), 1);
    let (origin, key) = (&house.alice.server.origin, &house.alice.server.key);
    let ask = |owner: &'static str| house.sign(request(origin, &[("owner", owner)]), key);
    // Two owners know it, so it has to say for whom.
    assert_eq!(
        house.send(house.sign(request(origin, &[]), key)).await.refusal(),
        (400, "invalid_request".into())
    );
    house.send(ask("alice")).await.ok();
    assert_eq!(house.send(ask("bob")).await.refusal(), (403, "authorization_pending".into()));
    assert_eq!(pats(&house), 1);
    let decision = json!({ "client_id": origin, "decision": "revoked" });
    let sent = Sent::new("POST", "/owner/resource-servers/decision").json(&decision);
    house.hers(&house.alice, sent).await.ok();
    assert_eq!(house.send(ask("alice")).await.refusal(), (403, "access_denied".into()));
    assert_eq!(pats(&house), 0);
}

// FED-24: a key the origin no longer publishes, or that set-up did not vouch for, proves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_origin_proves_nothing() {
    let house = House::new().await;
    house.alice.server.lie(Some(crate::server::Lie::Down));
    let sent = || house.sign(request(&house.alice.server.origin, &[]), &house.alice.server.key);
    assert_eq!(house.send(sent()).await.refusal(), (401, "invalid_client".into()));
    house.alice.server.lie(None);
    // Remembered for a moment, so that a stranger cannot make us ask at will.
    assert_eq!(house.send(sent()).await.refusal(), (401, "invalid_client".into()));
    house.pass(6);
    house.send(sent()).await.ok();
}
