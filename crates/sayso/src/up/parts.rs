//! The parts of `up`: listeners first, since public URLs follow from them, then store, authority, vault, gateway.

use super::behind::{Behind, Named};
use super::entrance::Entrance;
use super::keeper::{Keeper, Watched};
use super::policy::FirstPolicy;
use crate::home::Home;
use crate::local::LocalAuthority;
use crate::metrics::{self, Listening, Metrics};
use crate::policed::{Asked, Policies, Wishes};
use crate::roles::doors::{self, Doors};
use crate::roles::{self, Address};
use crate::settings::Settings;
use crate::tables::UpstreamHost;
use crate::{clock, vault};
use anyhow::Context as _;
use sayso_authority::{Authority, Caller, ProtectionApi};
use sayso_enforce::ServerResource;
use sayso_enforce::authority::keys::KnownKeys;
use sayso_enforce::listing::Reader;
use sayso_enforce::resource::ToolSettings;
use sayso_gateway::{Enforcement, Gateway, GatewayConfig, ResourceConfig, Upstream, UpstreamConfig};
use sayso_owner::unit::{Owner, Unit};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::{ClientId, OwnerName, Realm};
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
    pub(super) owner_key: PathBuf,
    /// The first policy, and the units it would be made of.
    pub(super) first: FirstPolicy,
    pub(super) realm: Realm,
    pub(super) units: Vec<Unit>,
    /// How the gateway gets in, once it is served.
    pub(super) entrance: Entrance,
    /// Who looks after what it publishes from then on.
    pub(super) keeper: Option<Keeper>,
    pub(super) services: Services,
}

/// What listens, each with its socket.
pub(super) struct Services {
    doors: Vec<TcpListener>,
    gateway: (TcpListener, Gateway),
    vault: Option<(TcpListener, vault::Vault)>,
    /// A server that is listened to for changes and no more.
    heard: Option<Upstream>,
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
        let store = authority.store();
        let owner_key = roles::authority::enrol(&**store, home, &wanted.owner).await?;
        let who = (issuer.as_str(), &client_id, &gateway_key);
        let entrance = Entrance::of(store, wanted, settings, &behind, who).await?;
        let caller = Caller { owner: wanted.owner.clone(), client_id };
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
            published: behind.tools,
        });
        let services = Services {
            doors: doors.listeners,
            gateway: (gateway_listener, gateway),
            vault: behind.vault,
            heard,
            metrics: (listening, metrics),
        };
        let (realm, units) = (behind.realm, behind.first);
        Ok(Self { authority, gateway_url, owner_key, first, realm, units, entrance, keeper, services })
    }

    /// Where the metrics are.
    pub(super) fn metrics_url(&self) -> String {
        self.services.metrics.0.url.clone()
    }

    /// Serves until `stopped` turns true.
    pub(super) fn serve(
        services: Services,
        authority: Arc<Authority>,
        stopped: &watch::Receiver<bool>,
    ) -> JoinSet<()> {
        let until = || roles::until(stopped);
        let Services { doors, gateway: (listener, gateway), vault, heard, metrics: (listening, metrics) } =
            services;
        let mut serving = JoinSet::new();
        serving.spawn(sayso_authority::serve(doors, authority, until()));
        serving.spawn(sayso_gateway::serve(listener, gateway, until()));
        if let Some((listener, vault)) = vault {
            serving.spawn(vault::serve(vault, listener, until()));
        }
        if let Some(upstream) = heard {
            go_on(&mut serving, stopped, async move { upstream.attend().await });
        }
        serving.spawn(metrics::serve(metrics, listening, until()));
        serving
    }
}

/// Goes on with something until `stopped` turns true.
pub(super) fn go_on(
    serving: &mut JoinSet<()>,
    stopped: &watch::Receiver<bool>,
    task: impl Future<Output = ()> + Send + 'static,
) {
    let end = roles::until(stopped);
    serving.spawn(async move {
        tokio::select! {
            () = task => {}
            () = end => {}
        }
    });
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
