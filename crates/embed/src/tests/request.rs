//! Requests as agents send them, and answers read to their end.

use super::cast::{HOST, NOW, key};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use sayso_protocol::sig::{self, Facts, SignOptions};
use sayso_protocol::{SigningKey, Timestamp};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// A request.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

impl Call {
    fn new(method: Method, body: impl Into<Bytes>) -> Self {
        let call = Self { method, target: "/mcp".into(), headers: HeaderMap::new(), body: body.into() };
        call.with("host", HOST).with("accept", "application/json, text/event-stream")
    }

    /// A modern request.
    pub(super) fn modern(method: &str, name: Option<&str>, body: impl Into<Bytes>) -> Self {
        let call = Self::new(Method::POST, body)
            .with("content-type", "application/json")
            .with("mcp-protocol-version", "2026-07-28")
            .with("mcp-method", method);
        match name {
            Some(name) => call.with("mcp-name", name),
            None => call,
        }
    }

    pub(super) fn tool(tool: &str, arguments: &str) -> Self {
        let params = format!(r#"{{"name":"{tool}","arguments":{arguments},"_meta":{META}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        Self::modern("tools/call", Some(tool), body)
    }

    pub(super) fn open(method: &str) -> Self {
        let body = format!(r#"{{"jsonrpc":"2.0","id":"a","method":"{method}","params":{{"_meta":{META}}}}}"#);
        Self::modern(method, None, body)
    }

    /// A message of an older client.
    pub(super) fn older(message: &Value) -> Self {
        Self::new(Method::POST, message.to_string())
            .with("content-type", "application/json")
            .with("mcp-protocol-version", "2025-11-25")
    }

    pub(super) fn older_request(method: &str, params: &Value) -> Self {
        Self::older(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
    }

    pub(super) fn bodiless(method: Method) -> Self {
        Self::new(method, Bytes::new()).with("mcp-protocol-version", "2025-11-25")
    }

    pub(super) fn at(mut self, target: &str) -> Self {
        self.target = target.into();
        self
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.append(HeaderName::try_from(name).unwrap(), value.parse().unwrap());
        self
    }

    pub(super) fn but(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(HeaderName::try_from(name).unwrap(), value.parse().unwrap());
        self
    }

    pub(super) fn without(mut self, name: &str) -> Self {
        self.headers.remove(name);
        self
    }

    pub(super) fn saying(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub(super) fn shown(self, token: &str) -> Self {
        self.with("authorization", &format!("PoP {token}"))
    }

    /// Shows the token and signs with the agent's key.
    pub(super) fn signed(self, token: &str) -> Self {
        self.shown(token).signed_by(&key(0x22), NOW, HOST)
    }

    pub(super) fn signed_by(mut self, key: &SigningKey, at: Timestamp, authority: &str) -> Self {
        static NONCE: AtomicU64 = AtomicU64::new(0);
        let nonce = NONCE.fetch_add(1, Ordering::SeqCst).to_string();
        let (path, query) = match self.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&*self.target, None),
        };
        let method = self.method.as_str();
        let body = sig::Body::Whole(&self.body);
        let facts = Facts { method, scheme: "http", authority, path, query, headers: &self.headers, body };
        let options = SignOptions { nonce: Some(&nonce), ..SignOptions::default() };
        sig::sign(&facts, key, at, &options).unwrap().insert_into(&mut self.headers);
        self
    }

    pub(super) fn request(&self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.target.parse().unwrap();
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().entry("content-length").or_insert(HeaderValue::from(self.body.len()));
        request.extensions_mut().insert("what its host knows");
        request
    }
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) async fn read(response: Response<crate::Body>) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Self { status: parts.status, headers: parts.headers, body }
    }

    /// The JSON it is, or the last event of it is.
    pub(super) fn json(&self) -> Value {
        let text = std::str::from_utf8(&self.body).unwrap();
        let event =
            text.lines().filter_map(|line| line.strip_prefix("data:")).rfind(|data| data.contains('{'));
        serde_json::from_str(event.unwrap_or(text)).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}
