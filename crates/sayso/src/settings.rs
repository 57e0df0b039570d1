//! Settings from flags, environment, file and defaults, in that order, each knowing where it came from.
//!
//! One table names every key; an unknown one is refused with the nearest known name, in a file and in the
//! environment alike (`SAYSO_AUTHORITY__LISTEN` for `[authority] listen`).

use crate::policed::Asked;
use crate::tables::NAMES;
use anyhow::{Context as _, bail};
use sayso_protocol::payload::edition::Edition;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;

/// A key with its default and what it means.
pub(crate) struct Key {
    /// Dotted name, as in the file's tables.
    pub name: &'static str,
    /// The value when nothing sets it; empty means unset.
    pub default: &'static str,
    /// What it means, with its unit.
    pub help: &'static str,
}

/// Every key there is.
pub(crate) const KEYS: &[Key] = &[
    Key { name: "data", default: ".sayso", help: "folder for the store, keys and the demo vault" },
    Key { name: "edition", default: "2026-09-11", help: "identifiers emitted: 2026-09-11 or 2026-09-15" },
    Key { name: "owner.name", default: "alice", help: "whose resources these are" },
    Key {
        name: "authority.listen",
        default: "127.0.0.1:8440",
        help: "address of the authority; port 0 picks one",
    },
    Key { name: "authority.public_url", default: "", help: "its issuer URL; the listen address when unset" },
    Key {
        name: "authority.portal_url",
        default: "",
        help: "where the owner's page is, an origin of its own; in `up` http://localhost and the port when unset",
    },
    Key { name: "store.url", default: "", help: "sqlite:PATH; sayso.db in the data folder when unset" },
    Key { name: "authority.require_signed_polls", default: "false", help: "whether polls must be signed" },
    Key {
        name: "authority.trusted_agent_issuers",
        default: "",
        help: "issuers whose credentials name agents, https origins, comma-separated; nobody's when unset",
    },
    Key { name: "authority.interval", default: "1", help: "seconds between an agent's polls" },
    Key {
        name: "gateway.upstream",
        default: "",
        help: "URL of the MCP server behind; the demo vault when unset",
    },
    Key { name: "gateway.upstream_stdio", default: "", help: "or a command that speaks MCP over stdio" },
    Key {
        name: "gateway.upstream_env",
        default: "",
        help: "variables that command may see, comma-separated",
    },
    Key {
        name: "gateway.upstream_token_env",
        default: "",
        help: "variable whose value the server at the URL is shown as its bearer token",
    },
    Key {
        name: "gateway.upstream_host",
        default: "rewrite",
        help: "the host it is told: its own, or with `preserve` the public one",
    },
    Key {
        name: "gateway.survey_interval",
        default: "60",
        help: "seconds between listings of a server that does not say when its tools change",
    },
    Key {
        name: "gateway.enforce",
        default: "uma",
        help: "who is asked before a message is forwarded: uma, coaz, or both; [] asks nobody",
    },
    Key {
        name: "gateway.pdp",
        default: "",
        help: "the policy engine: `embedded`, or its https URL; the one of [pdp] when unset",
    },
    Key {
        name: "gateway.extra_defaults",
        default: "",
        help: "methods mapped beyond COAZ's own defaults, comma-separated",
    },
    Key {
        name: "gateway.filter_lists",
        default: "false",
        help: "whether lists are cut to what the policy lets their reader call",
    },
    Key {
        name: "gateway.subject_claim",
        default: "",
        help: "the token's claim that names the subject; sub when unset",
    },
    Key {
        name: "gateway.trust",
        default: "warn",
        help: "what becomes of a mapping whose subject cannot be verified: warn or strict",
    },
    Key {
        name: "gateway.audit_arguments",
        default: "false",
        help: "whether the log has what a policy engine was asked, values and all",
    },
    Key { name: "pdp.url", default: "", help: "the policy engine's https URL, as its metadata names it" },
    Key {
        name: "pdp.policies",
        default: "",
        help: "folder of Cedar policies, for the embedded policy engine",
    },
    Key { name: "pdp.ca", default: "", help: "file of the only roots to trust for the policy engine, PEM" },
    Key { name: "pdp.certificate", default: "", help: "file of a client certificate for it, PEM" },
    Key { name: "pdp.key", default: "", help: "file of that certificate's private key, PEM" },
    Key {
        name: "pdp.token_env",
        default: "",
        help: "variable that holds a bearer token for the policy engine",
    },
    Key { name: "pdp.token_file", default: "", help: "or a file that holds it" },
    Key { name: "pdp.timeout", default: "2000", help: "longest wait for a decision, in milliseconds" },
    Key {
        name: "oauth.issuers",
        default: "",
        help: "issuers whose access tokens are taken, comma-separated",
    },
    Key {
        name: "oauth.jwks_uri",
        default: "",
        help: "where the keys of the one issuer are, when its metadata does not say",
    },
    Key {
        name: "oauth.audience",
        default: "",
        help: "what a token's audience must name, comma-separated; the resource's URL when unset",
    },
    Key {
        name: "oauth.algorithms",
        default: "",
        help: "signature algorithms taken, comma-separated; every one that is known when unset",
    },
    Key { name: "oauth.require_at_jwt", default: "false", help: "whether a token's typ must be at+jwt" },
    Key {
        name: "gateway.realm",
        default: "",
        help: "the server's name in ids; made from its own when unset",
    },
    Key {
        name: "gateway.listen",
        default: "127.0.0.1:8441",
        help: "address of the gateway; port 0 picks one",
    },
    Key { name: "gateway.public_url", default: "", help: "its URL; the listen address when unset" },
    Key {
        name: "gateway.ask_again",
        default: "false",
        help: "whether a gateway that an owner withdrew asks her once more",
    },
    Key { name: "gateway.body_limit", default: "4194304", help: "largest request body, in bytes" },
    Key {
        name: "metrics.listen",
        default: "127.0.0.1:0",
        help: "address of the metrics; port 0 picks one, which the ready line names",
    },
    Key {
        name: "ext_authz.listen",
        default: "127.0.0.1:8442",
        help: "address of checks over HTTP; port 0 picks one",
    },
    Key {
        name: "ext_authz.grpc.listen",
        default: "127.0.0.1:8443",
        help: "address of checks over gRPC; port 0 picks one",
    },
    Key {
        name: "ext_authz.public_url",
        default: "",
        help: "the origin agents dial at the gateway that asks",
    },
    Key {
        name: "ext_authz.hosts",
        default: "",
        help: "further hosts an unsigned request may name, comma-separated",
    },
    Key {
        name: "ext_authz.body_limit",
        default: "4194304",
        help: "bytes at which the gateway that asks cuts a body; one as long is refused",
    },
    Key {
        name: "ext_authz.partial_body_flag",
        default: "false",
        help: "whether the gateway that asks sets x-envoy-auth-partial-body itself, as Envoy does",
    },
    Key {
        name: "ext_authz.pass_headers",
        default: "",
        help: "headers the server may see beside MCP's, comma-separated",
    },
    Key { name: "gateway.allowed_origins", default: "", help: "browser origins served, comma-separated" },
];

