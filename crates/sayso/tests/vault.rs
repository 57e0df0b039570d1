//! The demo vault over HTTP, spoken to byte by byte: modern and older clients are served on one endpoint without
//! sessions, a trade is durable and numbered, and a call that is refused leaves the file as it was.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation fails the test"
)]

use std::net::SocketAddr;
use std::path::Path;

use sayso::vault::{Vault, serve};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const MODERN: &str = "2026-07-28";

struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{} {}", self.status, self.body))
    }

    fn result(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.json()["result"].clone()
    }
}

impl Running {
    async fn start(dir: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let server = tokio::spawn(serve(Vault::open(dir).unwrap(), listener, async {
            let _ = stopped.await;
        }));
        Self { address, stop, server }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.server.await.unwrap();
    }

    async fn exchange(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut request =
            format!("{method} /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let head = head.to_lowercase();
        assert!(!head.contains("transfer-encoding"), "{head}");
        Reply { status: head[9..12].parse().unwrap(), head, body: body.to_owned() }
    }

    async fn post(&self, more: &[(&str, &str)], message: &Value) -> Reply {
        let host = self.address.to_string();
        let mut headers = vec![
            ("Host", host.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        headers.extend_from_slice(more);
        self.exchange("POST", &headers, &message.to_string()).await
    }

    async fn modern(&self, method: &str, mut params: Value) -> Reply {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" }
        });
        let name = params["name"].as_str().map(ToOwned::to_owned);
        let mut headers = vec![("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
        headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
        self.post(&headers, &json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })).await
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.modern("tools/call", json!({ "name": tool, "arguments": arguments })).await.result()
    }
}

fn stored(dir: &TempDir) -> Vec<u8> {
    std::fs::read(dir.path().join("vault.json")).unwrap()
}

#[tokio::test]
async fn a_modern_client_discovers_lists_and_calls() {
    let dir = tempdir().unwrap();
    let vault = Running::start(dir.path()).await;

    let found = vault.modern("server/discover", json!({})).await;
    assert!(!found.head.contains("mcp-session-id"));
    let found = found.result();
    assert_eq!(found["resultType"], "complete");
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!(MODERN)));
    assert_eq!(found["capabilities"], json!({ "tools": {} }));
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "alice-vault");

    let listed = vault.modern("tools/list", json!({})).await.result();
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["get_positions", "get_transactions", "execute_trade"]);
    assert_eq!(listed["tools"][0]["annotations"]["readOnlyHint"], true);
    assert_eq!(listed["tools"][0]["annotations"]["openWorldHint"], false);
    assert_eq!(listed["tools"][0]["annotations"]["destructiveHint"], false);
    assert_eq!(listed["tools"][2]["annotations"]["destructiveHint"], true);
    assert_eq!(listed["tools"][2]["inputSchema"]["required"], json!(["symbol", "side", "quantity"]));

    let positions = vault.call("get_positions", json!({})).await;
    assert_eq!(positions["isError"], false);
    assert_eq!(positions["resultType"], "complete");
    let account = &positions["structuredContent"]["accounts"][0];
    assert_eq!(account["account"], "brokerage-main");
    assert_eq!(account["positions"][0], json!({ "symbol": "AAPL", "quantity": 40 }));
    let text = positions["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), positions["structuredContent"]);
    vault.stop().await;
}

#[tokio::test]
async fn an_older_client_is_served_without_a_session() {
    let dir = tempdir().unwrap();
    let vault = Running::start(dir.path()).await;
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = json!({
            "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" }
        });
        let begin = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client });
        let begun = vault.post(&[], &begin).await;
        assert!(!begun.head.contains("mcp-session-id"), "{}", begun.head);
        assert_eq!(begun.result()["protocolVersion"], version);
        assert_eq!(begun.result()["serverInfo"]["name"], "alice-vault");

        let headers = [("MCP-Protocol-Version", version)];
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(vault.post(&headers, &told).await.status, 202);
        let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
        let listed = vault.post(&headers, &list).await.result();
        assert_eq!(listed["tools"].as_array().unwrap().len(), 3);
        let call = json!({ "name": "get_transactions", "arguments": { "account": "retirement-ira" } });
        let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call });
        let called = vault.post(&headers, &call).await.result();
        assert_eq!(called["structuredContent"]["transactions"][0]["sequence"], 2);
    }
    vault.stop().await;
}

