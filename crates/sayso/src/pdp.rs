//! `sayso pdp`: the embedded policies as a decision point that others ask, over OpenID AuthZEN.
//!
//! On loopback anybody may ask, for it holds no credential; where others can reach it, it speaks TLS and wants a secret, or
//! it does not start (D-34).

mod door;

use crate::metrics::{self, Listening, Metrics};
use crate::roles::{interrupted, raise_limits, until};
use crate::settings::{Settings, environment};
use anyhow::Context as _;
use clap::Args;
use door::Door;
use sayso_pdp::serve::{self, EVALUATION, EVALUATIONS, METADATA, Served};
use sayso_pdp::{Embedded, EmbeddedSettings};
use serde::Serialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::watch;

/// Decide by Cedar policies from a folder, for whoever asks over OpenID AuthZEN.
///
/// The folder holds the policies, as many files *.cedar as you like. What the default mappings of MCP's methods ask about
/// is declared already; schema.cedarschema declares anything else, and entities.json holds what is known of subjects and
/// resources. Save a file, and it decides about two seconds later; a set that is not valid is said in the log, and the last
/// one that was goes on deciding.
#[derive(Debug, Args)]
#[command(
    after_help = "A first policy, which lets one person's agents list the tools of any server and call one of them:\n\n  \
    permit (\n    principal == identity::\"alice\",\n    action in [Action::\"tools/list\", Action::\"tools/call\"],\n    resource\n  ) \
    when {\n    resource is mcp_server || resource == tool::\"get_weather\"\n  };\n\n\
    Examples:\n  \
    sayso pdp --policies ./policies --check\n  \
    sayso pdp --policies ./policies\n  \
    curl -H 'Content-Type: application/json' http://127.0.0.1:8444/access/v1/evaluation -d '{\n    \
    \"subject\": {\"type\": \"identity\", \"id\": \"alice\"}, \"action\": {\"name\": \"tools/call\"},\n    \
    \"resource\": {\"type\": \"tool\", \"id\": \"get_weather\"}}'\n\n\
    Exit codes:\n  \
    0  ended as it was told to; with --check: the policies can decide\n  \
    2  usage, an address that cannot be had, or policies that cannot decide"
)]
pub struct Command {
    /// Folder of *.cedar, and of schema.cedarschema and entities.json where there are such.
    #[arg(long, value_name = "DIR")]
    policies: PathBuf,
    #[command(flatten)]
    door: Door,
    /// Address of the metrics, on loopback; port 0 picks one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    metrics: SocketAddr,
    /// Only say whether the policies can decide.
    #[arg(long)]
    check: bool,
    /// Print the ready line as JSON, and nothing else, on stdout.
    #[arg(long)]
    json: bool,
}

/// What is told when it answers.
#[derive(Debug, Serialize)]
struct Ready {
    ready: bool,
    pdp: String,
    metadata: String,
    evaluation: String,
    evaluations: String,
    metrics: String,
    version: &'static str,
}

/// Runs until interrupted.
///
/// # Errors
/// When it cannot be set up; the sentence says what to do.
pub async fn run(command: Command) -> anyhow::Result<ExitCode> {
    raise_limits();
    let interrupted = interrupted()?;
    let place = command.door.check()?;
    let policies =
        Embedded::open(EmbeddedSettings::new(&command.policies)).context("the policies cannot decide")?;
    if command.check {
        println!("the policies in {} can decide", command.policies.display());
        return Ok(ExitCode::SUCCESS);
    }
    let bound = place.bind().await?;
    let flags = [("metrics.listen", Some(command.metrics.to_string()))];
    let listening = Listening::bind(&Settings::load(None, environment(), &flags)?).await?;
    let mut metrics = Metrics::new();
    let served = Served {
        point: Arc::new(policies),
        url: bound.url.clone(),
        hosts: bound.hosts.clone(),
        secret: bound.secret,
        observer: Some(metrics.policy_decisions()),
    };
    let ready = Ready {
        ready: true,
        metadata: format!("{}{METADATA}", bound.url),
        evaluation: format!("{}{EVALUATION}", bound.url),
        evaluations: format!("{}{EVALUATIONS}", bound.url),
        pdp: bound.url,
        metrics: listening.url.clone(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let router = serve::router(served);
    let (stop, stopped) = watch::channel(false);
    let serving = match bound.tls {
        None => tokio::spawn(sayso_listen::listen(vec![bound.listener], router, until(&stopped))),
        Some(tls) => {
            tokio::spawn(sayso_listen::listen_tls(vec![bound.listener], tls, router, until(&stopped)))
        }
    };
    let showing = tokio::spawn(metrics::serve(metrics, listening, until(&stopped)));
    match command.json {
        true => println!("{}", serde_json::to_string(&ready)?),
        false => println!("decisions are asked for at {}", ready.evaluation),
    }
    interrupted.await;
    let _ = stop.send(true);
    serving.await?;
    showing.await?;
    Ok(ExitCode::SUCCESS)
}
