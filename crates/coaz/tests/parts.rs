//! What vectors cannot say: one by one in place of several, bodies of faults, listings over time, checks of authors.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use proptest::prelude::*;
use sayso_coaz::answer::{AnswerFault, Reply, judge, judge_singles};
use sayso_coaz::authzen::{Evaluation, Evaluations, Request, Semantic};
use sayso_coaz::{Engine, Operation, Projection, Registry, Settings, Why, lifetime, lint};
use sayso_protocol::Json;
use sayso_protocol::json::Limits;
use sayso_protocol::message::{self, RequestId};
use serde_json::{Value, json};

fn value(json: Value) -> Json {
    Json::from(json)
}

fn listing(mapping: &Value) -> Json {
    value(json!({"tools": [{"name": "t", "inputSchema": {"x-authzen-mapping": mapping}}]}))
}

fn reply(body: &str) -> Reply<'_> {
    Reply { status: 200, media_type: Some("application/json"), body: body.as_bytes() }
}

fn three() -> Evaluations {
    let body = json!({
        "subject": {"type": "identity", "id": "u-ann"}, "action": {"name": "read"}, "context": {"a": 1},
        "options": {"evaluations_semantic": "deny_on_first_deny"},
        "evaluations": [
            {"resource": {"type": "r", "id": "1"}},
            {"resource": {"type": "r", "id": "2"}, "context": {"b": 2}},
            {"resource": {"type": "r", "id": "3", "properties": {"p": 1}}, "action": {"name": "write"}},
        ],
    });
    Evaluations::read(&value(body)).unwrap()
}

// COAZ-FW-10, COAZ-FW-29, COAZ-FW-30, COAZ-MCP-22, COAZ-MCP-72; EVS-17, SUB-15
#[test]
fn one_by_one_each_entry_takes_whole_parts_from_the_top() {
    let singles: Vec<Value> =
        three().singles().unwrap().map(|single| serde_json::to_value(single).unwrap()).collect();
    assert!(singles.iter().all(|single| single["subject"] == json!({"type": "identity", "id": "u-ann"})));
    assert!(
        singles.iter().all(|single| single.get("evaluations").is_none() && single.get("options").is_none())
    );
    assert_eq!(singles[0]["context"], json!({"a": 1}));
    assert_eq!(singles[1]["context"], json!({"b": 2}), "no merging of contexts");
    assert_eq!(singles[2]["action"], json!({"name": "write"}));
    let bare = value(json!({"evaluations": [{"action": {"name": "a"}}]}));
    assert!(Evaluations::read(&bare).unwrap().singles().is_err());
}

// COAZ-FW-29, COAZ-FW-43, COAZ-MCP-22; EVS-18, EVS-19
#[test]
fn one_by_one_the_first_that_is_no_yes_decides() {
    let single = Request::Evaluation(Box::new(three().singles().unwrap().next().unwrap()));
    let yes = || judge(&single, reply(r#"{"decision":true}"#));
    let no = || judge(&single, reply(r#"{"decision":false}"#));
    let broken = || judge(&single, Reply { status: 500, ..reply("") });
    assert!(judge_singles(2, &[yes(), yes()]).is_ok());
    assert_eq!(judge_singles(2, &[yes(), broken()]).unwrap_err().why, Why::Answer(AnswerFault::Status));
    assert_eq!(judge_singles(2, &[no(), broken()]).unwrap_err().why, Why::Policy);
    assert_eq!(judge_singles(2, &[broken(), no()]).unwrap_err().why, Why::Answer(AnswerFault::Status));
    for few in [judge_singles(2, &[yes()]), judge_singles(0, &[]), judge_singles(1, &[yes(), yes()])] {
        assert_eq!(few.unwrap_err().why, Why::Answer(AnswerFault::Count));
    }
}

// COAZ-MCP-75, COAZ-MCP-77, COAZ-MCP-76: codes are these four categories', ids are echoed as they were written.
#[test]
fn a_fault_is_a_json_rpc_error() {
    let engine = Engine::new(Settings::default()).unwrap();
    let token = value(json!({"sub": "secret-sub"}));
    for id in ["7", "\"7\"", "\"\\u00e9\"", "9007199254740993"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"prompts/get","params":{{}}}}"#);
        let message = message::parse(body.as_bytes(), Limits::default()).unwrap();
        let fault =
            engine.project(Operation::of(&message).unwrap(), &Registry::unlisted(), 0, &token).unwrap_err();
        let answer = String::from_utf8(fault.body(message.request_id())).unwrap();
        let expected = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"COAZ mapping error: expression '$params.name' failed: no such key 'name'","data":{{"coaz":{{"category":"mapping_error","path":"resource.id"}}}}}}}}"#
        );
        assert_eq!(answer, expected);
    }
    let unmapped = Operation { method: "x", params: None, is_request: true };
    let fault = engine.project(unmapped, &Registry::undeclared(), 0, &token).unwrap_err();
    assert_eq!(
        String::from_utf8(fault.body(None)).unwrap(),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Access denied: no mapping for this method","data":{"coaz":{"category":"denied"}}}}"#
    );
}

