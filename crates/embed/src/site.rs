//! The one resource a server guards: what it is, whose it is, and what is published about it.
//!
//! Everything an agent is told follows from the public URL and the registry the engine decides by. A site is made once
//! and shared by its hosts, which so share one replay cache.

use crate::layer::SiteLayer;
use http::HeaderName;
use sayso_enforce::authority::http::HttpAuthority;
use sayso_enforce::authority::keys::{HttpKeys, KnownKeys};
use sayso_enforce::listing::Reader;
use sayso_enforce::reading::Bodies;
use sayso_enforce::resource::ToolSettings;
use sayso_enforce::{
    Authority, BadServer, Clock, Enforcement, Engine, Observer, Policed, Published, Server, ServerConfig,
    ServerResource,
};
use sayso_fetch::{Client, Fetch, Reach};
use sayso_protocol::envelope::jsonrpc::Codes;
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::{ClientId, OwnerName, Realm, SigningKey, Timestamp};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Default limit of a request body, in bytes.
pub const BODY_LIMIT: usize = 4 << 20;

/// The authority the owner chose.
#[derive(Clone)]
pub struct Hers {
    /// Its issuer.
    pub issuer: String,
    /// How it is asked.
    pub authority: Arc<dyn Authority>,
    /// Whose signature opens the owner's listing; its keys.
    pub reader: Reader,
}

impl Hers {
    /// The authority of this issuer, reached over HTTP in the owner's name, by the key the resource server publishes.
    /// Nothing is asked yet.
    ///
    /// # Errors
    /// When the public URL is not an origin.
    pub fn at(
        issuer: &str,
        public_url: &str,
        owner: OwnerName,
        key: SigningKey,
        clock: &Clock,
    ) -> Result<Self, BadServer> {
        let client_id = ClientId::parse(public_url).map_err(|_| BadServer::PublicUrl)?;
        let fetch: Arc<dyn Fetch> = Arc::new(Client::new(Reach::Configured));
        let keys = HttpKeys::new(Arc::clone(&fetch), issuer, Arc::clone(clock));
        let authority = HttpAuthority::new(fetch, issuer, client_id, owner, key, Arc::clone(clock));
        let reader = Reader { issuer: issuer.to_owned(), keys: Arc::new(keys) };
        Ok(Self { issuer: issuer.to_owned(), authority: Arc::new(authority), reader })
    }
}

/// A site as its server names it.
pub struct SiteConfig {
    /// The origin agents dial; the client id of this resource server.
    pub public_url: String,
    /// The path of the MCP endpoint there.
    pub path: String,
    /// Further hosts that unsigned requests may name.
    pub hosts: Vec<String>,
    /// A constant of the resource server.
    pub realm: Realm,
    /// Whose it is.
    pub owner: OwnerName,
    /// The authority she chose.
    pub hers: Hers,
    /// The key this resource server publishes and signs with.
    pub key: SigningKey,
    /// The tools; one that is not here is refused.
    pub tools: Vec<ToolSettings>,
    /// Which edition's identifiers are emitted.
    pub edition: Edition,
    /// What is asked before a message is let through.
    pub enforcement: Enforcement,
    /// Methods opened beyond the table.
    pub open_methods: Vec<String>,
    /// Origins served.
    pub allowed_origins: Vec<String>,
    /// Whether older peers may leave the body uncovered (D-8).
    pub accept_uncovered_body: bool,
    /// Headers that reach the server beside the protocol's own. Nothing an agent signed need cover them (D-10).
    pub pass_headers: Vec<HeaderName>,
    /// Limit of a request body, in bytes.
    pub body_limit: usize,
    /// The numbers of JSON-RPC errors, where refusals are answered as such (D-2).
    pub codes: Codes,
    /// Whoever counts decisions.
    pub observer: Option<Arc<dyn Observer>>,
}

