//! What a folder of policies decides, what it refuses to start with, and what a change of it does.

mod believed;
mod costs;

use super::*;
use sayso_coaz::Category;
use sayso_protocol::Json;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

/// Looks often, so that a test waits little.
const OFTEN: Duration = Duration::from_millis(20);

const ALLOW: &str = "permit (principal, action, resource);";

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, text)| save(dir.path(), name, text));
    dir
}

fn save(root: &Path, name: &str, text: &str) {
    std::fs::write(root.join(name), text).unwrap();
}

fn open(dir: &TempDir) -> Result<Embedded, BadPolicies> {
    Embedded::open(EmbeddedSettings { policies: dir.path().to_owned(), every: OFTEN })
}

fn opened(files: &[(&str, &str)]) -> (TempDir, Embedded) {
    let dir = folder(files);
    let embedded = open(&dir).unwrap();
    (dir, embedded)
}

fn refused(files: &[(&str, &str)]) -> String {
    let dir = folder(files);
    open(&dir).err().expect("a set that cannot decide").to_string()
}

/// `identity::"u-ann"` calls the tool `get_weather`, with what a case says otherwise.
fn call(otherwise: Value) -> Evaluation {
    let mut body = json!({
        "subject": { "type": "identity", "id": "u-ann" },
        "action": { "name": "tools/call" },
        "resource": { "type": "tool", "id": "get_weather" },
        "context": { "agent": "agent-7" },
    });
    let Value::Object(otherwise) = otherwise else { panic!("an object") };
    body.as_object_mut().unwrap().extend(otherwise);
    Evaluation::read(&Json::from(body)).unwrap()
}

fn says(embedded: &Embedded, otherwise: Value) -> bool {
    embedded.evaluate(&call(otherwise), "r-1").unwrap().decision
}

fn fault(embedded: &Embedded, otherwise: Value) -> (String, AnswerFault) {
    let fault = embedded.evaluate(&call(otherwise), "r-1").unwrap_err();
    assert_eq!(fault.category(), Category::Policy);
    let Why::Answer(why) = fault.why else { panic!("{fault}") };
    (fault.place, why)
}

fn eventually(embedded: &Embedded, wanted: bool) {
    for _ in 0..500 {
        if says(embedded, json!({})) == wanted {
            return;
        }
        std::thread::sleep(OFTEN);
    }
    panic!("the change is not seen");
}

#[test]
fn a_default_mapping_needs_no_schema_of_the_author() {
    let policy = r#"permit (principal == identity::"u-ann", action == Action::"tools/call", resource == tool::"get_weather")
        when { context has agent && context.agent == "agent-7" };"#;
    let (_dir, embedded) = opened(&[("a.cedar", policy)]);
    assert!(says(&embedded, json!({})));
    assert!(!says(&embedded, json!({ "context": {} })));
    assert!(!says(&embedded, json!({ "context": { "agent": "agent-8" } })));
    assert!(!says(&embedded, json!({ "subject": { "type": "identity", "id": "U-ANN" } })));
    assert!(!says(&embedded, json!({ "resource": { "type": "tool", "id": "get_weather2" } })));
    assert!(!says(&embedded, json!({ "action": { "name": "tools/list" } })));
}

#[test]
fn forbid_wins_and_nothing_said_is_no() {
    let forbid =
        r#"forbid (principal, action, resource) when { context has agent && context.agent == "agent-8" };"#;
    let (_dir, embedded) = opened(&[("a.cedar", ALLOW), ("b.cedar", forbid)]);
    assert!(says(&embedded, json!({})));
    assert!(!says(&embedded, json!({ "context": { "agent": "agent-8" } })));
    let (_dir, embedded) = opened(&[("b.cedar", forbid)]);
    assert!(!says(&embedded, json!({})));
}

#[test]
fn what_the_schema_does_not_know_is_denied_even_where_everything_is_allowed() {
    let (_dir, embedded) = opened(&[("a.cedar", ALLOW)]);
    assert!(says(&embedded, json!({})));
    for unknown in [
        json!({ "subject": { "type": "admin", "id": "u-ann" } }),
        json!({ "subject": { "type": "tool", "id": "u-ann" } }),
        json!({ "subject": { "type": "identity::", "id": "u-ann" } }),
        json!({ "subject": { "type": "", "id": "u-ann" } }),
        json!({ "action": { "name": "tools/Call" } }),
        json!({ "action": { "name": "Action::\"tools/call\"" } }),
        json!({ "resource": { "type": "server", "id": "x" } }),
        json!({ "resource": { "type": "prompt", "id": "x" } }),
    ] {
        let decision = embedded.evaluate(&call(unknown.clone()), "r-1").unwrap();
        assert!(!decision.decision, "{unknown}");
        let context = decision.context.expect("a reason");
        let reason = context.json().get("reason").and_then(Json::as_str).unwrap();
        assert!(reason.starts_with("the schema does not know the "), "{reason}");
    }
}

