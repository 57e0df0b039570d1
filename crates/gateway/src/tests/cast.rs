//! The parties of these tests.

use super::wire::{Request, Response};
use crate::{Gateway, GatewayConfig, ResourceConfig, UpstreamConfig, serve};
use sayso_enforce::authority::keys::KnownKeys;
use sayso_enforce::listing::Reader;
use sayso_enforce::policy::scripted::{Point, Script};
use sayso_enforce::resource::ToolSettings;
use sayso_enforce::{Authority, Clock, ServerResource};
use sayso_protocol::payload::edition::Edition;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

pub(super) use sayso_enforce::authority::scripted::{AS_URI, HOST, NOW, PUBLIC, Scripted, TRADE, key};

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

/// What a policy alone protects, as this decision point decides.
pub(super) fn policed(
    point: &Arc<Point>,
    script: Script,
    upstream: impl Into<UpstreamConfig>,
) -> ResourceConfig {
    let resource = ServerResource::policed("/mcp", script.policed(point)).unwrap();
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
        Self::by(Arc::new(clock), canary, authority, config).await
    }

    pub(super) async fn by(
        clock: Clock,
        canary: Arc<Canary>,
        authority: Arc<Scripted>,
        config: GatewayConfig,
    ) -> Self {
        let gateway = Gateway::new(config, clock).unwrap();
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
        self.authority.assert_untouched(what);
    }
}
