//! `sayso ext-authz`: the enforcement point of a gateway that asks before it forwards, over HTTP or over gRPC.
//!
//! It is the resource server its public URL names, like the gateway: the key is kept under the same name, so that one
//! data folder is one identity (D-15). What is behind the gateway is the gateway's to know, but for the tools of a server whose
//! mappings a policy needs: those are asked for here.

use super::gateway::BODY_LIMIT;
use super::introducer::Introducer;
use super::server::Asking;
use super::{Address, Command, Start, interrupted, until};
use crate::clock;
use crate::metrics::{self, Listening, Metrics};
use crate::policed::Policies;
use crate::settings::Settings;
use crate::tables::ResourceTable;
use anyhow::{Context as _, bail};
use sayso_enforce::{ServerConfig, ServerResource};
use sayso_ext_authz::{ExtAuthz, Outward, Whole, serve_grpc, serve_http};
use sayso_gateway::Upstream;
use sayso_protocol::SigningKey;
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What is told when both doors answer.
#[derive(Debug, Serialize)]
struct Ready {
    ready: bool,
    /// Where checks over HTTP go: this, and the original target.
    check: String,
    /// Where checks over gRPC go.
    grpc: String,
    /// The HTTP listener, with what the resource server publishes.
    ext_authz: String,
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
        bail!("name at least one resource: [[resource]] with path, owner, authority, realm and tools");
    }
    if settings.text("ext_authz.public_url").is_none() {
        bail!(
            "set `ext_authz.public_url`: the origin agents dial is the gateway's, which nobody here can see"
        );
    }
    let (http, url) = Address::read(&settings, "ext_authz")?.bind("check over HTTP").await?;
    let (grpc, _) = Address::read(&settings, "ext_authz.grpc")?.bind("check over gRPC").await?;
    let listening = Listening::bind(&settings).await?;
    let mut metrics = Metrics::new();
    let (key, _) = home.key("gateway")?;
    let mut policies = Policies::read(&settings, &url)?;
    let servers = Servers::of(&tables.resource, &url)?;
    let (authorizer, introducers) =
        assemble(&settings, &tables.resource, &mut policies, &servers, (&url, key), &mut metrics)?;
    policies.prepare().await?;
    let resources = super::server::urls(&tables.resource, &url);
    let here = format!("http://{}", http.local_addr()?);
    let ready = Ready {
        ready: true,
        check: format!("{here}{}", sayso_ext_authz::CHECK),
        grpc: grpc.local_addr()?.to_string(),
        ext_authz: here,
        resource: resources.first().cloned(),
        resources,
        metrics: listening.url.clone(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(serve_http(http, authorizer.clone(), until(&stopped)));
    let answering = tokio::spawn(serve_grpc(grpc, authorizer, until(&stopped)));
    // The documents an authority reads before it answers are published by now, here or by a gateway of ours.
    let mut going: Vec<_> = introducers.into_iter().map(|one| tokio::spawn(one.run())).collect();
    going.extend(servers.attend());
    let showing = tokio::spawn(metrics::serve(metrics, listening, until(&stopped)));
    let sentence =
        format!("checks for {url} are answered at {} and over gRPC at {}", ready.check, ready.grpc);
    command.announce(&home, &ready, &sentence)?;
    interrupted.await;
    let _ = stop.send(true);
    going.iter().for_each(JoinHandle::abort);
    serving.await?;
    answering.await?;
    showing.await?;
    Ok(ExitCode::SUCCESS)
}

fn assemble(
    settings: &Settings,
    tables: &[ResourceTable],
    policies: &mut Policies,
    servers: &Servers,
    (url, key): (&str, SigningKey),
    metrics: &mut Metrics,
) -> anyhow::Result<(ExtAuthz, Vec<Introducer>)> {
    let asking = Asking::of(url, &key, tables)?;
    let resource = |table: &ResourceTable| {
        if table.discover {
            bail!(
                "{} cannot `discover`: nobody here follows its server. Name its [[resource.tools]]",
                table.path
            );
        }
        let resource = asking.resource(table, settings, policies)?;
        servers.teach(&resource);
        Ok(resource)
    };
    let config = ServerConfig {
        public_url: url.to_owned(),
        hosts: settings.list("ext_authz.hosts"),
        readers: asking.readers(),
        resources: tables.iter().map(resource).collect::<anyhow::Result<_>>()?,
        body_limit: settings.whole("ext_authz.body_limit", BODY_LIMIT)?,
        key,
    };
    let more = settings.list("ext_authz.pass_headers").into_iter();
    let more = more.map(|name| name.parse().with_context(|| format!("`{name}` is no header's name")));
    let outward = Outward::with(more.collect::<anyhow::Result<_>>()?).context("`ext_authz.pass_headers`")?;
    let whole = if settings.parse("ext_authz.partial_body_flag")? { Whole::ByFlag } else { Whole::ByLength };
    let authorizer = ExtAuthz::new(config, whole, outward, Arc::new(clock::now), Some(metrics.decisions()))?;
    Ok((authorizer, asking.introducers(settings.parse("gateway.ask_again")?)?))
}

/// The servers that are asked for their tools here, and for nothing else: calls reach them by way of the gateway that asks.
struct Servers(BTreeMap<String, Upstream>);

impl Servers {
    fn of(tables: &[ResourceTable], url: &str) -> anyhow::Result<Self> {
        let mut servers = BTreeMap::new();
        for table in tables {
            let path = &table.path;
            let asks = table.asked()?.asks_policy();
            match (asks, table.upstream.is_some(), table.mappings.is_some()) {
                _ if table.upstream_stdio.is_some() => {
                    bail!("the `upstream_stdio` of {path} is the gateway's to run; leave it out")
                }
                (false, true, _) => {
                    bail!("the `upstream` of {path} is the gateway's to know here; leave it out")
                }
                (true, true, true) => bail!(
                    "{path} has `mappings`, so that its server need not be asked, and an `upstream` to ask; leave one of them \
                     out"
                ),
                (true, false, false) => bail!(
                    "say what the tools of {path} declare: `upstream`, where its server is to be asked, or `mappings`, a file \
                     with its tools/list, or \"none\""
                ),
                (true, true, false) => {
                    let upstream = Upstream::open(super::gateway::behind(table, url)?);
                    servers.insert(path.clone(), upstream.with_context(|| format!("`upstream` of {path}"))?);
                }
                (true, false, true) | (false, false, _) => {}
            }
        }
        Ok(Self(servers))
    }

    /// Tells a resource's policy whom to ask for the mappings.
    fn teach(&self, resource: &ServerResource) {
        if let (Some(policy), Some(server)) = (resource.enforcement.policy(), self.0.get(&resource.path)) {
            policy.mappings().learn_from(Arc::new(server.clone()));
        }
    }

    /// Listens to each for the moment that it says that its tools changed.
    fn attend(self) -> Vec<JoinHandle<()>> {
        let listen = |server: Upstream| tokio::spawn(async move { server.attend().await });
        self.0.into_values().map(listen).collect()
    }
}
