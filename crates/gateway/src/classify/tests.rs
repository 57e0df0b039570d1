//! Names of every kind.

use super::*;

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
