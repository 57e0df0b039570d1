//! The parts of `up`: listeners first, since public URLs follow from them, then store, authority, vault, gateway.

use super::behind::{Behind, Named};
use super::keeper::{Keeper, Watched};
use super::policy::FirstPolicy;
use crate::home::Home;
use crate::local::LocalAuthority;
use crate::metrics::{self, Listening, Metrics};
use crate::policed::{Asked, Policies, Wishes};
use crate::roles::doors::{self, Doors};
use crate::roles::introducer::Introducer;
use crate::roles::{self, Address};
use crate::settings::Settings;
use crate::tables::{ResourceServerTable, UpstreamHost};
use crate::{clock, vault};
use anyhow::Context as _;
use sayso_authority::{Authority, Caller, ProtectionApi};
use sayso_enforce::ServerResource;
use sayso_enforce::authority::http::HttpAuthority;
use sayso_enforce::authority::keys::KnownKeys;
use sayso_enforce::listing::Reader;
use sayso_enforce::resource::ToolSettings;
use sayso_fetch::{Client, Reach};
use sayso_gateway::{Enforcement, Gateway, GatewayConfig, ResourceConfig, Upstream, UpstreamConfig};
use sayso_owner::registry::{ResourceServer, Standing};
use sayso_owner::store::Store;
use sayso_owner::unit::{Owner, Unit};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::{ClientId, OwnerName, Realm, SigningKey};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Seconds between two listings of a server.
pub(crate) const SURVEY_INTERVAL: RangeInclusive<u64> = 1..=3600;

/// What the settings ask for, parsed.
pub(super) struct Wanted {
    pub(super) data: PathBuf,
    pub(super) owner: OwnerName,
    /// The realm asked for; otherwise the server's own name makes one.
    pub(super) realm: Option<Realm>,
    pub(super) named: Named,
    pub(super) upstream_host: UpstreamHost,
    edition: Edition,
    authority: Address,
    gateway: Address,
    body_limit: usize,
    allowed_origins: Vec<String>,
    pub(super) asked: Asked,
    wishes: Wishes,
    pub(super) survey_interval: Duration,
}

impl Wanted {
    pub(super) fn read(settings: &Settings) -> anyhow::Result<Self> {
        let owner: OwnerName = settings.parse("owner.name")?;
        roles::authority::check_name(&owner)?;
        let origins = settings.list("gateway.allowed_origins");
        for origin in &origins {
            crate::origin::of_page("gateway.allowed_origins", origin)?;
        }
        // Read again where they are used; here so that `config check` knows.
        settings.whole("authority.interval", roles::authority::INTERVAL)?;
        settings.parse::<bool>("authority.require_signed_polls")?;
        settings.parse::<bool>("gateway.ask_again")?;
        Policies::read(settings, settings.text("gateway.public_url").unwrap_or("http://"))?;
        roles::store_file(settings)?;
        doors::check(settings)?;
        Address::read(settings, "metrics")?;
        Ok(Self {
            data: settings.parse("data")?,
            realm: settings
                .text("gateway.realm")
                .map(Realm::parse)
                .transpose()
                .context("`gateway.realm` is not a realm")?,
            named: Named::read(settings)?,
            upstream_host: settings.parse("gateway.upstream_host")?,
            owner,
            edition: settings.edition()?,
            authority: Address::read(settings, "authority")?,
            gateway: Address::read(settings, "gateway")?,
            body_limit: settings.whole("gateway.body_limit", roles::gateway::BODY_LIMIT)?,
            allowed_origins: origins,
            asked: settings.asked()?,
            wishes: Wishes::of(settings)?,
            survey_interval: Duration::from_secs(settings.whole("gateway.survey_interval", SURVEY_INTERVAL)?),
        })
    }
}

/// Everything that is served.
pub(super) struct Parts {
    pub(super) authority: Arc<Authority>,
    pub(super) gateway_url: String,
    pub(super) client_id: ClientId,
    pub(super) owner_key: PathBuf,
    /// The first policy, and the units it would be made of.
    pub(super) first: FirstPolicy,
    pub(super) realm: Realm,
    pub(super) units: Vec<Unit>,
    services: Services,
}

