//! The first words with a child, in the era wanted of it.
//!
//! What a child speaks is asserted, never assumed, and nothing is translated between eras (D-31). A child that does not
//! answer the one question that modern servers must answer is not modern, whatever else it says.

use super::board::{Board, Caller, Gone};
use bytes::Bytes;
use sayso_protocol::json::{Json, Limits, MAX_DEPTH, locate};
use sayso_protocol::message::{META_CAPABILITIES, META_VERSION};
use sayso_protocol::method::Revision;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a child may take to say its first word; some are downloaded before they run.
const FIRST_WORD: Duration = Duration::from_secs(30);

/// The legacy revision that is asked for.
pub(crate) const LEGACY: Revision = Revision::V20251125;
/// The modern one.
pub(crate) const MODERN: Revision = Revision::V20260728;

/// The two families of revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// Metadata with each request.
    Modern,
    /// `initialize` first.
    Legacy,
}

/// What a child answered.
#[derive(Debug, Clone)]
pub(super) struct Hello {
    /// The revision it speaks here. Older than any known here is possible.
    pub(super) version: String,
    /// The exact text of its result.
    pub(super) result: Bytes,
}

/// Why there is no talking to a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unspoken {
    /// It answered, and does not speak this era. It speaks these revisions, if it said any.
    Foreign(Vec<String>),
    /// It did not answer.
    Silent,
}

/// The metadata of our own modern requests: they speak for nobody.
pub(crate) fn own_meta() -> serde_json::Value {
    json!({
        META_VERSION: MODERN.as_str(),
        META_CAPABILITIES: {},
        "io.modelcontextprotocol/clientInfo": own_info(),
    })
}

/// What we call ourselves.
pub(crate) fn own_info() -> serde_json::Value {
    json!({ "name": "sayso", "version": env!("CARGO_PKG_VERSION") })
}

/// The parameters of our own `initialize`.
pub(crate) fn own_initialize() -> serde_json::Value {
    json!({ "protocolVersion": LEGACY.as_str(), "capabilities": {}, "clientInfo": own_info() })
}

/// Makes the acquaintance.
pub(super) async fn meet(board: &Arc<Board>, era: Era) -> Result<Hello, Unspoken> {
    let (method, params) = match era {
        Era::Modern => ("server/discover", json!({ "_meta": own_meta() })),
        Era::Legacy => ("initialize", own_initialize()),
    };
    let answer = timeout(FIRST_WORD, ask(board, method, &params)).await;
    let answer = answer.ok().and_then(Result::ok).ok_or(Unspoken::Silent)?;
    let root = Json::parse(&answer, Limits { bytes: usize::MAX, depth: MAX_DEPTH });
    let root = root.map_err(|_| Unspoken::Silent)?;
    let version = match era {
        Era::Modern => modern(&root)?,
        Era::Legacy => legacy(&root)?,
    };
    let result = locate(&answer, &["result"]).map(|span| answer.slice(span)).ok_or(Unspoken::Silent)?;
    if era == Era::Legacy {
        let slot = board.reserve().await.map_err(|Gone| Unspoken::Silent)?;
        slot.tell(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }
    Ok(Hello { version, result })
}

/// One request of our own and its whole answer.
pub(super) async fn ask(board: &Arc<Board>, method: &str, params: &serde_json::Value) -> Result<Bytes, Gone> {
    let body = json!({ "jsonrpc": "2.0", "id": 0, "method": method, "params": params }).to_string();
    let caller = Caller { cancels: true, streams: false };
    board.reserve().await?.call(body.as_bytes(), caller)?.answered().await.ok_or(Gone)
}

fn modern(root: &Json) -> Result<String, Unspoken> {
    let versions = root.get("result").and_then(|result| result.get("supportedVersions"));
    let spoken = strings(versions);
    if spoken.iter().any(|version| version == MODERN.as_str()) {
        return Ok(MODERN.to_string());
    }
    Err(Unspoken::Foreign(if spoken.is_empty() { told_in_error(root) } else { spoken }))
}

fn legacy(root: &Json) -> Result<String, Unspoken> {
    let version = root.get("result").and_then(|result| result.get("protocolVersion")).and_then(Json::as_str);
    let spoken = version.filter(|version| {
        version.parse().is_ok_and(|known: Revision| !known.is_modern()) || is_older(version)
    });
    spoken.map(str::to_owned).ok_or_else(|| Unspoken::Foreign(told_in_error(root)))
}

/// The first revision: nobody is served it over HTTP here, but a child that speaks it can be asked for its tools.
fn is_older(version: &str) -> bool {
    version == "2024-11-05"
}

fn told_in_error(root: &Json) -> Vec<String> {
    strings(root.get("error").and_then(|error| error.get("data")?.get("supported")))
}

/// A few short strings; a server's list is no place for more.
fn strings(list: Option<&Json>) -> Vec<String> {
    let list = list.and_then(Json::as_array).unwrap_or_default();
    let short = |value: &Json| value.as_str().filter(|text| text.len() <= 32).map(str::to_owned);
    list.iter().filter_map(short).take(16).collect()
}
