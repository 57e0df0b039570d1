//! The parties: an authority that answers by script and counts, an agent, and a gateway that asks at every door.

use crate::grpc::message::{
    Attributes, CheckRequest, Entry, HeaderList, HttpRequest, Line, Request as Asked, Told,
};
use crate::{ExtAuthz, Outward, Whole, http_router};
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt as _;
use sayso_enforce::authority::keys::KnownKeys;
use sayso_enforce::listing::Reader;
use sayso_enforce::policy::scripted::{Point, Script};
use sayso_enforce::resource::ToolSettings;
use sayso_enforce::{BadServer, Enforcement, ServerConfig, ServerResource};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::sig::{self, Facts, SignOptions};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tower::ServiceExt as _;

pub(super) use sayso_enforce::authority::scripted::{HOST, NOW, Scripted, TRADE, key};

pub(super) const LIMIT: usize = 64 << 10;

/// How a gateway passes a request on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// Over HTTP.
    Http,
    /// Over gRPC, headers as a map, the body as text.
    Joined,
    /// Over gRPC, headers as lines, the body as bytes.
    Lines,
}

pub(super) const DOORS: [Door; 3] = [Door::Http, Door::Joined, Door::Lines];

/// A request as its sender made it.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) target: String,
    pub(super) lines: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
}

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

impl Request {
    pub(super) fn post(method: &str, name: Option<&str>, body: impl Into<Vec<u8>>) -> Self {
        let request = Self { method: "POST", target: "/mcp".into(), lines: vec![], body: body.into() }
            .with("host", HOST)
            .with("content-type", "application/json")
            .with("accept", "application/json, text/event-stream")
            .with("mcp-protocol-version", "2026-07-28")
            .with("mcp-method", method)
            .with("x-envoy-auth-partial-body", "false");
        name.into_iter().fold(request, |request, name| request.with("mcp-name", name))
    }

    pub(super) fn call(tool: &str, arguments: &str) -> Self {
        let params = format!(r#"{{"name":"{tool}","arguments":{arguments},"_meta":{META}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        Self::post("tools/call", Some(tool), body)
    }

    pub(super) fn list() -> Self {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{{"_meta":{META}}}}}"#);
        Self::post("tools/list", None, body)
    }

    pub(super) fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.lines.push((name.into(), value.as_ref().to_vec()));
        self
    }

    pub(super) fn but(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.without(name).with(name, value)
    }

    pub(super) fn without(mut self, name: &str) -> Self {
        self.lines.retain(|(known, _)| known != name);
        self
    }

    pub(super) fn to(self, target: &str) -> Self {
        Self { target: target.into(), ..self }
    }

    /// Shows the token and signs with the agent's key.
    pub(super) fn signed(self, token: &str) -> Self {
        static NONCE: AtomicU64 = AtomicU64::new(0);
        let nonce = NONCE.fetch_add(1, Ordering::SeqCst).to_string();
        let mut request = self.with("authorization", format!("PoP {token}"));
        let mut headers = HeaderMap::new();
        for (name, value) in &request.lines {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        let (path, query) = match request.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (request.target.as_str(), None),
        };
        let body = sig::Body::Whole(&request.body);
        let facts = Facts {
            method: request.method,
            scheme: "http",
            authority: HOST,
            path,
            query,
            headers: &headers,
            body,
        };
        let options = SignOptions { nonce: Some(&nonce), ..SignOptions::default() };
        let mut added = HeaderMap::new();
        sig::sign(&facts, &key(0x22), NOW, &options).unwrap().insert_into(&mut added);
        let added = added.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
        request.lines.extend(added);
        request
    }

    /// As Envoy puts it into a message.
    pub(super) fn message(&self, door: Door) -> HttpRequest {
        let bytes = |text: &[u8]| Bytes::copy_from_slice(text);
        let host = self.lines.iter().find(|(name, _)| name == "host").map(|(_, value)| bytes(value));
        let mut message = HttpRequest {
            method: bytes(self.method.as_bytes()),
            path: bytes(self.target.as_bytes()),
            host: host.unwrap_or_default(),
            size: i64::try_from(self.body.len()).unwrap(),
            ..HttpRequest::default()
        };
        let pseudo = [(":path".to_owned(), b"/elsewhere".to_vec()), (":method".to_owned(), b"GET".to_vec())];
        // The first host has a field of its own; a gateway that let a second one pass would show it here.
        let first = self.lines.iter().position(|(name, _)| name == "host");
        let rest = self.lines.iter().enumerate().filter(|(nth, _)| Some(*nth) != first);
        let lines = pseudo.into_iter().chain(rest.map(|(_, line)| line.clone()));
        if door == Door::Lines {
            let line = |(key, value): (String, Vec<u8>)| {
                let (key, raw_value) = (key.into(), value.into());
                Line { key, raw_value, value: Bytes::new() }
            };
            message.header_map = Some(HeaderList { headers: lines.map(line).collect() });
            message.raw_body = bytes(&self.body);
        } else {
            let mut joined: Vec<(String, Vec<u8>)> = Vec::new();
            for (name, value) in lines {
                match joined.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, values)) => {
                        values.push(b',');
                        values.extend_from_slice(&value);
                    }
                    None => joined.push((name, value)),
                }
            }
            let entry = |(key, value): (String, Vec<u8>)| Entry { key: key.into(), value: value.into() };
            message.headers = joined.into_iter().map(entry).collect();
            message.body = bytes(&self.body);
        }
        message
    }
}

/// What a gateway was told.
#[derive(Debug)]
pub(super) struct Said {
    /// 200 is a yes.
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Of a yes.
    pub(super) removed: Vec<String>,
}

