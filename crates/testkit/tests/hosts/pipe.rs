//! The rmcp guard on a transport that carries no HTTP request: it sees methods and tools, and neither headers nor grants.

use super::authority::Stub;
use super::guard::Server;
use super::told::Told;
use super::vectors::{self, Vector};
use super::{Host, async_trait};
use rmcp::ServiceExt;
use sayso_embed::rmcp::Guarded;
use sayso_protocol::canon::to_bytes;
use sayso_protocol::json::{Json, Limits};
use sayso_protocol::payload::edition::Edition;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

pub(crate) struct Pipe;

/// A word that says which era the pipe speaks.
const HELLO: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// Whether the vector is a modern request that wants an answer.
pub(crate) fn modern_request(vector: &Vector) -> bool {
    let message: Value = serde_json::from_slice(&vector.body()).unwrap_or_default();
    let modern = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28";
    vector.is_post() && modern && message.get("id").is_some()
}

#[async_trait]
impl Host for Pipe {
    fn name(&self) -> &'static str {
        "pipe"
    }

    /// What turns on the message alone, of a modern request that wants an answer and that rmcp itself can read.
    fn sees(&self, vector: &Vector) -> bool {
        let turns_on = ["authorization", "origin", "content-length", "content-encoding"];
        let verdict = vector.verdict();
        let elsewhere = verdict["status"] == 421 || verdict["jsonrpc"] == -32020 || verdict["status"] == 400;
        modern_request(vector) && !elsewhere && !turns_on.iter().any(|name| vector.has_header(name))
    }

    async fn judge(&self, vector: &Vector, edition: Edition, authority: Arc<Stub>) -> Told {
        let server = Server::default();
        let guarded = Guarded::new(&vectors::site(&vector.stage(edition), authority), server.clone());
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let serving = tokio::spawn(async move {
            let running = guarded.serve(tokio::io::split(theirs)).await.unwrap();
            let _ = running.waiting().await;
        });
        let (reader, mut writer) = tokio::io::split(ours);
        let mut lines = BufReader::new(reader).lines();
        writer.write_all(&[HELLO.as_bytes(), b"\n", &vector.body(), b"\n"].concat()).await.unwrap();
        lines.next_line().await.unwrap().unwrap();
        let answer = lines.next_line().await.unwrap().unwrap();
        serving.abort();
        // The word before it was heard as well, where it may be.
        let reached = server.0.count().saturating_sub(1);
        let passes = Told { verdict: json!({ "kind": "passes" }), reached, ..Told::default() };
        let told = Told::in_json_rpc(&answer, 200).unwrap_or(passes);
        Told { remediation: told.remediation.map(|text| in_order(&text)), ..told }
    }
}

/// rmcp writes members in an order of its own; in their canonical one they must be those of every other host, which come
/// in the order of the wire.
fn in_order(remediation: &str) -> String {
    let said: sayso_protocol::payload::remediation::Remediation = serde_json::from_str(remediation).unwrap();
    let wire = serde_json::to_string(&said).unwrap();
    let read = |text: &str| Json::parse(text.as_bytes(), Limits::default()).unwrap();
    assert_eq!(to_bytes(&read(remediation)).unwrap(), to_bytes(&read(&wire)).unwrap());
    wire
}
