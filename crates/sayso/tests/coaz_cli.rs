//! `sayso coaz` as a subprocess: what an author, or a script of theirs, sees.

#![expect(clippy::unwrap_used, reason = "a test that cannot run the binary has failed")]

use serde_json::{Value, json};
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

const TOKEN: &str = r#"{"sub":"u-ann","client_id":"agent-7","aud":"https://mcp.test/mcp"}"#;

struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        desk.put("token.json", TOKEN);
        desk
    }

    fn put(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    fn run(&self, arguments: &[&str], stdin: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(arguments)
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that does not read it may be gone already.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn explain(&self, message: &str, more: &[&str]) -> (i32, Value) {
        let arguments = ["coaz", "explain", "--request", "-", "--token", "token.json", "--json"];
        let output = self.run(&[&arguments, more].concat(), message);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), 1, "{text} {}", String::from_utf8_lossy(&output.stderr));
        (output.status.code().unwrap(), serde_json::from_str(&text).unwrap())
    }
}

fn tools(context: &Value) -> String {
    let mapping = json!({"evaluation": {
        "subject": {"id": "$params.arguments.?user.orValue('nobody')"}, "action": {"name": "get"},
        "resource": {"type": "r", "id": "$params.arguments.id"}, "context": context}});
    json!({"tools": [{"name": "t", "inputSchema": {"x-authzen-mapping": mapping}}]}).to_string()
}

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{"id":"1"}}}"#;

// COAZ-MCP-76, COAZ-MCP-77
#[test]
fn a_message_is_explained() {
    let desk = Desk::new();
    let list = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
    let (code, said) = desk.explain(list, &["--resource", "https://mcp.test/mcp"]);
    assert_eq!((code, &said["source"], &said["api"]), (0, &json!("default"), &json!("evaluation")));
    assert_eq!(said["request"]["resource"], json!({"type": "mcp_server", "id": "https://mcp.test/mcp"}));
    assert_eq!(said["warnings"], json!([]));
    let (code, said) = desk.explain(list, &["--resource", "https://other.test"]);
    assert_eq!(
        (code, &said["error"]["code"], &said["error"]["path"]),
        (3, &json!(-32602), &json!("resource.id"))
    );
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    assert_eq!(
        desk.explain(ping, &[]),
        (0, json!({"source": "pass_through", "api": null, "request": null, "warnings": []}))
    );
    let (code, said) = desk.explain(r#"{"jsonrpc":"2.0","id":7,"method":"x"}"#, &[]);
    assert_eq!(
        (code, &said["error"]["code"], &said["error"]["category"]),
        (3, &json!(-32001), &json!("denied"))
    );
    let (code, said) = desk.explain("[]", &[]);
    assert_eq!((code, &said["error"]["code"]), (3, &json!(-32600)));
}

// COAZ-MCP-58, COAZ-MCP-82
#[test]
fn a_declared_mapping_is_explained_with_its_warnings() {
    let desk = Desk::new();
    desk.put("tools.json", &tools(&json!({})));
    let (code, said) = desk.explain(CALL, &["--tools", "tools.json"]);
    assert_eq!(
        (code, &said["source"], &said["request"]["subject"]["id"]),
        (0, &json!("declared"), &json!("nobody"))
    );
    let kinds: Vec<&Value> = said["warnings"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    assert_eq!(kinds, ["subject_unverified", "no_agent"]);
    let (code, said) = desk.explain(CALL, &["--tools", "tools.json", "--strict"]);
    assert_eq!((code, &said["error"]["path"]), (3, &json!("subject.id")));
    desk.put("pages.json", &format!("[{}]", tools(&json!({})).replacen('{', r#"{"nextCursor":"2","#, 1)));
    let (code, said) = desk.explain(CALL, &["--tools", "pages.json"]);
    assert_eq!((code, &said["error"]["category"]), (3, &json!("mapping_unavailable")));
}

#[test]
fn words_of_a_server_do_not_act_on_a_terminal() {
    let desk = Desk::new();
    desk.put("tools.json", &tools(&json!({"a\u{1b}[2J\u{202e}": "x\u{1b}[2J"})));
    let arguments = ["coaz", "explain", "--request", "-", "--token", "token.json", "--tools", "tools.json"];
    let output = desk.run(&arguments, CALL);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("u{202e}") && !text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
}

#[test]
fn files_that_are_none_are_a_usage_error() {
    let desk = Desk::new();
    desk.put("list.json", "[1]");
    desk.put("call.json", CALL);
    for arguments in [
        &["explain", "--request", "none.json", "--token", "token.json"][..],
        &["explain", "--request", "call.json", "--token", "list.json"],
        &["explain", "--request", "-", "--token", "-"],
        &["explain", "--request", "call.json", "--token", "token.json", "--tools", "token.json"],
        &["lint", "none.json"],
        &["lint", "token.json"],
        &["lint", "https://mcp.test/mcp"],
    ] {
        let output = desk.run(&[&["coaz"], arguments].concat(), "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && output.stderr.starts_with(b"sayso: "), "{arguments:?}");
    }
}

// COAZ-FW-47, COAZ-MCP-84
#[test]
fn a_listing_is_checked() {
    let desk = Desk::new();
    desk.put("tools.json", &tools(&json!({"agent": "$token.?client_id"})));
    let output = desk.run(&["coaz", "lint", "tools.json", "--json"], "");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(said.pointer("/tools/0/findings/0/path"), Some(&json!("subject.id")));
    desk.put("tools.json", &tools(&json!({"x": "$requst.x"})));
    let output = desk.run(&["coaz", "lint", "tools.json"], "");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(
        text.contains("error: t: context.x: expression '$requst.x' failed: unknown name 'requst'"),
        "{text}"
    );
    assert!(text.ends_with("tools: 1, with a mapping: 1, errors: 1, warnings: 0\n"), "{text}");
}