impl Said {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(super) fn error(&self) -> (u16, String) {
        (self.status, self.json()["error"].as_str().unwrap_or_default().to_owned())
    }

    pub(super) fn line(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}

/// An authorizer and its authority.
pub(super) struct House {
    pub(super) authority: Arc<Scripted>,
    pub(super) authorizer: ExtAuthz,
}

fn tool(name: &str, scope: &str, single_use: bool) -> ToolSettings {
    ToolSettings {
        tool: name.parse().unwrap(),
        resource_id: format!("vault/{name}").parse().unwrap(),
        scopes: vec![scope.parse().unwrap()],
        single_use,
        consequence: None,
        definition: None,
        surface: None,
        mirrors: Vec::new(),
    }
}

pub(super) fn authorizer(resources: Vec<ServerResource>, whole: Whole) -> Result<ExtAuthz, BadServer> {
    let keys = Arc::new(KnownKeys(vec![key(0x11).verifying().clone()]));
    let config = ServerConfig {
        public_url: format!("http://{HOST}"),
        hosts: Vec::new(),
        key: key(0x44),
        readers: vec![Reader { issuer: "https://as.example.test".into(), keys }],
        resources,
        body_limit: LIMIT,
    };
    // The replay cache starts a little in the past, so that signatures made at any time of a test are its own.
    let first = AtomicU64::new(0);
    let clock = move || if first.fetch_add(1, Ordering::SeqCst) == 0 { NOW.plus(-300) } else { NOW };
    ExtAuthz::new(config, whole, Outward::default(), Arc::new(clock), None)
}

impl House {
    /// Behind a gateway that says itself whether it cut a body.
    pub(super) fn open() -> Self {
        Self::believing(Whole::ByFlag)
    }

    /// Before a policy alone, as this decision point decides.
    pub(super) fn policed(point: &Arc<Point>, script: Script) -> Self {
        let authority = Arc::new(Scripted::default());
        let resource = ServerResource::policed("/mcp", script.policed(point)).unwrap();
        Self { authority, authorizer: authorizer(vec![resource], Whole::ByFlag).unwrap() }
    }

    pub(super) fn believing(whole: Whole) -> Self {
        let authority = Arc::new(Scripted::default());
        let resource = ServerResource {
            path: "/mcp".into(),
            aliases: Vec::new(),
            realm: "vault".parse().unwrap(),
            owner: "alice".parse().unwrap(),
            as_uri: "https://as.example.test".into(),
            authority: authority.clone(),
            edition: Edition::default(),
            tools: vec![
                tool("get_positions", "positions:read", false),
                tool("execute_trade", "trades:execute", true),
            ],
            enforcement: Enforcement::Uma,
            open_methods: Vec::new(),
            allowed_origins: vec!["https://app.example.test".into()],
            accept_uncovered_body: false,
            serve_query: false,
        };
        Self { authority, authorizer: authorizer(vec![resource], whole).unwrap() }
    }

    pub(super) async fn ask(&self, door: Door, request: &Request) -> Said {
        match door {
            Door::Http => self.ask_http(&format!("/check{}", request.target), request).await,
            Door::Joined | Door::Lines => self.ask_grpc(request.message(door)).await,
        }
    }

    /// A request to the HTTP listener.
    pub(super) async fn ask_http(&self, target: &str, request: &Request) -> Said {
        let framed = |name: &str| request.lines.iter().any(|(known, _)| known == name);
        let mut asked = http::Request::builder().method(request.method).uri(target);
        for (name, value) in &request.lines {
            asked = asked.header(name, HeaderValue::from_bytes(value).unwrap());
        }
        if !framed("content-length") && !framed("transfer-encoding") {
            asked = asked.header("content-length", request.body.len());
        }
        let asked = asked.body(Body::from(request.body.clone())).unwrap();
        let response = http_router(self.authorizer.clone()).oneshot(asked).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let removed =
            parts.headers.get("x-envoy-auth-headers-to-remove").map(|value| value.to_str().unwrap());
        let removed = removed.unwrap_or_default().split(',').map(str::to_owned).collect();
        assert!(parts.status == 200 || !parts.status.is_success());
        Said { status: parts.status.as_u16(), headers: parts.headers, body, removed }
    }

    /// A message; that its answer is whole and says one thing is asserted here.
    pub(super) async fn ask_grpc(&self, http: HttpRequest) -> Said {
        let request = Some(Asked { http: Some(http) });
        let answer = self.authorizer.answer(CheckRequest { attributes: Some(Attributes { request }) }).await;
        let code = answer.status.expect("a status").code;
        match answer.told.expect("what to do") {
            Told::Ok(ok) => {
                assert_eq!(code, 0);
                let (headers, body) = (HeaderMap::new(), Bytes::new());
                Said { status: 200, headers, body, removed: ok.headers_to_remove }
            }
            Told::Denied(denied) => {
                assert_ne!(code, 0);
                let status = u16::try_from(denied.status.unwrap().code).unwrap();
                assert!(StatusCode::from_u16(status).unwrap().as_u16() >= 400);
                let line = |option: crate::grpc::message::HeaderOption| {
                    let line = option.header.unwrap();
                    let name = HeaderName::from_bytes(&line.key).unwrap();
                    (name, HeaderValue::from_bytes(&line.value).unwrap())
                };
                let headers = denied.headers.into_iter().map(line).collect();
                Said { status, headers, body: denied.body.into(), removed: vec![] }
            }
        }
    }

    pub(super) fn asked(&self) -> u64 {
        self.authority.asked.load(Ordering::SeqCst)
    }

    pub(super) fn spent(&self) -> usize {
        self.authority.spent.lock().unwrap().len()
    }

    pub(super) fn tickets(&self) -> u64 {
        self.authority.tickets.load(Ordering::SeqCst)
    }
}