/// Keys whose value is a list.
const LISTS: [&str; 10] = [
    "authority.trusted_agent_issuers",
    "gateway.allowed_origins",
    "gateway.upstream_env",
    "gateway.enforce",
    "ext_authz.hosts",
    "ext_authz.pass_headers",
    "gateway.extra_defaults",
    "oauth.issuers",
    "oauth.audience",
    "oauth.algorithms",
];

/// How a list of nothing is written: unlike an empty value it was meant.
const EMPTY: &str = "[]";

/// How many letters a variable's name may differ from a setting's and still be meant for it.
const SLIP: usize = 2;

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nothing set it.
    Default,
    /// The configuration file.
    File,
    /// The environment.
    Environment,
    /// A flag.
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Default => "default",
            Source::File => "file",
            Source::Environment => "environment",
            Source::Flag => "flag",
        })
    }
}

/// The effective settings.
pub(crate) struct Settings(BTreeMap<&'static str, (String, Source)>);

impl Settings {
    /// Defaults, overlaid by `file`, by `environment`, by `flags`.
    ///
    /// # Errors
    /// When the file cannot be read or a key is not known.
    pub(crate) fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: &[(&'static str, Option<String>)],
    ) -> anyhow::Result<Self> {
        let start = KEYS.iter().map(|key| (key.name, (key.default.to_owned(), Source::Default)));
        let mut settings = Settings(start.collect());
        if let Some(path) = file {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            let table: toml::Table =
                text.parse().with_context(|| format!("{} is not a TOML file", path.display()))?;
            settings.overlay_table("", &table).with_context(|| format!("in {}", path.display()))?;
        }
        for (name, value) in environment {
            if let Some(key) = name.strip_prefix("SAYSO_").and_then(setting_of_variable) {
                settings.put(&key, value, Source::Environment).with_context(|| format!("variable {name}"))?;
            }
        }
        for (name, value) in flags {
            if let Some(value) = value {
                settings.put(name, value.clone(), Source::Flag)?;
            }
        }
        Ok(settings)
    }

    fn overlay_table(&mut self, prefix: &str, table: &toml::Table) -> anyhow::Result<()> {
        for (name, value) in table {
            if prefix.is_empty() && repeats(name, value)? {
                continue;
            }
            let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            match value {
                toml::Value::Table(inner) => self.overlay_table(&name, inner)?,
                toml::Value::String(text) => self.put(&name, text.clone(), Source::File)?,
                toml::Value::Boolean(flag) => self.put(&name, flag.to_string(), Source::File)?,
                toml::Value::Integer(number) => self.put(&name, number.to_string(), Source::File)?,
                toml::Value::Array(_)
                    if KEYS.iter().any(|key| key.name == name && !LISTS.contains(&key.name)) =>
                {
                    bail!("`{name}` takes one value, not a list")
                }
                toml::Value::Array(items) => {
                    let items: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
                    let items = items.with_context(|| format!("`{name}` must be a list of strings"))?;
                    let text = if items.is_empty() { EMPTY.to_owned() } else { items.join(",") };
                    self.put(&name, text, Source::File)?;
                }
                _ => bail!("`{name}` must be a string, a whole number, true or false, or a list of strings"),
            }
        }
        Ok(())
    }

    fn put(&mut self, name: &str, value: String, source: Source) -> anyhow::Result<()> {
        match KEYS.iter().find(|key| key.name == name) {
            Some(key) => {
                self.0.insert(key.name, (value, source));
                Ok(())
            }
            None => bail!("unknown setting `{name}`; did you mean `{}`?", nearest(name)),
        }
    }

    /// The value of a key; `None` when unset.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|(value, _)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The parts of a comma-separated value.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let text = self.text(name).filter(|text| *text != EMPTY).unwrap_or_default();
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    /// The value of a key as another type.
    ///
    /// # Errors
    /// When it is unset or does not parse.
    pub(crate) fn parse<T: FromStr>(&self, name: &str) -> anyhow::Result<T> {
        let value = self.text(name).with_context(|| format!("`{name}` is not set"))?;
        value.parse().ok().with_context(|| format!("`{name}` cannot be `{value}`; see `sayso config print`"))
    }

    /// The value of a key as a whole number in a range.
    ///
    /// # Errors
    /// When it is unset, no number, or out of range.
    pub(crate) fn whole<T>(&self, name: &str, range: RangeInclusive<T>) -> anyhow::Result<T>
    where
        T: FromStr + PartialOrd + fmt::Display,
    {
        let value = self.text(name).with_context(|| format!("`{name}` is not set"))?;
        let number = value.parse().ok().filter(|number| range.contains(number));
        let (least, most) = (range.start(), range.end());
        number.with_context(|| {
            format!("`{name}` cannot be `{value}`: write a whole number between {least} and {most}")
        })
    }

    /// The edition whose identifiers are emitted.
    ///
    /// # Errors
    /// When it is neither.
    pub(crate) fn edition(&self) -> anyhow::Result<Edition> {
        match self.text("edition") {
            Some("2026-09-11") => Ok(Edition::Sept11),
            Some("2026-09-15") => Ok(Edition::Sept15),
            _ => bail!("`edition` must be 2026-09-11 or 2026-09-15"),
        }
    }

    /// Who is asked before the gateway of an `up` forwards a message.
    ///
    /// # Errors
    /// When it is none of them; empty is not taken for "nobody", which has to be said.
    pub(crate) fn asked(&self) -> anyhow::Result<Asked> {
        let asked: Vec<&str> = self
            .text("gateway.enforce")
            .map(|text| text.split(',').map(str::trim).collect())
            .unwrap_or_default();
        let asked = if asked.as_slice() == [EMPTY] { Some(Asked::Nobody) } else { Asked::these(&asked) };
        asked.context("`gateway.enforce` must be uma, coaz, or both; or [] to forward whatever is a message")
    }

    /// Every key with its value and source, one a line.
    pub(crate) fn print(&self) -> String {
        let line = |key: &Key| {
            let (value, source) = self.0.get(key.name)?;
            Some(format!("{} = {value:?}  # {source}: {}", key.name, key.help))
        };
        KEYS.iter().filter_map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The variables of this process that are text.
pub(crate) fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Whether an entry of the file is one of the tables that repeat, which are read elsewhere.
fn repeats(name: &str, value: &toml::Value) -> anyhow::Result<bool> {
    let tables =
        value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(toml::Value::is_table));
    if NAMES.contains(&name) {
        let setting = KEYS.iter().any(|key| key.name.split('.').next() == Some(name));
        if value.is_table() && !setting {
            bail!("`[{name}]` may repeat: write [[{name}]]");
        }
        return Ok(value.is_array());
    }
    if tables {
        let near = NAMES.into_iter().min_by_key(|known| distance(known, name)).unwrap_or_default();
        bail!("unknown table `[[{name}]]`; did you mean `[[{near}]]`?");
    }
    Ok(false)
}

/// The dotted name a variable sets, or `None` for variables that are no settings. One that is almost a setting is
/// taken for a slip.
fn setting_of_variable(rest: &str) -> Option<String> {
    let name = rest.to_ascii_lowercase().replace("__", ".");
    let near = |key: &Key| !key.name.contains('.') && distance(key.name, &name) <= SLIP;
    (name.contains('.') || KEYS.iter().any(near)).then_some(name)
}

fn nearest(name: &str) -> &'static str {
    KEYS.iter().min_by_key(|key| distance(key.name, name)).map_or("", |key| key.name)
}

/// Levenshtein distance, for names of a few dozen characters.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (at, left) in a.chars().enumerate() {
        let mut diagonal = at;
        let mut previous = at + 1;
        for (cell, right) in row.iter_mut().skip(1).zip(b.chars()) {
            let next = (diagonal + usize::from(left != right)).min(previous + 1).min(*cell + 1);
            diagonal = *cell;
            *cell = next;
            previous = next;
        }
        if let Some(first) = row.first_mut() {
            *first = at + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
