//! Introductions that set-up expects (D-22): one key at one place is let in by its own signature; its neighbours wait.

use super::*;
use sayso_owner::registry::{PRE_APPROVAL_LIFE, PreApproval, Standing};
use sayso_protocol::VerifyingKey;

async fn expect(house: &House, server: &Server, key: &VerifyingKey) -> Option<Standing> {
    let approval = PreApproval {
        client_id: server.origin.parse().unwrap(),
        resource_uri: server.resource(),
        key: key.thumbprint(),
    };
    let store = house.authority.store();
    store.pre_approve(&house.alice.name, &approval, house.now()).await.unwrap()
}

/// It introduced itself and waits: no token, and nothing says set-up.
async fn waits(house: &House, server: &Server) {
    let answer = introduce(house, server, "alice").await;
    assert_eq!((answer.status, &answer.json()["status"]), (202, &json!("pending")));
    let row = row(house, server).await;
    assert_eq!((&row["status"], &row["introduced_by"]), (&json!("pending"), &json!("itself")));
    assert_eq!(ask_token(house, server, "alice").await.refusal(), (403, "authorization_pending".into()));
}

async fn rows_about(house: &House, server: &Server) -> Vec<Value> {
    let ledger = house.read(&house.alice, "/ledger").await;
    let all = ledger.as_array().unwrap().clone();
    all.into_iter().filter(|row| row["entry"]["resource_server"] == server.origin.as_str()).collect()
}

// D-22, FED-20, FED-30
#[tokio::test(flavor = "multi_thread")]
async fn the_one_that_is_expected_is_let_in_by_its_signature() {
    let house = House::new().await;
    let server = newcomer(&house).await;
    assert_eq!(expect(&house, &server, server.key.verifying()).await, None);
    assert_eq!(ask_token(&house, &server, "alice").await.refusal(), (401, "invalid_client".into()));
    assert_eq!(row(&house, &server).await, Value::Null, "the word alone makes nothing known");
    let forged = house.sign(unsigned("alice", &server.resource()), &fresh_key());
    assert_eq!(house.send(forged).await.status, 401);

    let answer = introduce(&house, &server, "alice").await;
    assert_eq!((answer.status, answer.json()["status"].clone()), (200, json!("active")));
    let [entry] = rows_about(&house, &server).await.try_into().unwrap();
    assert_eq!((&entry["kind"], &entry["author"]), (&json!("approved"), &json!("setup")));
    let told = row(&house, &server).await;
    assert_eq!((&told["status"], &told["introduced_by"]), (&json!("active"), &json!("setup")));
    let token = ask_token(&house, &server, "alice").await.ok()["access_token"].as_str().unwrap().to_owned();
    assert_eq!(perm(&house, &token).await.status, 201);
    assert_eq!(ask_token(&house, &server, "bob").await.refusal(), (401, "invalid_client".into()));

    // The word is spent: what she withdraws now waits for her, and so it does when set-up says it again.
    judge(&house, &server, "revoked").await.ok();
    waits(&house, &server).await;
    judge(&house, &server, "revoked").await.ok();
    house.pass(2 * 24 * 3600);
    assert_eq!(expect(&house, &server, server.key.verifying()).await, Some(Standing::Revoked));
    let again = introduce(&house, &server, "alice").await;
    assert_eq!((again.status, &again.json()["status"]), (202, &json!("pending")));
    assert_eq!(ask_token(&house, &server, "alice").await.refusal(), (403, "authorization_pending".into()));
    assert_eq!(perm(&house, &token).await.refusal(), (401, "invalid_token".into()));
}

// D-22, FED-24
#[tokio::test(flavor = "multi_thread")]
async fn its_neighbours_wait_like_any_other() {
    let house = House::new().await;
    let meant = fresh_key();
    let (squatter, elsewhere) = (newcomer(&house).await, newcomer(&house).await.under(meant.clone()).await);
    expect(&house, &squatter, meant.verifying()).await;
    // Whoever has the address has not the key; whoever has the key is at another address.
    waits(&house, &squatter).await;
    waits(&house, &elsewhere).await;
    // And a while later nobody is expected any more.
    let late = newcomer(&house).await;
    expect(&house, &late, late.key.verifying()).await;
    house.pass(PRE_APPROVAL_LIFE);
    waits(&house, &late).await;
}

// D-22, D-41: the operator named it, so it may be where the operator's things are.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_expected_is_looked_at_where_the_operator_put_it() {
    let house = House::reaching(Reach::Public, |_| {}).await;
    let server = newcomer(&house).await;
    assert_eq!(introduce(&house, &server, "alice").await.status, 401);
    assert_eq!(server.read(), 0);
    house.pass(61);
    expect(&house, &server, server.key.verifying()).await;
    assert_eq!(introduce(&house, &server, "alice").await.status, 200);
    ask_token(&house, &server, "alice").await.ok();
    let stranger = newcomer(&house).await;
    assert_eq!(introduce(&house, &stranger, "alice").await.status, 401);
    assert_eq!(stranger.read(), 0);
}
