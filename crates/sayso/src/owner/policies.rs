//! `sayso owner policies`: her units, and whether the tools of one may ask follow-up questions within an approved call.
//!
//! To allow them gives something away that she will not see, so what it means is said each time (D-11).

use super::client::{Client, segment};
use crate::terminal::plain;
use clap::Subcommand;
use serde_json::{Value, json};

/// What she changes.
#[derive(Debug, Subcommand)]
pub(super) enum Change {
    /// Let the tools of a unit ask follow-up questions within a call you approved; you will not see the answers.
    Bind {
        /// The unit, as `policies` lists it.
        unit: String,
    },
    /// Refuse follow-up questions, also those of calls that are under way.
    Unbind {
        /// The unit, as `policies` lists it.
        unit: String,
    },
}

impl Change {
    fn said(&self) -> (&str, bool) {
        match self {
            Change::Bind { unit } => (unit, true),
            Change::Unbind { unit } => (unit, false),
        }
    }

    /// What has come of it, for people.
    pub(super) fn told(&self) -> String {
        let (unit, bind) = self.said();
        let unit = plain(unit);
        if bind {
            return format!(
                "{unit}: its tools may ask follow-up questions in calls approved from now on; you will not see the answers"
            );
        }
        format!("{unit}: its tools may not ask follow-up questions")
    }
}

/// Lists them, or makes one change.
pub(super) async fn run(client: &Client, change: Option<&Change>) -> anyhow::Result<Value> {
    let Some(change) = change else { return client.read("policies", None).await };
    let (unit, bind) = change.said();
    client.edit(&format!("policies/{}", segment(unit)), &json!({ "bind": bind })).await
}
