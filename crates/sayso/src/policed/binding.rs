//! Which text of COAZ's binding a resource follows, by the names that configuration has for them.

use anyhow::bail;
use sayso_coaz::Revision;
use serde::Deserialize;
use std::str::FromStr;

/// The binding of July 2026 maps `initialize`, with which a session of an older client begins; that of September does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Binding {
    #[default]
    #[serde(rename = "2026-07")]
    July,
    #[serde(rename = "2026-09")]
    September,
}

impl Binding {
    pub(crate) fn revision(self) -> Revision {
        match self {
            Self::July => Revision::July2026,
            Self::September => Revision::September2026,
        }
    }

    /// Said at every start: clients who cannot begin at all are not left to find out.
    pub(crate) fn warn(self, url: &str) {
        if self == Self::September {
            tracing::warn!(
                "clients before MCP 2026-07-28 begin with initialize, which the binding of September does not map: none of \
                 them gets in at {url}; `binding` = \"2026-07\" maps it"
            );
        }
    }
}

impl FromStr for Binding {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text {
            "2026-07" => Ok(Self::July),
            "2026-09" => Ok(Self::September),
            _ => bail!("it must be 2026-07 or 2026-09"),
        }
    }
}
