//! One resource server, whoever hosts it: its resources, an engine for each, and what it publishes.
//!
//! A resource's address, hosts, client id and endpoints all follow from the one public URL, so they cannot contradict one
//! another, and a grant for it is good at every host of it (D-15). How a request comes in and where an allowed one goes
//! is its host's.

use crate::authority::Authority;
use crate::engine::{Clock, Engine};
use crate::listing::{Listing, Reader};
use crate::observe::Observer;
use crate::publish::{JWKS, OWNER_RESOURCES, Published, is_reserved};
use crate::registry::Registry;
use crate::replay::Replay;
use crate::resource::{BadResource, Enforcement, Resource, ResourceSettings, ToolSettings};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::sig::authority_of;
use sayso_protocol::{ClientId, OwnerName, Realm, ResourceId, SigningKey};
use std::sync::Arc;
use url::Url;

/// One resource of a server.
pub struct ServerResource {
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
    /// The tools.
    pub tools: Vec<ToolSettings>,
    /// What is asked before a message is let through.
    pub enforcement: Enforcement,
    /// Methods opened beyond the table.
    pub open_methods: Vec<String>,
    /// Origins served.
    pub allowed_origins: Vec<String>,
    /// Whether older peers may leave the body uncovered (D-8).
    pub accept_uncovered_body: bool,
}

/// What a resource server is made of.
pub struct ServerConfig {
    /// The origin agents dial; the client id of this resource server.
    pub public_url: String,
    /// Further hosts that unsigned requests may name.
    pub hosts: Vec<String>,
    /// The key this resource server publishes and signs with.
    pub key: SigningKey,
    /// The authorities that may read their owners' instances.
    pub readers: Vec<Reader>,
    /// The resources.
    pub resources: Vec<ServerResource>,
    /// Limit of a request body, in bytes.
    pub body_limit: usize,
}

/// A configuration that describes no resource server.
#[derive(Debug, thiserror::Error)]
pub enum BadServer {
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
    /// A resource contradicts itself.
    #[error("resource {path}: {reason}")]
    Resource {
        /// The resource.
        path: String,
        /// What is wrong.
        reason: BadResource,
    },
}

/// A resource server, ready to be hosted.
pub struct Server {
    engines: Vec<Engine>,
    /// What it publishes.
    pub published: Published,
}

impl Server {
    /// Builds it. Its one replay cache begins to remember now, and `observer` counts every decision.
    ///
    /// # Errors
    /// When the configuration contradicts itself.
    pub fn new(
        config: ServerConfig,
        clock: Clock,
        observer: Option<&Arc<dyn Observer>>,
    ) -> Result<Self, BadServer> {
        let public = Public::parse(&config)?;
        let replay = Arc::new(Replay::new(clock()));
        let mut engines: Vec<Engine> = Vec::new();
        let mut origins = Vec::new();
        let mut registries: Vec<Registry> = Vec::new();
        for entry in config.resources {
            origins.extend(entry.allowed_origins.iter().cloned());
            let (path, authority) = (entry.path.clone(), Arc::clone(&entry.authority));
            let resource = Resource::new(public.settings(entry, config.body_limit))
                .map_err(|reason| BadServer::Resource { path: path.clone(), reason })?;
            let others = || registries.iter().map(Registry::snapshot);
            if is_reserved(&path) || others().any(|other| other.path() == resource.path()) {
                return Err(BadServer::Path(path));
            }
            if let Some(id) = others().find_map(|other| shared_id(&other, &resource)) {
                return Err(BadServer::Shared { path, id });
            }
            let registry = Registry::from(resource);
            let engine = Engine::new(registry.clone(), authority, Arc::clone(&replay), Arc::clone(&clock));
            engines.push(engine.observed(observer.cloned()));
            registries.push(registry);
        }
        let Public { endpoint, hosts, .. } = public;
        let listing = Listing::new(&endpoint, registries.clone(), config.readers, replay, Arc::clone(&clock));
        let published = Published { resources: registries, listing, key: config.key, hosts, origins, clock };
        Ok(Self { engines, published })
    }

    /// The engine of the resource at exactly this path: other spellings of it are nothing.
    pub fn engine(&self, path: &str) -> Option<&Engine> {
        self.engines.iter().find(|engine| engine.resource().path() == path)
    }
}

/// A resource id that both have at one owner's authority.
fn shared_id(one: &Resource, other: &Resource) -> Option<ResourceId> {
    let whose = |resource: &Resource| (resource.settings().as_uri.clone(), resource.settings().owner.clone());
    let ids: Vec<_> = one.listing().resources.into_iter().map(|owned| owned.id).collect();
    let mut others = other.listing().resources.into_iter().map(|owned| owned.id);
    others.find(|id| whose(one) == whose(other) && ids.contains(id))
}

/// What follows from the public URL.
struct Public {
    origin: String,
    client_id: ClientId,
    hosts: Vec<String>,
    endpoint: Url,
}

impl Public {
    fn parse(config: &ServerConfig) -> Result<Self, BadServer> {
        let url = Url::parse(&config.public_url).map_err(|_| BadServer::PublicUrl)?;
        let origin = url.origin().ascii_serialization();
        if origin != config.public_url || !matches!(url.scheme(), "http" | "https") {
            return Err(BadServer::PublicUrl);
        }
        let mut hosts = config.hosts.clone();
        hosts.push(authority_of(&url).ok_or(BadServer::PublicUrl)?);
        let endpoint = Url::parse(&format!("{origin}{OWNER_RESOURCES}")).map_err(|_| BadServer::PublicUrl)?;
        let client_id = ClientId::parse(origin.clone()).map_err(|_| BadServer::PublicUrl)?;
        Ok(Self { origin, client_id, hosts, endpoint })
    }

    fn settings(&self, resource: ServerResource, body_limit: usize) -> ResourceSettings {
        ResourceSettings {
            url: format!("{}{}", self.origin, resource.path),
            realm: resource.realm,
            as_uri: resource.as_uri,
            client_id: self.client_id.clone(),
            owner: resource.owner,
            edition: resource.edition,
            tools: resource.tools,
            enforcement: resource.enforcement,
            open_methods: resource.open_methods,
            allowed_origins: resource.allowed_origins,
            hosts: self.hosts.clone(),
            accept_uncovered_body: resource.accept_uncovered_body,
            serve_query: false,
            body_limit,
            jwks_uri: format!("{}{JWKS}", self.origin),
            owner_resources_endpoint: format!("{}{OWNER_RESOURCES}", self.origin),
        }
    }
}

#[cfg(test)]
mod tests;
