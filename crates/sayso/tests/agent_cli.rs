//! `sayso agent` as a subprocess, against `sayso up` and its owner: what a script sees of each ending.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot run the binary has failed"
)]

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const TRADE: &str = r#"{"symbol":"VTI","side":"buy","quantity":3}"#;

struct House {
    dir: tempfile::TempDir,
    up: Child,
    resource: String,
}

impl House {
    fn start() -> House {
        let dir = tempfile::tempdir().unwrap();
        let mut up = sayso(dir.path(), &["up", "--data", "data", "--authority", "127.0.0.1:0"])
            .args(["--gateway", "127.0.0.1:0", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(up.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        House { resource: ready["resource"].as_str().unwrap().to_owned(), dir, up }
    }

    fn run(&self, words: &[&str]) -> Output {
        sayso(self.dir.path(), words).stdin(Stdio::null()).output().unwrap()
    }

    fn call(&self, tool: &str, words: &[&str]) -> Output {
        self.run(&[&["agent", "call", &self.resource, tool], words].concat())
    }

    fn decide(&self, word: &str) {
        let pending = self.run(&["owner", "--data", "data", "pending", "--json"]);
        let pending: Value = serde_json::from_slice(&pending.stdout).unwrap();
        let family = pending[0]["family"].as_str().unwrap().to_owned();
        assert!(self.run(&["owner", "--data", "data", word, &family]).status.success());
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = self.up.kill();
        let _ = self.up.wait();
    }
}

fn sayso(dir: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.current_dir(dir).args(words).env("HOME", dir).env_remove("XDG_CONFIG_HOME");
    command.env("SAYSO_CONFIG_DIR", dir.join("agent"));
    command
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn every_ending_has_its_exit_code() {
    let house = House::start();
    let unasked = house.call("get_positions", &[]);
    assert_eq!(code(&unasked), 3, "{}", said(&unasked));
    assert!(said(&unasked).contains("--accept-terms") && said(&unasked).contains("retention-after-review"));
    assert!(unasked.stdout.is_empty());

    let waiting = house.call("get_positions", &["--accept-terms", "--wait", "0"]);
    assert_eq!(code(&waiting), 5, "{}", said(&waiting));
    assert!(said(&waiting).contains(&format!("sayso agent call {} get_positions", house.resource)));
    house.decide("approve");
    let resumed = house.call("get_positions", &["--wait", "20", "--json"]);
    assert_eq!(code(&resumed), 0, "{}", said(&resumed));
    let result: Value = serde_json::from_slice(&resumed.stdout).unwrap();
    assert!(result["structuredContent"]["accounts"].is_array());
    assert_eq!(resumed.stdout.iter().filter(|byte| **byte == b'\n').count(), 1);

    let reused = house.call("get_positions", &[]);
    assert_eq!(code(&reused), 0);
    assert!(said(&reused).contains("grant from before"));
    assert!(serde_json::from_slice::<Value>(&reused.stdout).unwrap()["accounts"].is_array());

    let asked = house.call("execute_trade", &["--args", TRADE, "--accept-terms", "--wait", "0"]);
    assert_eq!(code(&asked), 5);
    house.decide("deny");
    let denied = house.call("execute_trade", &["--args", TRADE, "--wait", "20"]);
    assert_eq!(code(&denied), 4, "{}", said(&denied));

    assert_eq!(code(&house.call("no_such_tool", &[])), 6);
    assert_eq!(code(&house.call("get_positions", &["--args", "[]"])), 2);
    assert_eq!(code(&house.run(&["agent", "call", "http://127.0.0.1:1/mcp", "x"])), 7);

    let receipts = house.run(&["agent", "receipts", "--json"]);
    assert_eq!(serde_json::from_slice::<Value>(&receipts.stdout).unwrap().as_array().unwrap().len(), 1);
    let grants = house.run(&["agent", "grants", "--json"]);
    let held: Value = serde_json::from_slice(&grants.stdout).unwrap();
    assert_eq!((held.as_array().unwrap().len(), held[0].get("token")), (1, None));
    let who: Value = serde_json::from_slice(&house.run(&["agent", "id", "--json"]).stdout).unwrap();
    let handle = who[0]["handle"].as_str().unwrap();
    assert!(house.run(&["owner", "--data", "data", "revoke", handle]).status.success());
    let revoked = house.call("get_positions", &[]);
    assert_eq!(code(&revoked), 6);
    assert!(said(&revoked).contains("access_revoked"));
}

#[test]
fn arguments_come_from_stdin_and_a_failing_tool_is_told_apart() {
    let house = House::start();
    let args = r#"{"account":"no-such-account"}"#;
    let call = ["agent", "call", &house.resource, "get_transactions", "--args"];
    let accept = ["--accept-terms", "--wait", "0"];
    assert_eq!(code(&house.run(&[&call[..], &[args], &accept[..]].concat())), 5);
    house.decide("approve");
    let mut child = sayso(house.dir.path(), &[&call[..], &["-", "--wait", "20"]].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(args.as_bytes()).unwrap();
    let failed = child.wait_with_output().unwrap();
    assert_eq!(code(&failed), 1, "{}", said(&failed));
}

#[test]
fn the_help_teaches() {
    let dir = tempfile::tempdir().unwrap();
    let help = sayso(dir.path(), &["agent", "call", "--help"]).output().unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    for part in
        ["Exit codes:", "still waiting", "--accept-terms", "--wait <SECONDS>", "terms are shown in full"]
    {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(part), "{part} is not in\n{text}");
    }
}