const SCHEMA: &str = r#"
    entity identity = { role?: String, "credit limit"?: decimal, seniority?: Long };
    entity document = { owner: identity, tags?: Set<String>, place?: { city?: String, floor: Long } };
    type Delete = { soft?: Bool };
    action "delete" appliesTo { principal: identity, resource: document, context: { action?: Delete, agent?: String } };
    action "tools/call" appliesTo { principal: identity, resource: tool, context: { amount?: decimal, count?: Long } };
"#;

#[test]
fn properties_are_attributes_and_what_is_not_declared_is_left_out() {
    let policy = r#"permit (principal, action == Action::"delete", resource is document)
        when { resource.owner == principal && context.action.soft };"#;
    let policy = &policy.replace("context.action.soft", "context has action.soft && context.action.soft");
    let (_dir, embedded) = opened(&[("a.cedar", policy), ("schema.cedarschema", SCHEMA)]);
    let document = |owner: Value| json!({ "type": "document", "id": "d", "properties": { "owner": owner } });
    let delete =
        |soft: bool| json!({ "name": "delete", "properties": { "soft": soft, "hard": { "deep": 1.5 } } });
    let ask = |owner, soft| says(&embedded, json!({ "resource": document(owner), "action": delete(soft) }));
    assert!(ask(json!("u-ann"), true));
    assert!(ask(json!({ "type": "identity", "id": "u-ann" }), true));
    assert!(!ask(json!("u-bob"), true));
    assert!(!ask(json!("u-ann"), false));
    // What the context itself says of the action is nobody's property of it.
    let said = json!({ "resource": document(json!("u-ann")), "action": { "name": "delete" },
        "context": { "action": { "soft": true }, "else": null } });
    assert!(!says(&embedded, said));
    for (owner, why) in [
        (json!({ "type": "document", "id": "u-ann" }), AnswerFault::Unfit),
        (json!(["u-ann"]), AnswerFault::Unfit),
        (json!(5), AnswerFault::Unfit),
        (json!(null), AnswerFault::Unfit),
    ] {
        let ask = json!({ "resource": document(owner), "action": delete(true) });
        assert_eq!(fault(&embedded, ask), ("resource.properties.owner".to_owned(), why));
    }
}

#[test]
fn a_number_is_held_exactly_or_the_request_is_a_fault() {
    let policy = r#"permit (principal, action == Action::"tools/call", resource)
        when { context has amount && context.amount.greaterThan(decimal("10000.0")) };
        permit (principal, action, resource) when { context has count && context.count == 5 };"#;
    let policy = &policy.replace("action, resource)", "action == Action::\"tools/call\", resource)");
    let (_dir, embedded) = opened(&[("a.cedar", policy), ("schema.cedarschema", SCHEMA)]);
    let amount = |text: &str| {
        let value: Value = serde_json::from_str(&format!(r#"{{"context":{{"amount":{text}}}}}"#)).unwrap();
        value
    };
    for (text, decision) in
        [("10000.5", true), ("10000", false), ("1e5", true), ("\"10000.0001\"", true), ("-1", false)]
    {
        assert_eq!(says(&embedded, amount(text)), decision, "{text}");
    }
    for (text, why) in [
        ("0.00001", AnswerFault::Number),
        ("1e300", AnswerFault::Number),
        ("\"1e300\"", AnswerFault::Number),
        ("\"10000.5 \\u0000\"", AnswerFault::Unfit),
        ("\"\"", AnswerFault::Unfit),
        ("true", AnswerFault::Unfit),
        ("[1]", AnswerFault::Unfit),
    ] {
        assert_eq!(fault(&embedded, amount(text)), ("context.amount".to_owned(), why), "{text}");
    }
    assert!(says(&embedded, json!({ "context": { "count": 5.0 } })));
    assert_eq!(fault(&embedded, json!({ "context": { "count": 5.5 } })).1, AnswerFault::Number);
    assert_eq!(fault(&embedded, json!({ "context": { "count": "5" } })).1, AnswerFault::Unfit);
    // Null is not there, and so is nothing.
    assert!(!says(&embedded, json!({ "context": { "count": null, "amount": null } })));
}

#[test]
fn sets_and_records_are_read_through_and_bounded() {
    let policy = r#"permit (principal, action == Action::"delete", resource is document)
        when { resource has tags && resource.tags.contains("open") };"#;
    let (_dir, embedded) = opened(&[("a.cedar", policy), ("schema.cedarschema", SCHEMA)]);
    let ask = |more: Value| {
        let mut properties = json!({ "owner": "u-ann" });
        properties.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "action": { "name": "delete" }, "resource": { "type": "document", "id": "d", "properties": properties } })
    };
    assert!(says(&embedded, ask(json!({ "tags": ["a", null, "open"], "place": { "floor": 3 } }))));
    assert!(!says(&embedded, ask(json!({ "tags": [] }))));
    let (place, why) = fault(&embedded, ask(json!({ "tags": ["a", 5] })));
    assert_eq!((place.as_str(), why), ("resource.properties.tags", AnswerFault::Unfit));
    let (place, why) = fault(&embedded, ask(json!({ "place": { "city": "B" } })));
    assert_eq!((place.as_str(), why), ("resource.properties.place.floor", AnswerFault::Unfit));
    let many: Vec<String> = (0..20_000).map(|at| at.to_string()).collect();
    assert_eq!(fault(&embedded, ask(json!({ "tags": many }))).1, AnswerFault::TooMuch);
    assert_eq!(fault(&embedded, ask(json!({ "tags": ["x".repeat(2 << 20)] }))).1, AnswerFault::TooMuch);
}

