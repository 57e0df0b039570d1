//! `sayso gateway`: resources behind one origin, each under the authority its owner chose.

use super::introducer::Introducer;
use super::server::Asking;
use super::{Address, Command, Start, interrupted, until};
use crate::clock;
use crate::metrics::{self, Listening, Metrics};
use crate::settings::Settings;
use crate::tables::ResourceTable;
use anyhow::{Context as _, bail};
use sayso_gateway::{Enforcement, Gateway, GatewayConfig, HttpSettings, ResourceConfig};
use sayso_protocol::SigningKey;
use serde::Serialize;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::sync::Arc;
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
    let serving = tokio::spawn(sayso_gateway::serve(listener, gateway, until(&stopped)));
    // Only now: an authority reads what is published here before it answers.
    let introducing: Vec<_> = introducers.into_iter().map(|one| tokio::spawn(one.run())).collect();
    let showing = tokio::spawn(metrics::serve(metrics, listening, until(&stopped)));
    command.announce(&home, &ready, &format!("the gateway is ready at {url}"))?;
    interrupted.await;
    let _ = stop.send(true);
    introducing.iter().for_each(JoinHandle::abort);
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
        let upstream = table.upstream.as_ref();
        let upstream = upstream.with_context(|| format!("{} needs an `upstream`", table.path))?;
        let upstream = HttpSettings { host: table.upstream_host.of(url), ..HttpSettings::at(upstream) };
        Ok(ResourceConfig { resource: asking.resource(table, settings)?, upstream: upstream.into() })
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
