//! Keys as somebody publishes them: remembered, and asked for by one caller at a time.
//!
//! What was begun is finished in a task of its own and remembered for everybody, so that nobody keeps a publisher from
//! being heard by hanging up. Whoever comes meanwhile waits for what it says.

use crate::Clock;
use sayso_protocol::Timestamp;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

/// How often a publisher is asked, and how long it is believed, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// How long what it published is used without asking again.
    pub(crate) fresh: i64,
    /// Between two askings, whatever is wanted.
    pub(crate) again: i64,
    /// How long it is used while the publisher cannot be asked.
    pub(crate) held: i64,
}

/// One publisher of keys of type `K`.
pub(crate) struct Publisher<K> {
    pace: Pace,
    /// Held while somebody asks.
    turn: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<State<K>>,
}

struct State<K> {
    asked: Option<Timestamp>,
    keys: Option<(Timestamp, K)>,
}

impl<K: Clone + Send + 'static> Publisher<K> {
    /// One that was not heard yet.
    pub(crate) fn new(pace: Pace) -> Arc<Self> {
        let state = Mutex::new(State { asked: None, keys: None });
        Arc::new(Self { pace, turn: Arc::default(), state })
    }

    /// Its keys: those remembered while they serve, else what `ask` finds, else those remembered after all. None when
    /// it was not heard for too long.
    pub(crate) async fn keys<Asked>(
        self: &Arc<Self>,
        serves: impl Fn(&K) -> bool,
        clock: &Clock,
        ask: impl FnOnce() -> Asked,
    ) -> Option<K>
    where
        Asked: Future<Output = Option<K>> + Send + 'static,
    {
        if let Some(keys) = self.fresh(&serves, clock()) {
            return Some(keys);
        }
        let turn = self.turn.clone().lock_owned().await;
        // Whoever had the turn before may have found it.
        if let Some(keys) = self.fresh(&serves, clock()) {
            return Some(keys);
        }
        if !self.may_ask(clock()) {
            return self.held(clock());
        }
        let (publisher, now, asking) = (self.clone(), clock.clone(), ask());
        let asked = tokio::spawn(async move {
            let _turn = turn;
            publisher.with(|state| state.asked = Some(now()));
            if let Some(keys) = asking.await {
                publisher.with(|state| state.keys = Some((now(), keys)));
            }
        });
        // One that failed changed nothing.
        let _ = asked.await;
        self.held(clock())
    }

    fn with<T>(&self, act: impl FnOnce(&mut State<K>) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn fresh(&self, serves: &impl Fn(&K) -> bool, now: Timestamp) -> Option<K> {
        self.kept(self.pace.fresh, now).filter(serves)
    }

    fn held(&self, now: Timestamp) -> Option<K> {
        self.kept(self.pace.held, now)
    }

    fn kept(&self, seconds: i64, now: Timestamp) -> Option<K> {
        self.with(|state| {
            let kept = state.keys.as_ref().filter(|(at, _)| (0..seconds).contains(&now.since(*at)));
            kept.map(|(_, keys)| keys.clone())
        })
    }

    fn may_ask(&self, now: Timestamp) -> bool {
        self.with(|state| !state.asked.is_some_and(|at| (0..self.pace.again).contains(&now.since(at))))
    }
}
