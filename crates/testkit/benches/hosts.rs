//! What the decision costs in each host: a request as it arrives there, its verdict, and the answer as far as the host
//! goes, in one process and without a network, beside the cryptography and parsing no design avoids.
//!
//! The authority answers at once and writes nothing, so that what is compared is the hosts.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot set itself up has failed")]

#[path = "../../../benches/beside.rs"]
mod beside;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use beside::{Beside, Floor};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig as Info,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use sayso_embed::{Hers, Site, SiteConfig, ToolSettings};
use sayso_enforce::authority::keys::KnownKeys;
use sayso_enforce::authority::scripted::{AGENT, AS_URI, HOST, NOW, PUBLIC, grant, key};
use sayso_enforce::carry::{Broken, Carrier, Farewell, Sent, Source, Way};
use sayso_enforce::listing::Reader;
use sayso_enforce::reading::Bodies;
use sayso_enforce::{
    Authority, Clock, Enforcement, Head, Server as Served, ServerConfig, ServerResource, Unavailable,
};
use sayso_ext_authz::grpc::message::{
    Attributes, CheckRequest, HeaderList, HttpRequest, Line, Request as Asked, Told,
};
use sayso_ext_authz::{CHECK, ExtAuthz, Outward, Whole, http_router};
use sayso_protocol::json::Limits;
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::protection::{
    AccessReport, ConsumeReply, Introspection, PermissionFault, PermissionReply, PermissionRequest,
};
use sayso_protocol::sig::{self, Facts, SignOptions};
use sayso_protocol::{canon, message};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tower::{Layer, Service, ServiceExt};

const RESULT: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[]}}"#;

/// Knows one grant, and is never slow.
struct Knowing(Introspection);

#[async_trait]
impl Authority for Knowing {
    async fn permission(
        &self,
        _: &PermissionRequest,
    ) -> Result<Result<PermissionReply, PermissionFault>, Unavailable> {
        Err(Unavailable::Nonsense)
    }

    async fn introspect(&self, _: &str) -> Result<Introspection, Unavailable> {
        Ok(self.0.clone())
    }

    async fn consume(&self, _: &str, _: &str) -> Result<ConsumeReply, Unavailable> {
        Err(Unavailable::Nonsense)
    }

    async fn report(&self, _: &AccessReport) -> Result<(), Unavailable> {
        Ok(())
    }
}

fn authority() -> Arc<dyn Authority> {
    let grant = grant("get_positions", "positions:read", AGENT);
    Arc::new(Knowing(Introspection::Live(Box::new(grant))))
}

/// Stands still; the replay cache alone began to remember a little earlier.
fn clock() -> Clock {
    let begun = std::sync::atomic::AtomicBool::new(false);
    Arc::new(move || if begun.swap(true, std::sync::atomic::Ordering::SeqCst) { NOW } else { NOW.plus(-300) })
}

fn reader() -> Reader {
    Reader { issuer: AS_URI.into(), keys: Arc::new(KnownKeys(Vec::new())) }
}

fn tools() -> Vec<ToolSettings> {
    let (name, id) = ("get_positions".parse().unwrap(), "vault/get_positions".parse().unwrap());
    vec![ToolSettings::new(name, id, vec!["positions:read".parse().unwrap()])]
}

fn config() -> ServerConfig {
    let resource = ServerResource {
        path: "/mcp".into(),
        aliases: Vec::new(),
        realm: "vault".parse().unwrap(),
        owner: "alice".parse().unwrap(),
        as_uri: AS_URI.into(),
        authority: authority(),
        edition: Edition::default(),
        tools: tools(),
        enforcement: Enforcement::Uma,
        open_methods: Vec::new(),
        allowed_origins: Vec::new(),
        accept_uncovered_body: false,
        serve_query: false,
    };
    ServerConfig {
        public_url: PUBLIC.into(),
        hosts: Vec::new(),
        key: key(0x44),
        readers: vec![reader()],
        resources: vec![resource],
        body_limit: 1 << 20,
    }
}

fn site() -> Site {
    let hers = Hers { issuer: AS_URI.into(), authority: authority(), reader: reader() };
    let config = SiteConfig::new(PUBLIC, "vault".parse().unwrap(), "alice".parse().unwrap(), hers, key(0x44));
    Site::new(SiteConfig { tools: tools(), ..config }, clock()).unwrap()
}

