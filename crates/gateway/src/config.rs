//! What a gateway is made of, checked once, and the gateway itself.
//!
//! What it is as a resource server is the core's to check; what it has beside that is a server behind each resource.
//! Reading files and environment is the binary's.

use crate::upstream::{BadUpstream, Upstream, UpstreamConfig};
use sayso_enforce::carry::Carrier;
use sayso_enforce::listing::Reader;
use sayso_enforce::reading::Bodies;
use sayso_enforce::resource::ToolSettings;
use sayso_enforce::{BadServer, Clock, Engine, Observer, Served, Server, ServerConfig, ServerResource};
use sayso_protocol::{Realm, SigningKey};
use std::sync::Arc;

/// Default limit of a request body, in bytes.
pub const BODY_LIMIT: usize = 4 << 20;

/// One resource behind the gateway.
pub struct ResourceConfig {
    /// What it is, and whose.
    pub resource: ServerResource,
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
    /// It describes no resource server.
    #[error(transparent)]
    Server(#[from] BadServer),
    /// An upstream cannot be dialled.
    #[error("upstream of {path}: {reason}")]
    Upstream {
        /// The resource.
        path: String,
        /// What is wrong.
        reason: BadUpstream,
    },
}

/// A resource and the way to it.
pub(crate) struct Site {
    pub(crate) carrier: Arc<Carrier>,
    pub(crate) upstream: Upstream,
}

pub(crate) struct Inner {
    pub(crate) sites: Vec<Arc<Site>>,
    pub(crate) server: Server,
    pub(crate) bodies: Bodies,
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
        let body_limit = config.body_limit;
        let open = |resource: ResourceConfig| {
            let path = resource.resource.path.clone();
            let upstream = Upstream::open(resource.upstream);
            let upstream = upstream.map_err(|reason| BadGateway::Upstream { path, reason })?;
            Ok((resource.resource, upstream))
        };
        let opened = config.resources.into_iter().map(open).collect::<Result<Vec<_>, BadGateway>>()?;
        let (resources, upstreams): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        let GatewayConfig { public_url, hosts, key, readers, .. } = config;
        let server = ServerConfig { public_url, hosts, key, readers, resources, body_limit };
        let server = Server::new(server, clock, observer.as_ref())?;
        let site = |at: &Served| {
            let upstream = upstreams.get(at.resource)?.clone();
            if let Some(policy) = at.engine.resource().settings().enforcement.policy() {
                policy.mappings().learn_from(Arc::new(upstream.clone()));
            }
            let carrier = Arc::new(Carrier::new(at.engine.clone(), Arc::new(upstream.clone())));
            Some(Arc::new(Site { carrier, upstream }))
        };
        // INVARIANT: each address is one of a resource that was configured.
        let sites = server.addresses().iter().filter_map(site).collect();
        Ok(Self(Arc::new(Inner { sites, server, bodies: Bodies::new(body_limit) })))
    }

    /// Replaces the tools of the resource at a path with what a survey found, all at once. Everything published about
    /// them follows, and every request is decided by the tools it met.
    ///
    /// # Errors
    /// When nothing is at that path, or the tools contradict one another; then nothing changes.
    pub fn replace_tools(&self, path: &str, tools: Vec<ToolSettings>) -> Result<(), BadGateway> {
        Ok(self.0.server.replace_tools(path, tools)?)
    }

    /// Names the realm of the resource at a path, for a server that was not heard before it was served; to be done
    /// before its tools are known.
    ///
    /// # Errors
    /// When nothing is at that path.
    pub fn name_realm(&self, path: &str, realm: Realm) -> Result<(), BadGateway> {
        Ok(self.0.server.name_realm(path, &realm)?)
    }

    /// The server behind the resource at a path.
    pub fn upstream(&self, path: &str) -> Option<Upstream> {
        self.0.site(path).map(|site| site.upstream.clone())
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
