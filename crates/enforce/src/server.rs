//! One resource server, whoever hosts it: its resources, an engine for each, and what it publishes.
//!
//! A resource's address, hosts, client id and endpoints all follow from the one public URL, so they cannot contradict one
//! another, and a grant for it is good at every host of it (D-15). How a request comes in and where an allowed one goes
//! is its host's.

use crate::address::Address;
use crate::authority::{Authority, Nobody};
use crate::engine::{Clock, Engine};
use crate::listing::{Listing, Reader};
use crate::observe::Observer;
use crate::publish::{Published, is_reserved};
use crate::registry::Registry;
use crate::replay::Replay;
use crate::resource::{BadResource, Enforcement, Policed, Resource, ResourceSettings, ToolSettings};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::{OwnerName, Realm, ResourceId, SigningKey};
use std::sync::{Arc, Mutex, PoisonError};

/// One resource of a server.
pub struct ServerResource {
    /// Its path at the public URL, e.g. `/mcp`.
    pub path: String,
    /// Further paths it is served at. Each is a resource of its own to whoever dials it (CORE-115), and what is granted is
    /// the one thing behind them all.
    pub aliases: Vec<String>,
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

impl ServerResource {
    /// A resource that a policy alone protects. It is nobody's: no authority is asked about it, and no owner lists it.
    ///
    /// # Errors
    /// Never with the names it has.
    pub fn policed(path: impl Into<String>, policed: Policed) -> Result<Self, BadServer> {
        let path = path.into();
        let unnamed = || BadServer::Path(path.clone());
        Ok(Self {
            aliases: Vec::new(),
            realm: Realm::parse("policed").map_err(|_| unnamed())?,
            owner: OwnerName::parse("nobody").map_err(|_| unnamed())?,
            as_uri: String::new(),
            authority: Arc::new(Nobody),
            edition: Edition::default(),
            tools: Vec::new(),
            enforcement: Enforcement::Coaz(policed),
            open_methods: Vec::new(),
            allowed_origins: Vec::new(),
            accept_uncovered_body: false,
            serve_query: false,
            path,
        })
    }
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
    /// A list is to be cut at a host that never sees it.
    #[error("resource {0} is to cut lists, and this host does not see the answers of its server")]
    Unseen(String),
    /// A call is to be denied by a result at a host whose denials have error statuses.
    #[error(
        "resource {0} is to deny by results, and this host's denials have an error status, under which nobody reads one"
    )]
    ByResult(String),
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

/// A path at which a resource is served.
pub struct Served {
    /// Which of the configured resources it is, counted from nothing.
    pub resource: usize,
    /// What decides there.
    pub engine: Engine,
}

