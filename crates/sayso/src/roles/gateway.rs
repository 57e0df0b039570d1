//! `sayso gateway`: resources behind one origin, each under the authority its owner chose.

use super::follower::Follower;
use super::introducer::Introducer;
use super::server::Asking;
use super::{Address, Command, Start, interrupted, until};
use crate::clock;
use crate::metrics::{self, Listening, Metrics};
use crate::settings::Settings;
use crate::tables::ResourceTable;
use crate::upstream::{self, BadUpstream};
use anyhow::bail;
use sayso_gateway::{Enforcement, Gateway, GatewayConfig, HttpSettings, ResourceConfig, UpstreamConfig};
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
    let (gateway, introducers) = assemble(&settings, &tables.resource, &url, key, &mut metrics)?;
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
    let following: Vec<_> = followers.into_iter().map(|one| tokio::spawn(one.run(gateway.clone()))).collect();
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
pub(crate) fn warn_of_nothing(enforcement: Enforcement, path: &str) {
    if enforcement == Enforcement::Nothing {
        tracing::warn!(
            "enforce = []: nobody is asked about {path}; whatever is a message reaches the server behind it"
        );
    }
}

fn assemble(
    settings: &Settings,
    tables: &[ResourceTable],
    url: &str,
    key: SigningKey,
    metrics: &mut Metrics,
) -> anyhow::Result<(Gateway, Vec<Introducer>)> {
    let asking = Asking::of(url, &key, tables)?;
    let resource = |table: &ResourceTable| {
        Ok(ResourceConfig { resource: asking.resource(table, settings)?, upstream: behind(table, url)? })
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
    let follower = |table: &ResourceTable| Follower {
        path: table.path.clone(),
        realm: table.realm.clone(),
        single_use: table.single_use.clone(),
        every: Duration::from_secs(every),
    };
    Ok(tables.iter().filter(|table| table.discover).map(follower).collect())
}

/// The server behind a resource.
fn behind(table: &ResourceTable, url: &str) -> anyhow::Result<UpstreamConfig> {
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
