//! Whose turn it is to negotiate: of callers racing on the same thing one asks, and the others use what comes of it.
//! A turn is taken for a tool at first, since a grant may be for all its calls, and for one operation alone once the
//! terms say so. It is kept within one process; between processes a ticket decides, which is good once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Mutex as Lock, OwnedMutexGuard};

/// Every turn somebody has or waits for.
#[derive(Default)]
pub(crate) struct Turns(Mutex<HashMap<String, Weak<Lock<()>>>>);

/// A turn, until it is dropped.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    exact: String,
    held: Mutex<Option<OwnedMutexGuard<()>>>,
}

impl Turns {
    fn lock(&self, name: &str) -> Arc<Lock<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = turns.get(name).and_then(Weak::upgrade) {
            return lock;
        }
        turns.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(Lock::new(()));
        turns.insert(name.to_owned(), Arc::downgrade(&lock));
        lock
    }

    /// A turn at what `wide` names, if it comes within this time. It can become one at `exact`.
    pub(crate) async fn take(&self, wide: &str, exact: String, wait: Duration) -> Option<Turn<'_>> {
        let held = tokio::time::timeout(wait, self.lock(wide).lock_owned()).await.ok()?;
        Some(Turn { turns: self, exact, held: Mutex::new(Some(held)) })
    }
}

impl Turn<'_> {
    /// Lets the others at the tool go on: what is negotiated is for one operation alone. Two callers of the same
    /// operation still take turns.
    pub(crate) async fn narrow(&self) {
        self.held().take();
        let exact = self.turns.lock(&self.exact).lock_owned().await;
        *self.held() = Some(exact);
    }

    fn held(&self) -> MutexGuard<'_, Option<OwnedMutexGuard<()>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn one_at_a_time_until_it_is_about_less() {
        let turns = Turns::default();
        let first = turns.take("tool", "tool 1".into(), SOON).await.unwrap();
        assert!(turns.take("tool", "tool 2".into(), SOON).await.is_none());
        first.narrow().await;
        let second = turns.take("tool", "tool 1".into(), SOON).await.unwrap();
        assert!(tokio::time::timeout(SOON, second.narrow()).await.is_err(), "the same operation waits");
        let third = turns.take("tool", "tool 2".into(), SOON).await.unwrap();
        third.narrow().await;
        drop((first, second, third));
        assert!(turns.take("other", "x".into(), SOON).await.is_some());
        assert_eq!(turns.0.lock().unwrap().len(), 1, "what nobody holds is forgotten");
    }
}