/// A resource server, ready to be hosted.
pub struct Server {
    addresses: Vec<Served>,
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
        let mut origins = vec![public.at("")];
        let mut addresses: Vec<Served> = Vec::new();
        for (nth, entry) in config.resources.iter().enumerate() {
            origins.extend(entry.allowed_origins.iter().cloned());
            for path in std::iter::once(&entry.path).chain(&entry.aliases) {
                let resource = Resource::new(settings(&public, entry, path, config.body_limit))
                    .map_err(|reason| BadServer::Resource { path: path.clone(), reason })?;
                check(&addresses, nth, path, &resource)?;
                let (authority, replay) = (Arc::clone(&entry.authority), Arc::clone(&replay));
                let engine = Engine::new(Registry::from(resource), authority, replay, Arc::clone(&clock));
                addresses.push(Served { resource: nth, engine: engine.observed(observer.cloned()) });
            }
        }
        let registries: Vec<Registry> = addresses.iter().map(|at| at.engine.registry().clone()).collect();
        // Of a resource with several addresses her authority reads once what it is.
        let listed = (0..config.resources.len()).filter_map(|nth| {
            // What no owner is asked about is no owner's to list.
            let hers = |at: &Served| at.engine.resource().settings().enforcement.policed().is_none();
            let mut at = addresses.iter().filter(|at| at.resource == nth && hers(at));
            at.next().map(|at| at.engine.registry().clone())
        });
        let listing = Listing::new(public.listing(), listed, config.readers, replay, Arc::clone(&clock));
        let (key, hosts) = (config.key, public.hosts().to_vec());
        let published = Published { resources: registries, listing, key, hosts, origins, clock };
        Ok(Self { addresses, published, replacing: Mutex::new(()) })
    }

    /// Replaces the tools of the resource at a path, all at once. Everything published about them follows, and every
    /// request is decided by the tools it met.
    ///
    /// # Errors
    /// When nothing is at that path, or the tools contradict one another; then nothing changes.
    pub fn replace_tools(&self, path: &str, tools: Vec<ToolSettings>) -> Result<(), BadServer> {
        let at = self.address(path).ok_or_else(|| BadServer::NoResource(path.to_owned()))?;
        let bad = |reason| BadServer::Resource { path: path.to_owned(), reason };
        // One at a time: two that agree with what is served may contradict each other.
        let _alone = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = at.engine.resource().with_tools(tools.clone()).map_err(bad)?;
        let mut others = self.addresses.iter().filter(|other| other.resource != at.resource);
        if let Some(id) = others.find_map(|other| shared_id(&other.engine.resource(), &wanted)) {
            return Err(BadServer::Shared { path: path.to_owned(), id });
        }
        let mut same = self.addresses.iter().filter(|other| other.resource == at.resource);
        same.try_for_each(|same| same.engine.registry().replace(tools.clone()).map_err(bad))
    }

    /// Names the realm of the resource at a path, at every address of it; to be done before its tools are known.
    ///
    /// # Errors
    /// When nothing is at that path.
    pub fn name_realm(&self, path: &str, realm: &Realm) -> Result<(), BadServer> {
        let at = self.address(path).ok_or_else(|| BadServer::NoResource(path.to_owned()))?;
        for same in self.addresses.iter().filter(|other| other.resource == at.resource) {
            same.engine.registry().name(realm.clone());
        }
        Ok(())
    }

    /// Every address, those of one resource one after the other.
    pub fn addresses(&self) -> &[Served] {
        &self.addresses
    }

    /// The engine of the resource at exactly this path: other spellings of it are nothing.
    pub fn engine(&self, path: &str) -> Option<&Engine> {
        self.address(path).map(|at| &at.engine)
    }

    fn address(&self, path: &str) -> Option<&Served> {
        self.addresses.iter().find(|at| at.engine.resource().path() == path)
    }
}

/// Whether a path can be another address, of the resource that is the nth.
fn check(addresses: &[Served], nth: usize, path: &str, resource: &Resource) -> Result<(), BadServer> {
    let mut taken = addresses.iter().map(|at| at.engine.resource());
    // Without its slash a path would be part of the host's name.
    if !path.starts_with('/') || is_reserved(path) || taken.any(|other| other.path() == resource.path()) {
        return Err(BadServer::Path(path.to_owned()));
    }
    let mut others = addresses.iter().filter(|at| at.resource != nth);
    match others.find_map(|other| shared_id(&other.engine.resource(), resource)) {
        Some(id) => Err(BadServer::Shared { path: path.to_owned(), id }),
        None => Ok(()),
    }
}

/// A resource id that both have at one owner's authority.
fn shared_id(one: &Resource, other: &Resource) -> Option<ResourceId> {
    let whose = |resource: &Resource| (resource.settings().as_uri.clone(), resource.settings().owner.clone());
    let ids: Vec<_> = one.listing().resources.into_iter().map(|owned| owned.id).collect();
    let mut others = other.listing().resources.into_iter().map(|owned| owned.id);
    others.find(|id| whose(one) == whose(other) && ids.contains(id))
}

fn settings(public: &Address, resource: &ServerResource, path: &str, body_limit: usize) -> ResourceSettings {
    ResourceSettings {
        url: public.at(path),
        realm: resource.realm.clone(),
        as_uri: resource.as_uri.clone(),
        client_id: public.client_id().clone(),
        owner: resource.owner.clone(),
        edition: resource.edition,
        tools: resource.tools.clone(),
        enforcement: resource.enforcement.clone(),
        open_methods: resource.open_methods.clone(),
        allowed_origins: resource.allowed_origins.clone(),
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
