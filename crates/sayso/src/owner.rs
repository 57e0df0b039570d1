//! `sayso owner`: her side from a terminal, with her device key.
//!
//! Every command is one signed request to her authority; tables for people, one JSON value with `--json`. What an
//! agent wrote is shown as text and in full, before she answers (D-28).

mod accept;
mod add;
mod client;
mod open;
mod policies;
mod relink;
mod request;
mod servers;
mod show;
pub(crate) mod typed;
mod watch;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use client::Client;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use typed::Typed;

/// What waits, who may, what was done: an owner's commands.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 done, 2 usage, 6 the authority refused, 7 it cannot be reached.\n\n\
    Examples:\n  sayso owner pending\n  sayso owner show FAMILY\n  sayso owner approve FAMILY\n  sayso owner accept RESOURCE\n  \
    sayso owner resource-servers approve ORIGIN\n  sayso owner open\n  sayso owner revoke jkt:…\n  sayso owner ledger --json | jq .")]
pub struct Command {
    #[command(subcommand)]
    act: Which,
    /// Data folder of a `sayso up`, from which authority and key are taken.
    #[arg(long, global = true, value_name = "DIR", default_value = typed::USUAL)]
    data: PathBuf,
    /// Issuer URL of the authority; needs --key.
    #[arg(long, global = true, value_name = "URL", requires = "key")]
    authority: Option<String>,
    /// Her device key, a PKCS#8 PEM file; needs --authority.
    #[arg(long, global = true, value_name = "FILE", requires = "authority")]
    key: Option<PathBuf>,
    /// Machine output: one JSON value on stdout.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Which {
    #[command(flatten)]
    Ask(Act),
    /// Open the page where requests are answered, signed in; with --json print the link instead.
    Open,
    /// Print what happens, one line an event, until interrupted.
    Watch,
    /// On the authority's machine: make another owner known, with a device key of her own.
    Add {
        /// Her name here: a-z, 0-9 and `-`.
        name: String,
    },
}

#[derive(Debug, Subcommand)]
enum Act {
    /// List the requests that wait for an answer.
    Pending,
    /// Show one waiting request whole: who, what, on which terms, with which arguments.
    Show {
        /// The negotiation, as `pending` lists it.
        #[arg(allow_hyphen_values = true)]
        family: String,
    },
    /// Approve a waiting request. For a first contact this also admits the agent.
    Approve {
        /// The negotiation, as `pending` lists it.
        #[arg(allow_hyphen_values = true)]
        family: String,
    },
    /// Deny a waiting request.
    Deny {
        /// The negotiation, as `pending` lists it.
        #[arg(allow_hyphen_values = true)]
        family: String,
    },
    /// List the agents that were let in.
    Connections,
    /// End an agent's connection, its live grants, waiting requests and unclaimed approvals at once.
    Revoke {
        /// The handle, as `connections` lists it.
        handle: String,
    },
    /// Show that an agent's new key wants the place of its old one; with --yes let it have it.
    Relink {
        /// The statement of `sayso agent rotate`; - reads it from stdin.
        file: PathBuf,
        /// Do it; without this it is only shown.
        #[arg(long)]
        yes: bool,
    },
    /// List what is registered, and which unit governs each.
    Resources,
    /// Show what changed about a tool, or all that a new one says of itself; with --yes let it be called so.
    Accept {
        /// The resource, as `resources` lists it.
        resource: String,
        /// Let a changed tool be called as it is now, or put a new one under a unit; without this it is only shown.
        #[arg(long)]
        yes: bool,
    },
    /// List the resource servers that act, ask to act, or acted for these resources; or answer one.
    ResourceServers {
        #[command(subcommand)]
        answer: Option<servers::Answer>,
    },
    /// List the policy units with their terms; or change whether the tools of one may ask follow-up questions.
    Policies {
        #[command(subcommand)]
        change: Option<policies::Change>,
    },
    /// Print the record, oldest first.
    Ledger {
        /// Only rows that name this agent.
        #[arg(long, value_name = "HANDLE")]
        handle: Option<String>,
        /// Only rows after this place.
        #[arg(long, value_name = "SEQ", default_value_t = 0)]
        after: i64,
    },
}