/// What listens, each with its socket.
struct Services {
    authority: Vec<TcpListener>,
    gateway: (TcpListener, Gateway),
    vault: Option<(TcpListener, vault::Vault)>,
    keeper: Option<Keeper>,
    /// A server that is listened to for changes and no more.
    heard: Option<Upstream>,
    introducer: Option<Introducer>,
    metrics: (Listening, Metrics),
}

impl Parts {
    pub(super) async fn assemble(
        wanted: &mut Wanted,
        settings: &Settings,
        home: &Home,
    ) -> anyhow::Result<Self> {
        let doors = Doors::open(&wanted.authority, settings, home, true).await?;
        let issuer = doors.issuer.clone();
        let (gateway_listener, gateway_url) = wanted.gateway.bind("gateway").await?;
        let listening = Listening::bind(settings).await?;
        let mut metrics = Metrics::new();
        let behind = Behind::open(wanted, home, &gateway_url).await?;
        let client_id =
            ClientId::parse(gateway_url.clone()).context("the gateway's public url is too long")?;
        let (gateway_key, _) = home.key("gateway")?;

        let owner = Owner { name: wanted.owner.clone(), namespace: wanted.owner.to_string() };
        let authority =
            roles::authority::open(settings, home, &doors, vec![owner], Some(&gateway_url), &mut metrics)
                .await?;
        let store = &**authority.store();
        let owner_key = roles::authority::enrol(store, home, &wanted.owner).await?;
        let server = settle_gateway(store, wanted, &behind, &client_id, &gateway_key).await?;
        let introducer = match store.standing(&wanted.owner, &client_id).await? {
            Some(Standing::Active) => None,
            _ => Some(introducer(wanted, settings, &issuer, &client_id, &behind.realm, &gateway_key)?),
        };
        let caller = Caller { owner: wanted.owner.clone(), client_id: client_id.clone() };
        let asked = LocalAuthority::new(ProtectionApi::new(Arc::clone(&authority)), caller);
        let front = Front { realm: behind.realm.clone(), as_uri: issuer.clone(), asked };
        let enforcement = enforcement(wanted, settings, &gateway_url).await?;
        let resource = front.of(behind.upstream, &behind.tools, wanted, enforcement);
        let keys = Arc::new(KnownKeys(vec![authority.request_key().clone()]));
        let config = GatewayConfig {
            public_url: gateway_url.clone(),
            hosts: vec![],
            key: gateway_key,
            readers: vec![Reader { issuer, keys }],
            resources: vec![resource],
            body_limit: wanted.body_limit,
        };
        let gateway = Gateway::observed(config, Arc::new(clock::now), Some(metrics.decisions()))?;
        let first = FirstPolicy::of(home)?;
        let (watched, heard) = looked_after(wanted.asked, behind.watched);
        let keeper = watched.map(|watched| Keeper {
            gateway: gateway.clone(),
            authority: Arc::clone(&authority),
            watched,
            wanted: wanted.realm.clone(),
            first: first.clone(),
            owner: wanted.owner.clone(),
            server,
            published: behind.tools,
        });
        let services = Services {
            authority: doors.listeners,
            gateway: (gateway_listener, gateway),
            vault: behind.vault,
            keeper,
            heard,
            introducer,
            metrics: (listening, metrics),
        };
        let (realm, units) = (behind.realm, behind.first);
        Ok(Self { authority, gateway_url, client_id, owner_key, first, realm, units, services })
    }

    /// Where the metrics are.
    pub(super) fn metrics_url(&self) -> String {
        self.services.metrics.0.url.clone()
    }

    /// Serves until `stopped` turns true.
    pub(super) fn serve(self, stopped: &watch::Receiver<bool>) -> JoinSet<()> {
        let until = || roles::until(stopped);
        let Services { authority, gateway: (listener, gateway), vault, keeper, heard, introducer, metrics } =
            self.services;
        let mut serving = JoinSet::new();
        serving.spawn(sayso_authority::serve(authority, self.authority, until()));
        serving.spawn(sayso_gateway::serve(listener, gateway, until()));
        if let Some((listener, vault)) = vault {
            serving.spawn(vault::serve(vault, listener, until()));
        }
        if let Some(keeper) = keeper {
            let end = until();
            serving.spawn(async move {
                tokio::select! {
                    () = keeper.keep() => {}
                    () = end => {}
                }
            });
        }
        if let Some(upstream) = heard {
            let end = until();
            serving.spawn(async move {
                tokio::select! {
                    () = upstream.attend() => {}
                    () = end => {}
                }
            });
        }
        if let Some(introducer) = introducer {
            let end = until();
            serving.spawn(async move {
                let introduced = tokio::spawn(introducer.run());
                end.await;
                introduced.abort();
            });
        }
        let (listening, metrics) = metrics;
        serving.spawn(metrics::serve(metrics, listening, until()));
        serving
    }
}

