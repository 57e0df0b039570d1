//! A policy beside the owner: asked after the grant was held against the call, and before anything is spent.

#![cfg(feature = "coaz")]

use super::*;
use crate::enforcement::Enforcement;
use crate::policy::Mappings;
use crate::scripted_policy::{Lists, Point, Says, policy};

struct Both {
    scene: Scene,
    point: Arc<Point>,
}

fn both(grant: sayso_protocol::payload::protection::LiveGrant, says: Says) -> Both {
    listed(grant, says, Mappings::undeclared())
}

fn listed(grant: sayso_protocol::payload::protection::LiveGrant, says: Says, mappings: Mappings) -> Both {
    let point = Point::saying(says);
    let enforcement = Enforcement::UmaAndCoaz(policy(&point, mappings, &[], false));
    let scene = Scene::of(grant, crate::resource::ResourceSettings { enforcement, ..settings() });
    Both { scene, point }
}

// COAZ-MCP-03, COAZ-MCP-74, D-5
#[tokio::test]
async fn a_permitted_call_is_spent_after_the_policy_was_asked() {
    let Both { scene, point } = both(single_use(), Says::Yes);
    let authority = Arc::clone(&scene.authority);
    *point.meanwhile.lock().unwrap() = Some(Box::new(move || assert_eq!(authority.names(), ["introspect"])));
    assert_eq!(told(&scene.decide(&trade()).await), "permit");
    assert_eq!(scene.authority.names(), ["introspect", "consume"]);
    assert_eq!(
        point.only(),
        serde_json::json!({
            "subject": {"type": "identity", "id": "pw:agent"}, "action": {"name": "tools/call"},
            "resource": {"type": "tool", "id": "execute_trade"}, "context": {"agent": "pw:agent"},
        })
    );
}

// D-5: for a grant that is not spent the last answer is asked for once more.
#[tokio::test]
async fn a_reusable_grant_is_introspected_again_once_the_policy_answered() {
    let Both { scene, point } = both(reusable(), Says::Yes);
    assert_eq!(told(&scene.decide(&signed("get_positions", "{}")).await), "permit");
    assert_eq!(scene.authority.names(), ["introspect", "introspect", "report"]);
    assert_eq!(point.bodies().len(), 1);
}

// D-5, D-21: what she ends while a policy thinks has ended.
#[tokio::test]
async fn an_ending_meanwhile_counts() {
    for (reason, outcome) in
        [("connection_revoked", "access_revoked"), ("revoked", "challenge"), ("expired", "challenge")]
    {
        let Both { scene, point } = both(reusable(), Says::Yes);
        let authority = Arc::clone(&scene.authority);
        *point.meanwhile.lock().unwrap() = Some(Box::new(move || {
            *authority.introspection.lock().unwrap() =
                Ok(Introspection::Dead(Inactive::from(reason.to_owned())));
        }));
        assert_eq!(told(&scene.decide(&signed("get_positions", "{}")).await), outcome);
        assert_eq!(scene.authority.names()[..2], ["introspect", "introspect"]);
        assert!(!scene.authority.names().contains(&"report"), "{reason}");
    }
    let Both { scene, point } = both(reusable(), Says::Yes);
    let authority = Arc::clone(&scene.authority);
    *point.meanwhile.lock().unwrap() = Some(Box::new(move || {
        *authority.introspection.lock().unwrap() = Err(crate::authority::Unavailable::Interrupted);
    }));
    assert_eq!(told(&scene.decide(&signed("get_positions", "{}")).await), "temporarily_unavailable");
}

// COAZ-FW-41, COAZ-FW-42, COAZ-FW-43, COAZ-MCP-85: a no spends nothing, holds nothing and tells her nothing.
#[tokio::test]
async fn no_yes_no_spending() {
    for (says, outcome) in [
        (Says::No, "denied"),
        (Says::Obliged, "denied"),
        (Says::Nothing, "pdp_unavailable"),
        (Says::TooFew, "pdp_unavailable"),
    ] {
        let Both { scene, .. } = both(single_use(), says);
        assert_eq!(told(&scene.decide(&trade()).await), outcome);
        assert_eq!(scene.authority.names(), ["introspect"], "{says:?}");
        assert_eq!(scene.door.checked_out.load(std::sync::atomic::Ordering::SeqCst), 0);
        let Both { scene, .. } = both(reusable(), says);
        assert_eq!(told(&scene.decide(&signed("get_positions", "{}")).await), outcome);
        assert_eq!(scene.authority.names(), ["introspect"], "{says:?}");
    }
}

