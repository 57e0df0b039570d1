//! A resource that a policy alone protects: a token first, then the mapping, then the policy, and nothing beside.

#![cfg(feature = "coaz")]

use super::*;
use crate::access_token::AccessTokens;
use crate::bearer::Holder;
use crate::policy::Mappings;
use crate::scripted_policy::{
    Lists, Point, SERVER, Says, Script, Tokens, asks, by, claiming, json, policed, policy,
};
use http::Method;
use serde_json::json as value;

pub(super) struct Stage {
    pub(super) scene: Scene,
    pub(super) point: Arc<Point>,
}

pub(super) fn stage(says: Says) -> Stage {
    with(says, Mappings::undeclared(), &[])
}

pub(super) fn with(says: Says, mappings: Mappings, extra: &[&str]) -> Stage {
    let point = Point::saying(says);
    let scene = Scene::of(reusable(), policed(policy(&point, mappings, extra, false)));
    Stage { scene, point }
}

/// One whose policy is like this.
pub(super) fn like(says: Says, script: Script) -> Stage {
    let point = Point::saying(says);
    let scene = Scene::of(reusable(), policed(script.by(&point)));
    Stage { scene, point }
}

impl Stage {
    pub(super) async fn told(&self, incoming: &Incoming) -> String {
        told(&self.scene.decide(incoming).await)
    }

    /// The answer of a message that a policy is in the way of.
    pub(super) async fn answer(&self, incoming: &Incoming) -> serde_json::Value {
        match self.scene.decide(incoming).await {
            Verdict::Policy(refusal) => {
                assert_eq!(refusal.status(), 200);
                serde_json::from_slice(refusal.body()).unwrap()
            }
            other => panic!("{}", told(&other)),
        }
    }
}

