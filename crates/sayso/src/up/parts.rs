//! The parts of `up`: listeners first, since public URLs follow from them, then store, authority, vault, gateway.

use crate::home::Home;
use crate::local::LocalAuthority;
use crate::settings::Settings;
use crate::{clock, vault};
use anyhow::{Context as _, bail};
use sayso_authority::keys::Keys;
use sayso_authority::store::SqliteStore;
use sayso_authority::{Authority, Caller, Config, ProtectionApi};
use sayso_enforce::authority::keys::KnownKeys;
use sayso_enforce::listing::Reader;
use sayso_enforce::resource::ToolSettings;
use sayso_fetch::{Client, Reach};
use sayso_gateway::{Gateway, GatewayConfig, ResourceConfig};
use sayso_owner::ledger::Author;
use sayso_owner::registry::{ResourceServer, Standing};
use sayso_owner::store::{DeviceKey, Store};
use sayso_owner::unit::Owner;
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::{ClientId, OwnerName, Realm, SigningKey};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What the settings ask for, parsed.
pub(super) struct Wanted {
    pub(super) data: PathBuf,
    pub(super) owner: OwnerName,
    pub(super) realm: Realm,
    edition: Edition,
    authority: Address,
    interval: i64,
    gateway: Address,
    body_limit: usize,
    allowed_origins: Vec<String>,
}

struct Address {
    listen: SocketAddr,
    public_url: Option<String>,
}

impl Wanted {
    pub(super) fn read(settings: &Settings) -> anyhow::Result<Self> {
        let owner: OwnerName = settings.parse("owner.name")?;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !owner.as_str().chars().all(plain) || owner.as_str().len() > 64 {
            bail!("`owner.name` may hold only a-z, 0-9 and `-`, at most 64");
        }
        let edition = match settings.text("edition") {
            Some("2026-09-11") => Edition::Sept11,
            Some("2026-09-15") => Edition::Sept15,
            _ => bail!("`edition` must be 2026-09-11 or 2026-09-15"),
        };
        let origins = settings.text("gateway.allowed_origins").unwrap_or_default();
        Ok(Self {
            data: settings.parse("data")?,
            realm: vault::SERVER_NAME.parse()?,
            owner,
            edition,
            authority: Address::read(settings, "authority.listen", "authority.public_url")?,
            interval: settings.parse("authority.interval")?,
            gateway: Address::read(settings, "gateway.listen", "gateway.public_url")?,
            body_limit: settings.parse("gateway.body_limit")?,
            allowed_origins: origins.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect(),
        })
    }
}

impl Address {
    fn read(settings: &Settings, listen: &str, public_url: &str) -> anyhow::Result<Self> {
        let address: SocketAddr = settings.parse(listen)?;
        if !address.ip().is_loopback() {
            bail!("`{listen}` is {address}: plain http is served on loopback only; put TLS in front of it");
        }
        let public_url = settings.text(public_url).map(|url| url.trim_end_matches('/').to_owned());
        Ok(Self { listen: address, public_url })
    }

    async fn bind(&self, what: &str) -> anyhow::Result<(TcpListener, String)> {
        let listener = TcpListener::bind(self.listen).await.with_context(|| {
            format!("cannot listen on {} for the {what}; free it or choose another with --{what}", self.listen)
        })?;
        let url = match &self.public_url {
            Some(url) => url.clone(),
            None => format!("http://{}", listener.local_addr()?),
        };
        Ok((listener, url))
    }
}

/// Everything that is served.
pub(super) struct Parts {
    pub(super) authority: Arc<Authority>,
    pub(super) gateway_url: String,
    pub(super) client_id: ClientId,
    pub(super) owner_key: PathBuf,
    services: Services,
}

/// What listens, each with its socket.
struct Services {
    authority: TcpListener,
    gateway: (TcpListener, Gateway),
    vault: (TcpListener, vault::Vault),
}

