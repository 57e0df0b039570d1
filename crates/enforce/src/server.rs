//! One resource server, whoever hosts it: its resources, an engine for each, and what it publishes.
//!
//! A resource's address, hosts, client id and endpoints all follow from the one public URL, so they cannot contradict one
//! another, and a grant for it is good at every host of it (D-15). How a request comes in and where an allowed one goes
//! is its host's.

use crate::address::Address;
use crate::authority::Authority;
use crate::engine::{Clock, Engine};
use crate::listing::{Listing, Reader};
use crate::observe::Observer;
use crate::publish::{Published, is_reserved};
use crate::registry::Registry;
use crate::replay::Replay;
use crate::resource::{BadResource, Enforcement, Resource, ResourceSettings, ToolSettings};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::{OwnerName, Realm, ResourceId, SigningKey};
use std::sync::{Arc, Mutex, PoisonError};

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
    /// The tools; none at all when they are yet to be surveyed, see [`Server::replace_tools`].
    pub tools: Vec<ToolSettings>,
    /// What is asked before a message is let through.
    pub enforcement: Enforcement,
    /// Methods opened beyond the table.
    pub open_methods: Vec<String>,
    /// Origins served beside the resource's own.
    pub allowed_origins: Vec<String>,
    /// Whether older peers may leave the body uncovered (D-8).
    pub accept_uncovered_body: bool,
    /// Whether a query is served; then signatures cover it (D-10).
    pub serve_query: bool,
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
    /// Two resources have one path, or one has the path of a published document, or none.
    #[error("path {0} is taken, or does not begin with a slash")]
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
    replacing: Mutex<()>,
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
        let public = Address::parse(&config.public_url, &config.hosts).map_err(|_| BadServer::PublicUrl)?;
        let replay = Arc::new(Replay::new(clock()));
        let mut engines: Vec<Engine> = Vec::new();
        let mut origins = vec![public.at("")];
        let mut registries: Vec<Registry> = Vec::new();
        for entry in config.resources {
            origins.extend(entry.allowed_origins.iter().cloned());
            let (path, authority) = (entry.path.clone(), Arc::clone(&entry.authority));
            let resource = Resource::new(settings(&public, entry, config.body_limit))
                .map_err(|reason| BadServer::Resource { path: path.clone(), reason })?;
            let others = || registries.iter().map(Registry::snapshot);
            // Without its slash a path would be part of the host's name.
            if !path.starts_with('/')
                || is_reserved(&path)
                || others().any(|other| other.path() == resource.path())
            {
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
        let (readers, hosts) = (config.readers, public.hosts().to_vec());
        let listing = Listing::new(public.listing(), registries.clone(), readers, replay, Arc::clone(&clock));
        let published = Published { resources: registries, listing, key: config.key, hosts, origins, clock };
        Ok(Self { engines, published, replacing: Mutex::new(()) })
    }

    /// Replaces the tools of the resource at a path, all at once. Everything published about them follows, and every
    /// request is decided by the tools it met.
    ///
    /// # Errors
    /// When nothing is at that path, or the tools contradict one another; then nothing changes.
    pub fn replace_tools(&self, path: &str, tools: Vec<ToolSettings>) -> Result<(), BadServer> {
        let engine = self.engine(path).ok_or_else(|| BadServer::NoResource(path.to_owned()))?;
        let bad = |reason| BadServer::Resource { path: path.to_owned(), reason };
        // One at a time: two that agree with what is served may contradict each other.
        let _alone = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = engine.resource().with_tools(tools.clone()).map_err(bad)?;
        let mut others = self.engines.iter().map(Engine::resource).filter(|other| other.path() != path);
        if let Some(id) = others.find_map(|other| shared_id(&other, &wanted)) {
            return Err(BadServer::Shared { path: path.to_owned(), id });
        }
        engine.registry().replace(tools).map_err(bad)
    }

    /// The engine of each resource, in their order.
    pub fn engines(&self) -> &[Engine] {
        &self.engines
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

fn settings(public: &Address, resource: ServerResource, body_limit: usize) -> ResourceSettings {
    ResourceSettings {
        url: public.at(&resource.path),
        realm: resource.realm,
        as_uri: resource.as_uri,
        client_id: public.client_id().clone(),
        owner: resource.owner,
        edition: resource.edition,
        tools: resource.tools,
        enforcement: resource.enforcement,
        open_methods: resource.open_methods,
        allowed_origins: resource.allowed_origins,
        hosts: public.hosts().to_vec(),
        accept_uncovered_body: resource.accept_uncovered_body,
        serve_query: resource.serve_query,
        body_limit,
        jwks_uri: public.jwks_uri(),
        owner_resources_endpoint: public.listing().to_string(),
    }
}

#[cfg(test)]
mod tests;
