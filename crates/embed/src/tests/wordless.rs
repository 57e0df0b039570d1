//! A server written with rmcp, guarded on a transport that carries no HTTP request: nothing protected is ever allowed.

use super::cast::{AS_URI, DOCUMENT, House};
use super::guarded::Accounts;
use crate::rmcp::Guarded;
use rmcp::ServiceExt;
use sayso_protocol::method::{METHODS, MethodKind, Sender, UmaClass};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split};

struct Pipe {
    house: House,
    accounts: Accounts,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Pipe {
    async fn open() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: fn(&mut crate::SiteConfig)) -> Self {
        let (house, accounts) = (House::with(change), Accounts::default());
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let guarded = Guarded::new(&house.site, accounts.clone());
        tokio::spawn(async move {
            let running = guarded.serve(split(theirs)).await.unwrap();
            let _ = running.waiting().await;
        });
        let (reader, writer) = split(ours);
        Self { house, accounts, lines: BufReader::new(reader).lines(), writer }
    }

    async fn tell(&mut self, message: &Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        self.tell(&json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })).await;
        self.answer().await
    }

    async fn answer(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

// CORE-13, CORE-14, MCP-10, MCP-11
#[tokio::test]
async fn a_call_gets_a_ticket_for_the_http_address_and_no_more() {
    let mut pipe = Pipe::open().await;
    pipe.ask("server/discover", json!({})).await;
    let said = pipe.ask("tools/call", json!({ "name": "execute_trade", "arguments": {} })).await;
    assert_eq!((&said["id"], &said["error"]["code"]), (&json!(7), &json!(-32001)));
    let data = &said["error"]["data"];
    for (name, value) in [
        ("error", json!("insufficient_authorization")),
        ("realm", json!("vault")),
        ("as_uri", json!(AS_URI)),
        ("ticket", json!("ticket-0")),
        ("resource_metadata", json!(DOCUMENT)),
        ("scope", json!("trades:execute")),
        ("status", json!(401)),
    ] {
        assert_eq!(data[name], value, "{name}");
    }
    assert_eq!(data["authorization_remediation"]["ticket"], "ticket-0");
    let failure = sayso_protocol::envelope::jsonrpc::Failure::read(
        said.to_string().as_bytes(),
        sayso_protocol::json::Limits::default(),
    );
    assert!(matches!(failure, Ok(Some(sayso_protocol::envelope::jsonrpc::Failure::Challenge(_)))));
    let unknown = pipe.ask("tools/call", json!({ "name": "wire_money" })).await;
    assert_eq!(
        (&unknown["error"]["code"], &unknown["error"]["data"]["error"]),
        (&json!(-32002), &json!("unknown_tool"))
    );
    pipe.house.authority.gone.store(true, std::sync::atomic::Ordering::SeqCst);
    let gone = pipe.ask("tools/call", json!({ "name": "execute_trade" })).await;
    assert_eq!((&gone["error"]["code"], &gone["error"]["data"]["status"]), (&json!(-32002), &json!(503)));
    assert!(pipe.accounts.did.lock().unwrap().is_empty());
    pipe.house.authority.assert_untouched("a pipe");
}

// MCP-03, MCP-06
#[tokio::test]
async fn every_other_method_is_open_or_not_served() {
    let mut pipe = Pipe::open().await;
    let discovered = pipe.ask("server/discover", json!({})).await;
    let extensions = &discovered["result"]["capabilities"]["extensions"];
    assert_eq!(extensions["dev.uma4agents/uma-enforcement"]["authorization_servers"], json!([AS_URI]));
    assert!(pipe.ask("tools/list", json!({})).await["result"].is_object());
    let theirs = METHODS.iter().filter(|row| row.sender != Sender::Server && row.kind == MethodKind::Request);
    let closed = theirs.filter(|row| row.uma == UmaClass::NotServed).map(|row| row.name);
    for method in closed.chain(["vault/open", "skills/list"]) {
        let said = pipe.ask(method, json!({ "uri": "x", "name": "x", "taskId": "x" })).await;
        assert_eq!(said["error"]["code"], -32601, "{method}: {said}");
        assert_eq!(said["error"]["data"]["error"], "unknown_method", "{method}: {said}");
    }
    pipe.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/tasks/status", "params": {} })).await;
    assert!(pipe.ask("tools/list", json!({})).await["result"].is_object());
    assert_eq!(*pipe.accounts.did.lock().unwrap(), ["tools/list", "tools/list"]);
}

// MCP-03: an older client is told in its own handshake.
#[tokio::test]
async fn an_older_client_is_told_and_gets_no_further() {
    let mut pipe = Pipe::open().await;
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" }
    });
    pipe.tell(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })).await;
    let said = pipe.answer().await;
    assert!(
        said["result"]["capabilities"]["extensions"]["dev.uma4agents/uma-enforcement"].is_object(),
        "{said}"
    );
    pipe.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    let call = json!({ "name": "get_positions", "arguments": {} });
    pipe.tell(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call })).await;
    assert_eq!(pipe.answer().await["error"]["code"], -32001);
    assert!(pipe.accounts.did.lock().unwrap().is_empty());
}

// D-6: where nobody is asked, nothing is protected.
#[tokio::test]
async fn where_nothing_is_enforced_everything_passes() {
    let mut pipe = Pipe::with(|config| config.enforcement = crate::Enforcement::Nothing).await;
    pipe.ask("server/discover", json!({})).await;
    assert!(pipe.ask("tools/call", json!({ "name": "get_positions" })).await["result"].is_object());
    assert_eq!(*pipe.accounts.did.lock().unwrap(), ["get_positions"]);
}