// COAZ-MCP-79, ERR-09: only a denial may be a tool result.
#[test]
fn a_denial_may_be_a_tool_result() {
    let single = Request::Evaluation(Box::new(three().singles().unwrap().next().unwrap()));
    let id: RequestId = "\"a\"".parse().unwrap();
    let denied = judge(&single, reply(r#"{"decision":false}"#)).unwrap_err();
    let result: Value = serde_json::from_slice(&denied.tool_result(&id).unwrap()).unwrap();
    assert_eq!((&result["id"], &result["result"]["isError"]), (&json!("a"), &json!(true)));
    assert!(result.get("error").is_none());
    assert!(judge(&single, reply("{}")).unwrap_err().tool_result(&id).is_none());
}

// D-36: not knowing is not the same as declaring nothing.
#[test]
fn what_is_not_known_is_not_mapped() {
    let engine = Engine::new(Settings::default()).unwrap();
    let (params, token) = (value(json!({"name": "t"})), value(json!({"sub": "u", "aud": "s"})));
    let call = Operation { method: "tools/call", params: Some(&params), is_request: true };
    let mut registry = Registry::unlisted();
    assert_eq!(engine.project(call, &registry, 0, &token).unwrap_err().why, Why::Unlisted);
    assert!(engine.project(Operation { method: "tools/list", ..call }, &registry, 0, &token).is_ok());
    registry = Registry::read(&[&value(json!({"tools": []}))], 10).unwrap();
    assert!(engine.project(call, &registry, 9, &token).is_ok());
    assert_eq!(engine.project(call, &registry, 10, &token).unwrap_err().why, Why::Unlisted);
    registry.invalidate();
    assert_eq!(engine.project(call, &registry, 0, &token).unwrap_err().why, Why::Unlisted);
}

// LST-08, LST-10, LST-11
#[test]
fn listings_age_and_differ() {
    for (page, expected) in [
        (json!({}), 60),
        (json!({"ttlMs": 0}), 60),
        (json!({"ttlMs": -1}), 60),
        (json!({"ttlMs": "5"}), 60),
        (json!({"ttlMs": 5}), 5),
        (json!({"ttlMs": 5000}), 300),
    ] {
        assert_eq!(lifetime(&value(page.clone()), 60, 300), expected, "{page}");
    }
    let mapping =
        |name: &str| json!({"evaluation": {"action": {"name": name}, "resource": {"type": "r", "id": "1"}}});
    let read = |json: &Json| Registry::read(&[json], 1).unwrap();
    let (one, two, none) = (
        read(&listing(&mapping("a"))),
        read(&listing(&mapping("b"))),
        read(&value(json!({"tools": [{"name": "t"}]}))),
    );
    assert!(one.changes_since(&one).is_empty());
    let change = two.changes_since(&one).remove(0);
    assert!(change.before.is_some() && change.after.is_some() && change.before != change.after);
    let dropped = none.changes_since(&one).remove(0);
    assert!(dropped.before.is_some() && dropped.after.is_none() && dropped.tool == "t");
}

// CMP-03, COAZ-FW-50, COAZ-MCP-50: every default compiles at the start, and only named methods can be added.
#[test]
fn defaults_are_compiled_at_the_start_and_their_set_is_closed() {
    assert!(Engine::new(Settings::default()).is_ok());
    for method in ["tasks/update", "ping", "tools/call", "notifications/x", ""] {
        let extra_defaults = [method.to_owned()].into();
        assert!(Engine::new(Settings { extra_defaults, ..Settings::default() }).is_err(), "{method}");
    }
}

// COAZ-FW-18: what is too large to be evaluated is refused before it is.
#[test]
fn inputs_of_declared_mappings_are_bounded() {
    let engine = Engine::new(Settings::default()).unwrap();
    let registry = Registry::read(
        &[&listing(&json!({"evaluation": {"action": {"name": "a"}, "resource": {"type": "r", "id": "$params.name"}}}))],
        1,
    )
    .unwrap();
    let token = value(json!({"sub": "u"}));
    let call = |tool: &str, bytes: usize| {
        let params = value(json!({"name": tool, "arguments": {"x": "x".repeat(bytes)}}));
        engine.project(
            Operation { method: "tools/call", params: Some(&params), is_request: true },
            &registry,
            0,
            &token,
        )
    };
    assert!(call("t", 65_000).is_ok());
    assert_eq!(call("t", 66_000).unwrap_err().why, Why::InputsTooLarge);
    assert!(call("undeclared", 66_000).is_ok(), "a default mapping reads the name alone");
}

#[test]
fn a_listing_costs_so_much_and_no_more() {
    let long = format!("${}1", "1+".repeat(7)).repeat(60);
    let fields: serde_json::Map<String, Value> =
        (0..8).map(|n| (format!("v{n}"), json!(format!("$'{long}'")))).collect();
    let mapping = json!({"evaluation": {"action": {"name": "a"}, "resource": {"type": "r", "id": "1"}, "context": fields}});
    let tools: Vec<Value> = (0..40)
        .map(|n| json!({"name": format!("t{n:02}"), "inputSchema": {"x-authzen-mapping": mapping}}))
        .collect();
    let registry = Registry::read(&[&value(json!({"tools": tools}))], 1).unwrap();
    let usable = |tool: &str| registry.declared(tool, 0).map(|found| found.is_some());
    assert_eq!(usable("t00"), Ok(true));
    assert_eq!(usable("t39").unwrap_err().why, Why::TooLarge, "and never the default");
}

#[test]
fn a_request_without_an_id_is_nobodys() {
    let engine = Engine::new(Settings::default()).unwrap();
    let (params, token) = (value(json!({"name": "t"})), value(json!({"sub": "u"})));
    let mapping = json!({"evaluation": {"action": {"name": "a"}, "resource": {"type": "r", "id": "1"}}});
    let registry = Registry::read(&[&listing(&mapping)], 1).unwrap();
    let call = Operation { method: "tools/call", params: Some(&params), is_request: false };
    assert_eq!(engine.project(call, &registry, 0, &token).unwrap_err().why, Why::Unmapped);
}

#[test]
fn names_chosen_by_a_stranger_are_repeated_at_no_length() {
    let name = "é".repeat(10_000);
    let mapping = json!({"evaluation": {"action": {"name": "a"}, "resource": {"type": "r", "id": "1"}, "context": {name: "$token.nope"}}});
    let registry = Registry::read(&[&listing(&mapping)], 1).unwrap();
    let engine = Engine::new(Settings::default()).unwrap();
    let (params, token) = (value(json!({"name": "t"})), value(json!({"sub": "u"})));
    let call = Operation { method: "tools/call", params: Some(&params), is_request: true };
    let fault = engine.project(call, &registry, 0, &token).unwrap_err();
    assert_eq!(fault.place, format!("context.{}", "é".repeat(32)));
}

// COAZ-MCP-20, COAZ-MCP-54, COAZ-MCP-64, COAZ-MCP-15
#[test]
fn authors_are_told() {
    let mapping = json!({"evaluations": {
        "subject": {"id": "$params.arguments.user"},
        "evaluations": [{"action": {"name": "a"}, "resource": {"type": "r", "id": "$params.arguments.id"}}],
    }});
    let document = value(json!({"result": {"tools": [
        {"name": "t", "_meta": {"x-authzen-mapping": {}}, "inputSchema": {
            "properties": {"user": {}, "id": {}}, "required": ["user"], "x-authzen-mapping": mapping}},
        {"name": "u", "coaz": true, "inputSchema": {}},
        {"name": "v", "inputSchema": {"x-authzen-mapping": {"evaluation": {"action": {"name": "$request.x"}, "resource": {"type": "r", "id": "1"}}}}},
        {"name": "v", "inputSchema": {}},
    ]}}));
    let reports = lint::lint(&document).unwrap();
    let said = |at: usize| -> Vec<(&str, &str)> {
        reports[at].findings.iter().map(|it| (it.level.as_str(), it.place.as_str())).collect()
    };
    assert_eq!(
        said(0),
        [
            ("warning", "_meta.x-authzen-mapping"),
            ("warning", "subject.id"),
            ("warning", "evaluations"),
            ("warning", "context"),
            ("warning", "evaluations[0].resource.id"),
        ]
    );
    assert!(reports[0].findings[4].text.contains("'id' may be left out"), "{:?}", reports[0]);
    assert_eq!(said(1), [("warning", "coaz")]);
    assert_eq!(said(2), [("error", "action.name"), ("error", "name")]);
    assert_eq!(said(3), [("error", "name")]);
    assert!(!reports[0].fails() && reports[2].fails());
    assert!(lint::lint(&value(json!({"tools": {}}))).is_err());
}

#[test]
fn semantics_have_names() {
    for name in ["execute_all", "deny_on_first_deny", "permit_on_first_permit"] {
        assert_eq!(Semantic::named(name).map(Semantic::as_str), Some(name));
    }
    assert_eq!(Semantic::named("Execute_all"), None);
    assert_eq!(three().semantic(), Some(Semantic::DenyOnFirstDeny));
    let odd = value(json!({"evaluations": [], "options": {"evaluations_semantic": 1}}));
    assert_eq!(Evaluations::read(&odd).unwrap().semantic(), None);
    assert!(Evaluation::read(&value(json!({"subject": {"type": "t", "id": ["u"]}}))).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    // COAZ-FW-16: any text can be written as a constant.
    #[test]
    fn a_text_survives_being_written_as_a_constant(text in "\\$*.*") {
        let written = if text.starts_with('$') { format!("${text}") } else { text.clone() };
        let engine = Engine::new(Settings::default()).unwrap();
        let mapping = json!({"evaluation": {
            "action": {"name": "a"}, "resource": {"type": "r", "id": "1"}, "context": {"v": written}}});
        let registry = Registry::read(&[&listing(&mapping)], 1).unwrap();
        let (params, token) = (value(json!({"name": "t"})), value(json!({"sub": "u"})));
        let call = Operation { method: "tools/call", params: Some(&params), is_request: true };
        let Projection::Ask(asked) = engine.project(call, &registry, 0, &token).unwrap() else { panic!() };
        let body: Value = serde_json::from_slice(&asked.request.body().unwrap()).unwrap();
        prop_assert_eq!(&body["context"]["v"], &Value::String(text));
    }
}

// COAZ-FW-31, COAZ-FW-36, COAZ-FW-38, COAZ-FW-44, COAZ-FW-46, COAZ-MCP-63, COAZ-MCP-83: what others have to know is told.
#[test]
fn authors_and_policies_are_told_what_holds() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/coaz.md");
    let page = std::fs::read_to_string(page).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    for told in [
        "The envelope is `evaluation` or `evaluations`",
        "*anchored member* `subject.id`",
        "Policies must not take anything else that a declared mapping says as proof of identity or privilege",
        "*language* CEL",
        "*marker* `$` and `$$`",
        "*variables* `params` and `token`",
        "*envelopes* `evaluation` and `evaluations`",
        "*operations in scope* every request of a client",
        "*operations that pass* `ping` and `notifications/*`",
        "*declared mappings* by the server, per tool, before the default",
        "*errors* the table above",
        "*discovery* the server's own listing",
        "*fall-back* none that permits",
    ] {
        assert!(page.contains(told), "{told}");
    }
}
