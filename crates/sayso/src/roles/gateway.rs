//! `sayso gateway`: resources behind one origin, each under the authority its owner chose.

use super::follower::Follower;
use super::introducer::Introducer;
use super::server::Asking;
use super::{Address, Command, Start, interrupted, until};
use crate::clock;
use crate::metrics::{self, Listening, Metrics};
use crate::policed::{Asked, Policies};
use crate::settings::Settings;
use crate::tables::ResourceTable;
use crate::upstream::{self, BadUpstream};
use anyhow::bail;
use sayso_gateway::{Gateway, GatewayConfig, HttpSettings, ResourceConfig, UpstreamConfig};
use sayso_protocol::SigningKey;
use serde::Serialize;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Bytes a request body may be limited to.
pub(crate) const BODY_LIMIT: RangeInclusive<usize> = 1..=1 << 30;

/// What is told when the gateway answers.
#[derive(Debug, Serialize)]
struct Ready {
    ready: bool,
    gateway: String,
    resource: Option<String>,
    resources: Vec<String>,
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
    if tables.resource.is_empty() {
        bail!(
            "name at least one resource: [[resource]] with path, owner, authority, realm, upstream and tools"
        );
    }
    let (listener, url) = Address::read(&settings, "gateway")?.bind("gateway").await?;
    let listening = Listening::bind(&settings).await?;
    let mut metrics = Metrics::new();
    let (key, _) = home.key("gateway")?;
    let mut policies = Policies::read(&settings, &url)?;
    let (gateway, introducers) =
        assemble(&settings, &tables.resource, &mut policies, &url, key, &mut metrics)?;
    policies.prepare().await?;
    let resources = super::server::urls(&tables.resource, &url);
    let ready = Ready {
        ready: true,
        gateway: url.clone(),
        resource: resources.first().cloned(),
        resources,
        metrics: listening.url.clone(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let (stop, stopped) = watch::channel(false);
    let followers = followers(&tables.resource, &settings)?;
    let mut following: Vec<_> =
        followers.into_iter().map(|one| tokio::spawn(one.run(gateway.clone()))).collect();
    following.extend(listeners(&tables.resource, &gateway)?);
    let serving = tokio::spawn(sayso_gateway::serve(listener, gateway, until(&stopped)));
    // Only now: an authority reads what is published here before it answers.
    let introducing: Vec<_> = introducers.into_iter().map(|one| tokio::spawn(one.run())).collect();
    let showing = tokio::spawn(metrics::serve(metrics, listening, until(&stopped)));
    command.announce(&home, &ready, &format!("the gateway is ready at {url}"))?;
    interrupted.await;
    let _ = stop.send(true);
    introducing.iter().chain(&following).for_each(JoinHandle::abort);
    serving.await?;
    showing.await?;
    Ok(ExitCode::SUCCESS)
}

/// Said at every start, since it is easily left on (D-6).
pub(crate) fn warn_of_nothing(asked: Asked, path: &str) {
    if asked == Asked::Nobody {
        tracing::warn!(
            "enforce = []: nobody is asked about {path}; whatever is a message reaches the server behind it"
        );
    }
}

fn assemble(
    settings: &Settings,
    tables: &[ResourceTable],
    policies: &mut Policies,
    url: &str,
    key: SigningKey,
    metrics: &mut Metrics,
) -> anyhow::Result<(Gateway, Vec<Introducer>)> {
    let asking = Asking::of(url, &key, tables)?;
    let resource = |table: &ResourceTable| {
        let resource = asking.resource(table, settings, policies)?;
        Ok(ResourceConfig { resource, upstream: behind(table, url)? })
    };
    let config = GatewayConfig {
        public_url: url.to_owned(),
        hosts: vec![],
        readers: asking.readers(),
        resources: tables.iter().map(resource).collect::<anyhow::Result<_>>()?,
        body_limit: settings.whole("gateway.body_limit", BODY_LIMIT)?,
        key,
    };
    let gateway = Gateway::observed(config, Arc::new(clock::now), Some(metrics.decisions()))?;
    Ok((gateway, asking.introducers(settings.parse("gateway.ask_again")?)?))
}

/// The resources whose servers say what there is.
fn followers(tables: &[ResourceTable], settings: &Settings) -> anyhow::Result<Vec<Follower>> {
    let every = settings.whole("gateway.survey_interval", crate::up::SURVEY_INTERVAL)?;
    let follower = |table: &ResourceTable| {
        let realm = table.hers()?.realm.clone();
        let (path, single_use) = (table.path.clone(), table.single_use.clone());
        Some(Follower { path, realm, single_use, every: Duration::from_secs(every) })
    };
    let mut followers = Vec::new();
    for table in tables.iter().filter(|table| table.discover) {
        // Where no owner governs tools, none have to be known.
        if table.asked()? != Asked::Policy {
            followers.extend(follower(table));
        }
    }
    Ok(followers)
}

/// Listens to the servers whose tools declare mappings, for the moment that one says that they changed; those that are
/// followed are listened to already.
fn listeners(tables: &[ResourceTable], gateway: &Gateway) -> anyhow::Result<Vec<JoinHandle<()>>> {
    let mut listening = Vec::new();
    for table in tables {
        let asked = table.asked()?;
        let followed = table.discover && asked != Asked::Policy;
        let upstream = gateway.upstream(&table.path).filter(|_| asked.asks_policy() && !followed);
        listening.extend(upstream.map(|upstream| tokio::spawn(async move { upstream.attend().await })));
    }
    Ok(listening)
}

/// The server behind a resource.
pub(super) fn behind(table: &ResourceTable, url: &str) -> anyhow::Result<UpstreamConfig> {
    let path = &table.path;
    match (&table.upstream, &table.upstream_stdio) {
        (Some(_), Some(_)) => {
            bail!("{path} has an `upstream` and an `upstream_stdio`; leave one of them out")
        }
        (None, None) => bail!("{path} needs an `upstream`, or an `upstream_stdio`"),
        (Some(at), None) => {
            if !table.upstream_env.is_empty() {
                bail!("the `upstream_env` of {path} is for an `upstream_stdio`, which it has not");
            }
            let named = table.upstream_token_env.as_deref();
            let credential =
                named.map(|name| upstream::credential("upstream_token_env", name)).transpose()?;
            let host = table.upstream_host.of(url);
            Ok(HttpSettings { url: at.clone(), host, credential }.into())
        }
        (None, Some(line)) => {
            if table.upstream_token_env.is_some() {
                bail!("the `upstream_token_env` of {path} is for an `upstream`, which it has not");
            }
            let command = upstream::command(line, &table.upstream_env);
            let command = command.map_err(|fault| match fault {
                BadUpstream::Variable(name) => {
                    anyhow::anyhow!("the `upstream_env` of {path} names {name}, which is not set")
                }
                BadUpstream::Shell(name) => anyhow::anyhow!(
                    "the `upstream_stdio` of {path} begins with {name}=…, and no shell reads it: name {name} in `upstream_env`, and \
                     begin with the program"
                ),
                BadUpstream::Command(fault) => {
                    anyhow::Error::new(fault).context(format!("the `upstream_stdio` of {path} is not a command"))
                }
            })?;
            Ok(command.into())
        }
    }
}
