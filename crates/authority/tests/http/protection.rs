//! Permission, introspection, consumption and report: over HTTP with a PAT, and between owners.
//!
//! What is refused spends nothing, and another owner's token is nobody's (CORE-100).

mod rounds;

use crate::house::{Agent, House, Person, scope};
use crate::server::{Lie, entry};
use crate::wire::{Answer, Sent};
use futures::future::join_all;
use sayso_authority::ProtectionFault;
use sayso_protocol::payload::protection::PermissionRequest;
use serde_json::{Value, json};

struct Api<'a> {
    house: &'a House,
    pat: String,
}

impl<'a> Api<'a> {
    async fn of(house: &'a House, person: &Person) -> Self {
        Self { house, pat: house.pat(person).await }
    }

    fn bearer(&self, sent: Sent) -> Sent {
        sent.with("authorization", &format!("Bearer {}", self.pat))
    }

    async fn perm(&self, body: Value) -> Answer {
        self.house.send(self.bearer(Sent::new("POST", "/perm").json(&body))).await
    }

    async fn form(&self, path: &str, members: &[(&str, &str)]) -> Answer {
        self.house.send(self.bearer(Sent::new("POST", path).form(members))).await
    }

    async fn introspect(&self, token: &str) -> Value {
        self.form("/introspect", &[("token", token)]).await.ok()
    }

    async fn consume(&self, token: &str) -> Value {
        self.form("/consume", &[("token", token)]).await.ok()
    }
}

fn dead(reason: &str) -> Value {
    json!({ "active": false, "error": reason })
}

