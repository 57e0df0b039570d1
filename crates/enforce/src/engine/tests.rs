//! The order, watched from the authority's side: what was asked, how often, and what was never asked.

use super::*;
use crate::consequence::Consequence;
use crate::scripted::{
    ARGUMENTS, Asked, NOW, Scene, call, call_body, key, post, reusable, settings, sign, signed, single_use,
    told,
};
use http::HeaderValue;
use sayso_protocol::payload::protection::{ConsumeReply, Inactive, Introspection};
use sayso_protocol::payload::refusal::Forwarded;

mod both;
mod counted;
mod exactness;
mod policed;
mod possession;
mod property;
mod replayed;
mod rounds;
mod sessions;
mod told;
mod vectors;

fn trade() -> Incoming {
    signed("execute_trade", ARGUMENTS)
}

fn dead(scene: &Scene, reason: &str) {
    *scene.authority.introspection.lock().unwrap() =
        Ok(Introspection::Dead(Inactive::from(reason.to_owned())));
}

// CORE-83, CORE-85, CORE-86, CORE-87, CORE-88, CORE-89
#[tokio::test]
async fn an_honest_call_is_asked_about_in_order() {
    let scene = Scene::with(single_use());
    assert_eq!(told(&scene.decide(&trade()).await), "permit");
    assert_eq!(scene.authority.names(), ["introspect", "consume"]);
    let scene = Scene::with(reusable());
    assert_eq!(told(&scene.decide(&signed("get_positions", "{}")).await), "permit");
    assert_eq!(told(&scene.decide(&signed("get_positions", "{}")).await), "permit");
    assert_eq!(scene.authority.names(), ["introspect", "report", "introspect", "report"]);
}

#[tokio::test]
async fn a_permit_carries_the_bytes_that_were_judged() {
    let scene = Scene::with(single_use());
    let incoming = trade();
    let Verdict::Permit(permit) = scene.decide(&incoming).await else { panic!("no permit") };
    let clearance = permit.redeem().unwrap();
    assert_eq!(clearance.body, crate::scripted::body_of(&incoming));
    assert!(clearance.modern && clearance.sender.is_some());
    let call = clearance.spent.unwrap();
    assert_eq!((call.family.as_str(), call.tool.as_str()), ("family-1", "execute_trade"));
}

// CORE-09, CORE-82
#[tokio::test]
async fn a_call_without_a_grant_is_challenged_with_one_ticket() {
    let scene = Scene::with(reusable());
    let Verdict::Challenge(challenge) = scene.decide(&call("get_positions", "{}")).await else { panic!() };
    assert_eq!(
        (challenge.ticket.as_str(), challenge.as_uri.as_str()),
        ("ticket-1", "https://as.example.test")
    );
    let asked = scene.authority.asked.lock().unwrap().clone();
    let [Asked::Permission(request)] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(request.resource_id.as_str(), "vault/get_positions");
    assert_eq!(request.resource_scopes[0].as_str(), "positions:read");
}

