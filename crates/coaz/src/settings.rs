//! What an operator says of one MCP server and of the tokens shown to it.

use std::collections::{BTreeMap, BTreeSet};

use sayso_protocol::Json;

/// Which text of the binding is followed where two differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Revision {
    /// Draft 1 of July 2026: `initialize` has a default mapping.
    #[default]
    July2026,
    /// As revised in September 2026: it has none, so sessions of older clients cannot begin.
    September2026,
}

/// How far the server's own words about the subject are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// A subject that cannot be verified against the token is passed on, with a warning.
    #[default]
    Warn,
    /// It is a mapping error: for servers one does not trust.
    Strict,
}

/// Everything the engine is told about one server.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// This server's identifier, which tokens name in `aud`.
    pub server: Option<String>,
    /// The claim that identifies the subject, by issuer, where it is not `sub`.
    pub subject_claims: BTreeMap<String, String>,
    /// How far the server's own words about the subject are taken.
    pub trust: Trust,
    /// Which text of the binding is followed.
    pub revision: Revision,
    /// Methods outside the binding that get a default mapping all the same, see [`crate::EXTRA_DEFAULTS`].
    pub extra_defaults: BTreeSet<String>,
}

impl Settings {
    /// The subject-identity claim of a token.
    pub(crate) fn claim(&self, token: &Json) -> &str {
        let issuer = token.get("iss").and_then(Json::as_str);
        issuer.and_then(|issuer| self.subject_claims.get(issuer)).map_or("sub", String::as_str)
    }
}