// BASE-02, CORE-82, FED-17
#[tokio::test(flavor = "multi_thread")]
async fn permission_tickets() {
    let house = House::new().await;
    let api = Api::of(&house, &house.alice).await;
    let before = house.dump();
    let wanted = json!({ "resource_id": "alice-vault/get_positions", "resource_scopes": ["positions:read"] });
    let answer = api.perm(wanted.clone()).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(api.perm(json!([wanted])).await.status, 201);
    let with = |member: &str, value: Value| {
        let mut body = wanted.clone();
        body[member] = value;
        body
    };
    for (body, code) in [
        (with("resource_id", "alice-vault/wire_money".into()), "invalid_resource_id"),
        (with("resource_id", "bob-vault/get_positions".into()), "invalid_resource_id"),
        (with("resource_id", "alice-vault/get_positions/x".into()), "invalid_resource_id"),
        (with("resource_scopes", json!(["trades:execute"])), "invalid_scope"),
        (with("resource_scopes", json!(["positions:read", "trades:execute"])), "invalid_scope"),
        (with("resource_scopes", json!([])), "invalid_scope"),
        (with("resource_scopes", "positions:read".into()), "invalid_request"),
        (with("resource_id", 1.into()), "invalid_request"),
        (json!([]), "invalid_request"),
        (json!([wanted, with("resource_id", "alice-vault/execute_trade".into())]), "invalid_request"),
        (json!({}), "invalid_request"),
        (Value::Null, "invalid_request"),
    ] {
        let answer = api.perm(body).await;
        assert_eq!(answer.refusal(), (400, code.to_owned()));
        assert_eq!(answer.json()["ticket"], Value::Null);
    }
    assert_eq!(house.dump().without("resources"), before.without("resources"));
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_permission_bodies() {
    let house = House::new().await;
    let api = Api::of(&house, &house.alice).await;
    let before = house.dump();
    let twice = br#"{"resource_id":"a","resource_id":"b","resource_scopes":[]}"#.to_vec();
    for (body, status) in [
        (vec![], 400),
        (b"{".to_vec(), 400),
        (b"\xff\xfe".to_vec(), 400),
        (twice, 400),
        (vec![b'['; 60_000], 400),
        (vec![b'['; 100_000], 413),
        (vec![b' '; 6_000_000], 413),
    ] {
        let sent = Sent::new("POST", "/perm").body(crate::wire::JSON, body);
        assert_eq!(house.send(api.bearer(sent)).await.refusal().0, status);
    }
    assert_eq!(house.dump(), before);
}

// FED-17
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_resource_is_asked_about_once() {
    let house = House::new().await;
    let api = Api::of(&house, &house.alice).await;
    let asked = || house.alice.server.told.lock().unwrap().asked;
    let before = asked();
    let body = json!({ "resource_id": "alice-vault/new_tool", "resource_scopes": ["new:read"] });
    assert_eq!(api.perm(body.clone()).await.refusal().1, "invalid_resource_id");
    assert_eq!(asked(), before + 1);
    house.alice.server.told.lock().unwrap().listing.push(entry("alice-vault", "new_tool", "new:read"));
    assert_eq!(api.perm(body.clone()).await.status, 201);
    assert_eq!(asked(), before + 2);
    assert_eq!(api.perm(body).await.status, 201);
    assert_eq!(asked(), before + 2);
    house.alice.server.lie(Some(Lie::Down));
    let other = json!({ "resource_id": "alice-vault/other", "resource_scopes": ["x"] });
    assert_eq!(api.perm(other).await.refusal().1, "invalid_resource_id");
}

// BASE-02, BASE-07, FED-35, FED-45, CORE-117
#[tokio::test(flavor = "multi_thread")]
async fn without_a_live_token_there_is_no_answer() {
    let house = House::new().await;
    let token = Agent::new().obtain(&house, &house.alice, "execute_trade").await;
    let api = Api::of(&house, &house.alice).await;
    let before = house.dump();
    let altered = format!("{}AAAA", &api.pat[..api.pat.len() - 4]);
    let wrong = [
        String::new(),
        "Bearer ".into(),
        "Bearer AAAA".into(),
        format!("Bearer {altered}"),
        format!("Bearer {token}"),
        format!("PoP {token}"),
        format!("PoP {}", api.pat),
        format!("Basic {}", api.pat),
    ];
    let report = json!({ "family": "x", "tool": "execute_trade" });
    for authorization in wrong {
        for sent in [
            Sent::new("POST", "/perm").json(&json!({})),
            Sent::new("POST", "/introspect").form(&[("token", &token)]),
            Sent::new("POST", "/consume").form(&[("token", &token)]),
            Sent::new("POST", "/audit/access").json(&report),
        ] {
            let sent =
                if authorization.is_empty() { sent } else { sent.with("authorization", &authorization) };
            let answer = house.send(sent).await;
            assert_eq!(answer.refusal(), (401, "invalid_token".into()), "{authorization:.10}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer error=\"invalid_token\""));
        }
    }
    let twice = api.bearer(api.bearer(Sent::new("POST", "/consume").form(&[("token", &token)])));
    assert_eq!(house.send(twice).await.status, 401);
    assert_eq!(house.dump(), before);
    assert_eq!(api.introspect(&token).await["active"], true);

    // An hour later, and from the moment she withdraws its server, it is dead.
    let fresh = Api::of(&house, &house.alice).await;
    let decision = json!({ "client_id": house.alice.server.origin, "decision": "revoked" });
    let sent = Sent::new("POST", "/owner/resource-servers/decision").json(&decision);
    house.hers(&house.alice, sent).await.ok();
    assert_eq!(fresh.form("/introspect", &[("token", &token)]).await.status, 401);
    let caller = house.alice.caller();
    let fault = house.protection().introspect(&caller, &token).await.unwrap_err();
    assert_eq!(fault, ProtectionFault::NotTrusted);
    let other = Api::of(&house, &house.bob).await;
    house.pass(3601);
    assert_eq!(other.form("/introspect", &[("token", &token)]).await.status, 401);
}

// CORE-99, BASE-07, FED-43, FED-49
#[tokio::test(flavor = "multi_thread")]
async fn what_introspection_says_and_keeps() {
    let house = House::new().await;
    let agent = Agent::new();
    let token = agent.obtain(&house, &house.alice, "execute_trade").await;
    let api = Api::of(&house, &house.alice).await;
    let answer = api.form("/introspect", &[("token", &token), ("token_type_hint", "x")]).await;
    // The first answer about a grant she approved is noted (D-19); no other is, and nothing is spent by any.
    let before = house.dump();
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(!answer.text().contains(agent.handle().as_str()) && !answer.text().contains(&token));
    let body = answer.ok();
    assert_eq!((&body["active"], &body["single_use"]), (&json!(true), &json!(true)));
    assert_eq!(body["cnf"]["jwk"], json!(agent.key.verifying().jwk()));
    assert_eq!(body["permissions"][0]["resource_id"], "alice-vault/execute_trade");
    for member in ["handle", "scope"] {
        assert_eq!(body.get(member), None, "{member}");
    }
    let name = body["sub"].as_str().unwrap();
    assert!(name.starts_with("pw:") && body["client_id"] == name, "{body}");
    assert!(!body.to_string().contains(agent.key.verifying().thumbprint().as_str()));
    for _ in 0..20 {
        assert_eq!(api.introspect(&token).await, body);
    }
    assert_eq!(house.dump(), before);
    assert_eq!(api.form("/introspect", &[("x", &token)]).await.refusal(), (400, "invalid_request".into()));
}

