//! `sayso coaz`: what authors of mappings try out before an enforcement point relies on them.
//!
//! Nothing is enforced here and no policy engine is asked: files go in, or what a server lists, and what would be asked
//! comes out.

mod explain;
mod lint;

use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand};
use sayso_protocol::Json;
use sayso_protocol::json::Limits;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Try out how MCP messages become requests to a policy engine (COAZ, AuthZEN).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sayso coaz explain --request call.json --token claims.json --tools tools.json\n  \
    sayso coaz lint tools.json\n  \
    sayso coaz lint http://127.0.0.1:3001/mcp")]
pub struct Command {
    #[command(subcommand)]
    act: Act,
    /// Machine output: one line of JSON on stdout.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Act {
    Explain(Explain),
    Lint(Lint),
}

/// Show the request an MCP message maps to.
///
/// The message is mapped as an enforcement point would map it: by the mapping its tool declares, else by the default
/// of its method. Nobody is asked. The token file holds claims, decoded and taken as validated.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  \
    0  the request is on stdout, or the message passes without one\n  \
    2  usage, or a file that cannot be read\n  \
    3  the message may not pass, whatever a policy engine would say")]
struct Explain {
    /// The message, one JSON-RPC object; - reads stdin.
    #[arg(long, value_name = "FILE")]
    request: PathBuf,
    /// The claims of the token, one JSON object; - reads stdin.
    #[arg(long, value_name = "FILE")]
    token: PathBuf,
    /// What the server lists: the result of tools/list, or a list of its pages. Without it no tool declares anything.
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// The server's own identifier, which a token names in aud.
    #[arg(long, value_name = "ID")]
    resource: Option<String>,
    /// Refuse subjects that cannot be verified against the token, as for a server one does not trust.
    #[arg(long)]
    strict: bool,
}

/// Check every mapping in the result of a server's tools/list.
///
/// A live server is asked for all its pages, as an enforcement point would ask, and called no further.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  \
    0  no errors; there may be warnings\n  \
    2  usage, or a file or a server whose listing cannot be had\n  \
    3  calls of at least one tool would be refused")]
struct Lint {
    /// The result of tools/list, one JSON object, - reads stdin; or the URL of an MCP server.
    #[arg(value_name = "FILE|URL")]
    listing: PathBuf,
    /// Variable whose value a server is shown as a bearer token.
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,
}

/// Runs one command.
///
/// # Errors
/// When a file cannot be read, or holds something else.
pub async fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match &command.act {
        Act::Explain(explain) => explain::run(explain, command.json),
        Act::Lint(lint) => lint::run(lint, command.json).await,
    }
}

/// Bytes of one file.
const LARGEST: u64 = 4 << 20;

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(LARGEST + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
    };
    read.with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(bytes.len() as u64 <= LARGEST, "{} is larger than 4 MiB", path.display());
    Ok(bytes)
}

fn read_json(path: &Path) -> anyhow::Result<Json> {
    let bytes = read(path)?;
    Json::parse(&bytes, Limits::default()).with_context(|| format!("{} is not strict JSON", path.display()))
}
