//! What whoever counts is told: how presentations moved negotiations, and how long the store took.
//!
//! Every word is one of ours, from a closed list; no name, ticket or text of anybody's is among them. What the numbers
//! are kept in is the binary's.

use sayso_owner::negotiation::{Ending, State};
use sayso_owner::step::Step;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Whoever counts.
pub trait Observer: Send + Sync {
    /// The presentation of a ticket led to this.
    fn presented(&self, result: &'static str);
    /// The store did what this names, or failed to.
    fn stored(&self, op: &'static str, took: Duration);
}

/// Whoever counts, if anybody does.
#[derive(Clone, Default)]
pub struct Observed(Option<Arc<dyn Observer>>);

impl Observed {
    /// Counted by `observer`.
    pub fn by(observer: Arc<dyn Observer>) -> Self {
        Self(Some(observer))
    }

    pub(crate) fn presented(&self, result: &'static str) {
        if let Some(observer) = &self.0 {
            observer.presented(result);
        }
    }

    pub(crate) fn stored(&self, op: &'static str, took: Duration) {
        if let Some(observer) = &self.0 {
            observer.stored(op, took);
        }
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "observed" } else { "unobserved" })
    }
}

/// The ticket was unknown, spent or expired.
pub(crate) const LOST: &str = "lost";
/// There were too many uncommitted negotiations.
pub(crate) const FULL: &str = "full";

/// Where a step took its negotiation; none for a poll that still waits and for what made no sense.
pub(crate) fn moved(before: &State, step: &Step) -> Option<&'static str> {
    if step.untouched {
        return None;
    }
    match &step.state {
        State::AwaitingAgreement { .. } if before.word() != step.state.word() => Some("proffered"),
        State::AwaitingOwner { .. } if before.word() != step.state.word() => Some("submitted"),
        State::Closed { ending } => Some(ended(*ending)),
        _ => None,
    }
}

fn ended(ending: Ending) -> &'static str {
    match ending {
        Ending::Issued => "issued",
        Ending::Declined => "declined",
        Ending::Breached => "breached",
        Ending::Denied => "denied",
        Ending::Refused => "refused",
        Ending::Expired => "expired",
        Ending::Revoked => "revoked",
        Ending::Withdrawn => "withdrawn",
        Ending::Superseded => "superseded",
    }
}
