//! The `sayso` binary: its subcommands, and nothing else.

use clap::{Parser, Subcommand};
#[cfg(feature = "cedar")]
use sayso::pdp;
use sayso::{agent, coaz, owner, roles, shim, up};
use std::io::IsTerminal as _;
use std::process::ExitCode;
use tracing::Level;
use tracing_subscriber::filter::{EnvFilter, filter_fn};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// An owner's say over other people's agents.
///
/// `sayso up` puts an owner in front of an MCP server. An agent that is not hers negotiates with `sayso agent
/// call`; she answers with `sayso owner`.
#[derive(Debug, Parser)]
#[command(name = "sayso", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run authority, gateway and demo vault in one process.
    Up(up::Command),
    /// Run the authority alone, from a configuration file.
    Authority(roles::Command),
    /// Run the gateway alone, from a configuration file.
    Gateway(roles::Command),
    /// Answer the checks of another gateway, over HTTP and gRPC, from a configuration file.
    ExtAuthz(roles::Command),
    /// Act as a requesting agent: call a protected tool with the whole dance.
    Agent(agent::Command),
    /// Be an MCP server in front of a protected resource, for clients that know nothing of owners.
    Shim(shim::Command),
    /// Answer, watch and end, as the owner.
    Owner(owner::Command),
    /// Decide by policies from a folder, for whoever asks over OpenID AuthZEN.
    #[cfg(feature = "cedar")]
    Pdp(pdp::Command),
    /// Try out how MCP messages become requests to a policy engine.
    Coaz(coaz::Command),
    /// Check or print the settings `up` would run with.
    Config(up::ConfigCommand),
}

fn main() -> ExitCode {
    // A stdio server is started through this binary, which ties its life to ours before it becomes the server.
    sayso_gateway::launch(std::env::args_os()).unwrap_or_else(run)
}

#[tokio::main]
async fn run() -> ExitCode {
    let cli = Cli::parse();
    write_logs();
    let outcome = match cli.command {
        Command::Up(command) => up::run(command).await,
        Command::Authority(command) => roles::authority::run(command).await,
        Command::Gateway(command) => roles::gateway::run(command).await,
        Command::ExtAuthz(command) => roles::ext_authz::run(command).await,
        Command::Agent(command) => agent::run(command).await,
        Command::Shim(command) => shim::run(command).await,
        Command::Owner(command) => owner::run(command).await,
        #[cfg(feature = "cedar")]
        Command::Pdp(command) => pdp::run(command).await,
        Command::Coaz(command) => coaz::run(&command).await,
        Command::Config(command) => up::config(&command),
    };
    outcome.unwrap_or_else(|fault| {
        eprintln!("sayso: {fault:#}");
        ExitCode::from(2)
    })
}

/// Logs go to stderr: lines for people on a terminal, JSON elsewhere. `SAYSO_LOG` chooses what is logged.
fn write_logs() {
    let chosen = EnvFilter::try_from_env("SAYSO_LOG").unwrap_or_else(|_| EnvFilter::new("warn,sayso=info"));
    // Libraries print whole messages when they are debugged, arguments and results included; no choice brings those out.
    let ours = filter_fn(|event| event.target().starts_with("sayso") || *event.level() <= Level::WARN);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = if std::io::stderr().is_terminal() {
        lines.compact().with_target(false).boxed()
    } else {
        lines.json().flatten_event(true).boxed()
    };
    tracing_subscriber::registry().with(lines.with_filter(chosen).with_filter(ours)).init();
}
