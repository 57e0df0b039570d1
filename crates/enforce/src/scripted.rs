//! The cast of this crate's tests: an authority that answers by script and counts, a resource, a key, a request.
//!
//! Every default is the honest one; a test changes the one thing it is about.

use crate::authority::{Authority, Unavailable};
use crate::call::{Body, Head, Incoming};
use crate::consequence::Consequence;
use crate::engine::{Clock, Engine, Outlet};
use crate::replay::Replay;
use crate::resource::{Resource, ResourceSettings, ToolSettings};
use crate::verdict::Verdict;
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::operation::Operation;
use sayso_protocol::payload::protection::{
    AccessReport, ConsumeReply, Continuation, Introspection, LiveGrant, PermissionFault, PermissionReply,
    PermissionRequest,
};
use sayso_protocol::payload::refusal::{Code, Refusal};
use sayso_protocol::payload::rpt::{Confirmation, Permission};
use sayso_protocol::sig::{self, Facts, SignOptions};
use sayso_protocol::{Json, S256, SigningKey, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) const NOW: Timestamp = Timestamp(1_790_000_000);
pub(crate) const TOKEN: &str = "header.claims.signature";
pub(crate) const ARGUMENTS: &str = r#"{"symbol":"VTI","quantity":3}"#;

/// What the authority was asked, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Asked {
    Permission(PermissionRequest),
    Introspect(String),
    Consume(String),
    Round(S256),
    Resume(Continuation),
    Report(AccessReport),
}

/// An authority that says what it is told to say.
pub(crate) struct Scripted {
    pub(crate) permission: Mutex<Result<Result<String, PermissionFault>, Unavailable>>,
    pub(crate) introspection: Mutex<Result<Introspection, Unavailable>>,
    /// Answered to every consumer; none lets exactly the first one win.
    pub(crate) consume: Mutex<Option<Result<ConsumeReply, Unavailable>>>,
    pub(crate) report: Mutex<Result<(), Unavailable>>,
    pub(crate) asked: Mutex<Vec<Asked>>,
}

impl Scripted {
    pub(crate) fn knowing(grant: LiveGrant) -> Arc<Self> {
        Arc::new(Self {
            permission: Mutex::new(Ok(Ok("ticket-1".into()))),
            introspection: Mutex::new(Ok(Introspection::Live(Box::new(grant)))),
            consume: Mutex::new(None),
            report: Mutex::new(Ok(())),
            asked: Mutex::default(),
        })
    }

    pub(crate) fn count(&self, of: fn(&Asked) -> bool) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| of(asked)).count()
    }

    pub(crate) fn consumed(&self) -> usize {
        self.count(|asked| matches!(asked, Asked::Consume(_)))
    }

    pub(crate) fn tickets(&self) -> usize {
        self.count(|asked| matches!(asked, Asked::Permission(_)))
    }

    /// The questions by name, for the order of them.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let name = |asked: &Asked| match asked {
            Asked::Permission(_) => "permission",
            Asked::Introspect(_) => "introspect",
            Asked::Consume(_) => "consume",
            Asked::Round(_) => "round",
            Asked::Resume(_) => "resume",
            Asked::Report(_) => "report",
        };
        self.asked.lock().unwrap().iter().map(name).collect()
    }

    /// The `nth` answer to who spends.
    async fn spending(&self, nth: usize) -> Result<ConsumeReply, Unavailable> {
        tokio::task::yield_now().await;
        let lost = ConsumeReply { consumed: false, error: Some("already_consumed".into()) };
        let won = ConsumeReply { consumed: true, error: None };
        self.consume.lock().unwrap().clone().unwrap_or(Ok(if nth == 1 { won } else { lost }))
    }

    fn note(&self, asked: Asked) -> usize {
        let mut log = self.asked.lock().unwrap();
        log.push(asked);
        log.iter().filter(|asked| matches!(asked, Asked::Consume(_) | Asked::Resume(_))).count()
    }
}

#[async_trait]
impl Authority for Scripted {
    async fn permission(
        &self,
        request: &PermissionRequest,
    ) -> Result<Result<PermissionReply, PermissionFault>, Unavailable> {
        self.note(Asked::Permission(request.clone()));
        self.permission.lock().unwrap().clone().map(|answer| answer.map(PermissionReply::from))
    }

