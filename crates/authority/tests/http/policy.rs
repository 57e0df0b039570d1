//! Her policy over HTTP, and what she sees of her resources and their servers.
//!
//! Every edit is a new version; what is refused is refused with a sentence and changes nothing.

use crate::house::{Agent, House};
use crate::wire::Sent;
use serde_json::{Value, json};

fn unit(id: &str, resources: Value) -> Value {
    json!({
        "id": id, "name": "New", "resources": resources, "ask_me": true, "rules": [],
        "terms": { "purpose": "p", "scope": ["positions:read"], "expires_in": 60, "prohibited": ["resale"] },
    })
}

// OWN-18, POL-02
#[tokio::test(flavor = "multi_thread")]
async fn policies_are_keyed_by_id_with_current_terms() {
    let house = House::new().await;
    let policies = house.read(&house.alice, "/policies").await;
    assert_eq!(policies.as_object().unwrap().len(), 3);
    let trading = &policies["trading"];
    assert_eq!(
        (&trading["id"], &trading["ask_me"], &trading["rules"]),
        (&json!("trading"), &json!(true), &json!([]))
    );
    assert_eq!(
        (&trading["version"], &trading["terms"]["template_id"]),
        (&json!(1), &json!("alice/trading/v1"))
    );
    assert_eq!(trading["terms"]["per_operation"], true);
    assert_eq!(policies["holdings"]["terms"]["per_operation"], false);
    let uri = policies["holdings"]["terms"]["terms_uri"].as_str().unwrap();
    assert_eq!(
        house.get(uri.strip_prefix(&house.issuer).unwrap()).await.ok()["purpose"],
        policies["holdings"]["terms"]["purpose"]
    );
}

// OWN-19, POL-01, POL-02, CORE-112
#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_cannot_stand_is_refused() {
    let house = House::new().await;
    let before = house.dump();
    let free = json!(["alice-vault/get_positions"]);
    let with = |member: &str, value: Value| {
        let mut body = unit("new", free.clone());
        body[member] = value;
        body
    };
    for body in [
        unit("new", free.clone()),
        unit("new", json!(["alice-vault/nothing"])),
        unit("new", json!(["bob-vault/get_positions"])),
        unit("new", json!([])),
        unit("a/b", free.clone()),
        unit("..", free.clone()),
        unit("", free.clone()),
        unit(&"x".repeat(65), free.clone()),
        with("rules", json!([{ "effect": "auto" }])),
        with("name", "".into()),
        with("terms", json!({ "purpose": "p", "scope": [], "expires_in": 60 })),
        with("terms", json!({ "purpose": "p", "scope": ["a"], "expires_in": 0 })),
        with("terms", Value::Null),
        with("extra", 1.into()),
        json!({}),
    ] {
        let sent = Sent::new("POST", "/owner/policies").json(&body);
        assert_eq!(house.hers(&house.alice, sent).await.detail(), 400, "{body}");
    }
    assert_eq!(house.dump(), before);
}

// OWN-20, OWN-21, TERMS-13
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_a_new_version_and_never_moves_resources() {
    let house = House::new().await;
    let put = |body: Value| house.hers_put("holdings", body);
    let before = house.dump();
    for body in [
        json!({ "resources": ["alice-vault/execute_trade"] }),
        json!({ "ask_me": "yes" }),
        json!({ "rules": [{}] }),
        json!({ "terms": { "expires_in": -1 } }),
        json!({ "terms": { "per_operation": true } }),
        json!({ "terms": { "scope": [] } }),
        json!([]),
    ] {
        assert_eq!(put(body.clone()).await.detail(), 400, "{body}");
    }
    assert_eq!(house.dump(), before);
    let saved = put(json!({ "ask_me": true })).await.ok();
    assert_eq!(
        (&saved["version"], &saved["ask_me"], &saved["clamped"]),
        (&json!(2), &json!(true), &json!([]))
    );
    assert_eq!(saved["resources"], json!(["alice-vault/get_positions"]));
    let saved = put(json!({ "terms": { "expires_in": 60 } })).await.ok();
    assert_eq!((&saved["version"], &saved["terms"]["expires_in"]), (&json!(3), &json!(60)));
    assert_eq!(saved["terms"]["purpose"], "review of current holdings");
    // What was enforced goes with the promise it enforced.
    let saved = house.hers_put("trading", json!({ "terms": { "prohibited": ["resale"] } })).await.ok();
    assert_eq!(saved["terms"].get("enforced"), None);
    assert_eq!(house.hers_put("nothing", json!({ "ask_me": true })).await.detail(), 404);
}

