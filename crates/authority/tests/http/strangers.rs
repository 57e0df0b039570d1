//! One name under two owners is two things, a name that only resembles another is neither, and with another server's
//! token in hand there is nothing to be learned.

use crate::house::{Agent, FORMAT, House, Talk, known};
use crate::server::{Server, entry};
use crate::wire::{Answer, Sent, fresh_key};
use sayso_owner::ledger::Author;
use sayso_owner::store::DeviceKey;
use sayso_protocol::payload::protection::PermissionRequest;
use sayso_protocol::{Thumbprint, b64};
use serde_json::{Value, json};

fn perm(pat: &str, body: &Value) -> Sent {
    Sent::new("POST", "/perm").json(body).with("authorization", &format!("Bearer {pat}"))
}

fn about(pat: &str, path: &str, token: &str) -> Sent {
    Sent::new("POST", path).form(&[("token", token)]).with("authorization", &format!("Bearer {pat}"))
}

async fn introspect(house: &House, pat: &str, token: &str) -> Value {
    house.send(about(pat, "/introspect", token)).await.ok()
}

// CORE-109, CORE-100, POL-02
#[tokio::test(flavor = "multi_thread")]
async fn one_name_under_two_owners_is_two_things() {
    let house = House::new().await;
    let (alice, bob) = (&house.alice, &house.bob);
    let before = (house.read(alice, "/resources").await, house.read(alice, "/policies").await);
    let mut wider = entry("alice-vault", "get_positions", "positions:read");
    wider.resource_scopes.push("trades:execute".parse().unwrap());
    let like = entry("alice-vault\u{2215}get_positions", "x", "positions:read");
    bob.server.told.lock().unwrap().listing.extend([wider, like]);
    house.authority.pull(&bob.name, &bob.client_id()).await.unwrap();
    let terms = json!({ "purpose": "p", "scope": ["positions:read", "trades:execute"], "expires_in": 600,
                        "prohibited": [], "per_operation": false });
    let unit = |id: &str, resource: &str| {
        let body = json!({ "id": id, "name": "Mine", "resources": [resource], "ask_me": false, "rules": [],
                           "terms": terms });
        Sent::new("POST", "/owner/policies").json(&body)
    };
    // What is hers and not his he cannot govern; of one name with hers, his own he can.
    assert_eq!(house.hers(bob, unit("theirs", "alice-vault/execute_trade")).await.detail(), 400);
    assert_eq!(house.hers(bob, unit("mine", "alice-vault/get_positions")).await.status, 201);

    let agent = Agent::new();
    let wanted = PermissionRequest {
        resource_id: "alice-vault/get_positions".parse().unwrap(),
        resource_scopes: vec!["trades:execute".parse().unwrap()],
    };
    let reply = house.protection().permission(&bob.caller(), &[wanted]).await.unwrap();
    let (house, template) = (&house, Value::Null);
    let mut talk =
        Talk { house, agent: &agent, ticket: reply.ticket, template, tool: "get_positions".into() };
    talk.present(&[]).await;
    talk.commit().await;
    house.decide(bob, &talk.family(), "approved").await.ok();
    let his = talk.present(&[]).await.ok()["access_token"].as_str().unwrap().to_owned();
    let hers = agent.obtain(house, alice, "get_positions").await;

    let (her_pat, his_pat) = (house.pat(alice).await, house.pat(bob).await);
    let unknown = json!({ "active": false, "error": "unknown_token" });
    assert_eq!(introspect(house, &her_pat, &his).await, unknown);
    assert_eq!(introspect(house, &his_pat, &hers).await, unknown);
    let live = introspect(house, &her_pat, &hers).await;
    assert_eq!((&live["active"], &live["owner"]), (&json!(true), &json!("alice")));
    assert_eq!(live["permissions"].as_array().unwrap().len(), 1);
    assert_eq!(live["permissions"][0]["resource_id"], "alice-vault/get_positions");
    assert_eq!(live["permissions"][0]["resource_scopes"], json!(["positions:read"]));
    let more = json!({ "resource_id": "alice-vault/get_positions", "resource_scopes": ["trades:execute"] });
    assert_eq!(house.send(perm(&her_pat, &more)).await.refusal(), (400, "invalid_scope".into()));
    // Coming from him, the agent was as much a stranger to her as any; and he changed nothing of hers.
    assert_eq!(house.read(alice, "/connections").await.as_array().unwrap().len(), 1);
    assert_eq!(before, (house.read(alice, "/resources").await, house.read(alice, "/policies").await));
}

