//! Every combination of hints, and names of every kind.

use super::*;
use proptest::prelude::*;

// D-29
#[test]
fn read_is_stated_and_everything_else_acts() {
    let said = [None, Some(false), Some(true)];
    let mut read = Vec::new();
    for read_only in said {
        for open_world in said {
            for destructive in said {
                for idempotent in said {
                    let annotations = Annotations { read_only, destructive, idempotent, open_world };
                    if Class::of(&annotations) == Class::Read {
                        read.push((read_only, open_world, destructive));
                    }
                }
            }
        }
    }
    read.dedup();
    assert_eq!(read, [(Some(true), Some(false), None), (Some(true), Some(false), Some(false))]);
}

#[test]
fn scopes_name_tool_and_class() {
    let tool: ToolName = "get_sum".parse().unwrap();
    assert_eq!(scope(&tool, Class::Read).unwrap().as_str(), "get_sum:read");
    assert_eq!(scope(&tool, Class::Act).unwrap().as_str(), "get_sum:call");
    assert!(scope(&"two words".parse().unwrap(), Class::Act).is_err());
    assert!(scope(&"x".repeat(512).parse().unwrap(), Class::Act).is_err());
}

#[test]
fn a_realm_is_a_slug_of_the_servers_name() {
    for (name, slug) in [
        ("alice-vault", Some("alice-vault")),
        ("mcp-servers/everything", Some("mcp-servers-everything")),
        ("  My Server 2.0! ", Some("my-server-2-0")),
        ("Grüße", Some("gr-e")),
        ("日本", None),
        ("", None),
    ] {
        assert_eq!(realm(name).as_ref().map(Realm::as_str), slug, "{name}");
    }
    assert!(realm(&"a-".repeat(200)).unwrap().as_str().len() <= REALM);
}

#[test]
fn a_unit_is_a_slug_of_the_tools_name() {
    let unit = |name: &str| unit(&name.parse().unwrap()).unwrap().to_string();
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
    let id = |name: &str| unit(&name.parse().unwrap()).unwrap();
    let nth = |name: &str, n| nth(&id(name), n).unwrap().to_string();
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
            let unit = unit(&name).unwrap();
            prop_assert!(unit.as_str().len() <= UNIT);
            prop_assert!(unit.as_str().chars().all(|it| it.is_ascii_alphanumeric() || "._-".contains(it)));
        }
    }
}