pub(super) fn weather() -> Incoming {
    by(call("get_weather", r#"{"zip":"10115"}"#), "ann")
}

pub(super) fn older(method: &str, params: &str) -> Incoming {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    let mut incoming = by(post(body, method, None), "ann");
    incoming.head.headers.insert("mcp-protocol-version", HeaderValue::from_static("2025-11-25"));
    incoming
}

// COAZ-MCP-68, COAZ-MCP-71, COAZ-MCP-74, AZ-09
#[tokio::test]
async fn a_call_is_asked_about_in_the_words_of_its_token() {
    let stage = stage(Says::Yes);
    assert_eq!(stage.told(&weather()).await, "permit");
    assert_eq!(
        stage.point.only(),
        value!({
            "subject": {"type": "identity", "id": "u-ann"}, "action": {"name": "tools/call"},
            "resource": {"type": "tool", "id": "get_weather"}, "context": {"agent": "agent-7"},
        })
    );
    assert!(stage.scene.authority.names().is_empty(), "there is no owner to ask");
    let list = by(asks("tools/list", None, ""), "ann");
    assert_eq!(stage.told(&list).await, "permit");
    let asked: serde_json::Value = serde_json::from_str(&stage.point.bodies()[1]).unwrap();
    assert_eq!(asked["resource"], value!({"type": "mcp_server", "id": SERVER}));
    let ids: Vec<String> = stage.point.asked.lock().unwrap().iter().map(|(_, id)| id.clone()).collect();
    assert!(ids[0] != ids[1] && ids.iter().all(|id| id.len() > 16), "{ids:?}");
}

// COAZ-MCP-70, COAZ-MCP-81, TOK-01, TOK-10, MSG-16: claims come of a validated token or not at all.
#[tokio::test]
async fn nobody_is_asked_without_a_good_token() {
    let stage = stage(Says::Yes);
    let ping = r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#;
    let messages = [
        call("get_weather", "{}"),
        asks("tools/list", None, ""),
        asks("no/such", None, ""),
        post(ping, "notifications/cancelled", None),
        older("ping", "{}"),
        older("initialize", r#"{"protocolVersion":"2025-11-25"}"#),
    ];
    for message in messages {
        let mut bare = message.clone();
        bare.head.headers.remove("authorization");
        assert_eq!(stage.told(&bare).await, "no token");
        bare.head.headers.insert("authorization", HeaderValue::from_static("PoP ann"));
        assert_eq!(stage.told(&bare).await, "no token", "another scheme shows none");
        for bad in ["eve", "ann ann", "", "ann,ann"] {
            assert_eq!(stage.told(&by(message.clone(), bad)).await, "bad token", "{bad:?}");
        }
        assert_eq!(stage.told(&by(message.clone(), "unheard")).await, "temporarily_unavailable");
    }
    let mut twice = weather();
    twice.head.headers.append("authorization", HeaderValue::from_static("Bearer ann"));
    assert_ne!(stage.told(&twice).await, "permit");
    assert!(stage.point.bodies().is_empty());
}

// COAZ-MCP-75, COAZ-MCP-77, ERR-07
#[tokio::test]
async fn a_no_is_an_answer_under_the_messages_own_id() {
    for id in ["7", "\"7\"", "\"\u{e9}\"", "9007199254740993"] {
        let stage = stage(Says::No);
        let body = call_body("get_weather", "{}").replace("\"id\":1", &format!("\"id\":{id}"));
        let incoming = by(post(body, "tools/call", Some("get_weather")), "ann");
        let Verdict::Policy(refusal) = stage.scene.decide(&incoming).await else { panic!() };
        let text = std::str::from_utf8(refusal.body()).unwrap();
        assert!(text.contains(&format!("\"id\":{id},")), "{text}");
        assert_eq!((refusal.code, refusal.category), (-32001, "denied"));
    }
    for (says, code, category) in [
        (Says::Obliged, -32001, "denied"),
        (Says::Nothing, -32603, "pdp_unavailable"),
        (Says::TooFew, -32603, "pdp_unavailable"),
    ] {
        let answer = stage(says).answer(&weather()).await;
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["data"]["coaz"]["category"]),
            (&code.into(), &category.into())
        );
        assert!(answer.get("result").is_none());
    }
}

// COAZ-MCP-01, COAZ-MCP-49, COAZ-MCP-51, COAZ-FW-33, COAZ-MCP-87, COAZ-MCP-47, COAZ-MCP-48, COAZ-FW-50, ROW-22, MSG-11
#[tokio::test]
async fn every_method_is_asked_about_passed_by_name_or_denied() {
    let mapped = [
        ("tools/list", None, ""),
        ("resources/list", None, ""),
        ("resources/read", Some("file:///a"), r#""uri":"file:///a""#),
        ("prompts/list", None, ""),
        ("prompts/get", Some("p"), r#""name":"p""#),
        ("completion/complete", None, r#""ref":{"type":"ref/prompt","name":"p"}"#),
        ("tasks/get", Some("t"), r#""taskId":"t""#),
        ("tasks/cancel", Some("t"), r#""taskId":"t""#),
    ];
    for (method, name, params) in mapped {
        let (yes, no) = (stage(Says::Yes), stage(Says::No));
        assert_eq!(yes.told(&by(asks(method, name, params), "ann")).await, "permit", "{method}");
        assert_eq!(no.told(&by(asks(method, name, params), "ann")).await, "denied", "{method}");
        assert_eq!(yes.point.bodies().len(), 1);
    }
    let yes = stage(Says::Yes);
    for method in [
        "resources/templates/list",
        "server/discover",
        "subscriptions/listen",
        "tasks/update",
        "no/such",
        "Tools/Call",
        "sampling/createMessage",
        "roots/list",
    ] {
        let name = (method == "tasks/update").then_some("t");
        let params = if name.is_some() { r#""taskId":"t""# } else { "" };
        let answer = yes.answer(&by(asks(method, name, params), "ann")).await;
        assert_eq!(answer["error"]["code"], -32001, "{method}");
    }
    assert!(yes.point.bodies().is_empty());
    let no = stage(Says::No);
    assert_eq!(no.told(&older("ping", "{}")).await, "open");
    for method in ["notifications/initialized", "notifications/x", "notifications/cancelled"] {
        let told = by(post(format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#), method, None), "ann");
        assert_eq!(no.told(&told).await, "open");
    }
    assert!(no.point.bodies().is_empty());
    let silent = by(post(r#"{"jsonrpc":"2.0","method":"no/such"}"#, "no/such", None), "ann");
    let Verdict::Policy(refusal) = no.scene.decide(&silent).await else { panic!() };
    assert_eq!((refusal.status(), refusal.category), (400, "denied"), "what has no id has no answer");
}

// COAZ-MCP-69, D-6
#[tokio::test]
async fn extra_defaults_are_mapped_and_the_rest_is_said_to_be_missing() {
    let stage = with(Says::Yes, Mappings::undeclared(), &["server/discover"]);
    assert_eq!(stage.told(&by(asks("server/discover", None, ""), "ann")).await, "permit");
    assert_eq!(stage.told(&by(asks("subscriptions/listen", None, ""), "ann")).await, "denied");
    let resource = stage.scene.engine.resource();
    let policy = resource.settings().enforcement.policy().unwrap();
    assert_eq!(policy.unmapped().collect::<Vec<_>>(), ["resources/templates/list", "subscriptions/listen"]);
}

// COAZ-MCP-75: what is no message is no message, whoever sent it.
#[tokio::test]
async fn the_message_is_read_before_its_token() {
    let stage = stage(Says::Yes);
    for (body, outcome) in [
        ("{", "malformed"),
        ("[]", "malformed"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping"}"#, "malformed"),
        (r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}"#, "malformed"),
    ] {
        assert_eq!(stage.told(&post(body, "tools/call", None)).await, outcome, "{body}");
    }
    let mut steered = weather();
    steered.head.headers.insert("mcp-name", HeaderValue::from_static("other"));
    assert_eq!(stage.told(&steered).await, "header_body_mismatch");
    let mut elsewhere = weather();
    elsewhere.head.headers.insert("host", HeaderValue::from_static("evil.example.test"));
    for name in ["signature", "signature-input"] {
        elsewhere.head.headers.insert(name, HeaderValue::from_static("x"));
    }
    assert_eq!(stage.told(&elsewhere).await, "misdirected_request", "no signature stands in for the host");
    assert!(stage.point.bodies().is_empty());
}

// COAZ-FW-23, COAZ-MCP-10: a token that names nobody authorizes nothing.
#[tokio::test]
async fn a_token_without_its_subject_is_a_mapping_error() {
    let stage = stage(Says::Yes);
    let answer = stage.answer(&by(call("get_weather", "{}"), "nobody")).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["error"]["data"]["coaz"]["path"], "subject.id");
    assert!(stage.point.bodies().is_empty());
}

// D-10: a header that repeats an argument repeats it, here too.
#[tokio::test]
async fn a_mirrored_argument_is_held_against_its_header() {
    let page = r#"{"tools":[{"name":"get_weather","inputSchema":{"type":"object","properties":{
        "zip":{"type":"string","x-mcp-header":"Zip"}}}}]}"#;
    let stage = with(Says::Yes, Mappings::fixed(&[json(page)]).unwrap(), &[]);
    let sent = |zip: &'static str| {
        let mut incoming = weather();
        incoming.head.headers.insert("mcp-param-zip", HeaderValue::from_static(zip));
        incoming
    };
    assert_eq!(stage.told(&sent("10115")).await, "permit");
    assert_eq!(stage.told(&sent("99999")).await, "header_body_mismatch");
    assert_eq!(stage.point.bodies().len(), 1);
}

// COAZ-MCP-89, LST-12: the mapping that was asked about is the one that is in force.
#[tokio::test]
async fn a_mapping_that_changes_while_the_policy_thinks_is_asked_about_again() {
    let page = |action: &str| {
        format!(
            r#"{{"tools":[{{"name":"get_weather","inputSchema":{{"x-authzen-mapping":{{"evaluation":{{
            "action":{{"name":"{action}"}},"resource":{{"type":"w","id":"1"}}}}}}}}}}]}}"#
        )
    };
    for (times, outcome, asked) in [(1, "permit", 2), (9, "mapping_unavailable", 2)] {
        let lists = Lists::these(&[&page("a0")]);
        let mappings = Mappings::unknown();
        mappings.learn_from(lists.clone());
        let stage = with(Says::Yes, mappings, &[]);
        *stage.point.meanwhile.lock().unwrap() = Some(Box::new(move || {
            let nth = lists.changes.load(std::sync::atomic::Ordering::SeqCst);
            if nth < times {
                *lists.pages.lock().unwrap() = Some(vec![json(&page(&format!("a{}", nth + 1)))]);
                lists.changes.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        }));
        assert_eq!(stage.told(&weather()).await, outcome);
        assert_eq!(stage.point.bodies().len(), asked);
    }
}

