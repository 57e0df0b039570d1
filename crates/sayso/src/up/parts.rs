//! The parts of `up`: listeners first, since public URLs follow from them, then store, authority, vault, gateway.

use crate::home::Home;
use crate::local::LocalAuthority;
use crate::roles::{self, Address};
use crate::settings::Settings;
use crate::tables::ResourceServerTable;
use crate::{clock, vault};
use anyhow::Context as _;
use sayso_authority::{Authority, Caller, ProtectionApi};
use sayso_enforce::authority::keys::KnownKeys;
use sayso_enforce::listing::Reader;
use sayso_enforce::resource::ToolSettings;
use sayso_gateway::{Gateway, GatewayConfig, ResourceConfig};
use sayso_owner::store::Store;
use sayso_owner::unit::Owner;
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::{ClientId, OwnerName, Realm, SigningKey};
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
    gateway: Address,
    body_limit: usize,
    allowed_origins: Vec<String>,
}

impl Wanted {
    pub(super) fn read(settings: &Settings) -> anyhow::Result<Self> {
        let owner: OwnerName = settings.parse("owner.name")?;
        let origins = settings.text("gateway.allowed_origins").unwrap_or_default();
        let origins: Vec<_> = origins.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect();
        for origin in &origins {
            crate::origin::of_page("gateway.allowed_origins", origin)?;
        }
        // Read again where they are used; here so that `config check` knows.
        settings.whole("authority.interval", roles::authority::INTERVAL)?;
        settings.parse::<bool>("authority.require_signed_polls")?;
        roles::store_file(settings)?;
        Ok(Self {
            data: settings.parse("data")?,
            realm: vault::SERVER_NAME.parse()?,
            owner,
            edition: settings.edition()?,
            authority: Address::read(settings, "authority")?,
            gateway: Address::read(settings, "gateway")?,
            body_limit: settings.whole("gateway.body_limit", roles::gateway::BODY_LIMIT)?,
            allowed_origins: origins,
        })
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
    pub(super) async fn assemble(wanted: &Wanted, settings: &Settings, home: &Home) -> anyhow::Result<Self> {
        let (authority_listener, issuer) = wanted.authority.bind("authority").await?;
        let (gateway_listener, gateway_url) = wanted.gateway.bind("gateway").await?;
        let vault_listener =
            TcpListener::bind("127.0.0.1:0").await.context("no free port for the demo vault")?;
        let upstream = format!("http://{}/mcp", vault_listener.local_addr()?);
        let client_id =
            ClientId::parse(gateway_url.clone()).context("the gateway's public url is too long")?;
        let (gateway_key, _) = home.key("gateway")?;

        let owner = Owner { name: wanted.owner.clone(), namespace: wanted.owner.to_string() };
        let authority = roles::authority::open(settings, home, &issuer, vec![owner]).await?;
        let store = &**authority.store();
        let owner_key = roles::authority::enrol(store, home, &wanted.owner).await?;
        admit_gateway(store, wanted, &client_id, &gateway_key).await?;
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
            upstream: upstream.into(),
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
        Ok(Self { authority, gateway_url, client_id, owner_key, services })
    }

    /// Serves until `stopped` turns true.
    pub(super) fn serve(self, stopped: &watch::Receiver<bool>) -> JoinSet<anyhow::Result<()>> {
        let until = || roles::until(stopped);
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

/// Pre-approves exactly the key this gateway holds, recorded as set-up and not as hers (D-22).
async fn admit_gateway(
    store: &dyn Store,
    wanted: &Wanted,
    client_id: &ClientId,
    key: &SigningKey,
) -> anyhow::Result<()> {
    let table = ResourceServerTable {
        client_id: client_id.clone(),
        owner: wanted.owner.clone(),
        resource_uri: format!("{client_id}/mcp"),
        name: None,
    };
    let pinned = Some(key.verifying().thumbprint());
    let server = roles::authority::resource_server(&table, wanted.realm.to_string(), pinned);
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
