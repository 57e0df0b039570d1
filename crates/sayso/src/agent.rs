//! `sayso agent`: a requesting agent from a terminal or a script.
//!
//! Progress and every word of a stranger go to stderr as text; stdout carries the tool's result and nothing else
//! (D-28). What the exit codes mean is in `--help`, so that a script need not read words.

pub(crate) mod advice;
mod ending;
mod identity;
pub(crate) mod person;
pub(crate) mod presenting;
mod publish;
pub(crate) mod show;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use ending::Ending;
use person::Person;
use presenting::Presenting;
use sayso_agent::identity::{default_dir, read_key};
use sayso_agent::{Agent, Doors, Errand, Fault};
use sayso_protocol::ToolName;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Call protected tools as an agent nobody has to know: be challenged, read the owner's terms, agree, wait, call.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sayso agent tools http://127.0.0.1:8441/mcp\n  \
    sayso agent call http://127.0.0.1:8441/mcp get_positions\n  \
    sayso agent call http://127.0.0.1:8441/mcp execute_trade --args '{\"symbol\":\"VTI\",\"side\":\"buy\",\"quantity\":3}'\n  \
    sayso agent receipts")]
pub struct Command {
    #[command(subcommand)]
    act: Act,
    /// Folder of keys, receipts and grants; by default sayso in $XDG_CONFIG_HOME or ~/.config.
    #[arg(long, global = true, env = "SAYSO_CONFIG_DIR", value_name = "DIR")]
    config_dir: Option<PathBuf>,
    /// Machine output: one line of JSON on stdout; where there is no result, an object whose `outcome` says why.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Act {
    Call(Call),
    /// List the tools a resource offers.
    Tools {
        /// The MCP endpoint.
        resource_url: String,
    },
    /// List what was agreed to: the receipts authorities counter-signed, kept for ever.
    Receipts,
    /// List the grants that live, and what each is good for.
    Grants,
    Id(identity::Id),
    Publish(publish::Publish),
    Rotate(identity::Rotate),
}

/// Call one tool.
///
/// The call goes out unsigned first. If the resource asks for its owner's say, the challenge is checked against
/// what the resource itself publishes, the owner's terms are shown in full, and nothing is agreed to unless you say
/// so here or with --accept-terms. Where the owner has to decide, the command waits for her. The grant is bound to
/// a key that never leaves this machine, the call is repeated unchanged with it, and a grant that may be reused is.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  \
    0  the tool's result is on stdout\n  \
    1  the tool itself failed\n  \
    2  usage\n  \
    3  terms not accepted\n  \
    4  denied by the owner or her policy\n  \
    5  still waiting for the owner; the same command takes the wait up again\n  \
    6  refused, or a peer broke the protocol\n  \
    7  somebody cannot be reached, or the grant is spent and what became of the call is unknown")]
struct Call {
    /// The MCP endpoint, exactly as the resource names itself.
    resource_url: String,
    /// The tool.
    tool: String,
    /// The arguments, a JSON object; - reads them from stdin.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    args: String,
    /// Sign with this PKCS#8 PEM key (0600) in place of the authority's own.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    presenting: Presenting,
    /// Agree to whatever terms the owner sets; they are shown all the same.
    #[arg(long)]
    accept_terms: bool,
    /// Why you ask, for the owner to read; at most 512 bytes arrive.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// How long to wait for the owner before handing the wait back; 0 asks once.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u32,
}

/// Runs one command.
///
/// # Errors
/// When the agent's folder cannot be used.
pub async fn run(command: Command) -> anyhow::Result<ExitCode> {
    let json = command.json;
    let done = act(command).await;
    if let (true, Err(fault)) = (json, &done) {
        ending::usage(&format!("{fault:#}"));
    }
    done
}

async fn act(command: Command) -> anyhow::Result<ExitCode> {
    let agent = open(command.config_dir.clone())?;
    let json = command.json;
    match command.act {
        Act::Call(call) => self::call(&agent, call, command.config_dir.as_deref(), json).await,
        Act::Tools { resource_url } => Ok(match agent.tools(&resource_url).await {
            Ok(tools) => {
                show::tools(&tools, json);
                ExitCode::SUCCESS
            }
            Err(fault) => Ending::of_fault(&fault, &resource_url).tell(json),
        }),
        Act::Receipts => {
            show::receipts(&agent.wallet().receipts()?, json);
            Ok(ExitCode::SUCCESS)
        }
        Act::Grants => {
            show::grants(&agent.wallet().grants(crate::clock::now())?, json);
            Ok(ExitCode::SUCCESS)
        }
        Act::Id(asked) => identity::id(&agent, &asked, json),
        Act::Publish(asked) => publish::publish(&agent, &asked, json),
        Act::Rotate(asked) => identity::rotate(&agent, &asked, command.config_dir.as_deref(), json),
    }
}

/// Where an agent's keys and papers are.
pub(crate) fn folder(config_dir: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let variable = |name| std::env::var(name).ok();
    let usual = || default_dir(variable("XDG_CONFIG_HOME").as_deref(), variable("HOME").as_deref());
    config_dir.or_else(usual).context("neither HOME nor --config-dir says where keys are kept")
}

/// The agent of a folder.
pub(crate) fn open(config_dir: Option<PathBuf>) -> anyhow::Result<Agent> {
    let dir = folder(config_dir)?;
    Ok(Agent::open(&dir, Doors::usual(), crate::clock::now)?)
}

async fn call(
    agent: &Agent,
    mut call: Call,
    config_dir: Option<&Path>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let resume = show::again(&call, config_dir);
    if call.args == "-" {
        call.args.clear();
        std::io::stdin().read_to_string(&mut call.args).context("cannot read the arguments from stdin")?;
    }
    let errand = match errand(&call)? {
        Ok(errand) => errand,
        Err(fault) => return Ok(Ending::of_fault(&fault, &call.resource_url).tell(json)),
    };
    let person = Person::new(call.accept_terms);
    Ok(match agent.call(&errand, &person).await {
        Ok(outcome) => ending::end(&outcome, &call.resource_url, &resume, json),
        Err(fault) => Ending::of_fault(&fault, &call.resource_url).tell(json),
    })
}

fn errand(call: &Call) -> anyhow::Result<Result<Errand, Fault>> {
    let tool = ToolName::parse(call.tool.clone()).context("not a tool's name")?;
    let key = call.key.as_deref().map(read_key).transpose()?;
    let shows = call.presenting.shows();
    Ok(shows.and_then(|shows| Ok((shows, Errand::new(&call.resource_url, tool, &call.args)?))).map(|made| {
        let (shows, mut errand) = made;
        errand.shows = shows;
        errand.key = key;
        errand.reason.clone_from(&call.reason);
        errand.wait = call.wait;
        errand
    }))
}