/// A request with its body, as it came off the wire.
#[derive(Clone)]
struct Came {
    headers: HeaderMap,
    body: Bytes,
}

impl Came {
    fn of(method: &str, name: Option<&str>, params: &str) -> Self {
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}"_meta":{meta}}}}}"#);
        let mut headers = HeaderMap::new();
        for (line, value) in [
            ("host", HOST),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
            ("x-envoy-auth-partial-body", "false"),
        ] {
            headers.insert(line, value.parse().unwrap());
        }
        headers.insert("content-length", body.len().into());
        headers.extend(name.map(|name| (http::HeaderName::from_static("mcp-name"), name.parse().unwrap())));
        Self { headers, body: body.into() }
    }

    /// The call, filled up to 1 KiB, signed afresh.
    fn call(nonce: u64) -> Self {
        let memo =
            |length| format!(r#""name":"get_positions","arguments":{{"memo":"{}"}},"#, "x".repeat(length));
        let bare = Self::of("tools/call", Some("get_positions"), &memo(0)).body.len();
        let mut call = Self::of("tools/call", Some("get_positions"), &memo(1024 - bare));
        call.headers.insert("authorization", HeaderValue::from_static("PoP reader"));
        let facts = Facts {
            method: "POST",
            scheme: "http",
            authority: HOST,
            path: "/mcp",
            query: None,
            headers: &call.headers,
            body: sig::Body::Whole(&call.body),
        };
        let nonce = nonce.to_string();
        let options = SignOptions { nonce: Some(&nonce), ..SignOptions::default() };
        let signature = sig::sign(&facts, &key(AGENT), NOW, &options).unwrap();
        signature.insert_into(&mut call.headers);
        call
    }

    fn request(self, target: &str) -> Request<Body> {
        let mut request = Request::post(target).body(Body::from(self.body)).unwrap();
        *request.headers_mut() = self.headers;
        request
    }

    /// As a gateway of others passes it on over gRPC.
    fn check(self) -> CheckRequest {
        let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let line = |(name, value): (&http::HeaderName, &HeaderValue)| Line {
            key: text(name.as_str()),
            raw_value: Bytes::copy_from_slice(value.as_bytes()),
            value: Bytes::new(),
        };
        let message = HttpRequest {
            method: text("POST"),
            path: text("/mcp"),
            host: text(HOST),
            size: i64::try_from(self.body.len()).unwrap(),
            header_map: Some(HeaderList {
                headers: self.headers.iter().filter(|(name, _)| *name != "host").map(line).collect(),
            }),
            raw_body: self.body,
            ..HttpRequest::default()
        };
        CheckRequest { attributes: Some(Attributes { request: Some(Asked { http: Some(message) }) }) }
    }
}

/// The server behind the proxy.
struct AtOnce;

impl Way for AtOnce {
    type Sender = ();
    type Body = Full<Bytes>;

    async fn checkout(&self, _: &Head) -> Result<(), Unavailable> {
        Ok(())
    }

    async fn send(&self, sent: Sent<'_, ()>) -> Result<Response<Full<Bytes>>, Broken> {
        black_box(sent.body);
        Ok(Response::new(Full::from(RESULT)))
    }
}

#[async_trait]
impl Farewell for AtOnce {
    async fn leave(&self, _: HeaderValue) {}
}

/// The server that guards itself.
#[derive(Clone)]
struct Own;

impl ServerHandler for Own {
    fn get_info(&self) -> Info {
        Info::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::default())
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(Vec::new()).into())
    }
}

/// What came, to its host and back.
async fn through<S, B>(service: S, came: Came, target: &str)
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: std::fmt::Debug,
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    let response = service.oneshot(came.request(target)).await.unwrap();
    assert!(response.status().is_success(), "{}", response.status());
    black_box(response.into_body().collect().await.unwrap().to_bytes());
}

async fn proxied(carrier: &Arc<Carrier>, bodies: &Bodies, came: Came) {
    let (parts, body) = came.request("/mcp").into_parts();
    let head = Head { method: parts.method, target: parts.uri, headers: parts.headers };
    // As its listener hands it over, whose errors end a body early.
    let body = Full::from(body.collect().await.unwrap().to_bytes());
    let response = Arc::clone(carrier).pass(AtOnce, bodies, Source::default(), head, body).await;
    assert!(response.status().is_success(), "{}", response.status());
    black_box(response.into_body().collect().await.unwrap().to_bytes());
}

