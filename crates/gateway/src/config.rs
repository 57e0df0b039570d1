//! What a gateway is made of, checked once, and the gateway itself.
//!
//! A resource's address, hosts, client id and endpoints all follow from the one public URL, so they cannot contradict one
//! another. Reading files and environment is the binary's.

use crate::session::Sessions;
use crate::upstream::{BadUpstream, Upstream, UpstreamConfig};
use sayso_enforce::listing::{Listing, Reader};
use sayso_enforce::publish::{JWKS, OWNER_RESOURCES, is_reserved};
use sayso_enforce::reading::Bodies;
use sayso_enforce::resource::{BadResource, ToolSettings};
use sayso_enforce::{
    Authority, Clock, Enforcement, Engine, Observer, Published, Registry, Replay, Resource, ResourceSettings,
};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::sig::authority_of;
use sayso_protocol::{ClientId, OwnerName, Realm, ResourceId, SigningKey};
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;

/// Default limit of a request body, in bytes.
pub const BODY_LIMIT: usize = 4 << 20;

/// One resource behind the gateway.
pub struct ResourceConfig {
    /// Its path at the public URL, e.g. `/mcp`.
    pub path: String,
    /// A constant of the resource server.
    pub realm: Realm,
    /// Whose it is.
    pub owner: OwnerName,
    /// The issuer of the authority she chose.
    pub as_uri: String,
    /// That authority.
    pub authority: Arc<dyn Authority>,
    /// Which edition's identifiers are emitted.
    pub edition: Edition,
    /// The tools; none at all when they are yet to be surveyed, see [`Gateway::replace_tools`].
    pub tools: Vec<ToolSettings>,
    /// What is asked before a message is forwarded.
    pub enforcement: Enforcement,
    /// Methods opened beyond the table.
    pub open_methods: Vec<String>,
    /// Origins served beside the gateway's own.
    pub allowed_origins: Vec<String>,
    /// Whether older peers may leave the body uncovered (D-8).
    pub accept_uncovered_body: bool,
    /// Whether a query is served.
    pub serve_query: bool,
    /// The server behind it.
    pub upstream: UpstreamConfig,
}

/// A gateway: one resource server.
pub struct GatewayConfig {
    /// The origin agents dial; the client id of this resource server.
    pub public_url: String,
    /// Further hosts that unsigned requests may name.
    pub hosts: Vec<String>,
    /// The key this resource server publishes and signs with.
    pub key: SigningKey,
    /// The authorities that may read their owners' instances.
    pub readers: Vec<Reader>,
    /// The resources.
    pub resources: Vec<ResourceConfig>,
    /// Limit of a request body, in bytes.
    pub body_limit: usize,
}

/// A configuration that describes no gateway.
#[derive(Debug, thiserror::Error)]
pub enum BadGateway {
    /// The public URL is not an origin.
    #[error("the public url is not an http or https origin without a trailing slash")]
    PublicUrl,
    /// Two resources have one path, or one has the path of a published document.
    #[error("path {0} is taken")]
    Path(String),
    /// Two resources of one owner share a resource id, so that a grant of one would be a grant of the other.
    #[error(
        "resource {path} shares the resource id {id} with another of the same owner; give one another realm"
    )]
    Shared {
        /// The resource.
        path: String,
        /// The id.
        id: ResourceId,
    },
    /// Nothing is at this path.
    #[error("nothing is served at {0}")]
    NoResource(String),
    /// An upstream cannot be dialled.
    #[error("upstream of {path}: {reason}")]
    Upstream {
        /// The resource.
        path: String,
        /// What is wrong.
        reason: BadUpstream,
    },
    /// A resource contradicts itself.
    #[error("resource {path}: {reason}")]
    Resource {
        /// The resource.
        path: String,
        /// What is wrong.
        reason: BadResource,
    },
}

/// A resource and the way to it.
pub(crate) struct Site {
    pub(crate) engine: Engine,
    pub(crate) upstream: Upstream,
    pub(crate) sessions: Sessions,
}

pub(crate) struct Inner {
    pub(crate) sites: Vec<Arc<Site>>,
    pub(crate) published: Published,
    pub(crate) bodies: Bodies,
    replacing: Mutex<()>,
}

/// A gateway, ready to serve.
#[derive(Clone)]
pub struct Gateway(pub(crate) Arc<Inner>);

impl Gateway {
    /// Builds the gateway. Its replay cache begins to remember now.
    ///
    /// # Errors
    /// When the configuration contradicts itself.
    pub fn new(config: GatewayConfig, clock: Clock) -> Result<Self, BadGateway> {
        Self::observed(config, clock, None)
    }