// FED-38, FED-46, CORE-96, CORE-97, CORE-104, CORE-105
#[tokio::test(flavor = "multi_thread")]
async fn reasons() {
    let house = House::new().await;
    let agent = Agent::new();
    let read = agent.obtain(&house, &house.alice, "get_positions").await;
    let trade = agent.obtain(&house, &house.alice, "execute_trade").await;
    let api = Api::of(&house, &house.alice).await;
    assert_eq!(api.consume(&read).await, json!({ "consumed": false, "error": "not_single_use" }));
    assert_eq!(api.introspect("garbage").await, dead("unknown_token"));
    assert_eq!(api.introspect(&"a.".repeat(20_000)).await, dead("unknown_token"));
    assert_eq!(api.consume("garbage").await, json!({ "consumed": false, "error": "unknown_token" }));
    let (signed, signature) = read.rsplit_once('.').unwrap();
    let first = if signature.starts_with('A') { 'B' } else { 'A' };
    let forged = format!("{signed}.{first}{}", &signature[1..]);
    assert_eq!(api.introspect(&forged).await, dead("invalid_signature"));
    assert_eq!(api.consume(&forged).await, json!({ "consumed": false, "error": "invalid_signature" }));

    assert_eq!(api.consume(&trade).await, json!({ "consumed": true }));
    assert_eq!(api.introspect(&trade).await, dead("already_consumed"));
    assert_eq!(api.consume(&trade).await, json!({ "consumed": false, "error": "already_consumed" }));

    let revoke = Sent::new("POST", "/owner/connections/revoke").json(&json!({ "handle": agent.handle() }));
    house.hers(&house.alice, revoke).await.ok();
    assert_eq!(api.introspect(&read).await, dead("connection_revoked"));
    assert_eq!(api.introspect(&trade).await, dead("connection_revoked"));
    let again = agent.obtain(&house, &house.alice, "get_positions").await;
    assert_eq!(api.introspect(&again).await["active"], true);
    assert_eq!(api.introspect(&read).await, dead("revoked"));
    house.pass(3500);
    let api = Api::of(&house, &house.alice).await;
    house.pass(200);
    assert_eq!(api.introspect(&again).await, dead("expired"));
}

// CORE-100, FED-39: another owner's token is unknown, live, spent, forged or dead.
#[tokio::test(flavor = "multi_thread")]
async fn another_owners_token_is_unknown_whatever_it_is() {
    let house = House::new().await;
    let agent = Agent::new();
    let live = agent.obtain(&house, &house.alice, "get_positions").await;
    let spent = agent.obtain(&house, &house.alice, "execute_trade").await;
    let alice = Api::of(&house, &house.alice).await;
    alice.consume(&spent).await;
    let gone = Agent::new();
    let revoked = gone.obtain(&house, &house.alice, "get_positions").await;
    let end = Sent::new("POST", "/owner/connections/revoke").json(&json!({ "handle": gone.handle() }));
    house.hers(&house.alice, end).await.ok();
    let forged = format!("{}AAAA", &live[..live.len() - 4]);
    let bob = Api::of(&house, &house.bob).await;
    // That a grant she approved was heard of is noted once; what follows notes nothing.
    let family = alice.introspect(&live).await["family"].clone();
    let before = house.dump();
    for token in [&live, &spent, &revoked, &forged] {
        assert_eq!(bob.introspect(token).await, dead("unknown_token"));
        assert_eq!(bob.consume(token).await, json!({ "consumed": false, "error": "unknown_token" }));
    }
    // Bob's server cannot report on her negotiation either.
    let report =
        Sent::new("POST", "/audit/access").json(&json!({ "family": family, "tool": "get_positions" }));
    assert_eq!(house.send(bob.bearer(report)).await.refusal(), (404, "unknown_negotiation".into()));
    assert_eq!(house.dump(), before);
    assert_eq!(alice.introspect(&live).await["active"], true);
}