/// Times `each` over what came, one after the other.
async fn timed<F: Future<Output = ()>>(all: Vec<Came>, mut each: impl FnMut(Came) -> F) -> Duration {
    let began = Instant::now();
    for came in all {
        each(came).await;
    }
    began.elapsed()
}

/// A host of its own for every sample: it remembers no signature yet.
async fn sample(host: &str, all: Vec<Came>) -> Duration {
    match host {
        "proxy" => {
            let served = Served::new(config(), clock(), None).unwrap();
            let engine = served.engine("/mcp").unwrap().clone();
            let carrier = Arc::new(Carrier::new(engine, Arc::new(AtOnce)));
            let bodies = Bodies::new(1 << 20);
            timed(all, |came| proxied(&carrier, &bodies, came)).await
        }
        "layer" => {
            let inside = Router::new().fallback(|| async { RESULT });
            let layered = site().layer().layer(inside);
            timed(all, |came| through(layered.clone(), came, "/mcp")).await
        }
        "guard" => {
            let config = StreamableHttpServerConfig::default().with_json_response(true);
            let config = config.with_legacy_session_mode(false);
            let sessions = Arc::<NeverSessionManager>::default();
            let guarded = sayso_embed::rmcp::over_http(&site().layer(), || Ok(Own), sessions, config);
            timed(all, |came| through(guarded.clone(), came, "/mcp")).await
        }
        "over HTTP" => {
            let checks = ExtAuthz::new(config(), Whole::ByFlag, Outward::default(), clock(), None).unwrap();
            let (router, target) = (http_router(checks), format!("{CHECK}/mcp"));
            timed(all, |came| through(router.clone(), came, &target)).await
        }
        _ => {
            let checks = ExtAuthz::new(config(), Whole::ByFlag, Outward::default(), clock(), None).unwrap();
            let checks = &checks;
            timed(all, |came| async move {
                let told = checks.answer(came.check()).await.told;
                if !matches!(black_box(told), Some(Told::Ok(_))) {
                    panic!("denied");
                }
            })
            .await
        }
    }
}

/// One strict parse of a listing.
fn parsing(listing: &Came) -> impl FnMut(u64) -> Duration + use<> {
    let body = listing.body.clone();
    move |times| {
        let began = Instant::now();
        for _ in 0..times {
            black_box(message::parse(black_box(&body), Limits::default()).unwrap());
        }
        began.elapsed()
    }
}

/// One Ed25519 verification with the key parsed, one strict parse, one SHA-256 of the body.
fn crypto() -> impl FnMut(u64) -> Duration + use<> {
    let (body, signer) = (Came::call(0).body, key(AGENT));
    // Of the length of what such a call has signed.
    let text = vec![b'x'; 420];
    let (signature, verifying) = (signer.sign(&text).unwrap(), signer.verifying().clone());
    move |times| {
        let began = Instant::now();
        for _ in 0..times {
            verifying.verify(black_box(&text), black_box(&signature)).unwrap();
            black_box(message::parse(black_box(&body), Limits::default()).unwrap());
            black_box(canon::sha256(black_box(&body)));
        }
        began.elapsed()
    }
}

const HOSTS: [(&str, [&str; 2]); 5] = [
    ("proxy", ["host/proxy, open method", "host/proxy, authorized"]),
    ("layer", ["host/tower layer, open method", "host/tower layer, authorized"]),
    ("guard", ["host/rmcp guard, open method", "host/rmcp guard, authorized"]),
    ("over HTTP", ["host/checked over HTTP, open method", "host/checked over HTTP, authorized"]),
    ("over gRPC", ["host/checked over gRPC, open method", "host/checked over gRPC, authorized"]),
];

fn main() {
    let runtime: Runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listing = Came::of("tools/list", None, "");
    assert_eq!(Came::call(0).body.len(), 1024);
    let mut beside = Beside::new();
    for (host, [open, authorized]) in HOSTS {
        let floor = Floor { what: "strict parse", timed: parsing(&listing) };
        beside.measure(open, floor, |times| {
            let all = (0..times).map(|_| listing.clone()).collect();
            runtime.block_on(sample(host, all))
        });
        let floor = Floor { what: "Ed25519 verify + strict parse + SHA-256", timed: crypto() };
        beside.measure(authorized, floor, |times| {
            runtime.block_on(sample(host, (0..times).map(Came::call).collect()))
        });
    }
    beside.show();
}
