//! The owner's authorization server: HTTP in front, the store behind, and the owner's domain deciding in between.
//!
//! Time and the outbound client are given to it, keys come from `keys`, and every decision is made by the store port
//! in one transaction (D-37). An enforcement point in the same process uses `protection` without HTTP.

mod asked;
mod checked;
pub mod demo;
mod egress;
mod first;
mod gather;
mod http;
mod introduction;
mod issuers;
mod judged;
pub mod keys;
mod observe;
mod operators;
mod portal;
mod presentation;
pub mod protection;
mod protection_token;
mod publisher;
pub mod pull;
mod resource_server;
pub mod store;
mod words;

pub use egress::Egress;
pub use http::{router, serve};
pub use observe::{Observed, Observer};
pub use portal::{Portal, SignInLink};
pub use protection::{Caller, ProtectionApi, ProtectionFault};

use keys::Keys;
use sayso_owner::issue::Issuer;
use sayso_owner::step::House;
use sayso_owner::store::{Store, Unavailable};
use sayso_owner::unit::Owner;
use sayso_protocol::payload::credential::{self, IssuerKeys};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::ticket::Sealers;
use sayso_protocol::{SigningKey, Timestamp, VerifyingKey, sig};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use tokio::sync::watch;

/// Where the time comes from.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What a deployment decides about its authority.
#[derive(Debug, Clone)]
pub struct Config {
    /// The issuer: an origin without a trailing slash. Every published URL starts with it.
    pub public_url: String,
    /// Further `Host` values this listener answers to; the public URL's is always among them (D-16).
    pub hosts: Vec<String>,
    /// Seconds between polls.
    pub interval: i64,
    /// Which edition's identifiers are emitted.
    pub edition: Edition,
    /// Whether polls must be signed with the agreement's key from commit on (D-17).
    pub require_signed_polls: bool,
    /// The owners served from the start.
    pub owners: Vec<Owner>,
    /// The issuers of agent credentials that are believed: https origins. Nobody else is asked about an agent (CORE-50).
    pub trusted_agent_issuers: Vec<String>,
    /// Where her page is, if there is one.
    pub portal: Option<Portal>,
    /// Who counts what is presented.
    pub observed: Observed,
}

impl Config {
    /// The defaults of an authority at this address.
    pub fn at(public_url: impl Into<String>) -> Self {
        Self {
            public_url: public_url.into(),
            hosts: vec![],
            interval: 5,
            edition: Edition::default(),
            require_signed_polls: false,
            owners: vec![],
            trusted_agent_issuers: vec![],
            portal: None,
            observed: Observed::default(),
        }
    }
}

/// Why an authority cannot be set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SetUp {
    /// The public URL is not an http(s) origin.
    #[error("the public URL must be an http or https origin without path, query or trailing slash")]
    PublicUrl,
    /// The portal's URL is not an origin it can have.
    #[error(
        "the portal's URL must be an https origin under a name, or http under localhost, and no IP address"
    )]
    PortalUrl,
    /// The portal would answer in the API's name.
    #[error("the portal needs a host name of its own, other than the API's")]
    PortalHost,
    /// Something else than an origin is trusted with naming agents.
    #[error("a trusted agent issuer must be an https origin without path, query or trailing slash")]
    AgentIssuer,
    /// The store could not be asked.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Our own address as signatures know it.
pub(crate) struct PublicUrl {
    pub(crate) url: String,
    pub(crate) scheme: String,
    pub(crate) authority: String,
}

impl PublicUrl {
    fn parse(text: &str) -> Result<Self, SetUp> {
        let url = url::Url::parse(text).map_err(|_| SetUp::PublicUrl)?;
        let http = matches!(url.scheme(), "http" | "https");
        if !http || url.origin().ascii_serialization() != text {
            return Err(SetUp::PublicUrl);
        }
        let authority = sig::authority_of(&url).ok_or(SetUp::PublicUrl)?;
        Ok(Self { url: text.to_owned(), scheme: url.scheme().to_owned(), authority })
    }
}