impl SiteConfig {
    /// The MCP endpoint `/mcp` of this origin, as strict as it can be, without a tool.
    pub fn new(
        public_url: impl Into<String>,
        realm: Realm,
        owner: OwnerName,
        hers: Hers,
        key: SigningKey,
    ) -> Self {
        Self {
            public_url: public_url.into(),
            path: "/mcp".to_owned(),
            hosts: Vec::new(),
            realm,
            owner,
            hers,
            key,
            tools: Vec::new(),
            edition: Edition::default(),
            enforcement: Enforcement::default(),
            open_methods: Vec::new(),
            allowed_origins: Vec::new(),
            accept_uncovered_body: false,
            pass_headers: Vec::new(),
            body_limit: BODY_LIMIT,
            codes: Codes::default(),
            observer: None,
        }
    }
}

impl SiteConfig {
    /// The MCP endpoint `/mcp` of this origin, protected by a policy alone: it has no owner.
    ///
    /// # Errors
    /// When the public URL is not an origin.
    pub fn policed(
        public_url: impl Into<String>,
        policed: Policed,
        key: SigningKey,
    ) -> Result<Self, BadServer> {
        let resource = ServerResource::policed("/mcp", policed)?;
        let reader = Reader { issuer: String::new(), keys: Arc::new(KnownKeys(Vec::new())) };
        let hers = Hers { issuer: resource.as_uri, authority: resource.authority, reader };
        let config = Self::new(public_url, resource.realm, resource.owner, hers, key);
        Ok(Self { enforcement: resource.enforcement, ..config })
    }
}

/// What the hosts of one resource share.
pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) published: Published,
    pub(crate) bodies: Bodies,
    pub(crate) path: String,
    pub(crate) codes: Codes,
    pub(crate) pass_headers: Vec<HeaderName>,
}

/// One guarded resource; clones are the same one.
#[derive(Clone)]
pub struct Site(pub(crate) Arc<Inner>);

impl Site {
    /// Builds the site. Its replay cache begins to remember now.
    ///
    /// # Errors
    /// When the configuration contradicts itself.
    pub fn new(config: SiteConfig, clock: Clock) -> Result<Self, BadServer> {
        let (path, body_limit) = (config.path.clone(), config.body_limit);
        let Hers { issuer: as_uri, authority, reader } = config.hers;
        let resource = ServerResource {
            path: config.path,
            aliases: Vec::new(),
            realm: config.realm,
            owner: config.owner,
            as_uri,
            authority,
            edition: config.edition,
            tools: config.tools,
            enforcement: config.enforcement,
            open_methods: config.open_methods,
            allowed_origins: config.allowed_origins,
            accept_uncovered_body: config.accept_uncovered_body,
            serve_query: false,
        };
        let server = ServerConfig {
            public_url: config.public_url,
            hosts: config.hosts,
            key: config.key,
            readers: vec![reader],
            resources: vec![resource],
            body_limit,
        };
        let server = Server::new(server, clock, config.observer.as_ref())?;
        // INVARIANT: the one resource there is has that path.
        let engine = server.engine(&path).ok_or(BadServer::NoResource(path.clone()))?.clone();
        let (published, bodies, codes) = (server.published, Bodies::new(body_limit), config.codes);
        let pass_headers = config.pass_headers;
        Ok(Self(Arc::new(Inner { engine, published, bodies, path, codes, pass_headers })))
    }

    /// The layer that guards a server over HTTP.
    pub fn layer(&self) -> SiteLayer {
        SiteLayer::of(self.clone())
    }

    /// Replaces all tools at once; everything published about them follows. Requests that are being decided keep the
    /// ones they began with.
    ///
    /// # Errors
    /// When the tools contradict one another; then nothing changes.
    pub fn replace_tools(&self, tools: Vec<ToolSettings>) -> Result<(), BadServer> {
        let bad = |reason| BadServer::Resource { path: self.0.path.clone(), reason };
        self.0.engine.registry().replace(tools).map_err(bad)
    }
}

/// The time of this machine.
pub fn system_clock() -> Clock {
    Arc::new(now)
}

#[expect(clippy::disallowed_methods, reason = "the one clock of a server that has no binary of ours")]
fn now() -> Timestamp {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX))
}