impl Parts {
    pub(super) async fn assemble(wanted: &Wanted, home: &Home) -> anyhow::Result<Self> {
        let (authority_listener, issuer) = wanted.authority.bind("authority").await?;
        let (gateway_listener, gateway_url) = wanted.gateway.bind("gateway").await?;
        let vault_listener = TcpListener::bind("127.0.0.1:0").await.context("no free port for the demo vault")?;
        let upstream = format!("http://{}/mcp", vault_listener.local_addr()?);
        let client_id = ClientId::parse(gateway_url.clone()).context("the gateway's public url is too long")?;
        let (gateway_key, _) = home.key("gateway")?;
        let (owner_key, owner_key_path) = home.key(&format!("owner-{}", wanted.owner))?;

        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&home.path("sayso.db"))?);
        let authority = open_authority(wanted, home, &issuer, Arc::clone(&store)).await?;
        enrol(&*store, wanted, &owner_key).await?;
        admit_gateway(&*store, wanted, &client_id, &gateway_key).await?;
        let caller = Caller { owner: wanted.owner.clone(), client_id: client_id.clone() };
        let resource = ResourceConfig {
            path: "/mcp".into(),
            realm: wanted.realm.clone(),
            owner: wanted.owner.clone(),
            as_uri: issuer.clone(),
            authority: Arc::new(LocalAuthority::new(ProtectionApi::new(Arc::clone(&authority)), caller)),
            edition: wanted.edition,
            tools: vault_tools(&wanted.realm)?,
            open_methods: vec![],
            allowed_origins: wanted.allowed_origins.clone(),
            accept_uncovered_body: false,
            serve_query: false,
            upstream,
        };
        let keys = Arc::new(KnownKeys(vec![authority.request_key().clone()]));
        let config = GatewayConfig {
            public_url: gateway_url.clone(),
            hosts: vec![],
            key: gateway_key,
            readers: vec![Reader { issuer, keys }],
            resources: vec![resource],
            body_limit: wanted.body_limit,
        };
        let services = Services {
            authority: authority_listener,
            gateway: (gateway_listener, Gateway::new(config, Arc::new(clock::now))?),
            vault: (vault_listener, vault::Vault::open(&home.folder("vault")?)?),
        };
        Ok(Self { authority, gateway_url, client_id, owner_key: owner_key_path, services })
    }

    /// Serves until `stopped` turns true.
    pub(super) fn serve(self, stopped: &watch::Receiver<bool>) -> JoinSet<anyhow::Result<()>> {
        let until = || {
            let mut stopped = stopped.clone();
            // A sender that is gone stops us too.
            async move { drop(stopped.wait_for(|stop| *stop).await) }
        };
        let Services { authority, gateway: (listener, gateway), vault: (upstream, vault) } = self.services;
        let mut serving = JoinSet::new();
        let (end, her_side) = (until(), self.authority);
        serving.spawn(async move { Ok(sayso_authority::serve(authority, her_side, end).await?) });
        let end = until();
        serving.spawn(async move { Ok(sayso_gateway::serve(listener, gateway, end).await?) });
        serving.spawn(vault::serve(vault, upstream, until()));
        serving
    }
}

async fn open_authority(
    wanted: &Wanted,
    home: &Home,
    issuer: &str,
    store: Arc<dyn Store>,
) -> anyhow::Result<Arc<Authority>> {
    let owner = Owner { name: wanted.owner.clone(), namespace: wanted.owner.to_string() };
    let config =
        Config { interval: wanted.interval, edition: wanted.edition, owners: vec![owner], ..Config::at(issuer) };
    let keys = Keys::open_or_create(&home.path(""))?;
    let fetch = Arc::new(Client::new(Reach::Configured));
    Ok(Authority::open(config, keys, store, fetch, Arc::new(clock::now)).await?)
}

async fn enrol(store: &dyn Store, wanted: &Wanted, key: &SigningKey) -> anyhow::Result<()> {
    let public = key.verifying();
    let device = DeviceKey {
        owner: wanted.owner.clone(),
        jwk: public.jwk(),
        thumbprint: public.thumbprint(),
        label: "drawn by sayso up".into(),
    };
    Ok(store.enrol(&device, &Author::Setup, clock::now()).await?)
}

/// Pre-approves exactly the key this gateway holds, recorded as set-up and not as hers (D-22).
async fn admit_gateway(
    store: &dyn Store,
    wanted: &Wanted,
    client_id: &ClientId,
    key: &SigningKey,
) -> anyhow::Result<()> {
    let server = ResourceServer {
        owner: Some(wanted.owner.clone()),
        client_id: client_id.clone(),
        name: wanted.realm.to_string(),
        resource_uri: format!("{client_id}/mcp"),
        status: Standing::Active,
        auth_method: "signature".into(),
        registered_at: clock::now(),
        pinned_key: Some(key.verifying().thumbprint()),
    };
    Ok(store.settle_resource_server(&server, clock::now()).await?)
}

/// The demo vault's tools; other servers say their own.
fn vault_tools(realm: &Realm) -> anyhow::Result<Vec<ToolSettings>> {
    let tools = [
        ("get_positions", "positions:read"),
        ("get_transactions", "transactions:read"),
        ("execute_trade", "trades:execute"),
    ];
    let settings = |(tool, scope): (&str, &str)| {
        Ok(ToolSettings {
            tool: tool.parse()?,
            resource_id: format!("{realm}/{tool}").parse()?,
            scopes: vec![scope.parse()?],
            single_use: tool == "execute_trade",
            consequence: None,
            definition: None,
            mirrors: vec![],
        })
    };
    tools.into_iter().map(settings).collect()
}
