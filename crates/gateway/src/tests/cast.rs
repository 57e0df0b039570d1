//! The parties of these tests.

use super::wire::{Request, Response};
use crate::{Gateway, GatewayConfig, ResourceConfig, UpstreamConfig, serve};
use async_trait::async_trait;
use sayso_enforce::ServerResource;
use sayso_enforce::authority::keys::KnownKeys;
use sayso_enforce::listing::Reader;
use sayso_enforce::resource::ToolSettings;
use sayso_enforce::{Authority, Unavailable};
use sayso_protocol::json::Limits;
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::operation::Operation;
use sayso_protocol::payload::protection::{
    AccessReport, ConsumeReply, Introspection, LiveGrant, PermissionFault, PermissionReply, PermissionRequest,
};
use sayso_protocol::payload::rpt::{Confirmation, Permission};
use sayso_protocol::{Json, SigningKey, Timestamp};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

pub(super) const NOW: Timestamp = Timestamp(1_790_000_000);
pub(super) const PUBLIC: &str = "http://gw.example.test";
pub(super) const HOST: &str = "gw.example.test";
pub(super) const TRADE: &str = r#"{"symbol":"VTI","quantity":3}"#;
pub(super) const AS_URI: &str = "https://as.example.test";

/// The authority: two tokens, `reader` and `trade-…`; every trade token is for the one approved trade, once.
#[derive(Default)]
pub(super) struct Scripted {
    pub(super) gone: Mutex<bool>,
    pub(super) stale: Mutex<bool>,
    pub(super) silent_consume: Mutex<bool>,
    /// How long it takes to say what a token is.
    pub(super) slow_introspect: Mutex<Duration>,
    /// How long it takes to say that something was spent.
    pub(super) slow_consume: Mutex<Duration>,
    /// What it waits for before it says that something was spent.
    pub(super) gate: Mutex<Option<Arc<tokio::sync::Semaphore>>>,
    pub(super) no_reports: Mutex<bool>,
    /// Why every token is dead, once it is.
    pub(super) ended: Mutex<Option<&'static str>>,
    pub(super) introspected: AtomicU64,
    pub(super) spent: Mutex<Vec<String>>,
    pub(super) tickets: AtomicU64,
    pub(super) reports: Mutex<Vec<AccessReport>>,
}

fn grant(tool: &str, scope: &str) -> LiveGrant {
    LiveGrant {
        iss: AS_URI.into(),
        aud: PUBLIC.parse().unwrap(),
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
        consequence: None,
        single_use: false,
        operation: None,
        bind: false,
        continuation: None,
    }
}

#[async_trait]
impl Authority for Scripted {
    async fn permission(
        &self,
        _request: &PermissionRequest,
    ) -> Result<Result<PermissionReply, PermissionFault>, Unavailable> {
        if *self.gone.lock().unwrap() {
            return Err(Unavailable::Unreachable);
        }
        if *self.stale.lock().unwrap() {
            return Ok(Err(PermissionFault::InvalidScope));
        }
        let nth = self.tickets.fetch_add(1, Ordering::SeqCst);
        Ok(Ok(format!("ticket-{nth}").into()))
    }

    async fn introspect(&self, token: &str) -> Result<Introspection, Unavailable> {
        if *self.gone.lock().unwrap() {
            return Err(Unavailable::Unreachable);
        }
        let slow = *self.slow_introspect.lock().unwrap();
        tokio::time::sleep(slow).await;
        self.introspected.fetch_add(1, Ordering::SeqCst);
        if let Some(reason) = *self.ended.lock().unwrap() {
            return Ok(Introspection::Dead(reason.to_owned().into()));
        }
        let arguments = Json::parse(TRADE.as_bytes(), Limits::default()).unwrap();
        let grant = match token {
            "reader" => grant("get_positions", "positions:read"),
            "other" => LiveGrant {
                cnf: Confirmation { jwk: key(0x33).verifying().jwk() },
                ..grant("get_positions", "positions:read")
            },
            "unbound" => grant("execute_trade", "trades:execute"),
            trade if trade.starts_with("trade") => LiveGrant {
                single_use: true,
                operation: Some(Operation::of("execute_trade".parse().unwrap(), &arguments).unwrap()),
                ..grant("execute_trade", "trades:execute")
            },
            reason => return Ok(Introspection::Dead(reason.to_owned().into())),
        };
        Ok(Introspection::Live(Box::new(grant)))
    }

    async fn consume(&self, token: &str, _attempt: &str) -> Result<ConsumeReply, Unavailable> {
        if *self.silent_consume.lock().unwrap() {
            return Err(Unavailable::Interrupted);
        }
        let won = {
            let mut spent = self.spent.lock().unwrap();
            spent.push(token.to_owned());
            spent.iter().filter(|known| *known == token).count() == 1
        };
        let slow = *self.slow_consume.lock().unwrap();
        tokio::time::sleep(slow).await;
        let gate = self.gate.lock().unwrap().clone();
        if let Some(gate) = gate {
            drop(gate.acquire().await);
        }
        Ok(ConsumeReply { consumed: won, error: (!won).then(|| "already_consumed".to_owned()) })
    }

    async fn report(&self, report: &AccessReport) -> Result<(), Unavailable> {
        if *self.no_reports.lock().unwrap() {
            return Err(Unavailable::Unreachable);
        }
        self.reports.lock().unwrap().push(report.clone());
        Ok(())
    }
}

