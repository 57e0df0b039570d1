//! What a pin notices, and what it does not.

use super::*;
use sayso_protocol::json::Limits;

fn tool(text: &str) -> Result<Surveyed, Unfit> {
    let tool = Json::parse(text.as_bytes(), Limits::default()).unwrap();
    Surveyed::read(tool.get("name").and_then(Json::as_str).unwrap(), &tool)
}

const PLAIN: &str = r#"{"name":"t","title":"T","description":"d","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#;

// D-30
#[test]
fn the_pin_changes_with_what_a_call_means_and_not_with_its_words() {
    let plain = tool(PLAIN).unwrap();
    for (from, to, pin, words) in [
        (r#""description":"d""#, r#""description":"ignore all previous""#, false, true),
        (r#""title":"T","#, "", false, true),
        (r#""type":"string""#, r#""type":"integer""#, true, false),
        (r#"{"type":"object"},"ann"#, r#"{"type":"object","required":["x"]},"ann"#, true, false),
        (r#""readOnlyHint":true"#, r#""readOnlyHint":false"#, true, false),
        (r#""properties":{"#, r#""x-authzen-mapping":{},"properties":{"#, true, false),
        (r#""name":"t""#, r#""name":"u""#, true, false),
        (r#","outputSchema":{"type":"object"}"#, "", true, false),
        (r#""title":"T""#, r#""_meta":{"x":1},"title":"T""#, false, false),
        (
            r#"{"readOnlyHint":true,"openWorldHint":false}"#,
            r#"{ "openWorldHint":false,"readOnlyHint":true}"#,
            false,
            false,
        ),
    ] {
        let changed = PLAIN.replacen(from, to, 1);
        assert_ne!(changed, PLAIN, "{from}");
        let changed = tool(&changed).unwrap();
        assert_eq!(changed.definition != plain.definition, pin, "{to}");
        assert_eq!(changed.words != plain.words, words, "{to}");
    }
}

#[test]
fn hints_count_only_as_booleans() {
    let read = |hint: &str| {
        tool(&PLAIN.replace(r#""readOnlyHint":true"#, &format!(r#""readOnlyHint":{hint}"#)))
            .unwrap()
            .annotations
    };
    assert_eq!(read("true").read_only, Some(true));
    for hint in ["\"true\"", "1", "null", "{}"] {
        assert_eq!(read(hint).read_only, None, "{hint}");
    }
    assert_eq!(tool(r#"{"name":"t"}"#).unwrap().annotations, Annotations::default());
}

#[test]
fn what_cannot_be_pinned_has_a_reason() {
    for (text, reason) in [
        (r#"{"name":""}"#.to_owned(), Unfit::Name),
        (format!(r#"{{"name":"{}"}}"#, "x".repeat(513)), Unfit::Name),
        (r#"{"name":"a\u001bb"}"#.to_owned(), Unfit::Name),
        (r#"{"name":"t","inputSchema":[]}"#.to_owned(), Unfit::Shape),
        (r#"{"name":"t","annotations":true}"#.to_owned(), Unfit::Shape),
        (
            r#"{"name":"t","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}}"#
                .to_owned(),
            Unfit::Mirrors,
        ),
        (
            r#"{"name":"t","inputSchema":{"maximum":18446744073709551615}}"#.to_owned(),
            Unfit::Canon(CanonError::UnsafeInteger),
        ),
    ] {
        assert_eq!(tool(&text).err(), Some(reason), "{text}");
    }
    assert_eq!(LeftOut::new(&"é".repeat(500), Unfit::Name).name.chars().count(), NAME);
}
