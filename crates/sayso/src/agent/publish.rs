//! `sayso agent publish`: the two documents an operator hosts so that authorities can find who runs an agent.
//!
//! The key directory is signed for the very host it will be served at, by each key in it, and those header lines are
//! written beside it. Which keys are published is always said: keys side by side in one directory are seen to be one
//! agent's.

use super::show;
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use sayso_agent::identity::read_key;
use sayso_agent::{Agent, authority_origin};
use sayso_protocol::SigningKey;
use sayso_protocol::payload::client::{ClientMetadata, DIRECTORY, DIRECTORY_TYPE, client_address, directory};
use sayso_protocol::sig::{authority_of, sign_directory};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use url::Url;

/// Longest a directory's signature may be good, in days.
const MOST_DAYS: i64 = 366;

/// Write a client metadata document and a signed key directory for an operator to host.
///
/// Serve DIR at the origin as it is, the directory with the header lines of the file beside it. Then let the agent say so:
/// `sayso agent call … --client-id URL --signature-agent ORIGIN`. Keys that are published together are seen to belong
/// together, at every authority.
#[derive(Debug, Args)]
pub(super) struct Publish {
    /// Where to write; what is there under these names is replaced.
    dir: PathBuf,
    /// The https origin that will serve it.
    #[arg(long, value_name = "URL")]
    origin: String,
    /// Publish the key for the authority of this issuer; may repeat.
    #[arg(long, value_name = "URL")]
    authority: Vec<String>,
    /// Publish this PKCS#8 PEM key (0600); may repeat.
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// Path of the metadata document: with the origin it is the client id.
    #[arg(long, value_name = "PATH", default_value = "/agent.json")]
    path: String,
    /// What to call the agent.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Days for which the directory's signature is good.
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(i64).range(1..=MOST_DAYS))]
    days: i64,
}

pub(super) fn publish(agent: &Agent, asked: &Publish, as_json: bool) -> anyhow::Result<ExitCode> {
    let origin = asked.origin.trim_end_matches('/');
    let url = Url::parse(origin).context("the origin is no URL")?;
    let bare = url.scheme() == "https" && url.origin().ascii_serialization() == origin;
    ensure!(bare, "the origin must be https and a host, with nothing after it: https://agents.example");
    let client_id = format!("{origin}{}", asked.path);
    client_address(&client_id).ok().context("the path must begin with / and be in its plain form")?;
    // What a browser would take back to the folder above is no place to write.
    ensure!(
        asked.path.split('/').skip(1).all(|part| !matches!(part, "" | "." | "..")),
        "not a path of a file"
    );
    let keys = keys(agent, asked)?;
    let metadata = ClientMetadata {
        client_id: client_id.clone(),
        client_name: asked.name.clone(),
        client_uri: None,
        jwks_uri: Some(format!("{origin}{DIRECTORY}")),
    };
    let host = authority_of(&url).context("the origin has no host")?;
    let now = crate::clock::now();
    let (input, signature) = sign_directory(&keys, &host, now, now.plus(asked.days * 86_400))?;
    let set = directory(keys.iter().map(SigningKey::verifying));
    let headers = format!(
        "Content-Type: {DIRECTORY_TYPE}\nCache-Control: max-age=300\nSignature-Input: {input}\nSignature: {signature}\n"
    );
    let document = write(&asked.dir, &asked.path, &serde_json::to_string_pretty(&metadata)?)?;
    let listed = write(&asked.dir, DIRECTORY, &serde_json::to_string_pretty(&set)?)?;
    let lines = write(&asked.dir, &format!("{DIRECTORY}.headers"), &headers)?;
    let told = json!({
        "client_id": client_id, "signature_agent": origin, "document": document, "directory": listed,
        "headers": lines, "keys": keys.iter().map(SigningKey::kid).collect::<Vec<_>>(),
        "expires": now.plus(asked.days * 86_400),
    });
    if as_json {
        show::print(&told.to_string());
    } else {
        show::print(&format!("{}\n{}\n{}", document.display(), listed.display(), lines.display()));
        eprintln!(
            "sayso agent: serve these at {origin}; then call with --client-id {client_id} --signature-agent {origin}"
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn keys(agent: &Agent, asked: &Publish) -> anyhow::Result<Vec<SigningKey>> {
    let mut keys = vec![];
    for path in &asked.key {
        keys.push(read_key(path)?);
    }
    for authority in &asked.authority {
        keys.push(agent.keys().key_for(&authority_origin(authority)?)?);
    }
    keys.sort_by_key(SigningKey::kid);
    keys.dedup_by_key(|key| key.kid());
    if keys.is_empty() {
        bail!(
            "say which keys: --authority URL for the one an authority knows, --key FILE for one of your own; keys in one \
             directory are seen to belong together"
        );
    }
    Ok(keys)
}

/// Writes what anybody may read, whole or not at all.
fn write(dir: &Path, path: &str, text: &str) -> anyhow::Result<PathBuf> {
    let path = dir.join(path.trim_start_matches('/'));
    let at = || format!("cannot write {}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(at)?;
    }
    let draft = path.with_extension("new");
    std::fs::write(&draft, format!("{}\n", text.trim_end())).with_context(at)?;
    std::fs::rename(&draft, &path).with_context(at)?;
    Ok(path)
}
