//! The owner's door: only her enrolled key opens it, her answers are final, and what she reads is verbatim.
//!
//! A refused request changes nothing.

use crate::house::{Agent, FORMAT, House};
use crate::wire::{Sent, fresh_key};
use futures::future::join_all;
use serde_json::{Value, json};

// OWN-02, OWN-03, CORE-58, CORE-59, CORE-106, CORE-107, CORE-108
#[tokio::test(flavor = "multi_thread")]
async fn every_operation_needs_her_key() {
    let house = House::new().await;
    let device = &house.alice.device;
    let address = house.address.to_string();
    let before = house.dump();
    let body = json!({ "decision": "approved" });
    for (method, path) in [
        ("GET", "/pending"),
        ("GET", "/pending/x"),
        ("POST", "/pending/x/decision"),
        ("GET", "/connections"),
        ("POST", "/connections/revoke"),
        ("POST", "/connections/x/revoke"),
        ("GET", "/resources"),
        ("GET", "/resource-servers"),
        ("POST", "/resource-servers/decision"),
        ("GET", "/policies"),
        ("POST", "/policies"),
        ("PUT", "/policies/holdings"),
        ("DELETE", "/policies/holdings"),
        ("GET", "/ledger"),
    ] {
        let plain = Sent::new(method, &format!("/owner{path}"));
        let plain = if method == "GET" || method == "DELETE" { plain } else { plain.json(&body) };
        let queried =
            Sent { target: format!("{}?limit=1", plain.target), ..house.sign(plain.clone(), device) };
        for (what, hostile) in [
            ("unsigned", plain.clone()),
            ("another key", house.sign(plain.clone(), &fresh_key())),
            ("the server's key", house.sign(plain.clone(), &house.alice.server.key)),
            ("stale", plain.clone().signed(device, &address, house.now().plus(-61))),
            ("from the future", plain.clone().signed(device, &address, house.now().plus(62))),
            ("another authority", plain.clone().signed(device, "other.example", house.now())),
            ("a query added", queried),
            ("a bearer beside it", house.sign(plain.clone(), device).with("authorization", "Bearer x")),
            ("a bearer signed with it", house.sign(plain.clone().with("authorization", "Bearer x"), device)),
            ("a cookie", plain.clone().with("cookie", "session=x")),
            ("no signature", house.sign(plain.clone(), device).without("signature")),
        ] {
            assert_eq!(house.send(hostile).await.detail(), 401, "{method} {path}: {what}");
        }
    }
    assert_eq!(house.dump(), before);
}

// OWN-03, CORE-61
#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_covered_and_a_signature_counts_once() {
    let house = House::new().await;
    let device = &house.alice.device;
    let sent = Sent::new("PUT", "/owner/policies/holdings").json(&json!({ "ask_me": true }));
    let before = house.dump();
    let mut changed = house.sign(sent.clone(), device);
    changed.body = json!({ "ask_me": false }).to_string().into_bytes();
    assert_eq!(house.send(changed).await.detail(), 401);
    assert_eq!(house.send(house.sign(sent.clone(), device).without("content-digest")).await.detail(), 401);
    assert_eq!(house.dump(), before);
    let signed = house.sign(sent, device);
    let answers = join_all((0..8).map(|_| house.send(signed.clone()))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
    assert!(answers.iter().all(|answer| answer.status == 200 || answer.detail() == 401));
    assert_eq!(house.read(&house.alice, "/policies").await["holdings"]["version"], 2);
}

// CORE-109: another owner's key acts on her own things alone.
#[tokio::test(flavor = "multi_thread")]
async fn one_owner_never_reaches_anothers() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    talk.commit().await;
    let before = house.dump();
    let family = talk.family();
    assert_eq!(house.decide(&house.bob, &family, "approved").await.detail(), 404);
    let show = Sent::new("GET", &format!("/owner/pending/{family}"));
    assert_eq!(house.hers(&house.bob, show).await.detail(), 404);
    assert_eq!(house.dump(), before);
    house.decide(&house.alice, &family, "approved").await.ok();
    let revoke = json!({ "handle": agent.handle() });
    let sent = || Sent::new("POST", "/owner/connections/revoke").json(&revoke);
    assert_eq!(house.hers(&house.bob, sent()).await.detail(), 404);
    let ledger = house.read(&house.bob, "/ledger").await;
    assert!(!ledger.to_string().contains(&family));
    assert_eq!(house.hers(&house.alice, sent()).await.ok()["connections_revoked"], 1);
}

