//! The gateway before a child process: what reaches it, what comes back, and what is left when it dies.

use super::cast::{Canary, House, RESULT, TRADE};
use super::wire::{Request, Response};
use crate::{StdioCommand, Upstream};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

mod broken;
mod eras;
mod ids;
mod sessions;

/// The interpreter itself: a wrapper around it would add to the environment.
fn python() -> &'static str {
    static PYTHON: OnceLock<String> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let told =
            std::process::Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        String::from_utf8(told.unwrap().stdout).unwrap().trim().to_owned()
    })
}

/// A child with habits, and where it writes what it heard.
pub(super) struct Fixture {
    folder: TempDir,
    pub(super) command: StdioCommand,
}

impl Fixture {
    pub(super) fn with(options: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/server.py");
        let at = folder.path().display();
        let line = format!("{} {script} --log {at}/log --pids {at}/pids {options}", python());
        let environment = |name: &str| match name {
            "CANARY" => Some(OsString::from("sings")),
            _ => std::env::var_os(name),
        };
        let command = StdioCommand::parse(&line, &["CANARY".to_owned()], environment).unwrap();
        Self { folder, command }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Every line it was sent.
    fn heard(&self) -> Vec<String> {
        let log = std::fs::read(self.path("log")).unwrap_or_default();
        String::from_utf8(log).unwrap().lines().map(str::to_owned).collect()
    }

    fn heard_calls(&self) -> Vec<String> {
        self.heard().into_iter().filter(|line| line.contains("tools/call")).collect()
    }

    async fn until_heard(&self, what: &str) -> String {
        for _ in 0..200 {
            if let Some(line) = self.heard().into_iter().find(|line| line.contains(what)) {
                return line;
            }
            sleep(Duration::from_millis(25)).await;
        }
        panic!("{what} was not heard");
    }

    fn pids(&self) -> Vec<u32> {
        let pids = std::fs::read_to_string(self.path("pids")).unwrap_or_default();
        pids.lines().map(|pid| pid.parse().unwrap()).collect()
    }

    pub(super) async fn house(&self) -> House {
        House::before(Arc::new(Canary::default()), self.command.clone()).await
    }
}

fn is_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    status.is_ok_and(|status| !status.contains(") Z "))
}

async fn until_gone(pids: &[u32]) {
    assert!(!pids.is_empty());
    for _ in 0..200 {
        if !pids.iter().any(|pid| is_alive(*pid)) {
            return;
        }
        sleep(Duration::from_millis(25)).await;
    }
    panic!("still there: {pids:?}");
}

/// A call of the reusable tool.
fn read(arguments: &Value) -> Request {
    Request::call("get_positions", &arguments.to_string()).signed("reader")
}

fn habit(name: &str) -> Request {
    read(&json!({ "habit": name }))
}

fn trade() -> Request {
    Request::call("execute_trade", TRADE)
}

fn legacy(method: &str, params: &Value) -> Request {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string();
    Request::post(method, None, body).without("MCP-Protocol-Version").without("Mcp-Method")
}

/// The text a tool answered with.
fn said(response: &Response) -> String {
    assert_eq!(response.status, 200, "{response:?}");
    response.json()["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{response:?}"))
        .to_owned()
}

