//! The roles alone: `sayso authority`, `sayso gateway` and `sayso ext-authz`, each from its configuration file.
//!
//! Between them there is nothing but HTTP: the gateway logs in with its own key, the authority reads what the
//! gateway lists. `up` is both in one process.

pub mod authority;
pub(crate) mod doors;
pub mod ext_authz;
mod follower;
pub mod gateway;
pub(crate) mod introducer;
mod server;

use crate::home::Home;
use crate::settings::Settings;
use crate::tables::Tables;
use anyhow::{Context as _, bail};
use clap::Args;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Flags of a role.
#[derive(Debug, Args)]
#[command(
    after_help = "Every setting of the file can also be given in the environment: SAYSO_GATEWAY__LISTEN is\n\
    `[gateway] listen`. Repeated tables ([[owner]], [[resource_server]], [[resource]]) are the file's alone."
)]
pub struct Command {
    /// Configuration file, TOML.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Print the ready line as JSON, and nothing else, on stdout.
    #[arg(long)]
    json: bool,
}

/// What a role starts from.
struct Start {
    settings: Settings,
    tables: Tables,
    home: Home,
}

impl Command {
    fn start(&self) -> anyhow::Result<Start> {
        let settings = Settings::load(Some(&self.config), crate::settings::environment(), &[])?;
        let tables = Tables::read(&self.config)?;
        let data: PathBuf = settings.parse("data")?;
        Ok(Start { tables, home: Home::open(&data)?, settings })
    }

    fn announce(&self, home: &Home, ready: &impl Serialize, sentence: &str) -> anyhow::Result<()> {
        announce(home, ready, self.json, sentence)
    }
}

/// Writes `ready.json` and tells stdout.
pub(crate) fn announce(
    home: &Home,
    ready: &impl Serialize,
    json: bool,
    sentence: &str,
) -> anyhow::Result<()> {
    let line = serde_json::to_string(ready)?;
    home.replace("ready.json", line.as_bytes())?;
    println!("{}", if json { &line } else { sentence });
    Ok(())
}

/// A listen address and the URL the world knows it by.
pub(crate) struct Address {
    listen: SocketAddr,
    public_url: Option<String>,
}

impl Address {
    /// Reads `{role}.listen` and `{role}.public_url`.
    pub(crate) fn read(settings: &Settings, role: &str) -> anyhow::Result<Self> {
        let name = format!("{role}.listen");
        let text = settings.text(&name).with_context(|| format!("`{name}` is not set"))?;
        let listen: SocketAddr = text.parse().ok().with_context(|| {
            format!("`{name}` cannot be `{text}`: write HOST:PORT with an address for a host, as in 127.0.0.1:8440")
        })?;
        if !listen.ip().is_loopback() {
            bail!(
                "`{role}.listen` is {listen}: plain http is served on loopback only; put TLS in front of it"
            );
        }
        let name = format!("{role}.public_url");
        let public_url = settings.text(&name).map(|url| url.trim_end_matches('/').to_owned());
        if let Some(url) = &public_url {
            crate::origin::identifier(&name, url)?;
        }
        Ok(Self { listen, public_url })
    }

    /// Listens.
    pub(crate) async fn bind(&self, role: &str) -> anyhow::Result<(TcpListener, String)> {
        let listener = TcpListener::bind(self.listen).await.with_context(|| {
            format!("cannot listen on {} for the {role}; free it or choose another address", self.listen)
        })?;
        let url = match &self.public_url {
            Some(url) => url.clone(),
            None => format!("http://{}", listener.local_addr()?),
        };
        Ok((listener, url))
    }
}

/// Completes when `stopped` turns true, or when nobody can turn it any more.
pub(crate) fn until(stopped: &watch::Receiver<bool>) -> impl Future<Output = ()> + Send + 'static {
    let mut stopped = stopped.clone();
    async move { drop(stopped.wait_for(|stop| *stop).await) }
}

/// Lets this process hold as many connections as the system allows it to: the usual soft limit is below what the
/// listeners accept.
pub(crate) fn raise_limits() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if setrlimit(Resource::Nofile, raised).is_err() {
        tracing::warn!("the limit of open files stays as it was");
    }
}

/// Watches for SIGINT and SIGTERM from the call on, so that none is missed; completes at the first.
///
/// # Errors
/// When the system does not let signals be watched.
pub(crate) fn interrupted() -> anyhow::Result<impl Future<Output = ()>> {
    let watch = |kind| signal(kind).context("the system does not let signals be watched");
    let (mut asked, mut told) = (watch(SignalKind::interrupt())?, watch(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = asked.recv() => {}
            _ = told.recv() => {}
        }
    })
}

/// The file `store.url` names; `None` for `sayso.db` in the data folder.
pub(crate) fn store_file(settings: &Settings) -> anyhow::Result<Option<PathBuf>> {
    let Some(url) = settings.text("store.url") else { return Ok(None) };
    match url.strip_prefix("sqlite:") {
        Some(path) if !path.is_empty() => Ok(Some(Path::new(path).to_owned())),
        _ => bail!("`store.url` is {url}: this build keeps its store in SQLite, as sqlite:PATH"),
    }
}
