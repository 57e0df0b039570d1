//! Terms that a person is being asked about at this moment, so that of several calls on the same terms one asks.
//!
//! A person may turn away without a word, so the others wait no longer than a call waits anyway, and ask themselves then.

use sayso_protocol::id::NegotiationId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long somebody counts as being asked.
const READING: Duration = Duration::from_secs(230);

/// Who is being asked about what.
#[derive(Default)]
pub(super) struct Asked {
    open: Mutex<HashMap<NegotiationId, Instant>>,
    answered: Notify,
}

impl Asked {
    /// Whether nobody is being asked yet; the caller asks, then.
    pub(super) fn is_first(&self, family: &NegotiationId) -> bool {
        let mut open = self.open();
        open.retain(|_, since| since.elapsed() < READING);
        let first = !open.contains_key(family);
        open.entry(family.clone()).or_insert_with(Instant::now);
        first
    }

    /// It was answered.
    pub(super) fn answered(&self, family: &NegotiationId) {
        self.open().remove(family);
        self.answered.notify_waiters();
    }

    /// Waits until it is answered, or this long.
    pub(super) async fn wait(&self, family: &NegotiationId, long: Duration) {
        let answered = async {
            loop {
                let told = self.answered.notified();
                if !self.open().contains_key(family) {
                    return;
                }
                told.await;
            }
        };
        // Either way the caller looks again.
        let _ = tokio::time::timeout(long, answered).await;
    }

    fn open(&self) -> MutexGuard<'_, HashMap<NegotiationId, Instant>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_asks_and_the_others_hear_of_the_answer() {
        let (asked, family) = (Asked::default(), "f".parse().unwrap());
        assert!(asked.is_first(&family));
        assert!(!asked.is_first(&family));
        let (began, long) = (Instant::now(), Duration::from_secs(20));
        tokio::join!(asked.wait(&family, long), async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            asked.answered(&family);
        });
        assert!(began.elapsed() < long && asked.is_first(&family));
        asked.wait(&family, Duration::from_millis(20)).await;
    }
}