/// One authority. Has no `Debug`: it holds keys.
pub struct Authority {
    pub(crate) house: Arc<House>,
    pub(crate) public: PublicUrl,
    pub(crate) hosts: Vec<String>,
    pub(crate) portal: Option<Portal>,
    pub(crate) require_signed_polls: bool,
    pub(crate) requests: SigningKey,
    pub(crate) sealers: Sealers,
    pub(crate) pairwise: [u8; 32],
    pub(crate) store: Arc<dyn Store>,
    pub(crate) egress: Egress,
    pub(crate) servers: resource_server::Directory,
    pub(crate) newcomers: introduction::Newcomers,
    pub(crate) agent_issuers: issuers::Issuers<IssuerKeys>,
    pub(crate) looks: operators::Looks,
    pub(crate) gathering: gather::Gathering,
    pub(crate) pulls: pull::Gate,
    pub(crate) streams: Arc<AtomicUsize>,
    /// True once the listener closes: what would go on for ever ends.
    pub(crate) closing: watch::Sender<bool>,
    pub(crate) observed: Observed,
    pub(crate) clock: Clock,
}

impl Authority {
    /// Sets up an authority over a store, and makes its configured owners known there.
    ///
    /// # Errors
    /// When the configuration is unusable or the store cannot be asked.
    pub async fn open(
        config: Config,
        keys: Keys,
        store: Arc<dyn Store>,
        egress: Egress,
        clock: Clock,
    ) -> Result<Arc<Self>, SetUp> {
        let public = PublicUrl::parse(&config.public_url)?;
        let (sealers, pairwise) = (keys.sealers(&public.url, store.epoch()), *keys.pairwise());
        for owner in &config.owners {
            store.settle_owner(owner).await?;
        }
        let mut hosts: Vec<String> = config.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        hosts.push(public.authority.clone());
        if config.portal.as_ref().is_some_and(|portal| hosts.iter().any(|host| portal.shares_name(host))) {
            return Err(SetUp::PortalHost);
        }
        if !config.trusted_agent_issuers.iter().all(|issuer| credential::is_issuer(issuer)) {
            return Err(SetUp::AgentIssuer);
        }
        let house = House {
            terms_endpoint: format!("{}/terms", public.url),
            issuer: Issuer { url: public.url.clone(), grants: keys.grants, receipts: keys.receipts },
            edition: config.edition,
            interval: config.interval.clamp(1, 60),
        };
        Ok(Arc::new(Self {
            house: Arc::new(house),
            public,
            hosts,
            portal: config.portal,
            require_signed_polls: config.require_signed_polls,
            requests: keys.requests,
            sealers,
            pairwise,
            store,
            egress,
            servers: resource_server::Directory::default(),
            newcomers: introduction::Newcomers::default(),
            agent_issuers: issuers::Issuers::of(&config.trusted_agent_issuers),
            looks: operators::Looks::default(),
            gathering: gather::Gathering::default(),
            pulls: pull::Gate::default(),
            streams: Arc::default(),
            closing: watch::Sender::new(false),
            observed: config.observed,
            clock,
        }))
    }

    /// The issuer identifier.
    pub fn issuer(&self) -> &str {
        &self.public.url
    }

    /// The store, for set-up intents of the deployment.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The key that signs this authority's own requests; a resource server serves its listing to nobody else.
    pub fn request_key(&self) -> &VerifyingKey {
        self.requests.verifying()
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

/// Fresh random bytes.
pub(crate) fn draw<const N: usize>() -> Result<[u8; N], Unavailable> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Unavailable)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    // BASE-01
    #[test]
    fn only_an_origin_can_be_an_issuer() {
        assert_eq!(PublicUrl::parse("https://as.example").unwrap().authority, "as.example");
        assert_eq!(PublicUrl::parse("http://127.0.0.1:8440").unwrap().authority, "127.0.0.1:8440");
        for odd in ["https://as.example/", "https://as.example/x", "https://As.example", "ftp://x", "x", ""] {
            assert_eq!(PublicUrl::parse(odd).err(), Some(SetUp::PublicUrl), "{odd}");
        }
    }
}
