//! `sayso up`: an owner in front of an MCP server, in one process, in one command.
//!
//! Authority, gateway and demo vault are wired here and nowhere else. The ready line is printed when an agent's
//! first call would be answered; with `--json` it is all that stdout carries.

mod behind;
mod entrance;
mod keeper;
mod parts;
mod policy;

use crate::home::Home;
use crate::owner::typed::Typed;
use crate::policed::Asked;
use crate::roles;
use crate::settings::Settings;
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use entrance::{Entered, Entrance};
pub(crate) use parts::SURVEY_INTERVAL;
use parts::{Parts, go_on};
use policy::FirstPolicy;
use sayso_authority::Authority;
use sayso_owner::ledger::Author;
use sayso_owner::unit::Unit;
use sayso_protocol::Realm;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinError;

/// Flags of `up`. Everything else is in the configuration file and the environment.
#[derive(Debug, Args)]
#[command(
    after_help = "Every setting can also be given in the file (`[authority] listen = …`) or the environment\n\
    (SAYSO_AUTHORITY__LISTEN=…). `sayso config print` shows what is in force and where it came from."
)]
pub struct Command {
    #[command(flatten)]
    flags: Flags,
    /// Print the ready line as JSON, and nothing else, on stdout.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Flags {
    /// Folder for the store, keys and the demo vault [default: .sayso].
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<String>,
    /// Where the store is, as sqlite:PATH [default: sayso.db in the data folder].
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
    /// Put the owner in front of this streamable-HTTP MCP server instead of the demo vault.
    #[arg(long, global = true, value_name = "URL", conflicts_with = "upstream_stdio")]
    upstream: Option<String>,
    /// Put her in front of a server that is run as this command and speaks over stdio; no shell is involved.
    #[arg(long, global = true, value_name = "CMD ARGS")]
    upstream_stdio: Option<String>,
    /// Let the command see this variable; otherwise it sees PATH, HOME, LANG and TERM. May be repeated.
    #[arg(long, global = true, value_name = "NAME")]
    upstream_env: Vec<String>,
    /// Name the server in resource ids and challenges [default: made from what it calls itself].
    #[arg(long, global = true, value_name = "R")]
    realm: Option<String>,
    /// Whose resources these are [default: alice].
    #[arg(long, global = true, value_name = "NAME")]
    owner: Option<String>,
    /// Listen address of the authority; port 0 picks one [default: 127.0.0.1:8440].
    #[arg(long, global = true, value_name = "ADDR")]
    authority: Option<String>,
    /// Listen address of the gateway; port 0 picks one [default: 127.0.0.1:8441].
    #[arg(long, global = true, value_name = "ADDR")]
    gateway: Option<String>,
    /// Listen address of the metrics; port 0 picks one [default: 127.0.0.1:0].
    #[arg(long, global = true, value_name = "ADDR")]
    metrics: Option<String>,
    /// Configuration file, TOML.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// `sayso config`: the settings `up` would run with.
#[derive(Debug, Args)]
pub struct ConfigCommand {
    #[command(subcommand)]
    act: ConfigAct,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Subcommand)]
enum ConfigAct {
    /// Say whether the settings are usable.
    Check,
    /// Print every setting with its value and where it came from.
    Print,
}

/// What is told when agents can call.
#[derive(Debug, Serialize)]
struct Ready {
    ready: bool,
    authority: String,
    gateway: String,
    resource: String,
    owner: String,
    owner_key: PathBuf,
    /// A single-use sign-in link to her page.
    #[serde(skip_serializing_if = "Option::is_none")]
    portal: Option<String>,
    metrics: String,
    version: &'static str,
}

impl Flags {
    fn settings(&self) -> anyhow::Result<Settings> {
        let variables = (!self.upstream_env.is_empty()).then(|| self.upstream_env.join(","));
        let flags = [
            ("--data", "data", &self.data),
            ("--store", "store.url", &self.store),
            ("--upstream", "gateway.upstream", &self.upstream),
            ("--upstream-stdio", "gateway.upstream_stdio", &self.upstream_stdio),
            ("--upstream-env", "gateway.upstream_env", &variables),
            ("--realm", "gateway.realm", &self.realm),
            ("--owner", "owner.name", &self.owner),
            ("--authority", "authority.listen", &self.authority),
            ("--gateway", "gateway.listen", &self.gateway),
            ("--metrics", "metrics.listen", &self.metrics),
        ];
        // Empty would mean "as if it were not there", and that is a demo vault in place of somebody's server.
        let empty = |value: &Option<String>| value.as_deref().is_some_and(|value| value.trim().is_empty());
        if let Some((flag, ..)) = flags.iter().find(|(.., value)| empty(value)) {
            bail!("{flag} is empty: give it a value, or leave it out");
        }
        let flags = flags.map(|(_, name, value)| (name, value.clone()));
        Settings::load(self.config.as_deref(), crate::settings::environment(), &flags)
    }
}