// OWN-05, OWN-06, CORE-39, CORE-120
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_shown_as_it_was_signed() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "execute_trade").await;
    let mut claims = talk.claims();
    let reason = "<b>x</b> \u{202e}txet";
    claims["reason"] = reason.into();
    claims["mission"] =
        json!({ "approver": "https://a.example", "s256": format!("s256:{}", "A".repeat(43)) });
    // Numbers and letters that rewriting would change, as raw JSON inside the signed payload.
    let params = r#"{"quantity": 1.0, "big": 1e21, "tо": "mallory","to":"alice",  "text":"\u0041"}"#;
    claims["operation"] = json!({ "tool": "execute_trade", "params": "@" });
    let payload = claims.to_string().replace("\"@\"", params);
    let token = talk.sign_raw(&payload);
    talk.present(&[("claim_token", &token), ("claim_token_format", FORMAT)]).await;
    let path = format!("/owner/pending/{}", talk.family());
    let answer = house.hers(&house.alice, Sent::new("GET", &path)).await;
    assert!(answer.text().contains(params), "{}", answer.text());
    let item = answer.ok();
    assert_eq!(item["reason"], reason);
    assert_eq!(
        (&item["kind"], &item["tier"], &item["handle"]),
        (&json!("connection"), &json!("trading"), &Value::Null)
    );
    assert_eq!(item["prohibited"], talk.template["prohibited"]);
    assert_eq!(item["enforced"], talk.template["enforced"]);
    for member in [
        "family",
        "kind",
        "tier",
        "purpose",
        "prohibited",
        "operation",
        "reason",
        "mission",
        "identity",
        "assurance",
        "assurance_notes",
        "because",
        "handle",
        "resource_id",
        "scope",
        "expires_in",
        "terms_uri",
        "deadline",
    ] {
        assert!(item.get(member).is_some(), "{member}");
    }
    assert_eq!(house.read(&house.alice, "/pending").await, json!([item]));
}

