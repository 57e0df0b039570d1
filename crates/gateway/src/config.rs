//! What a gateway is made of, checked once, and the gateway itself.
//!
//! A resource's address, hosts, client id and endpoints all follow from the one public URL, so they cannot contradict one
//! another. Reading files and environment is the binary's.

use crate::upstream::{BadUpstream, Upstream, UpstreamConfig};
use sayso_enforce::carry::Carrier;
use sayso_enforce::listing::{Listing, Reader};
use sayso_enforce::publish::is_reserved;
use sayso_enforce::reading::Bodies;
use sayso_enforce::resource::{BadResource, ToolSettings};
use sayso_enforce::{
    Address, Authority, Clock, Enforcement, Engine, Observer, Published, Registry, Replay, Resource,
    ResourceSettings,
};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::{OwnerName, Realm, ResourceId, SigningKey};
use std::sync::{Arc, Mutex, PoisonError};

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
    pub(crate) carrier: Arc<Carrier>,
    pub(crate) upstream: Upstream,
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
        let public = Address::parse(&config.public_url, &config.hosts).map_err(|_| BadGateway::PublicUrl)?;
        let replay = Arc::new(Replay::new(clock()));
        let mut sites: Vec<Arc<Site>> = Vec::new();
        let mut origins = vec![public.at("")];
        let mut resources: Vec<Registry> = Vec::new();
        for entry in config.resources {
            let path = entry.path.clone();
            origins.extend(entry.allowed_origins.iter().cloned());
            let resource = Resource::new(settings(&public, &entry, config.body_limit))
                .map_err(|reason| BadGateway::Resource { path: path.clone(), reason })?;
            let upstream = Upstream::open(entry.upstream)
                .map_err(|reason| BadGateway::Upstream { path: path.clone(), reason })?;
            let authority = entry.authority;
            if sites.iter().any(|site| site.engine().resource().path() == resource.path())
                || is_reserved(&path)
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
            let carrier = Arc::new(Carrier::new(engine, Arc::new(upstream.clone())));
            sites.push(Arc::new(Site { carrier, upstream }));
        }
        let readers = config.readers;
        let listing = Listing::new(public.listing(), resources.clone(), readers, replay, Arc::clone(&clock));
        let (key, hosts) = (config.key, public.hosts().to_vec());
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
        let wanted = site.engine().resource().with_tools(tools.clone()).map_err(bad)?;
        let mut others = self.0.sites.iter().filter(|other| !Arc::ptr_eq(other, site));
        if let Some(id) = others.find_map(|other| shared_id(&other.engine().resource(), &wanted)) {
            return Err(BadGateway::Shared { path: path.to_owned(), id });
        }
        site.engine().registry().replace(tools).map_err(bad)
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

fn settings(public: &Address, config: &ResourceConfig, body_limit: usize) -> ResourceSettings {
    ResourceSettings {
        url: public.at(&config.path),
        realm: config.realm.clone(),
        as_uri: config.as_uri.clone(),
        client_id: public.client_id().clone(),
        owner: config.owner.clone(),
        edition: config.edition,
        tools: config.tools.clone(),
        enforcement: config.enforcement,
        open_methods: config.open_methods.clone(),
        allowed_origins: config.allowed_origins.clone(),
        hosts: public.hosts().to_vec(),
        accept_uncovered_body: config.accept_uncovered_body,
        serve_query: config.serve_query,
        body_limit,
        jwks_uri: public.jwks_uri(),
        owner_resources_endpoint: public.listing().to_string(),
    }
}

impl Site {
    pub(crate) fn engine(&self) -> &Engine {
        self.carrier.engine()
    }
}

impl Inner {
    /// The resource at exactly this path: other spellings of it are nothing.
    pub(crate) fn site(&self, path: &str) -> Option<&Arc<Site>> {
        self.sites.iter().find(|site| site.engine().resource().path() == path)
    }
}
