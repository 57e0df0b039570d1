//! What `up` and a gateway's configuration say of a server behind, parsed alike.
//!
//! What a server is shown, and what a command may see, is named and not written: settings can be printed.

use anyhow::Context as _;
use sayso_gateway::{BadCommand, Credential, StdioCommand};

/// A command that cannot be run.
#[derive(Debug)]
pub(crate) enum BadUpstream {
    /// It is to see a variable that is not set.
    Variable(String),
    /// It begins with the setting of a variable, which only a shell reads.
    Shell(String),
    /// It is no command.
    Command(BadCommand),
}

/// The command of a server over stdio, which sees these variables beside the usual ones (D-31).
pub(crate) fn command(line: &str, environment: &[String]) -> Result<StdioCommand, BadUpstream> {
    if let Some(name) = set_before(line) {
        return Err(BadUpstream::Shell(name.to_owned()));
    }
    let command = StdioCommand::parse(line, environment, |name| std::env::var_os(name));
    let command = command.map_err(|fault| match fault {
        BadCommand::Variable(name) => BadUpstream::Variable(name),
        fault => BadUpstream::Command(fault),
    })?;
    Ok(command.launched_by("/proc/self/exe"))
}

/// The variable that a shell would set for the command; here it would be taken for the program.
fn set_before(line: &str) -> Option<&str> {
    let (name, _) = line.split_whitespace().next()?.split_once('=')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let named =
        !name.is_empty() && name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit());
    named.then_some(name)
}

/// What a server at a URL is shown: the bearer token in the variable that the setting names.
pub(crate) fn credential(setting: &str, name: &str) -> anyhow::Result<Credential> {
    let token = std::env::var(name).ok().filter(|token| !token.is_empty());
    let token = token.with_context(|| format!("`{setting}` names {name}, which is not set"))?;
    Credential::parse("Authorization", &format!("Bearer {token}"))
        .with_context(|| format!("what {name} holds is no bearer token"))
}
