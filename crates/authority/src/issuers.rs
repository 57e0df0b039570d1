//! The keys of those whose word about agents is believed: a closed list, asked at most once a minute each (AAUTH-09).
//!
//! Nobody else is ever asked, so what a stranger shows can make us fetch nothing but what the operator named (D-41,
//! CORE-50). While an issuer cannot be reached its keys are good for an hour more; after that it vouches for nobody.

use crate::Clock;
use crate::publisher::{Pace, Publisher};
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

const PACE: Pace = Pace { fresh: 300, again: 60, held: 3600 };

/// Issuers that are believed, with the keys of type `K` they publish.
pub(crate) struct Issuers<K> {
    known: HashMap<String, Arc<Publisher<K>>>,
}

impl<K: Clone + Send + 'static> Issuers<K> {
    /// These issuers and no others.
    pub(crate) fn of(issuers: &[String]) -> Self {
        Self { known: issuers.iter().map(|issuer| (issuer.clone(), Publisher::new(PACE))).collect() }
    }

    /// Whether this issuer is believed.
    pub(crate) fn believes(&self, issuer: &str) -> bool {
        self.known.contains_key(issuer)
    }

    /// As [`Publisher::keys`]; none for an issuer that is not believed.
    pub(crate) async fn keys<Asked>(
        &self,
        issuer: &str,
        serves: impl Fn(&K) -> bool,
        clock: &Clock,
        ask: impl FnOnce() -> Asked,
    ) -> Option<K>
    where
        Asked: Future<Output = Option<K>> + Send + 'static,
    {
        self.known.get(issuer)?.keys(serves, clock, ask).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use sayso_protocol::Timestamp;
    use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
    use tokio::sync::Semaphore;

    const WHO: &str = "https://ps.example";

    /// An issuer that publishes one number, a clock, and how often it was asked.
    struct Stage {
        issuers: Issuers<i64>,
        now: Arc<AtomicI64>,
        asked: AtomicUsize,
        publishes: Option<i64>,
        /// The issuer answers as often as this lets it.
        answers: Arc<Semaphore>,
    }

    impl Stage {
        fn new() -> Self {
            Stage {
                issuers: Issuers::of(&[WHO.to_owned()]),
                now: Arc::new(AtomicI64::new(1_000_000)),
                asked: AtomicUsize::new(0),
                publishes: Some(1),
                answers: Arc::new(Semaphore::new(1000)),
            }
        }

        /// One that does not answer yet.
        fn silent() -> Self {
            Stage { answers: Arc::new(Semaphore::new(0)), ..Stage::new() }
        }

        async fn keys(&self, wanted: i64) -> Option<i64> {
            let ask = || {
                self.asked.fetch_add(1, Ordering::SeqCst);
                let (publishes, answers) = (self.publishes, self.answers.clone());
                async move {
                    answers.acquire().await.unwrap().forget();
                    publishes
                }
            };
            let now = self.now.clone();
            let clock: Clock = Arc::new(move || Timestamp(now.load(Ordering::SeqCst)));
            self.issuers.keys(WHO, |held| *held == wanted, &clock, ask).await
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

    // AAUTH-09, CORE-46: whoever asks and leaves at once has asked for everybody.
    #[tokio::test]
    async fn nobody_keeps_an_issuer_from_being_heard_by_leaving() {
        let stage = Stage::silent();
        assert_eq!(stage.keys(9).now_or_never(), None, "left after the first look");
        let mut waits = std::pin::pin!(stage.keys(1));
        assert_eq!(waits.as_mut().now_or_never(), None, "waits for what was begun");
        stage.answers.add_permits(1);
        assert_eq!((waits.await, stage.asked()), (Some(1), 1));
        assert_eq!((stage.keys(1).await, stage.asked()), (Some(1), 1));
    }

    // AAUTH-09, CORE-46: a key id nobody publishes keeps no withdrawal from being seen.
    #[tokio::test]
    async fn leaving_delays_no_withdrawal() {
        let mut stage = Stage::new();
        assert_eq!(stage.keys(1).await, Some(1));
        stage.publishes = Some(2);
        stage.pass(299);
        assert_eq!(stage.keys(9).now_or_never(), None);
        stage.pass(1);
        assert_eq!(
            (stage.keys(1).await, stage.asked()),
            (Some(2), 2),
            "what is published now, and not that key"
        );
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
        let clock: Clock = Arc::new(|| Timestamp(1));
        let found = stage.issuers.keys("https://other.example", |_| true, &clock, never).await;
        assert_eq!(found, None);
        assert!(stage.issuers.believes(WHO) && !stage.issuers.believes("https://ps.example/"));
    }
}