    /// The same, with every decision counted.
    ///
    /// # Errors
    /// When the configuration contradicts itself.
    pub fn observed(
        config: GatewayConfig,
        clock: Clock,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Self, BadGateway> {
        let public = Public::parse(&config)?;
        let replay = Arc::new(Replay::new(clock()));
        let mut sites: Vec<Arc<Site>> = Vec::new();
        let mut origins = vec![public.origin.clone()];
        let mut resources: Vec<Registry> = Vec::new();
        for entry in config.resources {
            let path = entry.path.clone();
            origins.extend(entry.allowed_origins.iter().cloned());
            let resource = Resource::new(public.settings(&entry, config.body_limit))
                .map_err(|reason| BadGateway::Resource { path: path.clone(), reason })?;
            let upstream = Upstream::open(entry.upstream)
                .map_err(|reason| BadGateway::Upstream { path: path.clone(), reason })?;
            let authority = entry.authority;
            if sites.iter().any(|site| site.engine.resource().path() == resource.path()) || is_reserved(&path)
            {
                return Err(BadGateway::Path(path));
            }
            if let Some(id) = resources.iter().find_map(|other| shared_id(&other.snapshot(), &resource)) {
                return Err(BadGateway::Shared { path, id });
            }
            let registry = Registry::from(resource);
            resources.push(registry.clone());
            let engine = Engine::new(registry, authority, Arc::clone(&replay), Arc::clone(&clock))
                .observed(observer.clone());
            let sessions = Sessions::of(upstream.clone());
            sites.push(Arc::new(Site { engine, upstream, sessions }));
        }
        let readers = config.readers;
        let listing = Listing::new(&public.endpoint, resources.clone(), readers, replay, Arc::clone(&clock));
        let (key, hosts) = (config.key, public.hosts);
        Ok(Self(Arc::new(Inner {
            sites,
            published: Published { resources, listing, key, hosts, origins, clock },
            bodies: Bodies::new(config.body_limit),
            replacing: Mutex::new(()),
        })))
    }

    /// Replaces the tools of the resource at a path with what a survey found, all at once. Everything published about
    /// them follows, and every request is decided by the tools it met.
    ///
    /// # Errors
    /// When nothing is at that path, or the tools contradict one another; then nothing changes.
    pub fn replace_tools(&self, path: &str, tools: Vec<ToolSettings>) -> Result<(), BadGateway> {
        let site = self.0.site(path).ok_or_else(|| BadGateway::NoResource(path.to_owned()))?;
        let bad = |reason| BadGateway::Resource { path: path.to_owned(), reason };
        // One at a time: two that agree with what is served may contradict each other.
        let _alone = self.0.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = site.engine.resource().with_tools(tools.clone()).map_err(bad)?;
        let mut others = self.0.sites.iter().filter(|other| !Arc::ptr_eq(other, site));
        if let Some(id) = others.find_map(|other| shared_id(&other.engine.resource(), &wanted)) {
            return Err(BadGateway::Shared { path: path.to_owned(), id });
        }
        site.engine.registry().replace(tools).map_err(bad)
    }

    /// Names the realm of the resource at a path, for a server that was not heard before it was served; to be done
    /// before its tools are known.
    ///
    /// # Errors
    /// When nothing is at that path.
    pub fn name_realm(&self, path: &str, realm: Realm) -> Result<(), BadGateway> {
        let site = self.0.site(path).ok_or_else(|| BadGateway::NoResource(path.to_owned()))?;
        site.engine.registry().name(realm);
        Ok(())
    }

    /// The server behind the resource at a path.
    pub fn upstream(&self, path: &str) -> Option<Upstream> {
        self.0.site(path).map(|site| site.upstream.clone())
    }
}

/// A resource id that both have at one owner's authority.
fn shared_id(one: &Resource, other: &Resource) -> Option<ResourceId> {
    let authority =
        |resource: &Resource| (resource.settings().as_uri.clone(), resource.settings().owner.clone());
    let ids: Vec<_> = one.listing().resources.into_iter().map(|owned| owned.id).collect();
    let mut others = other.listing().resources.into_iter().map(|owned| owned.id);
    others.find(|id| authority(one) == authority(other) && ids.contains(id))
}

/// What follows from the public URL.
struct Public {
    origin: String,
    client_id: ClientId,
    hosts: Vec<String>,
    endpoint: Url,
}

impl Public {
    fn parse(config: &GatewayConfig) -> Result<Self, BadGateway> {
        let url = Url::parse(&config.public_url).map_err(|_| BadGateway::PublicUrl)?;
        let origin = url.origin().ascii_serialization();
        if origin != config.public_url || !matches!(url.scheme(), "http" | "https") {
            return Err(BadGateway::PublicUrl);
        }
        let mut hosts = config.hosts.clone();
        hosts.push(authority_of(&url).ok_or(BadGateway::PublicUrl)?);
        let endpoint =
            Url::parse(&format!("{origin}{OWNER_RESOURCES}")).map_err(|_| BadGateway::PublicUrl)?;
        let client_id = ClientId::parse(origin.clone()).map_err(|_| BadGateway::PublicUrl)?;
        Ok(Self { origin, client_id, hosts, endpoint })
    }

    fn settings(&self, config: &ResourceConfig, body_limit: usize) -> ResourceSettings {
        ResourceSettings {
            url: format!("{}{}", self.origin, config.path),
            realm: config.realm.clone(),
            as_uri: config.as_uri.clone(),
            client_id: self.client_id.clone(),
            owner: config.owner.clone(),
            edition: config.edition,
            tools: config.tools.clone(),
            enforcement: config.enforcement,
            open_methods: config.open_methods.clone(),
            allowed_origins: config.allowed_origins.clone(),
            hosts: self.hosts.clone(),
            accept_uncovered_body: config.accept_uncovered_body,
            serve_query: config.serve_query,
            body_limit,
            jwks_uri: format!("{}{JWKS}", self.origin),
            owner_resources_endpoint: format!("{}{OWNER_RESOURCES}", self.origin),
        }
    }
}

impl Inner {
    /// The resource at exactly this path: other spellings of it are nothing (see `proxy`).
    pub(crate) fn site(&self, path: &str) -> Option<&Arc<Site>> {
        self.sites.iter().find(|site| site.engine.resource().path() == path)
    }
}
