//! `sayso owner resource-servers`: who acts for her things, and her answer to those that ask (OWN-15, OWN-16).
//!
//! Only the origin is proven; what a server calls itself is shown as its own word.

use super::client::{Client, Refused};
use super::typed::Typed;
use crate::terminal::plain;
use clap::Subcommand;
use serde_json::{Value, json};

/// What she says of one.
#[derive(Debug, Subcommand)]
pub(super) enum Answer {
    /// Let a server that waits act for these resources.
    Approve {
        /// Its origin, as the list shows it.
        origin: String,
    },
    /// Turn away a server that waits. It may ask again.
    Deny {
        /// Its origin, as the list shows it.
        origin: String,
    },
    /// Withdraw a server: its token and the live grants at it end at once.
    Revoke {
        /// Its origin, as the list shows it.
        origin: String,
    },
}

impl Answer {
    /// The origin, and the word of the API; turning away and withdrawing are one to it.
    fn said(&self) -> (&str, &'static str) {
        match self {
            Answer::Approve { origin } => (origin, "approved"),
            Answer::Deny { origin } | Answer::Revoke { origin } => (origin, "revoked"),
        }
    }

    /// What has come of it, for people.
    pub(super) fn told(&self, typed: &Typed) -> String {
        let (origin, _) = self.said();
        let origin = plain(origin);
        match self {
            Answer::Approve { .. } => {
                format!(
                    "approved {origin}; what it has is refused until you accept it: {} lists it, and `accept` shows and governs it",
                    typed.line("resources")
                )
            }
            Answer::Deny { .. } => format!("denied {origin}"),
            Answer::Revoke { .. } => format!("withdrew {origin}; its token and grants have ended"),
        }
    }
}

/// Lists them, or gives her answer to one.
pub(super) async fn run(client: &Client, answer: Option<&Answer>) -> anyhow::Result<Value> {
    let Some(answer) = answer else { return client.read("resource-servers", None).await };
    let (origin, decision) = answer.said();
    // To the API turning away and withdrawing are one; to her they are not.
    if matches!(answer, Answer::Deny { .. }) && !waits(client, origin).await? {
        return Err(
            Refused::because("no resource server of that origin waits; to withdraw one: revoke").into()
        );
    }
    client.write("resource-servers/decision", &json!({ "client_id": origin, "decision": decision })).await
}

async fn waits(client: &Client, origin: &str) -> anyhow::Result<bool> {
    let all = client.read("resource-servers", None).await?;
    let says =
        |server: &Value, member: &str, text: &str| server.get(member).and_then(Value::as_str) == Some(text);
    let mut servers = all.as_array().into_iter().flatten();
    Ok(servers.any(|server| says(server, "client_id", origin) && says(server, "status", "pending")))
}
