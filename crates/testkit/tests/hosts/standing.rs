//! A host of the resource that stands, to be sent any request; and which request is honest where.

use super::vectors::{self, Stage};
use super::{asked, guard, layer, proxy};
use axum::body::Body;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use sayso_enforce::Authority;
use sayso_protocol::SigningKey;
use sayso_protocol::sig::{self, Facts, SignOptions};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sends one request to a host, and brings its answer.
pub(crate) type Sending = Box<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

/// One host, and what is behind it.
pub(crate) struct Standing {
    pub(crate) name: &'static str,
    pub(crate) sending: Sending,
    /// What the server behind the host got.
    pub(crate) behind: Behind,
    /// Whatever lives as long as the host.
    pub(crate) _keeping: Option<Keeping>,
}

/// The requests, or calls, that got behind a host: the headers of each.
#[derive(Clone, Default)]
pub(crate) struct Behind(Arc<Mutex<Vec<HeaderMap>>>);

impl Behind {
    pub(crate) fn note(&self, headers: HeaderMap) {
        self.0.lock().unwrap().push(headers);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// The headers of the last.
    pub(crate) fn last(&self) -> HeaderMap {
        self.0.lock().unwrap().last().cloned().unwrap()
    }
}

/// A task that ends with its host.
pub(crate) struct Keeping(pub(crate) tokio::task::JoinHandle<()>);

impl Drop for Keeping {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An answer, read to its end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The word of a refusal, in whichever shape it came.
    pub(crate) fn error(&self) -> Value {
        let said = self.json();
        if said["error"].is_object() { said["error"]["data"]["error"].clone() } else { said["error"].clone() }
    }

    /// What a refused call's status would be over HTTP.
    pub(crate) fn refused_with(&self) -> u64 {
        let said = self.json();
        said["error"]["data"]["status"].as_u64().unwrap_or_else(|| u64::from(self.status))
    }
}

impl Standing {
    pub(crate) async fn respond(&self, request: Request<Bytes>) -> Response<Body> {
        (self.sending)(request).await
    }

    pub(crate) async fn send(&self, request: Request<Bytes>) -> Answer {
        let (parts, body) = self.respond(request).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub(crate) fn reached(&self) -> usize {
        self.behind.count()
    }

    /// Whether a gateway of others asks it.
    pub(crate) fn is_asked(&self) -> bool {
        self.name.starts_with("checked")
    }
}

/// Every host that sees HTTP, each with this authority.
pub(crate) async fn all(stage: &Stage, authority: &Arc<dyn Authority>) -> Vec<Standing> {
    vec![
        proxy::open(stage, Arc::clone(authority)).await,
        layer::open(stage, Arc::clone(authority)),
        guard::open(stage, Arc::clone(authority)),
        asked::open(asked::Gateway::OverHttp, stage, Arc::clone(authority)),
        asked::open(asked::Gateway::OverGrpc, stage, Arc::clone(authority)),
    ]
}

/// The agent whose grants are good.
pub(crate) fn agent() -> SigningKey {
    SigningKey::from_seed(&[0x22; 32]).unwrap()
}

/// A live grant of this key for a tool; for one call of it where an operation is named.
pub(crate) fn grant(key: &SigningKey, tool: &str, scope: &str, operation: Option<Value>) -> Value {
    let mut grant = json!({
        "active": true, "iss": vectors::AS_URI, "aud": vectors::PUBLIC, "owner": "alice",
        "iat": vectors::NOW.0 - 10, "exp": vectors::NOW.0 + 600, "token_type": "PoP",
        "cnf": { "jwk": key.verifying().jwk() },
        "permissions": [{ "resource_id": format!("vault/{tool}"), "resource_scopes": [scope] }],
        "contract": "s256:RqgXOcbufB1e0ITn3oQ6fteUNc1EVRPk3VxOWsOV-0s", "family": "family-1",
    });
    if let Some(operation) = operation {
        grant["single_use"] = true.into();
        grant["operation"] = operation;
    }
    grant
}

pub(crate) const TRADE: &str = r#"{"symbol":"VTI","quantity":3}"#;
pub(crate) const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The grant for exactly one trade.
pub(crate) fn one_trade() -> Value {
    let digest = "s256:_i7eQ0NszGGy1GytJ1ixwfZIjeFht4nSt1ca4ejRBbw";
    grant(
        &agent(),
        "execute_trade",
        "trades:execute",
        Some(json!({ "tool": "execute_trade", "params_s256": digest })),
    )
}

pub(crate) fn reading() -> Value {
    grant(&agent(), "get_positions", "positions:read", None)
}

/// A modern request with this body, labelled as the call of a tool, or as what it says it is.
pub(crate) fn posted(method: &str, name: Option<&str>, body: impl Into<Bytes>) -> Request<Bytes> {
    let mut lines = vec![
        ("host", "gw.example.test"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    lines.extend(name.map(|name| ("mcp-name", name)));
    let mut request = Request::new(body.into());
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = "/mcp".parse().unwrap();
    for (name, value) in lines {
        with(&mut request, name, value);
    }
    request
}

pub(crate) fn with(request: &mut Request<Bytes>, name: &str, value: &str) {
    let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
    request.headers_mut().append(HeaderName::try_from(name).unwrap(), value);
}

/// A call of a tool; `more` stands in its parameters beside name and arguments.
pub(crate) fn call(tool: &str, arguments: &str, more: &str) -> Request<Bytes> {
    let params = format!(r#"{{"name":"{tool}","arguments":{arguments}{more},"_meta":{META}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    posted("tools/call", Some(tool), body)
}

pub(crate) fn listing() -> Request<Bytes> {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{META}}}}}"#);
    posted("tools/list", None, body)
}

/// Shows a token, and signs with this key over what the request now is.
pub(crate) fn signed_by(
    mut request: Request<Bytes>,
    key: &SigningKey,
    token: Option<&str>,
) -> Request<Bytes> {
    static NONCE: AtomicU64 = AtomicU64::new(0);
    let nonce = format!("h{}", NONCE.fetch_add(1, Ordering::SeqCst));
    if let Some(token) = token {
        with(&mut request, "authorization", &format!("PoP {token}"));
    }
    let facts = Facts {
        method: request.method().as_str(),
        scheme: "https",
        authority: "gw.example.test",
        path: request.uri().path(),
        query: request.uri().query(),
        headers: request.headers(),
        body: sig::Body::Whole(request.body()),
    };
    let options = SignOptions { nonce: Some(&nonce), ..SignOptions::default() };
    let signed = sig::sign(&facts, key, vectors::NOW, &options).unwrap();
    signed.insert_into(request.headers_mut());
    request
}

pub(crate) fn signed(request: Request<Bytes>) -> Request<Bytes> {
    signed_by(request, &agent(), Some("t.o.k"))
}
