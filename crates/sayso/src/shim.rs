//! `sayso shim`: an MCP server in front of a protected resource, so that any MCP client becomes a requesting agent.
//!
//! What the resource offers is passed through as it is; only a call that wants the owner's say is taken through the dance,
//! and only the client's own person is asked about terms. Logs go to stderr, as everywhere.

mod asked;
mod carry;
mod desk;
mod door;
mod edit;
mod http;
mod incoming;
mod person;
mod questions;
mod round;
mod stdio;
mod words;

use crate::agent::presenting::Presenting;
use anyhow::Context as _;
use asked::Asked;
use clap::Args;
use door::{Outside, Place};
use sayso_agent::identity::read_key;
use sayso_agent::{Agent, Allowed, Rule, Shows};
use sayso_protocol::SigningKey;
use sayso_protocol::seal::Seal;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Most requests of one client under way at once.
const MOST_CALLS: usize = 64;
/// Longest time a stock client of an older revision surely waits, less what it takes to answer.
const PATIENCE: u32 = 50;

/// Be an MCP server in front of a protected resource, for clients that know nothing of owners.
///
/// The client lists and calls the resource's own tools. Where the owner's say is wanted, her terms are shown through the
/// client and agreed to by the person at it; while she decides, the call waits, and can be taken up again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sayso shim http://127.0.0.1:8441/mcp\n  \
    sayso shim http://127.0.0.1:8441/mcp --agree-up-to 86400 --agree-prohibited marketing\n  \
    sayso shim http://127.0.0.1:8441/mcp --listen 127.0.0.1:8450\n\n\
    In a client's configuration: {\"command\": \"sayso\", \"args\": [\"shim\", \"http://127.0.0.1:8441/mcp\"]}")]
pub struct Command {
    /// The MCP endpoint, exactly as the resource names itself.
    resource_url: String,
    /// Listen in place of standard input and output: unix:PATH, a socket for this user alone, or an address:
    /// on loopback, or with TLS elsewhere.
    #[arg(long, value_name = "ADDR")]
    listen: Option<Place>,
    /// With --listen ADDR: the secret that clients send as a bearer token (0600); drawn if there is none. By default
    /// shim-secret in the folder of keys.
    #[arg(long, value_name = "FILE", requires = "listen")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    outside: Outside,
    /// Folder of keys, receipts and grants; by default sayso in $XDG_CONFIG_HOME or ~/.config.
    #[arg(long, env = "SAYSO_CONFIG_DIR", value_name = "DIR")]
    config_dir: Option<PathBuf>,
    /// Sign with this PKCS#8 PEM key (0600) in place of each authority's own.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    presenting: Presenting,
    /// Why this agent asks, for the owner to read; at most 512 bytes arrive.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// How long a call waits for the owner before the client is asked whether to go on, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u32).range(0..=300))]
    hold: u32,
    /// How long a call of a client of an older revision waits altogether, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = PATIENCE, value_parser = clap::value_parser!(u32).range(1..=3600))]
    patience: u32,
    #[command(flatten)]
    standing: Beforehand,
}

/// What is agreed to without asking.
#[derive(Debug, Args)]
struct Beforehand {
    /// Agree to whatever terms the owner sets, unseen.
    #[arg(long, conflicts_with = "agree_up_to")]
    accept_terms: bool,
    /// Agree without asking to terms for no longer than this, in seconds; all others are still asked about.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(1..))]
    agree_up_to: Option<i64>,
    /// With --agree-up-to: what such terms may forbid; given several times, any of these. Without it: anything.
    #[arg(long, value_name = "WORD", requires = "agree_up_to")]
    agree_prohibited: Vec<String>,
    /// With --agree-up-to: what such terms may be for, letter for letter. Without it: anything.
    #[arg(long, value_name = "TEXT", requires = "agree_up_to")]
    agree_purpose: Vec<String>,
}

impl Beforehand {
    fn rule(&self) -> Option<Rule> {
        let allowed = |words: &[String]| match words {
            [] => Allowed::Any,
            words => Allowed::Only(words.iter().cloned().collect::<BTreeSet<_>>()),
        };
        let longest = if self.accept_terms { Some(i64::MAX) } else { self.agree_up_to };
        longest.map(|longest| Rule {
            longest,
            prohibitions: allowed(&self.agree_prohibited),
            purposes: allowed(&self.agree_purpose),
        })
    }
}

/// What every client of a shim shares.
struct Shim {
    agent: Agent,
    resource: String,
    key: Option<SigningKey>,
    shows: Shows,
    reason: Option<String>,
    rule: Option<Rule>,
    hold: u32,
    patience: u32,
    seal: Seal,
    asked: Asked,
}

/// Serves until its client is gone.
///
/// # Errors
/// When the agent's folder or the resource's address cannot be used.
pub async fn run(command: Command) -> anyhow::Result<ExitCode> {
    let agent = crate::agent::open(command.config_dir.clone())?;
    let secret = agent.secret("shim").context("cannot keep the key that seals what clients carry")?;
    let shim = Shim {
        agent,
        key: command.key.as_deref().map(read_key).transpose()?,
        shows: command.presenting.shows()?,
        reason: command.reason,
        rule: command.standing.rule(),
        hold: command.hold,
        patience: command.patience,
        seal: Seal::new(&secret, &format!("rounds of {}", command.resource_url))?,
        resource: command.resource_url,
        asked: Asked::default(),
    };
    let Some(place) = command.listen else { return stdio::serve(Arc::new(shim)).await };
    let usual = || Ok::<_, anyhow::Error>(crate::agent::folder(command.config_dir)?.join("shim-secret"));
    let secret = command.secret_file.map_or_else(usual, Ok)?;
    http::serve(Arc::new(shim), &place, &secret, &command.outside).await
}