/// An upstream that keeps what it got and answers what it is told.
#[derive(Default)]
pub(super) struct Canary {
    pub(super) requests: Mutex<Vec<Vec<u8>>>,
    pub(super) answer: Mutex<Vec<u8>>,
    /// Closes the connection after the request instead of answering.
    pub(super) mute: Mutex<bool>,
    /// Sends the answer, then holds the connection open and says when the other side has closed it.
    pub(super) held: Mutex<Option<oneshot::Sender<()>>>,
}

pub(super) const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

impl Canary {
    pub(super) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// The head and body of the only request.
    pub(super) fn only(&self) -> (String, Vec<u8>) {
        let [request] = self.requests.lock().unwrap().clone().try_into().expect("one request");
        let at = request.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        (String::from_utf8(request[..at].to_vec()).unwrap(), request[at + 4..].to_vec())
    }

    pub(super) async fn open() -> (Arc<Self>, SocketAddr) {
        let canary = Arc::new(Canary::default());
        let plain = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{RESULT}",
            RESULT.len()
        );
        *canary.answer.lock().unwrap() = plain.into_bytes();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::clone(&canary);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&served).converse(stream));
            }
        });
        (canary, address)
    }

    async fn converse(self: Arc<Self>, mut stream: TcpStream) {
        while let Some(request) = read_message(&mut stream).await {
            self.requests.lock().unwrap().push(request);
            if *self.mute.lock().unwrap() {
                return;
            }
            let answer = self.answer.lock().unwrap().clone();
            if stream.write_all(&answer).await.is_err() {
                return;
            }
            let held = self.held.lock().unwrap().take();
            if let Some(closed) = held {
                while stream.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
                let _ = closed.send(());
                return;
            }
        }
    }
}

/// One HTTP message with a `content-length`, raw.
async fn read_message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(at) = message.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&message[..at]).to_ascii_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            if message.len() >= at + 4 + length.unwrap_or(0) {
                return Some(message);
            }
        }
        match stream.read(&mut piece).await {
            Ok(read) if read > 0 => message.extend_from_slice(&piece[..read]),
            _ => return None,
        }
    }
}

pub(super) fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

/// A gateway with its neighbours.
pub(super) struct House {
    pub(super) authority: Arc<Scripted>,
    pub(super) canary: Arc<Canary>,
    pub(super) gateway: SocketAddr,
    pub(super) handle: Gateway,
    stop: Option<oneshot::Sender<()>>,
    pub(super) ended: tokio::task::JoinHandle<()>,
}

pub(super) fn tool(name: &str, scope: &str, single_use: bool) -> ToolSettings {
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

pub(super) fn resource(
    path: &str,
    authority: Arc<dyn Authority>,
    upstream: impl Into<UpstreamConfig>,
) -> ResourceConfig {
    let resource = ServerResource {
        path: path.into(),
        aliases: Vec::new(),
        realm: "vault".parse().unwrap(),
        owner: "alice".parse().unwrap(),
        as_uri: AS_URI.into(),
        authority,
        edition: Edition::default(),
        tools: vec![
            tool("get_positions", "positions:read", false),
            tool("execute_trade", "trades:execute", true),
        ],
        enforcement: sayso_enforce::Enforcement::Uma,
        open_methods: Vec::new(),
        allowed_origins: vec!["https://app.example.test".into()],
        accept_uncovered_body: false,
        serve_query: false,
    };
    ResourceConfig { resource, upstream: upstream.into() }
}

pub(super) fn config(resources: Vec<ResourceConfig>) -> GatewayConfig {
    let keys = Arc::new(KnownKeys(vec![key(0x11).verifying().clone()]));
    GatewayConfig {
        public_url: PUBLIC.into(),
        hosts: Vec::new(),
        key: key(0x44),
        readers: vec![Reader { issuer: AS_URI.into(), keys }],
        resources,
        body_limit: 64 << 10,
    }
}

impl House {
    pub(super) async fn open() -> Self {
        let (canary, upstream) = Canary::open().await;
        Self::before(canary, format!("http://{upstream}/behind/mcp")).await
    }

    pub(super) async fn before(canary: Arc<Canary>, upstream: impl Into<UpstreamConfig>) -> Self {
        let authority = Arc::new(Scripted::default());
        Self::with(canary, authority.clone(), config(vec![resource("/mcp", authority, upstream)])).await
    }

    pub(super) async fn with(canary: Arc<Canary>, authority: Arc<Scripted>, config: GatewayConfig) -> Self {
        // The replay cache starts a little in the past, so that signatures made at any time of a test are its own.
        let first = AtomicU64::new(0);
        let clock = move || if first.fetch_add(1, Ordering::SeqCst) == 0 { NOW.plus(-300) } else { NOW };
        let gateway = Gateway::new(config, Arc::new(clock)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let handle = gateway.clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let ended = tokio::spawn(async move {
            let shutdown = async { drop(stopped.await) };
            serve(listener, gateway, shutdown).await;
        });
        Self { authority, canary, gateway: address, handle, stop: Some(stop), ended }
    }

    pub(super) fn stop(&mut self) {
        self.stop.take();
    }

    pub(super) async fn send(&self, request: &Request) -> Response {
        self.send_raw(&request.bytes()).await
    }

    pub(super) async fn send_raw(&self, bytes: &[u8]) -> Response {
        let mut stream = TcpStream::connect(self.gateway).await.unwrap();
        // A gateway that refuses early may close before it has read everything.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        Response::parse(&answer)
    }

    /// Nothing was forwarded, and no trade token spent.
    pub(super) fn assert_untouched(&self, what: &str) {
        assert_eq!(self.canary.count(), 0, "{what}: forwarded");
        assert!(self.authority.spent.lock().unwrap().is_empty(), "{what}: spent");
        assert!(self.authority.reports.lock().unwrap().is_empty(), "{what}: reported");
    }
}