// OWN-22, POL-03, O-37
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_unit_leaves_its_resources_ungoverned() {
    let house = House::new().await;
    let agent = Agent::new();
    let token = agent.obtain(&house, &house.alice, "get_positions").await;
    let delete = || Sent::new("DELETE", "/owner/policies/holdings");
    let deleted = house.hers(&house.alice, delete()).await.ok();
    assert_eq!(deleted["ungoverned"], json!(["alice-vault/get_positions"]));
    assert_eq!(house.hers(&house.alice, delete()).await.detail(), 404);
    let state = house.protection().introspect(&house.alice.caller(), &token).await.unwrap();
    assert_eq!(state.to_json()["active"], false);
    let mut talk = agent.reach(&house, &house.alice, "get_positions").await;
    assert_eq!(talk.present(&[]).await.refusal(), (403, "request_denied".into()));
    let resources = house.read(&house.alice, "/resources").await;
    let row =
        resources.as_array().unwrap().iter().find(|row| row["name"] == "get_positions").unwrap().clone();
    assert_eq!((&row["unit"], &row["unit_name"], &row["ask_me"]), (&Value::Null, &Value::Null, &Value::Null));
    let sent =
        Sent::new("POST", "/owner/policies").json(&unit("holdings", json!(["alice-vault/get_positions"])));
    let again = house.hers(&house.alice, sent).await;
    assert_eq!((again.status, &again.json()["version"]), (201, &json!(2)));
}

// OWN-15, OWN-16, OWN-17
#[tokio::test(flavor = "multi_thread")]
async fn resources_and_their_servers() {
    let house = House::new().await;
    let resources = house.read(&house.alice, "/resources").await;
    let row = &resources[0];
    for member in ["_id", "name", "type", "resource_scopes", "unit", "unit_name", "ask_me", "registered_by"] {
        assert!(row.get(member).is_some(), "{member}");
    }
    assert_eq!(resources.as_array().unwrap().len(), 3);
    let servers = house.read(&house.alice, "/resource-servers").await;
    assert_eq!((&servers[0]["status"], &servers[0]["auth_method"]), (&json!("active"), &json!("signature")));
    assert_eq!(servers[0]["client_id"], house.alice.server.origin.as_str());
    assert!(!servers.to_string().contains("secret"));
    let decide = |client_id: &str, decision: &str| {
        let body = json!({ "client_id": client_id, "decision": decision });
        Sent::new("POST", "/owner/resource-servers/decision").json(&body)
    };
    let before = house.dump();
    let origin = &house.alice.server.origin;
    for (sent, status) in [
        (decide("https://nobody.example", "revoked"), 404),
        (decide(&house.bob.server.origin, "revoked"), 404),
        (decide(origin, "maybe"), 400),
        (decide(origin, "denied"), 400),
    ] {
        assert_eq!(house.hers(&house.alice, sent).await.detail(), status);
    }
    assert_eq!(house.dump(), before);
    assert_eq!(house.hers(&house.alice, decide(origin, "revoked")).await.ok()["status"], "revoked");
    // FED-36, FED-37
    assert_eq!(house.hers(&house.alice, decide(origin, "approved")).await.detail(), 404);
}
