//! What a file of entities was believed about, and what becomes of that when the file changes or goes missing.

use super::*;

const ADMIN: &str =
    r#"permit (principal, action, resource) when { principal has role && principal.role == "admin" };"#;

// COAZ-FW-38, COAZ-MCP-63: a file that went missing makes no stranger's word true.
#[test]
fn what_a_file_was_believed_about_no_request_is_believed_about_later() {
    let schema = "entity group; entity identity in [group] = { role?: String };";
    let entity = |kind: &str, id: &str, attributes: &str| {
        format!(
            r#"{{ "uid": {{ "type": "{kind}", "id": "{id}" }}, "attrs": {{ {attributes} }}, "parents": [] }}"#
        )
    };
    let root = entity("identity", "u-root", r#""role": "admin""#);
    let group = entity("group", "ops", "");
    let both = format!("[{root},{group}]");
    let files = [("a.cedar", ADMIN), ("schema.cedarschema", schema), ("entities.json", both.as_str())];
    let (dir, embedded) = opened(&files);
    let eve = json!({ "subject": { "type": "identity", "id": "eve", "properties": { "role": "admin" } } });
    let stays = |embedded: &Embedded| {
        std::thread::sleep(OFTEN * 10);
        assert!(!says(embedded, eve.clone()), "a request's own word");
        assert!(says(embedded, json!({ "subject": { "type": "identity", "id": "u-root" } })), "the last set");
    };
    stays(&embedded);
    save(dir.path(), "entities.json", "[]");
    stays(&embedded);
    save(dir.path(), "entities.json", &format!("[{group}]"));
    stays(&embedded);
    std::fs::remove_file(dir.path().join("entities.json")).unwrap();
    stays(&embedded);
    // Another entity of the type is as good, and so is another set of policies.
    save(dir.path(), "a.cedar", ADMIN);
    save(dir.path(), "schema.cedarschema", schema);
    save(
        dir.path(),
        "entities.json",
        &format!("[{group},{}]", entity("identity", "u-ann", r#""role": "admin""#)),
    );
    eventually(&embedded, true);
    assert!(!says(&embedded, eve.clone()));
    assert!(!says(&embedded, json!({ "subject": { "type": "identity", "id": "u-root" } })));
    // Whoever starts again without the file says so.
    drop(embedded);
    std::fs::remove_file(dir.path().join("entities.json")).unwrap();
    assert!(says(&open(&dir).unwrap(), eve.clone()));
    save(dir.path(), "entities.json", "[]");
    let said = open(&dir).err().unwrap().to_string();
    assert!(said.contains("entities.json: holds no entity") && said.contains("delete the file"), "{said}");
}

// COAZ-FW-38
#[test]
fn a_type_that_goes_and_comes_back_is_not_believed_either() {
    let schema =
        "entity clerk = { role?: String }; action \"do\" appliesTo { principal: clerk, resource: tool };";
    let entities =
        r#"[{ "uid": { "type": "clerk", "id": "c" }, "attrs": { "role": "admin" }, "parents": [] }]"#;
    let policy = ADMIN.replace("action,", "action == Action::\"do\",");
    let files = [
        ("a.cedar", policy.as_str()),
        ("b.cedar", ALLOW),
        ("schema.cedarschema", schema),
        ("entities.json", entities),
    ];
    let (dir, embedded) = opened(&files);
    let eve = json!({ "subject": { "type": "clerk", "id": "eve", "properties": { "role": "admin" } }, "action": { "name": "do" } });
    save(dir.path(), "b.cedar", "forbid (principal == clerk::\"nobody\", action, resource);");
    eventually(&embedded, false);
    assert!(!says(&embedded, eve.clone()));
    // The type goes with its entities and its policies, and nothing is asked about it.
    std::fs::remove_file(dir.path().join("entities.json")).unwrap();
    std::fs::remove_file(dir.path().join("schema.cedarschema")).unwrap();
    save(dir.path(), "a.cedar", ALLOW);
    save(dir.path(), "b.cedar", ALLOW);
    eventually(&embedded, true);
    assert!(!says(&embedded, eve.clone()));
    save(dir.path(), "schema.cedarschema", schema);
    save(dir.path(), "a.cedar", &policy);
    std::fs::remove_file(dir.path().join("b.cedar")).unwrap();
    std::thread::sleep(OFTEN * 10);
    assert!(!says(&embedded, eve.clone()), "it is refused");
    assert!(says(&embedded, json!({})), "and the last set goes on deciding");
}