async fn holder(token: &str, subject: &str) -> Option<Holder> {
    Holder::of(&Tokens.validate(token, NOW).await.unwrap(), subject)
}

// COAZ-MCP-09, MSG-16: a session is of whoever the designated claim names, and of nobody where a token names nobody.
#[tokio::test]
async fn a_session_is_bound_to_the_subject_that_is_designated() {
    let point = Point::saying(Says::Yes);
    let scene = Scene::of(reusable(), policed(claiming(&point, "obo")));
    let session = Arc::new(Session::default());
    session.begin(holder("ann-by-7", "obo").await.unwrap());
    let within = async |incoming: &Incoming| {
        told(&scene.engine.decide_within(Some(&session), incoming, &scene.door).await)
    };
    for message in
        [older("tools/list", "{}"), older("ping", "{}"), bodiless(Method::GET), bodiless(Method::DELETE)]
    {
        assert!(["permit", "open"].contains(&&*within(&by(message.clone(), "ann-by-7")).await));
        for stranger in ["bob-by-7", "ann", "nobody"] {
            assert_eq!(within(&by(message.clone(), stranger)).await, "session_bound", "{stranger}");
        }
    }
    let nobodys = Arc::new(Session::default());
    for token in ["nobody", "ann-by-7"] {
        let told = told(
            &scene.engine.decide_within(Some(&nobodys), &by(older("ping", "{}"), token), &scene.door).await,
        );
        assert_eq!(told, "session_bound", "what nobody began is nobody's");
    }
}

