//! The one who answers for the agent: asked about terms, told how it goes (CORE-43, TERMS-40).
//! It keeps the decision out of the protocol: nothing here agrees by itself, and whoever implements it shows the
//! terms whole. Every text in them is a stranger's.

use super::Narrower;
use async_trait::async_trait;
use sayso_protocol::id::ToolName;
use sayso_protocol::payload::terms::Proffer;
use serde_json::{Map, Value};

/// Who decides for the agent whether to agree, and hears how it goes.
#[async_trait]
pub trait Consent: Send + Sync {
    /// Decides about terms. Whoever shows them shows all of them.
    async fn agree(&self, ask: &Ask<'_>) -> Decision;

    /// Hears how it goes.
    fn tell(&self, news: &News<'_>) {
        let _ = news;
    }
}

/// What is to be agreed to.
pub struct Ask<'a> {
    /// The resource called.
    pub resource: &'a str,
    /// The authority's issuer.
    pub authority: &'a str,
    /// The terms, all of them. Every text in them is a stranger's.
    pub proffer: &'a Proffer,
    /// The tool.
    pub tool: &'a ToolName,
    /// The arguments, which terms per operation bind.
    pub arguments: &'a Map<String, Value>,
}

/// The answer to terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Yes, to the terms or something narrower.
    Agree(Narrower),
    /// No; the authority is told.
    Decline,
    /// Nobody is there to say; the authority is told nothing.
    NotNow,
    /// Whoever is asked answers later; the same call takes the terms up again while their ticket lives.
    Later,
}

/// How it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum News<'a> {
    /// The resource asks for its owner's say, and this authority speaks for her.
    Challenged {
        /// Its issuer.
        authority: &'a str,
    },
    /// A grant from before is used.
    Reusing,
    /// The agreement was sent.
    Agreed,
    /// The owner has been asked. She is not this agent's user and cannot be reached from here.
    Waiting {
        /// The authority that asked her.
        authority: &'a str,
        /// Seconds until the next poll.
        seconds: i64,
    },
    /// An earlier wait is taken up again.
    Resuming {
        /// The authority that asked her.
        authority: &'a str,
    },
    /// The credential is not accepted there, and the agent goes on under its bare key as it was told to.
    Doubted,
    /// The grant is here.
    Granted,
    /// The authority lost track of the negotiation; it starts again.
    Restarting,
}
