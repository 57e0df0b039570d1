//! `sayso authority`: owners, their resource servers, and the HTTP they are asked through.

use super::doors::Doors;
use super::{Address, Command, Start, interrupted, store_file, until};
use crate::clock;
use crate::home::Home;
use crate::metrics::{self, Listening, Metrics};
use crate::settings::Settings;
use crate::tables::ResourceServerTable;
use anyhow::{Context as _, bail};
use sayso_authority::keys::Keys;
use sayso_authority::store::SqliteStore;
use sayso_authority::{Authority, Config, Egress};
use sayso_fetch::{Client, Reach};
use sayso_owner::ledger::Author;
use sayso_owner::registry::{IntroducedBy, ResourceServer, Standing};
use sayso_owner::store::{DeviceKey, Store};
use sayso_owner::unit::Owner;
use sayso_protocol::OwnerName;
use serde::Serialize;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::watch;

/// Seconds there may be between an agent's polls.
pub(crate) const INTERVAL: RangeInclusive<i64> = 1..=60;

/// What is told when the authority answers.
#[derive(Debug, Serialize)]
struct Ready {
    ready: bool,
    authority: String,
    owner: Option<String>,
    owner_key: Option<PathBuf>,
    owner_keys: Vec<PathBuf>,
    metrics: String,
    version: &'static str,
}

/// Runs until interrupted.
///
/// # Errors
/// When something cannot be set up; the sentence says what to do.
pub async fn run(command: Command) -> anyhow::Result<ExitCode> {
    super::raise_limits();
    let interrupted = interrupted()?;
    let Start { settings, tables, home } = command.start()?;
    if tables.owner.is_empty() {
        bail!("name at least one owner: [[owner]] with name = \"alice\"");
    }
    let address = Address::read(&settings, "authority")?;
    let doors = Doors::open(&address, &settings, &home, false).await?;
    let listening = Listening::bind(&settings).await?;
    let mut metrics = Metrics::new();
    let owners: Vec<OwnerName> = tables.owner.iter().map(|owner| owner.name.clone()).collect();
    let named = owners.iter().map(|name| Ok(Owner { name: name.clone(), namespace: clock::name()? }));
    let named = named.collect::<anyhow::Result<_>>()?;
    let authority = open(&settings, &home, &doors, named, None, &mut metrics).await?;
    let mut owner_keys = vec![];
    for owner in &owners {
        owner_keys.push(enrol(&**authority.store(), &home, owner).await?);
    }
    for server in &tables.resource_server {
        admit(&**authority.store(), server, &owners).await?;
    }
    let ready = Ready {
        ready: true,
        authority: doors.issuer.clone(),
        owner: owners.first().map(ToString::to_string),
        owner_key: owner_keys.first().cloned(),
        owner_keys,
        metrics: listening.url.clone(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(sayso_authority::serve(doors.listeners, authority, until(&stopped)));
    let showing = tokio::spawn(metrics::serve(metrics, listening, until(&stopped)));
    command.announce(&home, &ready, &format!("the authority is ready at {}", doors.issuer))?;
    interrupted.await;
    let _ = stop.send(true);
    serving.await?;
    showing.await?;
    Ok(ExitCode::SUCCESS)
}

/// The authority over the store and keys of a data folder, perhaps with a gateway in the same process.
pub(crate) async fn open(
    settings: &Settings,
    home: &Home,
    doors: &Doors,
    owners: Vec<Owner>,
    gateway: Option<&str>,
    metrics: &mut Metrics,
) -> anyhow::Result<Arc<Authority>> {
    let observed = metrics.negotiations();
    let config = Config {
        interval: settings.whole("authority.interval", INTERVAL)?,
        edition: settings.edition()?,
        require_signed_polls: settings.parse("authority.require_signed_polls")?,
        owners,
        trusted_agent_issuers: settings.list("authority.trusted_agent_issuers"),
        portal: doors.portal.clone(),
        observed: observed.clone(),
        ..Config::at(&doors.issuer)
    };
    let path = store_file(settings)?.unwrap_or_else(|| home.path("sayso.db"));
    let addresses = [("authority", Some(doors.issuer.as_str())), ("gateway", gateway)];
    let addresses: Vec<(&str, &str)> =
        addresses.into_iter().filter_map(|(role, url)| Some((role, url?))).collect();
    let store = SqliteStore::serve(&path, &addresses)
        .with_context(|| format!("cannot open the store {}; `store.url` names another", path.display()))?;
    let keys = Keys::open_or_create(&home.path(""))?;
    let store: Arc<dyn Store> = Arc::new(store.observed(observed));
    metrics.pending(Arc::clone(&store));
    Ok(Authority::open(config, keys, store, egress(&doors.issuer), Arc::new(clock::now)).await?)
}

/// What is asked of whom. Plain http is spoken on loopback alone (D-42): an authority that is known by such an address is
/// being tried out, and so are the servers that introduce themselves to it; no other reaches its own machine for them.
fn egress(issuer: &str) -> Egress {
    let near = if issuer.starts_with("http://") { Reach::Loopback } else { Reach::Public };
    Egress { configured: Arc::new(Client::new(Reach::Configured)), strangers: Arc::new(Client::new(near)) }
}

/// Names of owners become names of files.
///
/// # Errors
/// When the name holds anything but a-z, 0-9 and `-`.
pub(crate) fn check_name(owner: &OwnerName) -> anyhow::Result<()> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !owner.as_str().chars().all(plain) || owner.as_str().len() > 64 {
        bail!("an owner's name may hold only a-z, 0-9 and `-`, at most 64: `{owner}`");
    }
    Ok(())
}

/// Enrols the owner's device key of this folder, drawn at first use; returns where it is.
pub(crate) async fn enrol(store: &dyn Store, home: &Home, owner: &OwnerName) -> anyhow::Result<PathBuf> {
    check_name(owner)?;
    let (key, path) = home.key(&format!("owner-{owner}"))?;
    let public = key.verifying();
    let device = DeviceKey {
        owner: owner.clone(),
        jwk: public.jwk(),
        thumbprint: public.thumbprint(),
        label: "drawn at set-up".into(),
    };
    store.enrol(&device, &Author::Setup, clock::now()).await?;
    Ok(path)
}

async fn admit(store: &dyn Store, server: &ResourceServerTable, owners: &[OwnerName]) -> anyhow::Result<()> {
    if !owners.contains(&server.owner) {
        bail!(
            "[[resource_server]] {} names owner `{}`, who is not among [[owner]]",
            server.client_id,
            server.owner
        );
    }
    // Vouched for by set-up, and recorded as that and not as the owner's doing (D-22).
    let record = ResourceServer {
        owner: Some(server.owner.clone()),
        client_id: server.client_id.clone(),
        name: server.name.clone().unwrap_or_else(|| server.client_id.to_string()),
        resource_uri: server.resource_uri.clone(),
        status: Standing::Active,
        auth_method: "signature".into(),
        registered_at: clock::now(),
        pinned_key: None,
        introduced_by: IntroducedBy::Setup,
    };
    Ok(store.settle_resource_server(&record, clock::now()).await?)
}