fn bodiless(method: Method) -> Incoming {
    let mut incoming = older("ping", "{}");
    incoming.head.method = method;
    incoming.body = crate::Body::Whole(bytes::Bytes::new());
    incoming
}

// D-13, COAZ-MCP-87, MSG-08, MSG-16: a session is whose token began it.
#[tokio::test]
async fn a_session_is_its_holders_alone() {
    let stage = stage(Says::Yes);
    let session = Arc::new(Session::default());
    session.begin(holder("ann", "sub").await.unwrap());
    let within = async |incoming: &Incoming| {
        told(&stage.scene.engine.decide_within(Some(&session), incoming, &stage.scene.door).await)
    };
    let list = older("tools/list", "{}");
    assert_eq!(within(&list).await, "permit");
    let asked = stage.point.bodies().len();
    for (stranger, outcome) in [
        ("bob", "session_bound"),
        ("ann-elsewhere", "session_bound"),
        ("nobody", "session_bound"),
        ("eve", "bad token"),
    ] {
        assert_eq!(within(&by(list.clone(), stranger)).await, outcome, "{stranger}");
        for method in [Method::GET, Method::DELETE] {
            let mut bodiless = by(list.clone(), stranger);
            bodiless.head.method = method;
            bodiless.body = crate::Body::Whole(bytes::Bytes::new());
            assert_eq!(within(&bodiless).await, outcome, "{stranger}");
            bodiless.head.headers.remove("authorization");
            assert_eq!(within(&bodiless).await, "no token");
            assert_eq!(within(&by(bodiless.clone(), "ann")).await, "open");
            bodiless.head.headers.insert("last-event-id", HeaderValue::from_static("7"));
            if bodiless.head.method == Method::GET {
                assert_eq!(within(&by(bodiless, "ann")).await, "invalid_request", "no stream told that");
            }
        }
    }
    let answer = by(post(r#"{"jsonrpc":"2.0","id":5,"result":{}}"#, "", None), "ann");
    let mut answer = answer;
    answer.head.headers.remove("mcp-method");
    answer.head.headers.insert("mcp-protocol-version", HeaderValue::from_static("2025-11-25"));
    assert_eq!(within(&answer).await, "invalid_request", "nobody asked");
    session.ask(&"5".parse().unwrap());
    assert_eq!(within(&by(answer.clone(), "bob")).await, "session_bound");
    assert_eq!(within(&answer).await, "open");
    assert_eq!(within(&answer).await, "invalid_request", "once");
    assert_eq!(stage.told(&answer).await, "invalid_request", "no session, no question");
    assert_eq!(stage.point.bodies().len(), asked);
}

// D-13: who begins a session is who it will belong to.
#[tokio::test]
async fn an_introduction_says_whose_the_session_will_be() {
    let stage = stage(Says::Yes);
    let first = older("initialize", r#"{"protocolVersion":"2025-11-25"}"#);
    let Verdict::Permit(permit) = stage.scene.decide(&first).await else { panic!() };
    let clearance = permit.redeem().ok().unwrap();
    assert!(clearance.introduces && clearance.token.is_none());
    assert!(clearance.holder == holder("ann", "sub").await);
    assert_eq!(stage.point.only()["context"]["protocol_version"], "2025-11-25");
}
