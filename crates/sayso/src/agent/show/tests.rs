//! What a stranger writes is shown whole and cannot act on the terminal.

use super::*;
use sayso_protocol::payload::terms::{Proffer, Terms};

fn proffer() -> Proffer {
    let terms = Terms {
        template_id: "a/trading/v1".parse().unwrap(),
        purpose: "trade\u{1b}[2J\u{202e}\nAgreed: yes".into(),
        scope: vec!["trades:execute".parse().unwrap()],
        expires_in: 900,
        prohibited: vec!["resale".into(), "reuse".into()],
        proffered_by: "https://as.example.test".into(),
        per_operation: true,
        enforced: [("reuse".to_owned(), "single-use".to_owned())].into(),
    };
    Proffer {
        terms,
        terms_uri: "https://as.example.test/terms/a/trading/v1".into(),
        nonce: "n".into(),
        family: "f".parse().unwrap(),
        resource_id: "vault/execute_trade".parse().unwrap(),
    }
}

#[test]
fn terms_are_whole_and_plain() {
    let tool = "execute_trade".parse().unwrap();
    let arguments = json!({"symbol": "V\u{200b}TI", "quantity": 3.0, "note": "x".repeat(5000)});
    let text = terms(&Ask {
        resource: "https://gw.example.test/mcp",
        authority: "https://as.example.test",
        proffer: &proffer(),
        tool: &tool,
        arguments: arguments.as_object().unwrap(),
    });
    for part in [
        "a/trading/v1",
        "https://as.example.test/terms/a/trading/v1",
        "15 min",
        "resale",
        "reuse (upheld by the resource: single-use)",
        "\"quantity\":3,",
        "V\\u{200b}TI",
        "trade\\u{1b}[2J\\u{202e}\\u{a}Agreed: yes",
        &"x".repeat(5000),
    ] {
        assert!(text.contains(part), "{part:.60} is not in {text:.2000}");
    }
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
    assert!(!text.lines().any(|line| line.starts_with("Agreed")), "no line of theirs poses as one of ours");
}

#[test]
fn the_command_to_go_on_can_be_pasted() {
    let mut call = Call {
        resource_url: "http://127.0.0.1:8441/mcp".into(),
        tool: "it's".into(),
        args: r#"{"a":"b c"}"#.into(),
        key: None,
        presenting: Default::default(),
        accept_terms: false,
        reason: None,
        wait: 0,
    };
    let expected = r#"sayso agent call http://127.0.0.1:8441/mcp 'it'\''s' --args '{"a":"b c"}'"#;
    assert_eq!(again(&call, None), expected);
    call.accept_terms = true;
    call.key = Some("a key.pem".into());
    let whole = again(&call, Some(Path::new("of mine")));
    assert_eq!(whole, format!("{expected} --key 'a key.pem' --accept-terms --config-dir 'of mine'"));
}

#[test]
fn json_is_one_line() {
    assert_eq!(one_line("{\n  \"a\": \"b\\n\"\r\n}"), "{   \"a\": \"b\\n\"  }");
    assert_eq!(plain_lines("a\u{1b}\nb"), "a\\u{1b}\nb");
}
