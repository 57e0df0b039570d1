//! When not to ask: after so many requests in a row without an answer, nobody is asked for a while, and then one is.
//! What it saves is time; a request that is not asked is refused like one that was not answered.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The bounds and where it stands.
pub(super) struct Breaker {
    faults: u32,
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Everybody may ask; so many were not answered in a row.
    Closed(u32),
    /// Nobody may ask until then.
    Open(Instant),
    /// Somebody is asking, for everybody.
    Probing,
}

/// Leave to ask once. Whoever drops it without saying what came of it (the caller may be gone) has learnt nothing.
pub(super) struct Leave<'a> {
    breaker: &'a Breaker,
    probe: bool,
    settled: bool,
}

impl Breaker {
    pub(super) fn new(faults: u32, pause: Duration) -> Breaker {
        Breaker { faults, pause, state: Mutex::new(State::Closed(0)) }
    }

    /// Leave to ask, unless nobody may.
    pub(super) fn enter(&self, now: Instant) -> Option<Leave<'_>> {
        let mut state = self.state();
        let probe = match *state {
            State::Closed(_) => false,
            State::Open(until) if now >= until => {
                *state = State::Probing;
                true
            }
            State::Open(_) | State::Probing => return None,
        };
        Some(Leave { breaker: self, probe, settled: false })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leave<'_> {
    /// It was answered, or it was not. True when this is what stops everybody from asking.
    pub(super) fn settle(mut self, answered: bool, now: Instant) -> bool {
        self.settled = true;
        let mut state = self.breaker.state();
        let open = State::Open(now + self.breaker.pause);
        let next = match (*state, answered) {
            // Those who asked before it opened say nothing about now; only the probe does.
            (State::Open(_) | State::Probing, _) if !self.probe => return false,
            (_, true) => State::Closed(0),
            (State::Closed(before), false) if before + 1 < self.breaker.faults => State::Closed(before + 1),
            (_, false) => open,
        };
        *state = next;
        matches!(next, State::Open(_))
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if self.probe && !self.settled {
            *self.breaker.state() = State::Open(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(5);

    fn opened(now: Instant) -> Breaker {
        let breaker = Breaker::new(3, PAUSE);
        for last in [false, false, true] {
            assert_eq!(breaker.enter(now).unwrap().settle(false, now), last);
        }
        breaker
    }

    #[test]
    fn only_faults_in_a_row_open_it() {
        let (breaker, now) = (Breaker::new(3, PAUSE), Instant::now());
        for answered in [false, false, true, false, false, true] {
            assert!(!breaker.enter(now).unwrap().settle(answered, now));
        }
        assert_eq!(*breaker.state(), State::Closed(0));
    }

    #[test]
    fn one_asks_for_everybody_after_the_pause() {
        let now = Instant::now();
        let breaker = opened(now);
        assert!(breaker.enter(now + PAUSE - Duration::from_millis(1)).is_none());
        let probe = breaker.enter(now + PAUSE).unwrap();
        assert!(breaker.enter(now + PAUSE).is_none(), "one, not two");
        assert!(probe.settle(false, now + PAUSE), "and it is open again");
        assert!(breaker.enter(now + PAUSE).is_none());
        assert!(!breaker.enter(now + PAUSE * 2).unwrap().settle(true, now + PAUSE * 2));
        assert!(breaker.enter(now + PAUSE * 2).is_some());
    }

    #[test]
    fn whoever_leaves_in_the_middle_bars_nobody() {
        let now = Instant::now();
        let breaker = opened(now);
        drop(breaker.enter(now + PAUSE).unwrap());
        assert!(breaker.enter(Instant::now() + PAUSE).is_some());
    }

    #[test]
    fn an_answer_from_before_does_not_close_it() {
        let now = Instant::now();
        let breaker = Breaker::new(1, PAUSE);
        let (early, late) = (breaker.enter(now).unwrap(), breaker.enter(now).unwrap());
        assert!(early.settle(false, now));
        assert!(!late.settle(true, now));
        assert!(breaker.enter(now).is_none());
    }
}
