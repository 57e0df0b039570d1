//! The keys of those whose word about agents is believed: a closed list, asked at most once a minute each (AAUTH-09).
//!
//! Nobody else is ever asked, so what a stranger shows can make us fetch nothing but what the operator named (D-41,
//! CORE-50). While an issuer cannot be reached its keys are good for an hour more; after that it vouches for nobody.

use sayso_protocol::Timestamp;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};

/// How long what an issuer published is used without asking again, in seconds.
const FRESH: i64 = 300;
/// Seconds between two askings, whatever was shown.
const AGAIN: i64 = 60;
/// How long it is used while the issuer cannot be reached, in seconds.
const HELD: i64 = 3600;

/// Issuers that are believed, with the keys of type `K` they publish.
pub(crate) struct Issuers<K> {
    known: HashMap<String, Known<K>>,
}

struct Known<K> {
    /// Held while somebody asks.
    turn: tokio::sync::Mutex<()>,
    state: Mutex<State<K>>,
}

struct State<K> {
    asked: Option<Timestamp>,
    keys: Option<(Timestamp, K)>,
}

impl<K: Clone> Issuers<K> {
    /// These issuers and no others.
    pub(crate) fn of(issuers: &[String]) -> Self {
        let known = || Known {
            turn: tokio::sync::Mutex::default(),
            state: Mutex::new(State { asked: None, keys: None }),
        };
        Self { known: issuers.iter().map(|issuer| (issuer.clone(), known())).collect() }
    }

    /// Whether this issuer is believed.
    pub(crate) fn believes(&self, issuer: &str) -> bool {
        self.known.contains_key(issuer)
    }

    /// An issuer's keys: those remembered while they serve, else what `ask` finds. None for an issuer that is not
    /// believed or has not been heard.
    pub(crate) async fn keys<Asked>(
        &self,
        issuer: &str,
        serves: impl Fn(&K) -> bool,
        now: impl Fn() -> Timestamp,
        ask: impl FnOnce() -> Asked,
    ) -> Option<K>
    where
        Asked: Future<Output = Option<K>>,
    {
        let known = self.known.get(issuer)?;
        if let Ok(keys) = known.remembered(&serves, now()) {
            return keys;
        }
        let _turn = known.turn.lock().await;
        // Whoever had the turn before may have found it.
        if let Ok(keys) = known.remembered(&serves, now()) {
            return keys;
        }
        known.with(|state| state.asked = Some(now()));
        let found = ask().await;
        known.with(|state| {
            if let Some(keys) = found {
                state.keys = Some((now(), keys));
            }
            state.held(now())
        })
    }
}

impl<K: Clone> Known<K> {
    fn with<T>(&self, act: impl FnOnce(&mut State<K>) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is remembered, where that is the answer; else the issuer has to be asked.
    fn remembered(&self, serves: &impl Fn(&K) -> bool, now: Timestamp) -> Result<Option<K>, Asks> {
        self.with(|state| {
            let fresh = state.keys.as_ref().filter(|(at, _)| (0..FRESH).contains(&now.since(*at)));
            match fresh {
                Some((_, keys)) if serves(keys) => Ok(Some(keys.clone())),
                _ if state.asked.is_some_and(|at| (0..AGAIN).contains(&now.since(at))) => Ok(state.held(now)),
                _ => Err(Asks),
            }
        })
    }
}

/// The issuer has to be asked.
struct Asks;

impl<K: Clone> State<K> {
    fn held(&self, now: Timestamp) -> Option<K> {
        let held = self.keys.as_ref().filter(|(at, _)| (0..HELD).contains(&now.since(*at)));
        held.map(|(_, keys)| keys.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

    const WHO: &str = "https://ps.example";

    /// An issuer that publishes one number, a clock, and how often it was asked.
    struct Stage {
        issuers: Issuers<i64>,
        now: AtomicI64,
        asked: AtomicUsize,
        publishes: Option<i64>,
    }

    impl Stage {
        fn new() -> Self {
            let issuers = Issuers::of(&[WHO.to_owned()]);
            Stage { issuers, now: AtomicI64::new(1_000_000), asked: AtomicUsize::new(0), publishes: Some(1) }
        }

        async fn keys(&self, wanted: i64) -> Option<i64> {
            let ask = || {
                self.asked.fetch_add(1, Ordering::SeqCst);
                std::future::ready(self.publishes)
            };
            let now = || Timestamp(self.now.load(Ordering::SeqCst));
            self.issuers.keys(WHO, |held| *held == wanted, now, ask).await
        }

        fn pass(&self, seconds: i64) {
            self.now.fetch_add(seconds, Ordering::SeqCst);
        }

        fn asked(&self) -> usize {
            self.asked.load(Ordering::SeqCst)
        }
    }

    // AAUTH-09
    #[tokio::test]
    async fn an_issuer_is_asked_once_a_minute_whatever_is_shown() {
        let mut stage = Stage::new();
        for n in 0..50 {
            assert_eq!(
                stage.keys(100 + n).await,
                Some(1),
                "it has these, and whoever asks sees that they do not fit"
            );
        }
        assert_eq!(stage.asked(), 1);
        assert_eq!(stage.keys(1).await, Some(1));
        stage.publishes = Some(2);
        stage.pass(59);
        assert_eq!((stage.keys(2).await, stage.asked()), (Some(1), 1));
        stage.pass(1);
        assert_eq!((stage.keys(2).await, stage.asked()), (Some(2), 2), "a rotation is seen within a minute");
        stage.pass(299);
        assert_eq!((stage.keys(2).await, stage.asked()), (Some(2), 2));
        stage.pass(1);
        assert_eq!((stage.keys(2).await, stage.asked()), (Some(2), 3), "and a withdrawal within five");
    }

    #[tokio::test]
    async fn keys_outlive_an_outage_for_an_hour() {
        let mut stage = Stage::new();
        assert_eq!(stage.keys(1).await, Some(1));
        stage.publishes = None;
        stage.pass(3599);
        assert_eq!((stage.keys(1).await, stage.asked()), (Some(1), 2));
        stage.pass(60);
        assert_eq!(stage.keys(1).await, None);
    }

    // CORE-50
    #[tokio::test]
    async fn nobody_else_is_asked() {
        let stage = Stage::new();
        let never = || async { panic!("asked") };
        let found = stage.issuers.keys("https://other.example", |_| true, || Timestamp(1), never).await;
        assert_eq!(found, None);
        assert!(stage.issuers.believes(WHO) && !stage.issuers.believes("https://ps.example/"));
    }
}