// CORE-16
#[tokio::test]
async fn open_methods_ask_nobody_and_neither_does_a_refusal_that_can_be_told_without() {
    let scene = Scene::with(reusable());
    let list = call_body("x", "{}").replace("tools/call", "tools/list").replace(r#""name":"x","#, "");
    assert_eq!(told(&scene.decide(&post(list, "tools/list", None)).await), "open");
    assert_eq!(told(&scene.decide(&call("wire_money", "{}")).await), "unknown_tool");
    let mut foreign = signed("get_positions", "{}");
    foreign.head.headers.insert("origin", HeaderValue::from_static("https://evil.example"));
    assert_eq!(told(&scene.decide(&foreign).await), "invalid_origin");
    assert!(scene.authority.names().is_empty());
}

// CORE-66, CORE-16
#[tokio::test]
async fn a_token_is_shown_as_pop_or_not_at_all() {
    let scene = Scene::with(reusable());
    for scheme in ["Bearer", "UMA", "DPoP", "PoPx"] {
        let mut incoming = signed("get_positions", "{}");
        let value = format!("{scheme} {}", crate::scripted::TOKEN);
        incoming.head.headers.insert("authorization", HeaderValue::from_str(&value).unwrap());
        assert_eq!(scene.code(&incoming).await, Code::InvalidToken, "{scheme}");
    }
    for value in ["PoP", "PoP ", "PoP  ", "PoP a b", "", &format!("PoP {}", ".".repeat(60_000))] {
        let mut incoming = signed("get_positions", "{}");
        incoming.head.headers.insert("authorization", HeaderValue::from_str(value).unwrap());
        assert_eq!(scene.code(&incoming).await, Code::InvalidToken, "{value:.10}");
    }
    assert!(scene.authority.names().is_empty());
}

// CORE-17, CORE-85, CORE-98, FED-40, FED-41, FED-42
#[tokio::test]
async fn a_settled_reason_ends_it_at_step_one() {
    for reason in ["connection_revoked", "organization_revoked", "something_new"] {
        let scene = Scene::with(single_use());
        dead(&scene, reason);
        // Neither signed well nor for the right arguments: nobody gets as far as to notice.
        let incoming = sign(call("execute_trade", "{}"), &key(9), NOW, "elsewhere.test");
        assert_eq!(scene.code(&incoming).await, Code::AccessRevoked, "{reason}");
        assert_eq!(scene.authority.names(), ["introspect"]);
    }
}

// CORE-18, FED-40
#[tokio::test]
async fn other_reasons_are_met_with_a_fresh_challenge_but_for_the_spent() {
    for reason in ["expired", "unknown_token", "invalid_signature", "revoked"] {
        let scene = Scene::with(single_use());
        dead(&scene, reason);
        assert_eq!(told(&scene.decide(&trade()).await), "challenge", "{reason}");
        assert_eq!(scene.authority.names(), ["introspect", "permission"]);
    }
    let scene = Scene::with(single_use());
    dead(&scene, "already_consumed");
    assert_eq!(scene.code(&trade()).await, Code::AlreadyConsumed);
    assert_eq!(scene.authority.tickets(), 0);
}

// CORE-86
#[tokio::test]
async fn a_grant_covers_by_resource_scope_and_time() {
    type Change = fn(&mut sayso_protocol::payload::protection::LiveGrant);
    let changes: [(&str, Change); 8] = [
        ("another resource", |g| g.permissions[0].resource_id = "vault/get_transactions".parse().unwrap()),
        ("a longer name", |g| g.permissions[0].resource_id = "vault/get_positions2".parse().unwrap()),
        ("another scope", |g| g.permissions[0].resource_scopes = vec!["positions:list".parse().unwrap()]),
        ("no permission", |g| g.permissions.clear()),
        ("its permission over", |g| g.permissions[0].exp = Some(NOW)),
        ("its permission not begun", |g| g.permissions[0].nbf = Some(NOW.plus(1))),
        ("over", |g| g.exp = NOW),
        ("another server's", |g| g.aud = "https://gw.example.test/mcp".parse().unwrap()),
    ];
    for (what, change) in changes {
        let mut grant = reusable();
        change(&mut grant);
        let scene = Scene::with(grant);
        assert_eq!(told(&scene.decide(&signed("get_positions", "{}")).await), "challenge", "{what}");
        assert_eq!(scene.authority.names(), ["introspect", "permission"], "{what}");
    }
    let mut grant = reusable();
    grant.permissions[0].exp = Some(NOW.plus(1));
    grant.permissions[0].nbf = Some(NOW);
    assert_eq!(told(&Scene::with(grant).decide(&signed("get_positions", "{}")).await), "permit");
    let mut other = reusable();
    other.owner = "bob".parse().unwrap();
    assert_eq!(told(&Scene::with(other).decide(&signed("get_positions", "{}")).await), "challenge");
}

// CORE-76
#[tokio::test]
async fn a_tool_that_became_graver_or_another_is_refused() {
    let classes = [
        (Some("reversible"), "consequence_changed"),
        (Some("compensatable"), "permit"),
        (Some("irreversible"), "permit"),
        (Some("unheard_of"), "consequence_changed"),
        (None, "permit"),
    ];
    for (class, verdict) in classes {
        let mut grant = single_use();
        grant.consequence = class.map(str::to_owned);
        let scene = Scene::with(grant);
        assert_eq!(told(&scene.decide(&trade()).await), verdict, "{class:?}");
        assert_eq!(scene.authority.tickets(), 0);
    }
    let pin = |text: &[u8]| Some(sayso_protocol::canon::s256_bytes(text));
    for (accepted, now, verdict) in [
        (pin(b"a"), pin(b"a"), "permit"),
        (pin(b"a"), pin(b"b"), "tool_changed"),
        (pin(b"a"), None, "tool_changed"),
        (None, pin(b"b"), "permit"),
    ] {
        let (mut grant, mut settings) = (reusable(), settings());
        grant.permissions[0].definition = accepted;
        settings.tools[0].definition = now;
        let scene = Scene::of(grant, settings);
        assert_eq!(told(&scene.decide(&signed("get_positions", "{}")).await), verdict);
    }
    assert!(Consequence::Irreversible > Consequence::Compensatable);
}

// CORE-19, CORE-88, CORE-91, CORE-92
#[tokio::test]
async fn an_operation_is_this_tool_with_these_arguments() {
    let scene = Scene::with(single_use());
    let others = [
        r#"{"symbol":"VTI","quantity":4}"#,
        r#"{"symbol":"VTI","quantity":3,"limit":1}"#,
        r#"{"symbol":"VTI"}"#,
        r#"{"symbol":"VTI","quantity":"3"}"#,
        "{}",
    ];
    for arguments in others {
        assert_eq!(scene.code(&signed("execute_trade", arguments)).await, Code::OperationMismatch);
    }
    let huge = r#"{"symbol":"VTI","quantity":9007199254740993}"#;
    assert_eq!(scene.code(&signed("execute_trade", huge)).await, Code::InvalidRequest);
    assert_eq!(scene.authority.consumed(), 0);
    let reordered = r#"{ "quantity": 3.0, "symbol": "\u0056TI" }"#;
    assert_eq!(told(&scene.decide(&signed("execute_trade", reordered)).await), "permit");

    for (single, operation) in [(false, false), (true, false), (false, true)] {
        let mut grant = single_use();
        grant.single_use = single;
        grant.operation = grant.operation.filter(|_| operation);
        let scene = Scene::with(grant);
        assert_eq!(scene.code(&trade()).await, Code::OperationRequired, "{single} {operation}");
        assert_eq!((scene.authority.consumed(), scene.authority.tickets()), (0, 0));
    }
}

// CORE-92
#[tokio::test]
async fn a_single_use_grant_is_spent_at_a_tool_nobody_marked() {
    let (mut grant, mut settings) = (single_use(), settings());
    settings.tools[1].single_use = false;
    grant.consequence = None;
    let scene = Scene::of(grant, settings);
    let more =
        call_body("execute_trade", ARGUMENTS).replace(r#""_meta":{"#, r#""_meta":{"com.example/x":9,"#);
    let more = sign(post(more, "tools/call", Some("execute_trade")), &key(0x22), NOW, "gw.example.test");
    assert_eq!(scene.code(&more).await, Code::InvalidRequest);
    assert_eq!(told(&scene.decide(&trade()).await), "permit");
    assert_eq!(scene.authority.consumed(), 1);
    assert_eq!(scene.code(&trade()).await, Code::AlreadyConsumed);
}

// CORE-90, CORE-89
#[tokio::test]
async fn a_request_that_fails_three_steps_stops_at_the_first_of_them() {
    let mut grant = single_use();
    grant.permissions[0].resource_id = "vault/other".parse().unwrap();
    let scene = Scene::with(grant);
    let wrong = sign(call("execute_trade", "{}"), &key(0x33), NOW, "gw.example.test");
    assert_eq!(told(&scene.decide(&wrong).await), "challenge");
    assert_eq!(scene.authority.names(), ["introspect", "permission"]);

    let scene = Scene::with(single_use());
    assert_eq!(scene.code(&wrong).await, Code::InvalidToken);
    assert_eq!(scene.authority.names(), ["introspect"]);
    assert_eq!(scene.door.checked_out.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(told(&scene.decide(&trade()).await), "permit");
}

// CORE-22
#[tokio::test]
async fn an_authority_that_cannot_be_asked_is_a_503_that_costs_nothing() {
    let scene = Scene::with(single_use());
    *scene.authority.introspection.lock().unwrap() = Err(Unavailable::Unreachable);
    *scene.authority.permission.lock().unwrap() = Err(Unavailable::NotAdmitted);
    let incoming = trade();
    for refused in [&incoming, &call("execute_trade", "{}")] {
        let refusal = scene.refused(refused).await;
        assert_eq!((refusal.code, refusal.spent), (Code::TemporarilyUnavailable, false));
    }
    *scene.authority.introspection.lock().unwrap() = Ok(Introspection::Live(Box::new(single_use())));
    assert_eq!(told(&scene.decide(&incoming).await), "permit");
}

#[tokio::test]
async fn a_stale_registry_is_named() {
    for fault in [PermissionFault::InvalidResourceId, PermissionFault::InvalidScope] {
        let scene = Scene::with(reusable());
        *scene.authority.permission.lock().unwrap() = Ok(Err(fault));
        let refusal = scene.refused(&call("get_positions", "{}")).await;
        assert_eq!(refusal.code, Code::TemporarilyUnavailable);
        assert!(refusal.description.contains("stale") && refusal.description.contains(fault.as_str()));
    }
}

// CORE-22, CORE-89
#[tokio::test]
async fn nothing_is_spent_without_an_upstream_or_a_record() {
    let mut scene = Scene::with(single_use());
    scene.door.closed = true;
    let incoming = trade();
    assert_eq!(scene.code(&incoming).await, Code::TemporarilyUnavailable);
    assert_eq!(scene.authority.consumed(), 0);
    scene.door.closed = false;
    assert_eq!(told(&scene.decide(&incoming).await), "permit");

    let scene = Scene::with(reusable());
    *scene.authority.report.lock().unwrap() = Err(Unavailable::Interrupted);
    let incoming = signed("get_positions", "{}");
    assert_eq!(scene.code(&incoming).await, Code::TemporarilyUnavailable);
    *scene.authority.report.lock().unwrap() = Ok(());
    assert_eq!(told(&scene.decide(&incoming).await), "permit");
}

// CORE-95
#[tokio::test]
async fn who_does_not_win_the_grant_is_refused() {
    let lost = |error: Option<&str>| Ok(ConsumeReply { consumed: false, error: error.map(str::to_owned) });
    let table = [
        (lost(Some("already_consumed")), "already_consumed", false),
        (lost(None), "already_consumed", false),
        (lost(Some("connection_revoked")), "access_revoked", false),
        (lost(Some("something_new")), "access_revoked", false),
        (lost(Some("revoked")), "challenge", false),
        (lost(Some("expired")), "challenge", false),
        (lost(Some("not_single_use")), "temporarily_unavailable", false),
        (Err(Unavailable::Unreachable), "temporarily_unavailable", false),
        (Err(Unavailable::Interrupted), "temporarily_unavailable", true),
        (Err(Unavailable::Nonsense), "temporarily_unavailable", true),
    ];
    for (reply, verdict, spent) in table {
        let scene = Scene::with(single_use());
        *scene.authority.consume.lock().unwrap() = Some(reply);
        let incoming = trade();
        let told_first = scene.decide(&incoming).await;
        assert_eq!(told(&told_first), verdict);
        if let Verdict::Refuse(refusal) = told_first {
            assert_eq!(refusal.spent, spent, "{verdict}");
            assert_eq!(refusal.forwarded, spent.then_some(Forwarded::No));
        }
        // Only a 503 that certainly spent nothing lets the same signature come again.
        *scene.authority.consume.lock().unwrap() = None;
        *scene.authority.introspection.lock().unwrap() = Ok(Introspection::Live(Box::new(single_use())));
        let again = told(&scene.decide(&incoming).await);
        let released = verdict == "temporarily_unavailable" && !spent;
        assert_eq!(again == "invalid_token", !released, "{verdict} {spent}");
    }
}

// CORE-18, CORE-95
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_sixteen_at_once_one_is_let_through() {
    let scene = Arc::new(Scene::with(single_use()));
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let scene = Arc::clone(&scene);
            tokio::spawn(async move { told(&scene.decide(&trade()).await) })
        })
        .collect();
    let mut verdicts = Vec::new();
    for caller in callers {
        verdicts.push(caller.await.unwrap());
    }
    assert_eq!(verdicts.iter().filter(|verdict| *verdict == "permit").count(), 1);
    assert_eq!(verdicts.iter().filter(|verdict| *verdict == "already_consumed").count(), 15);
    let attempts: std::collections::BTreeSet<_> = scene
        .authority
        .asked
        .lock()
        .unwrap()
        .iter()
        .filter_map(|asked| if let Asked::Consume(attempt) = asked { Some(attempt.clone()) } else { None })
        .collect();
    assert_eq!(attempts.len(), 16);
}

// FED-48, FED-49
#[tokio::test]
async fn a_report_names_the_negotiation_and_what_was_reached_and_nobody() {
    let scene = Scene::with(reusable());
    scene.decide(&signed("get_positions", "{}")).await;
    let asked = scene.authority.asked.lock().unwrap().clone();
    let Some(Asked::Report(report)) = asked.last() else { panic!("{asked:?}") };
    let text = serde_json::to_value(report).unwrap();
    assert_eq!((&text["family"], &text["tool"]), (&"family-1".into(), &"get_positions".into()));
    assert_eq!(text.as_object().unwrap().len(), 3);
}
