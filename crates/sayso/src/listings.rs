//! What a server lists, again and again (D-30): at an interval, sooner where the server says for how long a listing
//! holds, and at once when it says that its tools changed.

use sayso_enforce::resource::ToolSettings;
use sayso_gateway::{Survey, Upstream};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// How often a server is asked, while it has not been heard at all.
const UNHEARD: Duration = Duration::from_secs(2);
/// The least time between two listings, whatever the server says.
const LULL: Duration = Duration::from_millis(500);
/// The least time between two listings of a server that says that its own hold for less.
const SOONEST: Duration = Duration::from_secs(10);
/// How long an empty listing is not believed.
const GRACE: Duration = Duration::from_secs(600);

/// The listings of one server.
pub(crate) struct Listings {
    upstream: Upstream,
    every: Duration,
    changes: watch::Receiver<u64>,
    holds: Option<Duration>,
    empty_since: Option<Instant>,
}

impl Listings {
    /// Those of this server, asked for at this interval.
    pub(crate) fn of(upstream: Upstream, every: Duration) -> Self {
        let changes = upstream.changes();
        Self { upstream, every, changes, holds: None, empty_since: None }
    }

    /// The next complete one. `heard` says whether there was one before.
    pub(crate) async fn next(&mut self, heard: bool) -> Survey {
        loop {
            sleep(LULL).await;
            let holds = self.holds.map_or(self.every, |holds| holds.max(SOONEST));
            let every = if heard { self.every.min(holds) } else { UNHEARD };
            tokio::select! {
                () = sleep(every.saturating_sub(LULL)) => {}
                // INVARIANT: the upstream is held here, and with it the other end.
                _ = self.changes.changed() => {}
            }
            if let Ok(survey) = self.upstream.survey().await {
                self.holds = survey.holds;
                return survey;
            }
        }
    }

    /// Whether a listing is to be believed: one without tools only when there were none for ten minutes.
    pub(crate) fn believes(&mut self, tools: &[ToolSettings]) -> bool {
        let empty = tools.is_empty();
        if !empty {
            self.empty_since = None;
        }
        !empty || self.empty_since.get_or_insert_with(Instant::now).elapsed() >= GRACE
    }
}

/// Whether two listings say the same: pins, scopes, and the words that are not pinned but shown.
pub(crate) fn are_alike(one: &[ToolSettings], other: &[ToolSettings]) -> bool {
    let alike = |one: &ToolSettings, other: &ToolSettings| {
        one.tool == other.tool
            && one.definition == other.definition
            && one.scopes == other.scopes
            && one.surface == other.surface
    };
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(one, other))
}