// D-10, D-31, MCP-05, CORE-66
#[tokio::test]
async fn what_is_forwarded_is_what_was_judged_but_for_its_id() {
    let fixture = Fixture::with("");
    let house = fixture.house().await;
    let odd = "{ \"quantity\" : 3.0,\n\t\"symbol\":\"\\u0056TI\" }";
    for request in [Request::list(), read(&json!({})), Request::call("execute_trade", odd).signed("trade-1")]
    {
        let response = house.send(&request).await;
        assert_eq!(response.status, 200, "{response:?}");
        let sent = String::from_utf8(request.body.clone()).unwrap();
        let (id, _) = sent.split_once(r#","method""#).unwrap();
        let rest = sent.strip_prefix(id).unwrap().replace('\n', " ");
        let heard = fixture.heard().pop().unwrap();
        let (number, tail) = heard.split_once(r#","method""#).unwrap();
        assert_eq!(format!(r#","method"{tail}"#), rest);
        assert!(number.strip_prefix(r#"{"jsonrpc":"2.0","id":"#).unwrap().parse::<u64>().is_ok(), "{number}");
        assert!(response.json()["id"] == serde_json::from_slice::<Value>(&request.body).unwrap()["id"]);
    }
    let all = fixture.heard().concat();
    assert!(!all.contains("trade-1") && !all.contains("PoP") && !all.contains("signature"));
    assert_eq!(*house.authority.spent.lock().unwrap(), ["trade-1"]);
}

#[tokio::test]
async fn nothing_unapproved_reaches_the_child() {
    let fixture = Fixture::with("");
    let house = fixture.house().await;
    assert_eq!(house.send(&Request::list()).await.status, 200);
    let before = fixture.heard().len();
    for request in [
        Request::call("get_positions", "{}"),
        trade().signed("reader"),
        Request::call("execute_trade", r#"{"symbol":"VTI","quantity":4}"#).signed("trade-1"),
        Request::call("echo", "{}").signed("reader"),
        Request::call("get_positions", "{}").shown("reader"),
    ] {
        assert!(house.send(&request).await.status >= 400);
    }
    assert_eq!(fixture.heard().len(), before);
    house.assert_untouched("unapproved");
}

// D-31
#[tokio::test]
async fn the_environment_is_cleared() {
    let fixture = Fixture::with("");
    let house = fixture.house().await;
    let environment: Value = serde_json::from_str(&said(&house.send(&habit("environment")).await)).unwrap();
    let mut names: Vec<&str> = environment.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    // The interpreter sets LC_CTYPE itself where no locale is set.
    names.retain(|name| *name != "LC_CTYPE");
    let allowed = ["CANARY", "HOME", "LANG", "PATH", "TERM"];
    assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
    assert!(names.contains(&"PATH") && environment["CANARY"] == "sings");
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "there is something to clear");
}

#[tokio::test]
async fn progress_streams_ahead_of_the_answer() {
    let fixture = Fixture::with("");
    let house = fixture.house().await;
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":"\u0074 1"}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"a\/b","method":"tools/call","params":{{"name":"get_positions","arguments":{{"habit":"progress"}},"_meta":{meta}}}}}"#
    );
    let request = || Request::post("tools/call", Some("get_positions"), body.clone());
    let response = house.send(&request().signed("reader")).await;
    assert_eq!((response.status, response.all("content-type")), (200, vec!["text/event-stream"]));
    let text = String::from_utf8(response.body).unwrap();
    let events: Vec<&str> = text.split("\n\n").filter(|event| !event.is_empty()).collect();
    assert_eq!(events.len(), 4, "{text}");
    for note in &events[..3] {
        assert!(note.contains(r#""progressToken": "\u0074 1""#), "{note}");
    }
    assert!(events[3].contains(r#""id": "a\/b""#) && events[3].contains("result"), "{text}");
    // A client that takes no events gets the one answer.
    let plain = request().but("Accept", "application/json").signed("reader");
    let response = house.send(&plain).await;
    assert_eq!((response.status, response.all("content-type")), (200, vec!["application/json"]));
    assert_eq!(response.json()["id"], "a/b");
}

#[tokio::test]
async fn garbage_and_gossip_reach_nobody() {
    let fixture = Fixture::with("");
    let house = fixture.house().await;
    for _ in 0..2 {
        let text = said(&house.send(&habit("garbage")).await);
        assert!(text.contains("garbage"), "{text}");
    }
    let text = said(&house.send(&habit("twice")).await);
    assert_eq!(text, "first");
    assert!(said(&house.send(&habit("stderr")).await).contains("stderr"));
    // A request of the server's is refused for a client that declared nothing, and a ping is answered.
    let reply = said(&house.send(&habit("ask")).await);
    assert!(reply.contains("-32601"), "{reply}");
    let reply = said(&house.send(&read(&json!({ "habit": "ask", "method": "ping" }))).await);
    assert!(reply.contains("result"), "{reply}");
    assert_ne!(RESULT, reply);
}

/// Sends a request and hangs up when the child has it.
async fn hang_up(house: &House, fixture: &Fixture, request: &Request, what: &str) {
    let mut stream = TcpStream::connect(house.gateway).await.unwrap();
    stream.write_all(&request.bytes()).await.unwrap();
    fixture.until_heard(what).await;
    drop(stream);
}

#[tokio::test]
async fn a_modern_client_that_hangs_up_cancels_its_call() {
    let fixture = Fixture::with("");
    let house = fixture.house().await;
    hang_up(&house, &fixture, &habit("hang"), "\"hang\"").await;
    let cancelled: Value =
        serde_json::from_str(&fixture.until_heard("notifications/cancelled").await).unwrap();
    let call: Value = serde_json::from_str(&fixture.heard_calls()[0]).unwrap();
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
    assert!(said(&house.send(&habit("echo")).await).contains("echo"));
}

#[tokio::test]
async fn hanging_up_on_a_stream_cancels_as_well() {
    let fixture = Fixture::with("");
    let house = fixture.house().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 5,
    });
    let params =
        json!({ "name": "get_positions", "arguments": { "habit": "progress_then_hang" }, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let request = Request::post("tools/call", Some("get_positions"), body).signed("reader");
    let mut stream = TcpStream::connect(house.gateway).await.unwrap();
    stream.write_all(&request.bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !seen.windows(5).any(|window| window == b"data:") {
        let mut piece = [0; 1024];
        let read = timeout(Duration::from_secs(5), stream.read(&mut piece)).await.unwrap().unwrap();
        assert!(read > 0);
        seen.extend_from_slice(&piece[..read]);
    }
    drop(stream);
    fixture.until_heard("notifications/cancelled").await;
}

#[tokio::test]
async fn an_older_client_that_hangs_up_cancels_nothing() {
    let fixture = Fixture::with("--eras legacy");
    let house = fixture.house().await;
    let params = json!({ "name": "get_positions", "arguments": { "habit": "hang" } });
    hang_up(&house, &fixture, &legacy("tools/call", &params).signed("reader"), "\"hang\"").await;
    sleep(Duration::from_millis(300)).await;
    assert!(!fixture.heard().concat().contains("cancelled"));
}

#[tokio::test]
async fn a_changed_list_is_counted() {
    let fixture = Fixture::with("");
    let upstream = Upstream::open(fixture.command.clone()).unwrap();
    let mut changes = upstream.changes();
    let house = House::before(Arc::new(Canary::default()), upstream).await;
    assert!(said(&house.send(&habit("changed")).await).contains("changed"));
    timeout(Duration::from_secs(5), changes.changed()).await.unwrap().unwrap();
    assert_eq!(*changes.borrow(), 1);
}