// BASE-02, CORE-82
#[tokio::test(flavor = "multi_thread")]
async fn what_resembles_a_registration_is_none() {
    let house = House::new().await;
    house.alice.server.told.lock().unwrap().listing.extend([
        entry("alice-vault", "get_position", "positions:read"),
        entry("alice-vault", "get_positions_history", "positions:read"),
    ]);
    house.authority.pull(&house.alice.name, &house.alice.client_id()).await.unwrap();
    let pat = house.pat(&house.alice).await;
    let before = house.dump();
    let ask = async |id: Value, scopes: Value| {
        let body = json!({ "resource_id": id, "resource_scopes": scopes });
        house.send(perm(&pat, &body)).await
    };
    let read = || json!(["positions:read"]);
    let names = [
        "alice-vault",
        "alice-vault/",
        "alice-vault/*",
        "alice-vault/get_",
        "alice-vault/get_position%",
        "alice-vault/get_positio_",
        "*",
        "resource-type:urn:x",
        "type:mcp-tool",
        "mcp-tool",
        "get_positions",
        "alice-vault/./get_positions",
        "alice-vault//get_positions",
        "alice-vault%2Fget_positions",
        "ALICE-VAULT/get_positions",
        "alice-vault/get_positions ",
        "alice-vault/get_positions#positions:read",
        "alice-vault\u{2215}get_positions",
        "' OR '1'='1",
    ];
    for name in names {
        let answer = ask(json!(name), read()).await;
        assert_eq!(answer.refusal(), (400, "invalid_resource_id".into()), "{name}");
    }
    let held = "alice-vault/get_positions";
    for id in [json!(""), json!("a\u{0}b"), json!(7), json!(null), json!([held]), json!({ "id": held })] {
        assert_eq!(ask(id.clone(), read()).await.refusal(), (400, "invalid_request".into()), "{id}");
    }
    for scopes in
        [json!([]), json!(["positions:*"]), json!(["*"]), json!(["positions"]), json!(["Positions:Read"])]
    {
        let answer = ask(json!(held), scopes.clone()).await;
        assert_eq!(answer.refusal(), (400, "invalid_scope".into()), "{scopes}");
    }
    for scopes in [json!(["positions:read trades:execute"]), json!("positions:read"), json!([1]), json!(null)]
    {
        let answer = ask(json!(held), scopes.clone()).await;
        assert_eq!(answer.refusal(), (400, "invalid_request".into()), "{scopes}");
    }
    assert_eq!(ask(json!(held), json!(["positions:read", "positions:read"])).await.status, 201);
    assert_eq!(house.dump().without("resources"), before.without("resources"));
}

/// Everything a token of the protection API can be used for, with these artifacts of somebody else's.
async fn tried(house: &House, pat: &str, tokens: &[String], family: &str) -> Vec<Answer> {
    let mut answers = vec![];
    for token in tokens {
        for path in ["/introspect", "/consume"] {
            answers.push(house.send(about(pat, path, token)).await);
        }
    }
    let report = json!({ "family": family, "tool": "get_positions", "summary": "forged" });
    let sent = Sent::new("POST", "/audit/access").json(&report);
    assert_eq!(house.send(sent.with("authorization", &format!("Bearer {pat}"))).await.refusal().0, 404);
    for tool in ["get_positions", "execute_trade"] {
        let wanted =
            json!({ "resource_id": format!("alice-vault/{tool}"), "resource_scopes": ["positions:read"] });
        assert_eq!(house.send(perm(pat, &wanted)).await.refusal().1, "invalid_resource_id");
    }
    answers
}

