//! Her word that an agent's new key takes the place of its old one: shown first, done with `--yes`.
//!
//! The statement is verified here as well as there, so that what is shown is what both keys signed.

use super::client::{Client, Refused};
use super::typed::Typed;
use crate::clock;
use crate::terminal::{plain, shell};
use anyhow::Context as _;
use sayso_protocol::payload::relink::{Proven, Relink};
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::Path;

/// Largest statement read, in bytes.
const MOST: u64 = 64 * 1024;

/// Shows what a statement asks; with `yes`, does it. Returns the answer, and what to print of it.
pub(super) async fn run(
    client: &Client,
    typed: &Typed,
    file: &Path,
    yes: bool,
) -> anyhow::Result<(Value, String)> {
    let statement = read(file)?;
    let proven = statement.verify(client.issuer(), clock::now());
    let Proven { from, to } = proven.map_err(|fault| Refused::because(&fault.to_string()))?;
    let (old, new) = (plain(from.as_str()), plain(to.as_str()));
    if !yes {
        let asked = json!({ "from": from, "to": to });
        let line = typed.line(&format!("relink {} --yes", shell(&file.display().to_string())));
        let words = format!(
            "{old}\nshows that it also holds\n{new}\n\nAccepting ends the first, with its grants and requests, and lets the \
             second in as she let in the first. If the agent did not tell you that it changes its key, do not.\n\naccept it: \
             {line}"
        );
        return Ok((asked, words));
    }
    let done = client.write("connections/relink", &serde_json::to_value(&statement)?).await?;
    let ended = done.get("rpts_deactivated").and_then(Value::as_i64).unwrap_or_default();
    Ok((done, format!("{new} stands for {old} now; live grants that died with the old key: {ended}")))
}

fn read(file: &Path) -> anyhow::Result<Relink> {
    let mut text = String::new();
    let at = || format!("cannot read {}", file.display());
    if file == Path::new("-") {
        std::io::stdin().take(MOST).read_to_string(&mut text).with_context(at)?;
    } else {
        std::fs::File::open(file).with_context(at)?.take(MOST).read_to_string(&mut text).with_context(at)?;
    }
    serde_json::from_str(&text).context("that is no statement of `sayso agent rotate`")
}