/// What stands before the one server of this process.
struct Front {
    realm: Realm,
    as_uri: String,
    asked: LocalAuthority,
}

impl Front {
    fn of(
        self,
        upstream: UpstreamConfig,
        tools: &[ToolSettings],
        wanted: &Wanted,
        enforcement: Enforcement,
    ) -> ResourceConfig {
        let resource = ServerResource {
            path: "/mcp".into(),
            aliases: Vec::new(),
            realm: self.realm,
            owner: wanted.owner.clone(),
            as_uri: self.as_uri,
            authority: Arc::new(self.asked),
            edition: wanted.edition,
            tools: tools.to_vec(),
            enforcement,
            open_methods: vec![],
            allowed_origins: wanted.allowed_origins.clone(),
            accept_uncovered_body: false,
            serve_query: false,
        };
        ResourceConfig { resource, upstream }
    }
}

/// The server that is kept track of for its owner, or the one that is only listened to: what no owner is asked about needs no
/// listing of hers.
fn looked_after(asked: Asked, watched: Option<Watched>) -> (Option<Watched>, Option<Upstream>) {
    match asked {
        Asked::Policy => (None, watched.map(|watched| watched.upstream)),
        Asked::Owner | Asked::Both | Asked::Nobody => (watched, None),
    }
}

/// Who is asked, ready to be.
async fn enforcement(wanted: &Wanted, settings: &Settings, gateway_url: &str) -> anyhow::Result<Enforcement> {
    let mut policies = Policies::read(settings, gateway_url)?;
    let enforcement = policies.enforcement(wanted.asked, &format!("{gateway_url}/mcp"), &wanted.wishes)?;
    policies.prepare().await?;
    Ok(enforcement)
}

/// For a gateway she withdrew: over the way that is open to any other, and only when its operator says that it is to ask
/// again.
fn introducer(
    wanted: &Wanted,
    settings: &Settings,
    issuer: &str,
    client_id: &ClientId,
    realm: &Realm,
    key: &SigningKey,
) -> anyhow::Result<Introducer> {
    let authority = HttpAuthority::new(
        Arc::new(Client::new(Reach::Configured)),
        issuer,
        client_id.clone(),
        wanted.owner.clone(),
        key.clone(),
        Arc::new(clock::now),
    );
    Ok(Introducer {
        authority: Arc::new(authority),
        issuer: issuer.to_owned(),
        owner: wanted.owner.clone(),
        client_id: client_id.clone(),
        resource_uri: format!("{client_id}/mcp"),
        name: realm.to_string(),
        ask_again: settings.parse("gateway.ask_again")?,
    })
}

/// Pre-approves exactly the key this gateway holds, recorded as set-up and not as hers (D-22).
async fn settle_gateway(
    store: &dyn Store,
    wanted: &Wanted,
    behind: &Behind,
    client_id: &ClientId,
    key: &SigningKey,
) -> anyhow::Result<ResourceServer> {
    let table = ResourceServerTable {
        client_id: client_id.clone(),
        owner: wanted.owner.clone(),
        resource_uri: format!("{client_id}/mcp"),
        name: None,
    };
    let pinned = Some(key.verifying().thumbprint());
    let mut server = roles::authority::resource_server(&table, behind.realm.to_string(), pinned);
    if behind.watched.as_ref().is_some_and(|watched| watched.heard.is_none()) {
        // It keeps the name it had until it says one.
        let known = store.resource_servers(&wanted.owner).await?;
        let known = known.into_iter().find(|known| known.pinned_key == server.pinned_key);
        server.name = known.map_or(server.name, |known| known.name);
    }
    store.settle_resource_server(&server, clock::now()).await?;
    Ok(server)
}