#[tokio::test]
async fn a_trade_is_numbered_and_survives_reopening() {
    let dir = tempdir().unwrap();
    let vault = Running::start(dir.path()).await;
    let order = json!({ "symbol": "VTI", "side": "buy", "quantity": 5 });
    let first = vault.call("execute_trade", order.clone()).await["structuredContent"].clone();
    let second = vault.call("execute_trade", order).await["structuredContent"].clone();
    assert_eq!((&first["trade"]["sequence"], &second["trade"]["sequence"]), (&json!(7), &json!(8)));
    vault.stop().await;

    let vault = Running::start(dir.path()).await;
    let positions = vault.call("get_positions", json!({})).await;
    let main = &positions["structuredContent"]["accounts"][0]["positions"];
    assert!(main.as_array().unwrap().contains(&json!({ "symbol": "VTI", "quantity": 135 })), "{main}");
    let listed = vault.call("get_transactions", json!({ "account": "brokerage-main" })).await;
    let transactions = listed["structuredContent"]["transactions"].as_array().unwrap().clone();
    assert_eq!(transactions[transactions.len() - 2..], [first["trade"].clone(), second["trade"].clone()]);
    vault.stop().await;
}

#[tokio::test]
async fn a_call_that_cannot_be_done_is_a_tool_error_and_changes_nothing() {
    let dir = tempdir().unwrap();
    let vault = Running::start(dir.path()).await;
    let before = stored(&dir);
    for (tool, arguments) in [
        ("get_transactions", json!({ "account": "savings" })),
        ("get_transactions", json!({})),
        ("get_positions", json!({ "account": "brokerage-main" })),
        ("execute_trade", json!({ "symbol": "AAPL", "side": "sell", "quantity": 41 })),
        ("execute_trade", json!({ "symbol": "AAPL", "side": "sell", "quantity": -1 })),
        ("execute_trade", json!({ "symbol": "AAPL", "side": "give", "quantity": 1 })),
    ] {
        let refused = vault.call(tool, arguments.clone()).await;
        assert_eq!(refused["isError"], true, "{tool} {arguments}");
        assert_eq!(refused["structuredContent"], Value::Null);
        assert!(!refused["content"][0]["text"].as_str().unwrap().contains("40"), "says what is held");
    }
    let unknown = vault.modern("tools/call", json!({ "name": "get_everything", "arguments": {} })).await;
    assert_eq!(unknown.json()["error"]["code"], -32602);
    assert_eq!(stored(&dir), before);
    vault.stop().await;
}

#[tokio::test]
async fn what_is_not_a_call_from_a_local_client_is_turned_away() {
    let dir = tempdir().unwrap();
    let vault = Running::start(dir.path()).await;
    let before = stored(&dir);
    let host = vault.address.to_string();
    let json_body = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let trade =
        json!({ "name": "execute_trade", "arguments": { "symbol": "VTI", "side": "buy", "quantity": 1 } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": trade });

    let rebound = [json_body.as_slice(), &[("Host", "evil.example")]].concat();
    assert_eq!(vault.exchange("POST", &rebound, &call.to_string()).await.status, 403);
    assert_eq!(vault.post(&[("Origin", "https://evil.example")], &call).await.status, 403);
    let mismatched = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")];
    assert_eq!(vault.post(&mismatched, &call).await.status, 400);
    let mut padded = call.clone();
    padded["params"]["padding"] = json!("x".repeat(70_000));
    assert_eq!(vault.post(&[], &padded).await.status, 413);

    for method in ["GET", "DELETE"] {
        assert_eq!(vault.exchange(method, &[("Host", &host)], "").await.status, 405);
    }
    let unknown = vault.modern("subscriptions/listen", json!({ "notifications": {} })).await;
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (404, &json!(-32601)));
    assert_eq!(stored(&dir), before);
    vault.stop().await;
}

#[tokio::test]
async fn a_client_that_never_finishes_its_request_does_not_keep_the_vault_running() {
    let dir = tempdir().unwrap();
    let vault = Running::start(dir.path()).await;
    let mut stalled = TcpStream::connect(vault.address).await.unwrap();
    let begun = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
        Accept: application/json, text/event-stream\r\nContent-Length: 100\r\n\r\n{";
    stalled.write_all(begun.as_bytes()).await.unwrap();
    // Answered on a later connection, so the stalled one has been accepted.
    vault.call("get_positions", json!({})).await;
    tokio::time::timeout(std::time::Duration::from_secs(60), vault.stop()).await.unwrap();
}
