//! What the policy of one resource is to be like, as its table or the settings of an `up` say.

use super::binding::Binding;
use crate::settings::Settings;
use anyhow::{Context as _, bail};
use sayso_enforce::policy::Denials;
use serde::Deserialize;
use std::str::FromStr;

/// How far a server's own words about the subject are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Trusted {
    #[default]
    Warn,
    Strict,
}

impl FromStr for Trusted {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text {
            "warn" => Ok(Self::Warn),
            "strict" => Ok(Self::Strict),
            _ => bail!("it must be warn or strict"),
        }
    }
}

/// How a denied call of a tool is answered (COAZ-MCP-79).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    /// With an error.
    #[default]
    Error,
    /// With a result that says so.
    ToolResult,
}

impl FromStr for Told {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text {
            "error" => Ok(Self::Error),
            "tool_result" => Ok(Self::ToolResult),
            _ => bail!("it must be error or tool_result"),
        }
    }
}

/// What the policy of one resource is to be like.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    pub(crate) pdp: Option<String>,
    pub(crate) extra_defaults: Vec<String>,
    pub(crate) filter_lists: bool,
    pub(crate) subject_claim: Option<String>,
    pub(crate) trust: Trusted,
    pub(crate) binding: Binding,
    pub(crate) audit_arguments: bool,
    pub(crate) denials: Told,
    pub(crate) denial_text: Option<String>,
    pub(crate) audience: Option<String>,
    pub(crate) mappings: Option<String>,
}

impl Wishes {
    /// Those of an `up`.
    pub(crate) fn of(settings: &Settings) -> anyhow::Result<Self> {
        let wishes = Self {
            pdp: settings.text("gateway.pdp").map(str::to_owned),
            extra_defaults: settings.list("gateway.extra_defaults"),
            filter_lists: settings.parse("gateway.filter_lists")?,
            subject_claim: settings.text("gateway.subject_claim").map(str::to_owned),
            trust: settings.parse("gateway.trust")?,
            binding: settings.parse("gateway.binding")?,
            audit_arguments: settings.parse("gateway.audit_arguments")?,
            denials: settings.parse("gateway.denials")?,
            denial_text: settings.text("gateway.denial_text").map(str::to_owned),
            audience: None,
            mappings: None,
        };
        wishes.denials().context("`gateway.denial_text`")?;
        Ok(wishes)
    }

    /// How a no is told.
    ///
    /// # Errors
    /// When `denial_text` names no member.
    pub(crate) fn denials(&self) -> anyhow::Result<Denials> {
        let words = self.denial_text.as_deref().map(str::parse).transpose().context("`denial_text`")?;
        Ok(Denials { words, as_result: self.denials == Told::ToolResult })
    }
}