    async fn introspect(&self, token: &str) -> Result<Introspection, Unavailable> {
        self.note(Asked::Introspect(token.to_owned()));
        tokio::task::yield_now().await;
        self.introspection.lock().unwrap().clone()
    }

    async fn consume(&self, _token: &str, attempt: &str) -> Result<ConsumeReply, Unavailable> {
        let nth = self.note(Asked::Consume(attempt.to_owned()));
        self.spending(nth).await
    }

    async fn introspect_round(&self, _token: &str, state: &S256) -> Result<Introspection, Unavailable> {
        self.note(Asked::Round(state.clone()));
        self.introspection.lock().unwrap().clone()
    }

    async fn resume(
        &self,
        _token: &str,
        _attempt: &str,
        round: &Continuation,
    ) -> Result<ConsumeReply, Unavailable> {
        let nth = self.note(Asked::Resume(round.clone()));
        self.spending(nth).await
    }

    async fn report(&self, report: &AccessReport) -> Result<(), Unavailable> {
        self.note(Asked::Report(report.clone()));
        *self.report.lock().unwrap()
    }
}

/// An upstream that can be had, or not, and counts.
#[derive(Default)]
pub(crate) struct Door {
    pub(crate) closed: bool,
    pub(crate) checked_out: AtomicU64,
}

impl Outlet for Door {
    type Sender = ();

    async fn checkout(&self) -> Result<(), Unavailable> {
        self.checked_out.fetch_add(1, Ordering::SeqCst);
        if self.closed { Err(Unavailable::NoUpstream) } else { Ok(()) }
    }
}

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

pub(crate) fn settings() -> ResourceSettings {
    let tool = |name: &str, scope: &str, single_use, consequence| ToolSettings {
        tool: name.parse().unwrap(),
        resource_id: format!("vault/{name}").parse().unwrap(),
        scopes: vec![scope.parse().unwrap()],
        single_use,
        consequence,
        definition: None,
        surface: None,
        mirrors: Vec::new(),
    };
    ResourceSettings {
        url: "https://gw.example.test/mcp".into(),
        realm: "vault".parse().unwrap(),
        as_uri: "https://as.example.test".into(),
        client_id: "https://gw.example.test".parse().unwrap(),
        owner: "alice".parse().unwrap(),
        edition: Edition::default(),
        tools: vec![
            tool("get_positions", "positions:read", false, None),
            tool("execute_trade", "trades:execute", true, Some(Consequence::Compensatable)),
        ],
        enforcement: crate::resource::Enforcement::Uma,
        open_methods: Vec::new(),
        allowed_origins: vec!["https://app.example.test".into()],
        hosts: vec!["gw.example.test".into()],
        accept_uncovered_body: false,
        serve_query: false,
        body_limit: 1 << 20,
        jwks_uri: "https://gw.example.test/jwks".into(),
        owner_resources_endpoint: "https://gw.example.test/owner-resources".into(),
    }
}

fn grant(tool: &str, scope: &str) -> LiveGrant {
    LiveGrant {
        iss: "https://as.example.test".into(),
        aud: "https://gw.example.test".parse().unwrap(),
        owner: "alice".parse().unwrap(),
        iat: NOW.plus(-10),
        exp: NOW.plus(600),
        token_type: "PoP".into(),
        cnf: Confirmation { jwk: key(0x22).verifying().jwk() },
        permissions: vec![Permission {
            resource_id: format!("vault/{tool}").parse().unwrap(),
            resource_scopes: vec![scope.parse().unwrap()],
            exp: None,
            iat: None,
            nbf: None,
            definition: None,
        }],
        contract: sayso_protocol::canon::s256_bytes(b"agreement"),
        family: "family-1".parse().unwrap(),
        sub: Some("pw:agent".into()),
        client_id: Some("pw:agent".into()),
        consequence: None,
        single_use: false,
        operation: None,
        bind: false,
        continuation: None,
    }
}

/// For many calls of `get_positions`.
pub(crate) fn reusable() -> LiveGrant {
    grant("get_positions", "positions:read")
}

/// For one trade.
pub(crate) fn single_use() -> LiveGrant {
    let arguments = Json::parse(ARGUMENTS.as_bytes(), sayso_protocol::json::Limits::default()).unwrap();
    LiveGrant {
        single_use: true,
        operation: Some(Operation::of("execute_trade".parse().unwrap(), &arguments).unwrap()),
        ..grant("execute_trade", "trades:execute")
    }
}

