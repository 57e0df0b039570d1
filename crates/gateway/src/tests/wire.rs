//! HTTP as these tests speak it: requests line by line and byte by byte, answers read to the end of their connection.

use super::cast::{HOST, NOW, key};
use sayso_protocol::sig::{self, Facts, SignOptions};
use sayso_protocol::{SigningKey, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};

/// A request, line by line.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) line: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    pub(super) fn post(method: &str, name: Option<&str>, body: impl Into<Vec<u8>>) -> Self {
        let mut request = Self { line: "POST /mcp HTTP/1.1".into(), headers: Vec::new(), body: body.into() }
            .with("Host", HOST)
            .with("Content-Type", "application/json")
            .with("Accept", "application/json, text/event-stream")
            .with("MCP-Protocol-Version", "2026-07-28")
            .with("Mcp-Method", method);
        if let Some(name) = name {
            request = request.with("Mcp-Name", name);
        }
        request
    }

    pub(super) fn call(tool: &str, arguments: &str) -> Self {
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let params = format!(r#"{{"name":"{tool}","arguments":{arguments},"_meta":{meta}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        Self::post("tools/call", Some(tool), body)
    }

    pub(super) fn list() -> Self {
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{{"_meta":{meta}}}}}"#);
        Self::post("tools/list", None, body)
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// With the first line of this name changed.
    pub(super) fn but(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.with(name, value)
    }

    pub(super) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub(super) fn shown(self, token: &str) -> Self {
        let value = format!("PoP {token}");
        self.with("Authorization", &value)
    }

    /// Shows the token and signs with the agent's key.
    pub(super) fn signed(self, token: &str) -> Self {
        self.shown(token).signed_by(&key(0x22), NOW, HOST)
    }

    pub(super) fn signed_by(mut self, key: &SigningKey, at: Timestamp, authority: &str) -> Self {
        static NONCE: AtomicU64 = AtomicU64::new(0);
        let nonce = NONCE.fetch_add(1, Ordering::SeqCst).to_string();
        let mut headers = http::HeaderMap::new();
        for (name, value) in &self.headers {
            let name = http::HeaderName::try_from(name.as_str()).unwrap();
            headers.append(name, value.parse().unwrap());
        }
        let mut words = self.line.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let body = sig::Body::Whole(&self.body);
        let facts = Facts { method, scheme: "http", authority, path, query, headers: &headers, body };
        let options = SignOptions { nonce: Some(&nonce), ..SignOptions::default() };
        let mut added = http::HeaderMap::new();
        sig::sign(&facts, key, at, &options).unwrap().insert_into(&mut added);
        for (name, value) in &added {
            self.headers.push((name.as_str().into(), value.to_str().unwrap().into()));
        }
        self
    }

    /// Whether it can be signed at all: every header can be written into a signature base, and no token is shown yet.
    pub(super) fn is_signable(&self) -> bool {
        self.headers.iter().all(|(name, value)| {
            http::HeaderName::try_from(name.as_str()).is_ok_and(|name| name != "authorization")
                && value.parse::<http::HeaderValue>().is_ok()
        })
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{}\r\nConnection: close\r\n", self.line);
        let framed = |name: &str| self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        if !framed("content-length") && !framed("transfer-encoding") {
            text.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        [text.as_bytes(), &self.body].concat()
    }
}

/// An answer, read to the end of its connection.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Response {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let at = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a response");
        let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut body = bytes[at + 4..].to_vec();
        if headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked") {
            body = unchunked(&body);
        }
        Self { status, headers, body }
    }

    pub(super) fn all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(super) fn is_challenge(&self) -> bool {
        self.all("www-authenticate").iter().any(|value| value.starts_with("UMA "))
    }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(at) = bytes.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&bytes[..at]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 || bytes.len() < at + 2 + size {
            break;
        }
        whole.extend_from_slice(&bytes[at + 2..at + 2 + size]);
        bytes = &bytes[(at + 4 + size).min(bytes.len())..];
    }
    whole
}
