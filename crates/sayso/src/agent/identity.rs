//! `sayso agent id` and `sayso agent rotate`: who the agent is to an authority, and who it will be.
//!
//! What is printed is what an authority would see, and where the key is that it would see it of; private halves are
//! printed nowhere.

use super::presenting::Presenting;
use super::show;
use crate::terminal::{moment, plain, shell};
use anyhow::Context as _;
use clap::Args;
use sayso_agent::identity::read_key;
use sayso_agent::{Agent, Fault, Shown, Shows, authority_origin};
use sayso_protocol::SigningKey;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// List what authorities see of this agent: a name, a key, and what it shows beside it.
#[derive(Debug, Args)]
pub(super) struct Id {
    /// The authority of this issuer alone; its key is drawn now if there is none.
    #[arg(long, value_name = "URL")]
    authority: Option<String>,
    /// With this PKCS#8 PEM key (0600) in place of the authority's own.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    presenting: Presenting,
}

/// Have a new key succeed the one for an authority.
///
/// Prints a statement that both keys sign. Give it to the owner: with `sayso owner relink FILE --yes` the new key takes
/// the place of the old, whose grants end. Then say so here with --done; until then the old key is used.
#[derive(Debug, Args)]
pub(super) struct Rotate {
    /// The issuer of the authority, as `sayso agent id` lists it.
    authority: String,
    /// The owner has accepted it: use the new key from now on.
    #[arg(long)]
    done: bool,
}

/// One line of the list.
struct Seen {
    authority: String,
    key: SigningKey,
    path: Option<PathBuf>,
    shown: Shown,
}

pub(super) fn id(agent: &Agent, asked: &Id, json: bool) -> anyhow::Result<ExitCode> {
    let seen = seen(agent, asked)?;
    let rows = seen.iter().map(row).collect();
    let objects: Vec<Value> = seen.iter().map(object).collect();
    show::list(&["AUTHORITY", "HANDLE", "KNOWN BY", "KEY"], rows, &json!(objects), json);
    Ok(ExitCode::SUCCESS)
}

fn seen(agent: &Agent, asked: &Id) -> anyhow::Result<Vec<Seen>> {
    let shows = asked.presenting.shows()?;
    let own = asked.key.as_deref().map(read_key).transpose()?;
    let at = |authority: &str, key: SigningKey, path: Option<PathBuf>| -> Result<Seen, Fault> {
        let shown = shows.at(authority, &key, crate::clock::now())?;
        Ok(Seen { authority: authority.to_owned(), key, path, shown })
    };
    match (&asked.authority, own) {
        (Some(authority), None) => {
            let url = authority_origin(authority)?;
            let key = agent.keys().key_for(&url)?;
            let held = agent.keys().identities()?;
            let origin = url.origin().ascii_serialization();
            let path = held.into_iter().find(|identity| identity.authority == origin).map(|it| it.path);
            Ok(vec![at(authority, key, path)?])
        }
        (authority, Some(key)) => {
            Ok(vec![at(authority.as_deref().unwrap_or_default(), key, asked.key.clone())?])
        }
        (None, None) => agent.keys().identities()?.into_iter().map(|held| each(&shows, held)).collect(),
    }
}

/// A key of the folder. A credential is for one key; the others are what they are without it.
fn each(shows: &Shows, held: sayso_agent::Identity) -> anyhow::Result<Seen> {
    let (key, now) = (read_key(&held.path)?, crate::clock::now());
    let shown = match shows.at(&held.authority, &key, now) {
        Err(Fault::Show(_)) => Shows::default().at(&held.authority, &key, now),
        other => other,
    };
    Ok(Seen { authority: held.authority, key, path: Some(held.path), shown: shown? })
}

fn known_by(seen: &Seen) -> String {
    match &seen.shown.issuer {
        Some((issuer, until)) => format!("credential of {issuer} until {}", moment(until.0)),
        None => "its key".into(),
    }
}

fn row(seen: &Seen) -> Vec<String> {
    let path = seen.path.as_deref().map_or_else(|| "-".into(), |path| path.display().to_string());
    let authority = if seen.authority.is_empty() { "any" } else { &seen.authority };
    vec![authority.to_owned(), seen.shown.handle.to_string(), known_by(seen), path]
}

fn object(seen: &Seen) -> Value {
    let Seen { authority, key, path, shown } = seen;
    json!({
        "authority": authority,
        "handle": shown.handle,
        "identity": if shown.issuer.is_some() { "identified" } else { "pseudonymous" },
        "thumbprint": key.kid(),
        "jwk": key.verifying().jwk(),
        "issuer": shown.issuer.as_ref().map(|(issuer, _)| issuer),
        "expires": shown.issuer.as_ref().map(|(_, until)| until),
        "client_id": shown.client_id,
        "signature_agent": shown.directory,
        "key": path,
    })
}

pub(super) fn rotate(
    agent: &Agent,
    asked: &Rotate,
    config_dir: Option<&Path>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let issuer = asked.authority.trim_end_matches('/');
    let url = authority_origin(issuer)?;
    if asked.done {
        let adopted = agent.keys().adopt(&url)?;
        anyhow::ensure!(adopted, "no new key was drawn for {}", plain(issuer));
        let key = agent.keys().key_for(&url)?;
        let handle = sayso_agent::identity::handle_of(&key);
        let told = if json {
            json!({ "authority": issuer, "handle": handle }).to_string()
        } else {
            handle.to_string()
        };
        show::print(&told);
        return Ok(ExitCode::SUCCESS);
    }
    let statement = agent.keys().succeed(issuer, crate::clock::now())?;
    show::print(&serde_json::to_string(&statement).context("the statement cannot be written")?);
    let dir = config_dir
        .map_or_else(String::new, |dir| format!(" --config-dir {}", shell(&dir.display().to_string())));
    eprintln!(
        "sayso agent: give this line to the owner, who accepts it within a week with `sayso owner relink FILE --yes`; \
         then run: sayso agent rotate {}{dir} --done",
        shell(issuer)
    );
    Ok(ExitCode::SUCCESS)
}