/// Runs one command.
///
/// # Errors
/// When the folder or key cannot be read.
pub async fn run(command: Command) -> anyhow::Result<ExitCode> {
    if let Which::Add { name } = &command.act {
        return add::run(&command.data, name, command.json).await;
    }
    let client = match connect(&command).await {
        Ok(client) => client,
        Err(fault) => return Ok(failed(&fault, 7)),
    };
    let typed = Typed::like(&command);
    let told = match &command.act {
        Which::Open => open::run(&client, command.json).await,
        Which::Watch => watch::run(&client, command.json).await,
        Which::Ask(asked) => ask(&client, asked, &typed, command.json).await.map(Some),
        Which::Add { .. } => Ok(None),
    };
    match told {
        Ok(told) => {
            if let Some(told) = told {
                println!("{told}");
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(fault) => {
            let code = if fault.downcast_ref::<client::Refused>().is_some() { 6 } else { 7 };
            Ok(failed(&fault, code))
        }
    }
}

fn failed(fault: &anyhow::Error, code: u8) -> ExitCode {
    eprintln!("sayso owner: {}", crate::terminal::plain(&format!("{fault:#}")));
    ExitCode::from(code)
}

async fn connect(command: &Command) -> anyhow::Result<Client> {
    match (&command.authority, &command.key) {
        (Some(authority), Some(key)) => Client::new(authority, key).await,
        _ => {
            let path = command.data.join("ready.json");
            let text = std::fs::read(&path).with_context(|| {
                format!(
                    "no `sayso up` has run on {}; start `sayso up`, or name its folder with --data",
                    command.data.display()
                )
            })?;
            let ready: Value = serde_json::from_slice(&text).context("ready.json is not readable")?;
            let (Some(authority), Some(key)) = (
                ready.get("authority").and_then(Value::as_str),
                ready.get("owner_key").and_then(Value::as_str),
            ) else {
                bail!("{} names no authority or key", path.display());
            };
            Client::new(authority, std::path::Path::new(key)).await
        }
    }
}

/// The answer to one command, as it is printed.
async fn ask(client: &Client, asked: &Act, typed: &Typed, as_json: bool) -> anyhow::Result<String> {
    if let Act::Accept { resource, yes } = asked {
        let (entry, words) = accept::run(client, typed, resource, *yes).await?;
        return Ok(if as_json { entry.to_string() } else { words });
    }
    if let Act::Relink { file, yes } = asked {
        let (done, words) = relink::run(client, typed, file, *yes).await?;
        return Ok(if as_json { done.to_string() } else { words });
    }
    let answer = match act(client, asked).await {
        Err(fault) => return Err(advised(fault, asked, typed)),
        Ok(answer) if as_json => return Ok(answer.to_string()),
        Ok(answer) => answer,
    };
    let policies = match asked {
        Act::Show { .. } => client.read("policies", None).await.unwrap_or_default(),
        _ => Value::Null,
    };
    Ok(show::answer(asked, &answer, &policies, typed))
}

/// What was named is not there: where to find what is.
fn advised(fault: anyhow::Error, asked: &Act, typed: &Typed) -> anyhow::Error {
    let list = match asked {
        Act::Show { .. } | Act::Approve { .. } | Act::Deny { .. } => "pending",
        Act::Revoke { .. } => "connections",
        Act::ResourceServers { .. } => "resource-servers",
        Act::Policies { .. } => "policies",
        _ => return fault,
    };
    match fault.downcast::<client::Refused>() {
        Ok(refused) if refused.is_unknown() => {
            refused.with(&format!("; {} lists what there is", typed.line(list))).into()
        }
        Ok(refused) => refused.into(),
        Err(fault) => fault,
    }
}

async fn act(client: &Client, act: &Act) -> anyhow::Result<Value> {
    match act {
        Act::Pending => client.read("pending", None).await,
        Act::Show { family } => client.read(&format!("pending/{}", client::segment(family)), None).await,
        Act::Approve { family } => decide(client, family, "approved").await,
        Act::Deny { family } => decide(client, family, "denied").await,
        Act::Connections | Act::Relink { .. } => client.read("connections", None).await,
        Act::Revoke { handle } => client.write("connections/revoke", &json!({ "handle": handle })).await,
        Act::Resources | Act::Accept { .. } => client.read("resources", None).await,
        Act::ResourceServers { answer } => servers::run(client, answer.as_ref()).await,
        Act::Policies { change } => policies::run(client, change.as_ref()).await,
        Act::Ledger { handle, after } => ledger(client, handle.as_deref(), *after).await,
    }
}

async fn decide(client: &Client, family: &str, decision: &str) -> anyhow::Result<Value> {
    let path = format!("pending/{}/decision", client::segment(family));
    client.write(&path, &json!({ "decision": decision })).await
}

/// The whole record: pages are followed until one is empty.
async fn ledger(client: &Client, handle: Option<&str>, mut after: i64) -> anyhow::Result<Value> {
    let mut rows = Vec::new();
    loop {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("after", &after.to_string());
        if let Some(handle) = handle {
            query.append_pair("handle", handle);
        }
        let page = client.read("ledger", Some(&query.finish())).await?;
        let page = page.as_array().cloned().context("the authority's record is not a list")?;
        match page.last().and_then(|row| row.get("seq")?.as_i64()) {
            Some(last) if last > after => after = last,
            _ => return Ok(Value::Array(rows)),
        }
        rows.extend(page);
    }
}