// OWN-04, OWN-07
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_none_changes_nothing() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    talk.commit().await;
    let before = house.dump();
    let path = format!("/owner/pending/{}/decision", talk.family());
    for body in [
        json!({ "decision": "maybe" }),
        json!({ "decision": "APPROVED" }),
        json!({ "decision": true }),
        json!({ "decision": ["approved"] }),
        json!({ "Decision": "approved" }),
        json!({ "decision": "approved", "also": 1 }),
        json!({}),
        json!([]),
        json!("approved"),
    ] {
        assert_eq!(
            house.hers(&house.alice, Sent::new("POST", &path).json(&body)).await.detail(),
            400,
            "{body}"
        );
    }
    for (sent, status) in [
        (Sent::new("POST", &path), 400),
        (Sent::new("POST", &path).body(crate::wire::JSON, "{"), 400),
        (
            Sent::new("POST", &path)
                .body(crate::wire::JSON, r#"{"decision":"denied","decision":"approved"}"#),
            400,
        ),
        (Sent::new("POST", &path).body(crate::wire::FORM, r#"{"decision":"approved"}"#), 415),
        (Sent::new("POST", &path).body(crate::wire::JSON, vec![b' '; 300_000]), 413),
    ] {
        assert_eq!(house.hers(&house.alice, sent).await.detail(), status);
    }
    assert_eq!(house.decide(&house.alice, "nowhere", "approved").await.detail(), 404);
    assert_eq!(house.decide(&house.alice, "%ff", "approved").await.detail(), 404);
    assert_eq!(house.dump(), before);
}

// OWN-08, CORE-94
#[tokio::test(flavor = "multi_thread")]
async fn of_thirty_two_answers_one_counts() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    talk.commit().await;
    let family = talk.family();
    let answer = |at: usize| if at.is_multiple_of(2) { "approved" } else { "denied" };
    let race = (0..32).map(|at| house.decide(&house.alice, &family, answer(at)));
    let answers = join_all(race).await;
    let won: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
    assert_eq!(won.len(), 1);
    assert!(answers.iter().all(|answer| answer.status == 200 || answer.detail() == 404));
    let approved = won[0].json()["decision"] == "approved";
    assert_eq!(talk.present(&[]).await.status == 200, approved);
}

// CORE-102, CORE-103, CORE-104, OWN-10, OWN-11
#[tokio::test(flavor = "multi_thread")]
async fn connections_and_their_end() {
    let house = House::new().await;
    let agent = Agent::new();
    agent.obtain(&house, &house.alice, "get_positions").await;
    agent.obtain(&house, &house.alice, "execute_trade").await;
    let row = house.read(&house.alice, "/connections").await[0].clone();
    assert_eq!((&row["status"], &row["identity"]), (&json!("active"), &json!("pseudonymous")));
    assert_eq!(row["approved_units"], json!(["holdings", "trading"]));
    assert_eq!((&row["revocations"], &row["introduced_by"]), (&json!(0), &Value::Null));
    let revoke =
        |handle: &str| Sent::new("POST", "/owner/connections/revoke").json(&json!({ "handle": handle }));
    let before = house.dump();
    assert_eq!(house.hers(&house.alice, revoke("jkt:nobody/x")).await.detail(), 404);
    assert_eq!(house.hers(&house.alice, revoke("")).await.detail(), 400);
    assert_eq!(house.dump(), before);
    let ended = house.hers(&house.alice, revoke(agent.handle().as_str())).await.ok();
    assert_eq!(ended, json!({ "rpts_deactivated": 2, "connections_revoked": 1 }));
    let row = house.read(&house.alice, "/connections").await[0].clone();
    assert_eq!((&row["status"], &row["revocations"]), (&json!("revoked"), &json!(1)));

    // The older form, with an escaped handle in the path.
    let other = Agent::new();
    other.obtain(&house, &house.alice, "get_positions").await;
    let escaped = other.handle().as_str().replace(':', "%3A");
    let sent = Sent::new("POST", &format!("/owner/connections/{escaped}/revoke"));
    assert_eq!(house.hers(&house.alice, sent).await.ok()["rpts_deactivated"], 1);
}

// OWN-24, POL-45, POL-54
#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_comes_in_pages_oldest_first() {
    let house = House::new().await;
    let (one, two) = (Agent::new(), Agent::new());
    one.obtain(&house, &house.alice, "get_positions").await;
    two.obtain(&house, &house.alice, "get_positions").await;
    one.obtain(&house, &house.alice, "execute_trade").await;
    let whole = house.read(&house.alice, "/ledger").await;
    let rows = whole.as_array().unwrap();
    let seqs: Vec<i64> = rows.iter().map(|row| row["seq"].as_i64().unwrap()).collect();
    assert!(seqs.windows(2).all(|two| two[0] + 1 == two[1]));
    for member in ["seq", "owner", "kind", "family", "ts", "handle", "entry", "author"] {
        assert!(rows.iter().all(|row| row.get(member).is_some()), "{member}");
    }
    assert!(rows.iter().all(|row| row["owner"] == "alice"));

    let handle = one.handle().as_str().replace(':', "%3A");
    let mut path = format!("/owner/ledger?handle={handle}&limit=2");
    let mut paged = vec![];
    loop {
        let answer = house.hers(&house.alice, Sent::new("GET", &path)).await;
        paged.extend(answer.ok().as_array().unwrap().clone());
        let Some(link) = answer.header("link") else { break };
        let (url, rel) = link.strip_prefix('<').unwrap().split_once('>').unwrap();
        assert_eq!(rel, "; rel=\"next\"");
        path = url.strip_prefix(&house.issuer).unwrap().to_owned();
    }
    let of_one: Vec<_> = rows.iter().filter(|row| row["handle"] == one.handle().as_str()).cloned().collect();
    assert_eq!(paged, of_one);
    for query in ["?limit=0", "?limit=501", "?limit=x", "?after=-1", "?limit=1&limit=2", "?x=1"] {
        let sent = Sent::new("GET", &format!("/owner/ledger{query}"));
        assert_eq!(house.hers(&house.alice, sent).await.detail(), 400, "{query}");
    }
}
