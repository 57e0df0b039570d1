//! Settings from flags, environment, file and defaults, in that order, each knowing where it came from.
//!
//! One table names every key; an unknown one is refused with the nearest known name, in a file and in the
//! environment alike (`SAYSO_AUTHORITY__LISTEN` for `[authority] listen`).

mod keys;

use crate::policed::Asked;
use crate::tables::NAMES;
use anyhow::{Context as _, bail};
use keys::{KEYS, Key, LISTS};
use sayso_protocol::payload::edition::Edition;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;

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
