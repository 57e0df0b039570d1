//! What an agent shows beside its key, as flags.

use crate::terminal::shell;
use clap::Args;
use sayso_agent::{CredentialFile, Fault, Shows};
use std::path::PathBuf;
use std::sync::Arc;

/// What is shown beside the key; nothing unless it is named.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Presenting {
    /// Show an issuer's credential for the key, an aa-agent+jwt in a file (0600), read anew at each use.
    #[arg(long, value_name = "FILE")]
    credential: Option<PathBuf>,
    /// Say that a client metadata document describes this agent: its https address.
    #[arg(long, value_name = "URL")]
    client_id: Option<String>,
    /// Say that the key directory at this origin, the client id's, has the key.
    #[arg(long, value_name = "ORIGIN", requires = "client_id")]
    signature_agent: Option<String>,
}

impl Presenting {
    /// # Errors
    /// When an address is none that can describe an agent.
    pub(super) fn shows(&self) -> Result<Shows, Fault> {
        let mut shows = Shows::default();
        if let Some(path) = &self.credential {
            shows = shows.named_by(Arc::new(CredentialFile::at(path)));
        }
        match &self.client_id {
            Some(client_id) => shows.described_at(client_id, self.signature_agent.as_deref()),
            None => Ok(shows),
        }
    }

    /// The flags, as they have to be typed again.
    pub(super) fn words(&self) -> Vec<String> {
        let path = self.credential.as_ref().map(|path| path.display().to_string());
        let flags = [
            ("--credential", path.as_ref()),
            ("--client-id", self.client_id.as_ref()),
            ("--signature-agent", self.signature_agent.as_ref()),
        ];
        flags.iter().filter_map(|(flag, value)| Some(format!("{flag} {}", shell(value.as_ref()?)))).collect()
    }
}