// CORE-100, FED-39, FED-45, CORE-117
#[tokio::test(flavor = "multi_thread")]
async fn with_another_servers_token_nothing_is_learned() {
    let house = House::new().await;
    let alice = &house.alice;
    let second = Server::start(&house.issuer, "alice-second").await;
    let settled = known(&alice.name, &second, house.now());
    house.authority.store().settle_resource_server(&settled, house.now()).await.unwrap();
    let ended = Agent::new();
    let revoked = ended.obtain(&house, alice, "get_positions").await;
    let revoke = Sent::new("POST", "/owner/connections/revoke").json(&json!({ "handle": ended.handle() }));
    house.hers(alice, revoke).await.ok();
    let expired = Agent::new().obtain(&house, alice, "get_positions").await;
    house.pass(3601);
    let spender = Agent::new();
    let spent = spender.obtain(&house, alice, "execute_trade").await;
    let live = spender.obtain(&house, alice, "execute_trade").await;
    let own = house.pat(alice).await;
    house.send(about(&own, "/consume", &spent)).await.ok();
    let family = introspect(&house, &own, &live).await["family"].as_str().unwrap().to_owned();
    let altered = format!("{}AAAA", &live[..live.len() - 4]);
    let tokens = [live.clone(), expired, revoked, spent, altered, "garbage".into()];

    let asked =
        [("grant_type", "client_credentials"), ("scope", "uma_protection"), ("client_id", &*second.origin)];
    let sent = house.sign(Sent::new("POST", "/token").form(&asked), &second.key);
    let sisters = house.send(sent).await.ok()["access_token"].as_str().unwrap().to_owned();
    let before = house.dump().without("resources");
    for pat in [house.pat(&house.bob).await, sisters] {
        for (nth, answer) in tried(&house, &pat, &tokens, &family).await.into_iter().enumerate() {
            let told = if nth % 2 == 0 { "active" } else { "consumed" };
            assert_eq!(answer.status, 200);
            let dead = [
                format!(r#"{{"{told}":false,"error":"unknown_token"}}"#),
                format!(r#"{{"error":"unknown_token","{told}":false}}"#),
            ];
            assert!(dead.iter().any(|dead| dead == answer.text()), "{nth}: {}", answer.text());
        }
    }
    assert_eq!(house.dump().without("resources"), before);
    assert_eq!(house.send(about(&own, "/consume", &live)).await.ok(), json!({ "consumed": true }));
}

// BASE-07, FED-45, CORE-106: what opens another door, or stands in another place, is no token of this API.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_header_and_only_such_a_token_open_the_protection_api() {
    let house = House::new().await;
    let alice = &house.alice;
    let token = Agent::new().obtain(&house, alice, "execute_trade").await;
    let pat = house.pat(alice).await;
    let stranger = Agent::new();
    let mut talk = stranger.negotiate(&house, alice, "get_positions").await;
    let agreement = talk.claim_token(&talk.claims());
    let before = house.dump();
    for path in ["/introspect", "/consume"] {
        let plain = || Sent::new("POST", path).form(&[("token", &token)]);
        let in_query = Sent { target: format!("{path}?access_token={pat}"), ..plain() };
        let in_form = Sent::new("POST", path).form(&[("token", &token), ("access_token", &pat)]);
        let in_cookie = plain().with("cookie", &format!("access_token={pat}"));
        for (what, sent) in [
            ("in the query", in_query),
            ("in the form", in_form),
            ("in a cookie", in_cookie),
            ("her own signature", house.sign(plain(), &alice.device)),
            ("its own signature", house.sign(plain(), &alice.server.key)),
            ("a ticket", plain().with("authorization", &format!("Bearer {}", talk.ticket))),
            ("an agreement", plain().with("authorization", &format!("Bearer {agreement}"))),
            ("in another scheme", plain().with("authorization", &format!("PoP {pat}"))),
        ] {
            let answer = house.send(sent).await;
            assert!([400, 401].contains(&answer.status), "{path} {what}: {answer:?}");
            assert!(answer.json().get("active").is_none() && answer.json().get("consumed").is_none());
        }
    }
    assert_eq!(house.dump(), before);
    let committed = talk.present(&[("claim_token", &agreement), ("claim_token_format", FORMAT)]).await;
    assert_eq!(committed.json()["error"], "request_submitted");
    assert_eq!(house.send(about(&pat, "/consume", &token)).await.ok(), json!({ "consumed": true }));
}

// CORE-106: should such a key ever be enrolled, it opens her door to nobody.
#[tokio::test(flavor = "multi_thread")]
async fn an_enrolled_key_that_proves_nothing_opens_nothing() {
    let house = House::new().await;
    let universal = b64::encode_standard([[1].as_slice(), &[0; 63]].concat());
    for (name, first) in [("zero", 0), ("identity", 1)] {
        let mut point = [0; 32];
        point[0] = first;
        let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": b64::encode(point) });
        let device = DeviceKey {
            owner: house.alice.name.clone(),
            jwk: serde_json::from_value(jwk).unwrap(),
            thumbprint: Thumbprint::from_text(name),
            label: "weak".into(),
        };
        house.authority.store().enrol(&device, &Author::Setup, house.now()).await.unwrap();
        let stranger = fresh_key();
        let mut sent = house.sign(Sent::new("GET", "/owner/ledger"), &stranger);
        for (field, value) in &mut sent.headers {
            match field.as_str() {
                "signature-input" => *value = value.replace(&stranger.kid(), name),
                "signature" => *value = format!("sig1=:{universal}:"),
                _ => {}
            }
        }
        assert!(sent.headers.iter().any(|(_, value)| value.contains(&format!("keyid=\"{name}\""))));
        assert_eq!(house.send(sent).await.detail(), 401, "{name}");
    }
    house.read(&house.alice, "/ledger").await;
}