// CORE-94, FED-46, D-14
#[tokio::test(flavor = "multi_thread")]
async fn of_thirty_two_spends_one_wins() {
    let house = House::new().await;
    let token = Agent::new().obtain(&house, &house.alice, "execute_trade").await;
    let api = Api::of(&house, &house.alice).await;
    let answers = join_all((0..32).map(|_| api.consume(&token))).await;
    assert_eq!(answers.iter().filter(|answer| answer["consumed"] == true).count(), 1);
    assert!(answers.iter().all(|answer| answer["consumed"] == true || answer["error"] == "already_consumed"));

    // The same attempt is answered as before; another one has lost.
    let token = Agent::new().obtain(&house, &house.alice, "execute_trade").await;
    let attempt = [("token", token.as_str()), ("attempt", "first")];
    for _ in 0..2 {
        assert_eq!(api.form("/consume", &attempt).await.ok(), json!({ "consumed": true }));
    }
    let other = [("token", token.as_str()), ("attempt", "second")];
    assert_eq!(api.form("/consume", &other).await.ok()["error"], "already_consumed");
    let long = "x".repeat(129);
    let refused = api.form("/consume", &[("token", token.as_str()), ("attempt", &long)]).await;
    assert_eq!(refused.refusal(), (400, "invalid_request".into()));
}

// FED-48, FED-49, POL-48
#[tokio::test(flavor = "multi_thread")]
async fn reports_name_the_negotiation_and_never_the_agent() {
    let house = House::new().await;
    let agent = Agent::new();
    let token = agent.obtain(&house, &house.alice, "get_positions").await;
    let api = Api::of(&house, &house.alice).await;
    let family = api.introspect(&token).await["family"].clone();
    let report =
        json!({ "family": family, "tool": "get_positions", "handle": "jkt:forged", "summary": "answered" });
    let sent = Sent::new("POST", "/audit/access").json(&report);
    assert_eq!(house.send(api.bearer(sent)).await.status, 204);
    let ledger = house.read(&house.alice, "/ledger").await;
    let row = ledger.as_array().unwrap().last().unwrap().clone();
    assert_eq!((&row["kind"], &row["family"]), (&json!("touched"), &family));
    assert_eq!(row["handle"], agent.handle().as_str());
    assert!(!ledger.to_string().contains("forged"));
    let before = house.dump();
    let long = json!({ "family": family, "tool": "get_positions", "summary": "x".repeat(513) });
    for (body, status) in [(long, 400), (json!({ "family": "nowhere", "tool": "x" }), 404), (json!({}), 400)]
    {
        let sent = Sent::new("POST", "/audit/access").json(&body);
        assert_eq!(house.send(api.bearer(sent)).await.refusal().0, status);
    }
    assert_eq!(house.dump(), before);
}

// The same functions serve a caller in this process.
#[tokio::test(flavor = "multi_thread")]
async fn in_process_callers_get_the_same_answers() {
    let house = House::new().await;
    let token = Agent::new().obtain(&house, &house.alice, "execute_trade").await;
    let (api, caller) = (house.protection(), house.alice.caller());
    let http = Api::of(&house, &house.alice).await;
    assert_eq!(api.introspect(&caller, &token).await.unwrap().to_json(), http.introspect(&token).await);
    assert!(api.consume(&caller, &token, "a").await.unwrap().consumed);
    assert_eq!(http.introspect(&token).await, dead("already_consumed"));
    let request = PermissionRequest {
        resource_id: "alice-vault/get_positions".parse().unwrap(),
        resource_scopes: vec![scope("execute_trade").parse().unwrap()],
    };
    assert!(matches!(api.permission(&caller, &[request]).await, Err(ProtectionFault::Permission(_))));
    let mut stranger = house.alice.caller();
    stranger.client_id = house.bob.client_id();
    assert!(matches!(api.introspect(&stranger, &token).await, Err(ProtectionFault::NotTrusted)));
}