/// A body of a modern `tools/call`.
pub(crate) fn call_body(tool: &str, arguments: &str) -> String {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{meta}}}}}"#
    )
}

/// A POST with the headers a modern client sends.
pub(crate) fn post(body: impl Into<String>, method: &str, name: Option<&str>) -> Incoming {
    let mut headers = HeaderMap::new();
    let lines = [
        ("host", "gw.example.test"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    for (line, value) in lines.into_iter().chain(name.map(|name| ("mcp-name", name))) {
        headers.append(HeaderName::from_static(line), HeaderValue::from_str(value).unwrap());
    }
    let head = Head { method: Method::POST, target: "/mcp".parse().unwrap(), headers };
    Incoming { head, body: Body::Whole(Bytes::from(body.into())) }
}

/// An unsigned call.
pub(crate) fn call(tool: &str, arguments: &str) -> Incoming {
    post(call_body(tool, arguments), "tools/call", Some(tool))
}

/// The honest signed call of the agent whose key is in every grant here.
pub(crate) fn signed(tool: &str, arguments: &str) -> Incoming {
    sign(call(tool, arguments), &key(0x22), NOW, "gw.example.test")
}

/// Shows the grant and signs, as late as possible so that a test can alter the request first.
pub(crate) fn sign(mut incoming: Incoming, key: &SigningKey, at: Timestamp, authority: &str) -> Incoming {
    static NONCE: AtomicU64 = AtomicU64::new(0);
    let token = HeaderValue::from_str(&format!("PoP {TOKEN}")).unwrap();
    incoming.head.headers.insert("authorization", token);
    let body = body_of(&incoming);
    let facts = Facts {
        method: incoming.head.method.as_str(),
        scheme: "https",
        authority,
        path: incoming.head.path(),
        query: incoming.head.query(),
        headers: &incoming.head.headers,
        body: sig::Body::Whole(&body),
    };
    let nonce = NONCE.fetch_add(1, Ordering::SeqCst).to_string();
    let options = SignOptions { nonce: Some(&nonce), ..SignOptions::default() };
    let signature = sig::sign(&facts, key, at, &options).unwrap();
    signature.insert_into(&mut incoming.head.headers);
    incoming
}

pub(crate) fn body_of(incoming: &Incoming) -> Bytes {
    let Body::Whole(body) = &incoming.body else { panic!("the body was cut") };
    body.clone()
}

/// An engine before a scripted authority, on a clock that stands still.
pub(crate) struct Scene {
    pub(crate) engine: Engine,
    pub(crate) authority: Arc<Scripted>,
    pub(crate) door: Door,
}

impl Scene {
    pub(crate) fn with(grant: LiveGrant) -> Self {
        Self::of(grant, settings())
    }

    pub(crate) fn of(grant: LiveGrant, settings: ResourceSettings) -> Self {
        let authority = Scripted::knowing(grant);
        let clock: Clock = Arc::new(|| NOW);
        let resource = Arc::new(Resource::new(settings).unwrap());
        let asked: Arc<dyn Authority> = authority.clone();
        let engine = Engine::new(resource, asked, Arc::new(Replay::new(NOW.plus(-300))), clock);
        Self { engine, authority, door: Door::default() }
    }

    pub(crate) async fn decide(&self, incoming: &Incoming) -> Verdict<()> {
        self.engine.decide(incoming, &self.door).await
    }

    /// The refusal of a request that must be refused.
    pub(crate) async fn refused(&self, incoming: &Incoming) -> Refusal {
        match self.decide(incoming).await {
            Verdict::Refuse(refusal) => refusal,
            other => panic!("not refused: {}", told(&other)),
        }
    }

    pub(crate) async fn code(&self, incoming: &Incoming) -> Code {
        self.refused(incoming).await.code
    }
}

/// A verdict as one word.
pub(crate) fn told(verdict: &Verdict<()>) -> String {
    match verdict {
        Verdict::Permit(permit) if permit.is_granted() => "permit".into(),
        Verdict::Permit(_) => "open".into(),
        Verdict::Challenge(_) => "challenge".into(),
        Verdict::Refuse(refusal) => refusal.code.as_str().into(),
        Verdict::Fault(fault) => fault.error.unwrap_or("malformed").into(),
        Verdict::Policy(refusal) => refusal.category.into(),
        Verdict::Bearer(challenge) => if challenge.shown { "bad token" } else { "no token" }.into(),
    }
}
