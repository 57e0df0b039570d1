//! Looking at a folder again and again, on a thread of its own.
//!
//! What is found must be found twice before it counts, so that nobody decides by a file that is half written. What cannot
//! decide is said once, and the last set that can goes on deciding.

use super::fault::{BadPolicies, BadPolicy};
use super::folder::{self, Digest};
use super::policies::Policies;
use super::{Current, EmbeddedSettings};
use std::sync::Weak;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// A thread that looks until this is dropped.
pub(super) struct Watch(#[expect(dead_code, reason = "what is dropped tells the thread to end")] Sender<()>);

/// What was seen last.
struct Seen {
    settings: EmbeddedSettings,
    /// What decides, or was refused.
    settled: Option<Digest>,
    /// What was there a moment ago and is not settled.
    fresh: Option<Digest>,
    /// How often in a row nothing could be read.
    lost: u32,
}

/// The least time between two looks.
const LEAST: Duration = Duration::from_millis(10);
/// So often in a row, and somebody is told.
const LOST: u32 = 2;

impl Watch {
    pub(super) fn start(
        settings: EmbeddedSettings,
        decides: Digest,
        current: Weak<Current>,
    ) -> Result<Self, BadPolicies> {
        let (sender, ended) = mpsc::channel();
        let path = settings.policies.clone();
        let every = settings.every.max(LEAST);
        let mut seen = Seen { settings, settled: Some(decides), fresh: None, lost: 0 };
        let look = move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let Some(current) = current.upgrade() else { break };
                seen.look(&current);
            }
        };
        let thread = std::thread::Builder::new().name("policies".to_owned()).spawn(look);
        thread.map_err(|fault| BadPolicies { path, why: BadPolicy::Unwatched(fault) })?;
        Ok(Self(sender))
    }
}

impl Seen {
    fn look(&mut self, current: &Current) {
        let found = match folder::read(&self.settings.policies) {
            Ok(found) => found,
            Err(bad) => {
                self.lost = self.lost.saturating_add(1);
                if self.lost == LOST {
                    refuse(&bad);
                }
                return;
            }
        };
        self.lost = 0;
        let digest = found.digest();
        if self.settled == Some(digest) {
            self.fresh = None;
            return;
        }
        if self.fresh != Some(digest) {
            self.fresh = Some(digest);
            return;
        }
        (self.settled, self.fresh) = (Some(digest), None);
        match Policies::compile(&found).and_then(|policies| policies.after(&current.get())) {
            Ok(policies) => {
                policies.tell("policies.changed");
                current.put(policies);
            }
            Err(bad) => refuse(&bad),
        }
    }
}

fn refuse(bad: &BadPolicies) {
    tracing::error!(reason = %bad, "policies.refused: those from before go on deciding");
}
