//! What an agent shows beside its key, as flags.

use crate::terminal::shell;
use clap::Args;
use sayso_agent::{AssertionFile, CredentialFile, Exchange, Fault, Shows};
use sayso_fetch::{Client, Reach};
use std::path::PathBuf;
use std::sync::Arc;

/// What is shown beside the key; nothing unless it is named.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Presenting {
    /// Show an issuer's credential for the key, an aa-agent+jwt in a file (0600), read anew at each use.
    #[arg(long, value_name = "FILE")]
    credential: Option<PathBuf>,
    /// Say that a client metadata document describes this agent: its https address.
    #[arg(long, value_name = "URL")]
    client_id: Option<String>,
    /// Say that the key directory at this origin, the client id's, has the key.
    #[arg(long, value_name = "ORIGIN", requires = "client_id")]
    signature_agent: Option<String>,
    /// Go on under the bare key where an authority does not accept the credential.
    #[arg(long, requires = "credential")]
    or_bare: bool,
    /// Say for whom this agent acts, where that is asked for: an identity assertion in a file (0600).
    #[arg(long, value_name = "FILE", conflicts_with = "provider")]
    assertion: Option<PathBuf>,
    /// Or get one from this identity provider, and no other: its issuer URL.
    #[arg(long, value_name = "URL", requires = "subject_token")]
    provider: Option<String>,
    /// What the provider exchanges for one, an ID token in a file (0600); it is sent to the provider alone.
    #[arg(long, value_name = "FILE", requires = "provider")]
    subject_token: Option<PathBuf>,
    /// The name the provider knows this program by.
    #[arg(long, value_name = "ID", requires = "provider")]
    provider_client: Option<String>,
    /// A file (0600) with the secret that goes with that name.
    #[arg(long, value_name = "FILE", requires = "provider_client")]
    provider_secret: Option<PathBuf>,
}

impl Presenting {
    /// # Errors
    /// When an address is none that can describe an agent.
    pub(crate) fn shows(&self) -> Result<Shows, Fault> {
        let mut shows = Shows::default();
        if let Some(path) = &self.credential {
            shows = shows.named_by(Arc::new(CredentialFile::at(path)));
        }
        if self.or_bare {
            shows = shows.or_bare();
        }
        if let Some(path) = &self.assertion {
            shows = shows.asserted_by(Arc::new(AssertionFile::at(path)));
        }
        if let (Some(provider), Some(token)) = (&self.provider, &self.subject_token) {
            let mut exchange = Exchange::at(provider, token, Arc::new(Client::new(Reach::Configured)))?;
            exchange.client = self.provider_client.clone().map(|name| (name, self.provider_secret.clone()));
            shows = shows.asserted_by(Arc::new(exchange));
        }
        match &self.client_id {
            Some(client_id) => shows.described_at(client_id, self.signature_agent.as_deref()),
            None => Ok(shows),
        }
    }

    /// The flags, as they have to be typed again.
    pub(super) fn words(&self) -> Vec<String> {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let flags = [
            ("--credential", path(&self.credential)),
            ("--client-id", self.client_id.clone()),
            ("--signature-agent", self.signature_agent.clone()),
            ("--assertion", path(&self.assertion)),
            ("--provider", self.provider.clone()),
            ("--subject-token", path(&self.subject_token)),
            ("--provider-client", self.provider_client.clone()),
            ("--provider-secret", path(&self.provider_secret)),
        ];
        let written =
            flags.iter().filter_map(|(flag, value)| Some(format!("{flag} {}", shell(value.as_ref()?))));
        written.chain(self.or_bare.then(|| "--or-bare".to_owned())).collect()
    }
}