// COAZ-MCP-80, ERR-18: a decision point that never answers is not waited for for ever.
#[tokio::test(start_paused = true)]
async fn a_policy_that_does_not_answer_is_none() {
    struct Silent;
    impl sayso_coaz::DecisionPoint for Silent {
        fn decide<'a>(&'a self, _: &'a sayso_coaz::authzen::Request, _: &'a str) -> sayso_coaz::Deciding<'a> {
            Box::pin(std::future::pending())
        }
    }
    let settings_of = crate::policy::PolicySettings {
        mapping: sayso_coaz::Settings::default(),
        mappings: Mappings::undeclared(),
        point: Arc::new(Silent),
        filter_lists: false,
        audit_arguments: false,
        denials: crate::policy::Denials::default(),
    };
    let policy = Arc::new(crate::policy::Policy::new(settings_of).unwrap());
    let enforcement = Enforcement::UmaAndCoaz(policy);
    let scene = Scene::of(single_use(), crate::resource::ResourceSettings { enforcement, ..settings() });
    assert_eq!(told(&scene.decide(&trade()).await), "pdp_unavailable");
    assert_eq!(scene.authority.consumed(), 0);
}

// D-5: the policy is not troubled by what is refused without it.
#[tokio::test]
async fn what_the_grant_does_not_carry_reaches_no_policy() {
    let Both { scene, point } = both(single_use(), Says::Yes);
    let unsigned = call("execute_trade", ARGUMENTS);
    let other = signed("execute_trade", r#"{"symbol":"VTI","quantity":4}"#);
    let stranger = sign(call("execute_trade", ARGUMENTS), &key(0x33), NOW, "gw.example.test");
    for (incoming, outcome) in
        [(unsigned, "challenge"), (other, "operation_mismatch"), (stranger, "invalid_token")]
    {
        assert_eq!(told(&scene.decide(&incoming).await), outcome);
    }
    dead(&scene, "connection_revoked");
    assert_eq!(told(&scene.decide(&trade()).await), "access_revoked");
    assert!(point.bodies().is_empty());
    assert_eq!(scene.authority.consumed(), 0);
}

// D-6: what the owner leaves open passes unasked.
#[tokio::test]
async fn open_methods_pass_and_nobody_is_asked() {
    let Both { scene, point } = both(reusable(), Says::No);
    for method in ["tools/list", "server/discover", "resources/templates/list"] {
        assert_eq!(told(&scene.decide(&crate::scripted_policy::asks(method, None, "")).await), "open");
    }
    let read = crate::scripted_policy::asks("resources/read", Some("x"), r#""uri":"x""#);
    assert_eq!(told(&scene.decide(&read).await), "unknown_method", "the owner does not serve it");
    assert!(point.bodies().is_empty() && scene.authority.names().is_empty());
}

// COAZ-MCP-04, D-36, LST-03: a declared mapping governs its tool, and without a listing nothing is spent.
#[tokio::test]
async fn a_declared_mapping_sees_the_arguments_and_an_unknown_listing_none() {
    let page = r#"{"tools":[{"name":"execute_trade","inputSchema":{"type":"object","x-authzen-mapping":{"evaluation":{
        "subject":{"type":"agent","id":"$token.sub"},"action":{"name":"trade"},
        "resource":{"type":"order","id":"$params.arguments.symbol"},
        "context":{"quantity":"$params.arguments.quantity"}}}}}]}"#;
    let mappings = Mappings::unknown();
    let lists = Lists::these(&[page]);
    mappings.learn_from(lists.clone());
    let Both { scene, point } = listed(single_use(), Says::Yes, mappings);
    assert_eq!(told(&scene.decide(&trade()).await), "permit");
    let asked = point.only();
    assert_eq!((&asked["resource"]["id"], &asked["context"]["quantity"]), (&"VTI".into(), &3.into()));

    let mappings = Mappings::unknown();
    let lists = Lists::these(&[page]);
    *lists.pages.lock().unwrap() = None;
    mappings.learn_from(lists);
    let Both { scene, point } = listed(single_use(), Says::Yes, mappings);
    assert_eq!(told(&scene.decide(&trade()).await), "mapping_unavailable");
    assert!(point.bodies().is_empty() && scene.authority.consumed() == 0);
}