// COAZ-FW-38, COAZ-MCP-63, COAZ-MCP-83
#[test]
fn of_a_type_with_entities_only_the_file_is_believed() {
    let schema = "entity group; entity identity in [group] = { role?: String };";
    let entities = r#"[
        { "uid": { "type": "identity", "id": "u-ann" }, "attrs": { "role": "admin" }, "parents": [{ "type": "group", "id": "ops" }] },
        { "uid": { "type": "group", "id": "ops" }, "attrs": {}, "parents": [] }
    ]"#;
    let policy = r#"permit (principal in group::"ops", action, resource) when { principal has role && principal.role == "admin" };"#;
    let (_dir, embedded) =
        opened(&[("a.cedar", policy), ("schema.cedarschema", schema), ("entities.json", entities)]);
    let subject = |id: &str, role: &str| json!({ "subject": { "type": "identity", "id": id, "properties": { "role": role } } });
    assert!(says(&embedded, json!({})));
    assert!(says(&embedded, subject("u-ann", "nobody")));
    assert!(!says(&embedded, subject("u-bob", "admin")));
    // Without entities of the type, what the request says is all there is.
    let policy =
        r#"permit (principal, action, resource) when { principal has role && principal.role == "admin" };"#;
    let (_dir, embedded) = opened(&[("a.cedar", policy), ("schema.cedarschema", schema)]);
    assert!(says(&embedded, subject("u-bob", "admin")));
    assert!(!says(&embedded, subject("u-bob", "nobody")));
}

#[test]
fn a_policy_that_fails_is_never_a_yes() {
    let forbid = r#"forbid (principal, action == Action::"tools/call", resource)
        when { context has count && context.count * 2 > 10 };"#;
    let (_dir, embedded) = opened(&[("a.cedar", ALLOW), ("b.cedar", forbid), ("schema.cedarschema", SCHEMA)]);
    assert!(says(&embedded, json!({ "context": { "count": 5 } })));
    assert!(!says(&embedded, json!({ "context": { "count": 6 } })));
    let (place, why) = fault(&embedded, json!({ "context": { "count": i64::MAX } }));
    assert_eq!((place.as_str(), why), ("", AnswerFault::Unevaluated));
}

