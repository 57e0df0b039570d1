//! Names of every kind, and units that can stand.

use super::*;
use proptest::prelude::*;

// D-29
#[test]
fn the_first_units_can_stand() {
    for class in [Class::Read, Class::Act] {
        let scope = vec!["look:read".parse().unwrap()];
        let unit = unit(&"look".parse().unwrap(), "x/look".parse().unwrap(), scope, class).unwrap();
        assert_eq!(unit.check(), Ok(()));
        assert_eq!((unit.ask_me, unit.terms.per_operation), (true, class == Class::Act));
        assert_eq!(unit.terms.enforced.len(), unit.terms.prohibited.len());
    }
}

// D-29
#[test]
fn a_registered_tool_gets_the_unit_it_would_have_had() {
    let harmless = serde_json::json!({ "readOnlyHint": true, "openWorldHint": false });
    let per_operation = |surface: Option<serde_json::Value>| {
        let resource = OwnedResource {
            id: "r/late".parse().unwrap(),
            name: "late".into(),
            kind: "mcp-tool".into(),
            tool: "late".parse().unwrap(),
            resource_scopes: vec!["late:read".parse().unwrap()],
            consequence: None,
            definition: None,
            surface,
        };
        let unit = unit_of(&resource).unwrap();
        assert_eq!((unit.id.as_str(), &unit.resources[0], unit.ask_me), ("late", &resource.id, true));
        unit.terms.per_operation
    };
    assert!(!per_operation(Some(serde_json::json!({ "annotations": harmless }))));
    for said in ["null", "[]", "{}", r#"{"annotations":"x"}"#, r#"{"annotations":{"readOnlyHint":true}}"#] {
        assert!(per_operation(Some(serde_json::from_str(said).unwrap())), "{said}");
    }
    assert!(per_operation(None));
}

#[test]
fn a_unit_is_a_slug_of_the_tools_name() {
    let unit = |name: &str| id(&name.parse().unwrap()).unwrap().to_string();
    for name in ["get_sum", "a.b-c_D9", &"x".repeat(UNIT)] {
        assert_eq!(unit(name), name);
    }
    for name in ["..", ".", "-x", "a/b", "a b", "日本", &"x".repeat(UNIT + 1)] {
        let made = unit(name);
        assert!(made.starts_with(|first: char| first.is_ascii_alphanumeric()), "{made}");
        assert_ne!(made, name);
    }
    assert_ne!(unit("a/b"), unit("a b"));
}

// D-29
#[test]
fn a_taken_unit_id_is_numbered_within_its_bounds() {
    let nth = |name: &str, n| nth(&id(&name.parse().unwrap()).unwrap(), n).unwrap().to_string();
    assert_eq!(nth("read_note", 1), "read_note");
    assert_eq!(nth("read_note", 2), "read_note-2");
    let long = "x".repeat(UNIT);
    assert_eq!(nth(&long, 10).len(), UNIT);
    assert!(nth(&long, 10).ends_with("x-10"));
}

proptest! {
    #[test]
    fn units_are_bounded_and_plain(name in "\\PC{1,512}") {
        if let Ok(name) = ToolName::parse(name) {
            let unit = id(&name).unwrap();
            prop_assert!(unit.as_str().len() <= UNIT);
            prop_assert!(unit.as_str().chars().all(|it| it.is_ascii_alphanumeric() || "._-".contains(it)));
        }
    }
}
