//! Bytes to and from a listener: one connection a request, nothing repaired on the way.
//!
//! Signing uses the protocol crate; what a hostile test alters it alters after signing.

use sayso_protocol::sig::{self, Body, Facts, SignOptions};
use sayso_protocol::{SigningKey, Timestamp, b64};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
pub const JSON: (&str, &str) = ("content-type", "application/json");

/// A request as it goes out.
#[derive(Clone)]
pub struct Sent {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Sent {
    pub fn new(method: &str, target: &str) -> Self {
        Self { method: method.into(), target: target.into(), headers: vec![], body: vec![] }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub fn body(mut self, (name, value): (&str, &str), body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.with(name, value)
    }

    pub fn form(self, members: &[(&str, &str)]) -> Self {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(members).finish();
        self.body(FORM, body)
    }

    pub fn json(self, value: &Value) -> Self {
        self.body(JSON, value.to_string())
    }

    /// Signs for `authority` as of `created`.
    pub fn signed(mut self, key: &SigningKey, authority: &str, created: Timestamp) -> Self {
        let mut headers = http::HeaderMap::new();
        for (name, value) in &self.headers {
            let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, value.parse().unwrap());
        }
        let (path, query) = match self.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (self.target.as_str(), None),
        };
        let facts = Facts {
            method: &self.method,
            scheme: "http",
            authority,
            path,
            query,
            headers: &headers,
            body: Body::Whole(&self.body),
        };
        let nonce = b64::encode(random::<16>());
        let options = SignOptions { nonce: Some(&nonce), ..SignOptions::default() };
        let signed = sig::sign(&facts, key, created, &options).unwrap();
        let mut fields = http::HeaderMap::new();
        signed.insert_into(&mut fields);
        for (name, value) in &fields {
            self.headers.push((name.to_string(), value.to_str().unwrap().to_owned()));
        }
        self
    }

    pub async fn to(&self, address: SocketAddr) -> Answer {
        let mut stream = self.out(address).await;
        let mut received = vec![];
        stream.read_to_end(&mut received).await.unwrap();
        Answer::read(&received)
    }

    /// Sends it, and hangs up while it is looked at.
    pub async fn hung_up(&self, address: SocketAddr) {
        let stream = self.out(address).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        drop(stream);
    }

    async fn out(&self, address: SocketAddr) -> TcpStream {
        let mut head = format!("{} {} HTTP/1.1\r\nconnection: close\r\n", self.method, self.target);
        if !self.headers.iter().any(|(name, _)| name == "host") {
            head += &format!("host: {address}\r\n");
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !self.body.is_empty() || self.method == "POST" || self.method == "PUT" {
            head += &format!("content-length: {}\r\n", self.body.len());
        }
        head += "\r\n";
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        // A server may answer and close before it has read everything.
        let _ = stream.write_all(&self.body).await;
        stream
    }
}

impl Answer {
    fn read(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.map(|line| line.split_once(": ").unwrap());
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        Self { status, headers, body: bytes[end + 4..].to_vec() }
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} came twice");
        value
    }

    /// Status and code of an error, which must say what to do.
    pub fn refusal(&self) -> (u16, String) {
        let body = self.json();
        let sentence = body["error_description"].as_str().unwrap_or_default();
        assert!(sentence.len() > 10, "{self:?}");
        assert_eq!(self.header("cache-control"), Some("no-store"), "{self:?}");
        (self.status, body["error"].as_str().unwrap().to_owned())
    }

    /// Status of an error of the owner's API, which has a sentence for her and nothing else.
    pub fn detail(&self) -> u16 {
        let body = self.json();
        assert!(body["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{self:?}");
        assert_eq!(body.as_object().unwrap().len(), 1, "{self:?}");
        assert_eq!(self.header("cache-control"), Some("no-store"), "{self:?}");
        self.status
    }

    pub fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.text());
        self.json()
    }
}

pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).unwrap();
    bytes
}

pub fn fresh_key() -> SigningKey {
    SigningKey::from_seed(&random()).unwrap()
}