/// Prints or checks the settings.
///
/// # Errors
/// When they cannot be read.
pub fn config(command: &ConfigCommand) -> anyhow::Result<ExitCode> {
    let settings = command.flags.settings()?;
    match command.act {
        ConfigAct::Print => println!("{}", settings.print()),
        ConfigAct::Check => {
            parts::Wanted::read(&settings)?;
            println!("the settings are usable");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs until interrupted.
///
/// # Errors
/// When something cannot be set up; the sentence says what to do.
pub async fn run(command: Command) -> anyhow::Result<ExitCode> {
    roles::raise_limits();
    let interrupted = roles::interrupted()?;
    let settings = command.flags.settings()?;
    let mut wanted = parts::Wanted::read(&settings)?;
    let home = Home::open(&wanted.data)?;
    let parts = Parts::assemble(&mut wanted, &settings, &home).await?;
    let mut ready = Ready {
        ready: true,
        authority: parts.authority.issuer().to_owned(),
        gateway: parts.gateway_url.clone(),
        resource: format!("{}/mcp", parts.gateway_url),
        owner: wanted.owner.to_string(),
        owner_key: parts.owner_key.clone(),
        portal: None,
        metrics: parts.metrics_url(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let (stop, stopped) = watch::channel(false);
    let Parts { authority, first, realm, units, mut entrance, keeper, services, .. } = parts;
    let first = (first, realm, units);
    let mut serving = Parts::serve(services, Arc::clone(&authority), &stopped);
    let entered = tokio::select! {
        outcome = serving.join_next() => return ended(outcome),
        settled = settle(&authority, &wanted, &mut entrance, &first, &home) => settled?,
    };
    if entered == Entered::Waits {
        let waiting = entrance.waiting();
        go_on(&mut serving, &stopped, async move {
            waiting.run().await;
            std::future::pending().await
        });
    }
    if let Some(keeper) = keeper {
        go_on(&mut serving, &stopped, keeper.keep(entrance));
    }
    let link = authority.sign_in_link(&wanted.owner, &Author::Setup).await?;
    ready.portal = link.map(|link| link.url);
    announce(&home, &wanted.data, &ready, command.json)?;
    tokio::select! {
        outcome = serving.join_next() => return ended(outcome),
        () = interrupted => {}
    }
    // Nobody listening for it any more is as good as heard.
    let _ = stop.send(true);
    while let Some(outcome) = serving.join_next().await {
        outcome?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Nothing is announced before what an agent's first call needs is there.
async fn settle(
    authority: &Authority,
    wanted: &parts::Wanted,
    entrance: &mut Entrance,
    (first, realm, units): &(FirstPolicy, Realm, Vec<Unit>),
    home: &Home,
) -> anyhow::Result<Entered> {
    let owner = &wanted.owner;
    policy::reissue(authority, owner, home).await?;
    if wanted.asked == Asked::Policy {
        // Nothing here is hers to say, so nobody has to be known to her.
        return Ok(Entered::In);
    }
    let entered = entrance.enter().await?;
    // What she withdrew is hers to bring back, and for that she has to be able to come in.
    if entered == Entered::In {
        first.settle(authority, owner, entrance.client_id(), realm, units).await?;
    }
    Ok(entered)
}

/// What is served ends when it is told to; that it ends by itself is a failure, whatever it says.
fn ended(outcome: Option<Result<(), JoinError>>) -> anyhow::Result<ExitCode> {
    outcome.context("nothing is being served")??;
    bail!("a part of this process ended by itself")
}

fn announce(home: &Home, data: &Path, ready: &Ready, json: bool) -> anyhow::Result<()> {
    let key = ready.owner_key.display();
    let typed = Typed::at(data);
    let page = match &ready.portal {
        Some(link) => {
            format!("her page, once and within five minutes: {link}\nlater: {}\n", typed.line("open"))
        }
        None => String::new(),
    };
    let sentence = format!(
        "sayso is ready: {} decides at {}\nagents call {}\n{page}she answers there or with `{}`, \
         `show`, `approve`, `deny`\nwhoever reads {key} can answer for her",
        ready.owner,
        ready.authority,
        ready.resource,
        typed.line("pending")
    );
    roles::announce(home, ready, json, &sentence)
}