#[test]
fn a_set_that_cannot_decide_is_refused_with_its_place() {
    let policy = "\npermit (principal, action, resource)\nwhen { context.nothing };";
    for (files, words) in [
        (vec![], vec!["holds no file *.cedar"]),
        (vec![("a.cedar", "// nothing yet")], vec!["holds no file *.cedar"]),
        (
            vec![("a.cedar", "\n\npermit (principal, action resource);")],
            vec!["a.cedar: line 3: ", "unexpected token"],
        ),
        (
            vec![("a.cedar", policy)],
            vec!["a.cedar: line 3: policy `a.cedar#1`: ", "nothing", "schema.cedarschema"],
        ),
        (
            vec![
                ("a.cedar", ALLOW),
                ("b.cedar", "permit (principal == identity::\"x\", action == Action::\"fly\", resource);"),
            ],
            vec!["b.cedar: line 1: policy `b.cedar#1`: ", "fly"],
        ),
        (vec![("a.cedar", "permit (principal == ?principal, action, resource);")], vec!["is a template"]),
        (
            vec![
                ("a.cedar", "@id(\"x\") permit (principal, action, resource);"),
                ("b.cedar", "@id(\"x\") forbid (principal, action, resource);"),
            ],
            vec!["b.cedar: two policies are named `x`"],
        ),
        (
            vec![("a.cedar", ALLOW), ("schema.cedarschema", "\nentity a = { b: };")],
            vec!["schema.cedarschema: line 2: "],
        ),
        (
            vec![("a.cedar", ALLOW), ("schema.cedarschema", "entity a in [b];")],
            vec!["schema.cedarschema: ", "b"],
        ),
        (vec![("a.cedar", ALLOW), ("entities.json", "[}")], vec!["entities.json: ", "correct the entities"]),
        (
            vec![
                ("a.cedar", ALLOW),
                ("entities.json", r#"[{"uid":{"type":"identity","id":"a"},"attrs":{"x":1},"parents":[]}]"#),
            ],
            vec!["entities.json: ", "`x`"],
        ),
        (
            vec![
                ("a.cedar", ALLOW),
                ("entities.json", r#"[{"uid":{"type":"nobody","id":"a"},"attrs":{},"parents":[]}]"#),
            ],
            vec!["entities.json: ", "nobody"],
        ),
    ] {
        let said = refused(&files);
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}

#[test]
fn a_folder_that_is_none_or_too_large_is_refused() {
    let missing = Embedded::open(EmbeddedSettings::new("/nonexistent/policies")).err().unwrap().to_string();
    assert!(missing.contains("/nonexistent/policies: cannot be read"), "{missing}");
    let dir = folder(&[]);
    std::fs::write(dir.path().join("a.cedar"), b"\xff\xfe").unwrap();
    assert!(open(&dir).err().unwrap().to_string().contains("a.cedar: is not UTF-8 text"));
    let much = "// ".to_owned() + &"x".repeat(5 << 20);
    assert!(refused(&[("a.cedar", &much)]).contains("larger than 4 MiB"));
}

#[test]
fn a_change_decides_and_a_broken_one_leaves_the_last_good_set() {
    let (dir, embedded) = opened(&[("a.cedar", ALLOW)]);
    assert!(says(&embedded, json!({})));
    save(dir.path(), "b.cedar", "forbid (principal, action, resource);");
    eventually(&embedded, false);
    save(dir.path(), "b.cedar", "forbid (principal, action, ");
    std::thread::sleep(OFTEN * 10);
    assert!(!says(&embedded, json!({})), "the last good set goes on deciding");
    std::fs::remove_file(dir.path().join("a.cedar")).unwrap();
    std::fs::remove_file(dir.path().join("b.cedar")).unwrap();
    std::thread::sleep(OFTEN * 10);
    assert!(!says(&embedded, json!({})), "an empty folder decides nothing");
    save(dir.path(), "a.cedar", ALLOW);
    eventually(&embedded, true);
    // An editor's own file is no policy.
    save(dir.path(), ".b.cedar", "forbid (principal, action, resource);");
    std::thread::sleep(OFTEN * 10);
    assert!(says(&embedded, json!({})));
}

#[tokio::test]
async fn several_decisions_come_in_their_order() {
    let policy = r#"permit (principal, action, resource == tool::"a");"#;
    let (_dir, embedded) = opened(&[("a.cedar", policy)]);
    let ask = |tools: &[&str], options: Value| {
        let entries: Vec<Value> =
            tools.iter().map(|id| json!({ "resource": { "type": "tool", "id": id } })).collect();
        let body = json!({ "subject": { "type": "identity", "id": "u-ann" }, "action": { "name": "tools/call" },
            "evaluations": entries, "options": options });
        Request::Evaluations(Box::new(sayso_coaz::authzen::Evaluations::read(&Json::from(body)).unwrap()))
    };
    let decided = async |request: Request| {
        let decisions = embedded.decide(&request, "r-1").await.unwrap();
        decisions.each().iter().map(|one| one.decision).collect::<Vec<_>>()
    };
    assert_eq!(decided(ask(&["a", "b", "a"], json!({}))).await, [true, false, true]);
    let first = json!({ "evaluations_semantic": "deny_on_first_deny" });
    assert_eq!(decided(ask(&["a", "b", "a"], first.clone())).await, [true, false]);
    assert!(embedded.decide(&ask(&[], json!({})), "r-1").await.is_err(), "no decision is no yes");
    let all = embedded.decide(&ask(&["a", "a"], first), "r-1").await.unwrap();
    assert!(all.permit().is_ok());
}
