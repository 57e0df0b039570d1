//! A gateway before an older server, and the requests of older clients.

use super::super::cast::{Canary, House, PUBLIC, Scripted, config, policed};
use super::super::wire::{Request, Response};
use super::server::Server;
use sayso_enforce::policy::scripted::{Point, Says, Script};
use sayso_protocol::Timestamp;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub(super) struct Legacy {
    pub(super) house: House,
    pub(super) server: Arc<Server>,
    address: SocketAddr,
}

fn older(line: &str) -> Request {
    Request { line: format!("{line} /mcp HTTP/1.1"), headers: Vec::new(), body: Vec::new() }
        .with("Host", PUBLIC.trim_start_matches("http://"))
        .with("Accept", "application/json, text/event-stream")
        .with("MCP-Protocol-Version", "2025-11-25")
}

pub(in crate::tests) fn message(message: &Value) -> Request {
    let mut request = older("POST").with("Content-Type", "application/json");
    request.body = message.to_string().into_bytes();
    request
}

pub(in crate::tests) fn post(method: &str, params: &Value) -> Request {
    message(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
}

/// A call of `get_positions`.
pub(in crate::tests) fn read(arguments: &Value) -> Request {
    post("tools/call", &json!({ "name": "get_positions", "arguments": arguments }))
}

pub(in crate::tests) fn note(method: &str) -> Request {
    message(&json!({ "jsonrpc": "2.0", "method": method }))
}

/// A response to a request by this id.
pub(in crate::tests) fn answer(id: &str) -> Request {
    let id: Value = serde_json::from_str(id).unwrap();
    message(&json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "accept" } }))
}

pub(in crate::tests) fn get() -> Request {
    older("GET")
}

pub(in crate::tests) fn delete() -> Request {
    older("DELETE")
}

impl Legacy {
    pub(super) async fn open() -> Self {
        Self::before(false).await
    }

    pub(super) async fn before(sessionless: bool) -> Self {
        let (server, address) = Server::open(sessionless).await;
        Self::at(server, address).await
    }

    /// Before a policy alone that lets everything pass, by this clock.
    pub(super) async fn policed(now: &Arc<AtomicI64>, sessionless: bool) -> Self {
        let (server, address) = Server::open(sessionless).await;
        let resource = policed(&Point::saying(Says::Yes), Script::default(), format!("http://{address}/mcp"));
        let (canary, authority) = (Arc::new(Canary::default()), Arc::new(Scripted::default()));
        let now = Arc::clone(now);
        let clock = move || Timestamp(now.load(Ordering::SeqCst));
        let house = House::by(Arc::new(clock), canary, authority, config(vec![resource])).await;
        Self { house, server, address }
    }

    async fn at(server: Arc<Server>, address: SocketAddr) -> Self {
        let house = House::before(Arc::new(Canary::default()), format!("http://{address}/mcp")).await;
        Self { house, server, address }
    }

    /// Another process before the same server.
    pub(super) async fn restarted(&self) -> Self {
        Self::at(Arc::clone(&self.server), self.address).await
    }

    pub(super) async fn send(&self, request: Request) -> Response {
        timeout(Duration::from_secs(10), self.house.send(&request)).await.expect("an answer")
    }

    pub(super) async fn initialize(&self) -> String {
        let response = self.send(post("initialize", &json!({ "protocolVersion": "2025-11-25" }))).await;
        assert_eq!(response.status, 200);
        let [id] = response.all("mcp-session-id").try_into().expect("a session");
        id.to_owned()
    }

    /// A session that is the key's of every grant here.
    pub(super) async fn bound(&self) -> String {
        let id = self.initialize().await;
        let response = self.send(read(&json!({})).with("Mcp-Session-Id", &id).signed("reader")).await;
        assert_eq!(response.status, 200);
        id
    }

    pub(super) async fn listen(&self, request: Request) -> Stream {
        let mut stream = Stream::open(self.house.gateway, &request).await;
        stream.until("id: first").await;
        stream
    }
}

/// A stream that is being read.
pub(in crate::tests) struct Stream {
    socket: TcpStream,
    text: String,
}

impl Stream {
    pub(in crate::tests) async fn open(address: SocketAddr, request: &Request) -> Self {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(&request.bytes()).await.unwrap();
        Self { socket, text: String::new() }
    }

    async fn more(&mut self) -> usize {
        let mut piece = [0; 4096];
        let read = self.socket.read(&mut piece).await.unwrap_or(0);
        self.text.push_str(&String::from_utf8_lossy(&piece[..read]));
        read
    }

    pub(in crate::tests) async fn until(&mut self, what: &str) {
        while !self.text.contains(what) {
            let read = timeout(Duration::from_secs(5), self.more()).await.expect("more");
            assert!(read > 0, "it ended: {}", self.text);
        }
    }

    pub(in crate::tests) async fn read_so_far(&mut self) -> &str {
        while timeout(Duration::from_millis(200), self.more()).await.is_ok_and(|read| read > 0) {}
        &self.text
    }

    /// Whether it ends within this time.
    pub(in crate::tests) async fn ends_within(&mut self, time: Duration) -> bool {
        timeout(time, async { while self.more().await > 0 {} }).await.is_ok()
    }
}
