//! How often a source is heard that proved itself, in a minute.
//!
//! Who has valid documents can name any owner, and a name that is served here is answered otherwise than one that is not.
//! So few may miss, and past those every answer is the same until the minute is over; each that is heard leaves a row in
//! the store, so those are few, too.

use sayso_protocol::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How long is counted, in seconds.
const WINDOW: i64 = 60;
/// Introductions of one source that are heard within it.
const HEARD: u32 = 10;
/// Of those, ones that name no owner served here.
const MISSED: u32 = 3;
/// Sources counted; past that the one that began first is forgotten.
const MOST: usize = 4096;

/// What one source did.
struct Count {
    since: Timestamp,
    heard: u32,
    /// Those under way are among them: many at once must not miss more often than one after the other.
    missed: u32,
}

/// The counts of all sources. One of these serves all callers.
#[derive(Clone, Default)]
pub(crate) struct Tally(Arc<Mutex<HashMap<String, Count>>>);

/// One introduction that is heard; a miss until it is known not to be.
pub(crate) struct Turn {
    tally: Tally,
    source: String,
    since: Timestamp,
}

impl Tally {
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, Count>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether one more of this source is heard now.
    pub(crate) fn turn(&self, source: &str, now: Timestamp) -> Option<Turn> {
        self.with(|counts| {
            counts.retain(|_, count| (0..WINDOW).contains(&now.since(count.since)));
            if counts.len() >= MOST && !counts.contains_key(source) {
                let first = counts.iter().min_by_key(|(_, count)| count.since).map(|(name, _)| name.clone());
                first.and_then(|name| counts.remove(&name));
            }
            let new = Count { since: now, heard: 0, missed: 0 };
            let count = counts.entry(source.to_owned()).or_insert(new);
            if count.heard >= HEARD || count.missed >= MISSED {
                return None;
            }
            count.heard += 1;
            count.missed += 1;
            Some(Turn { tally: self.clone(), source: source.to_owned(), since: count.since })
        })
    }
}

impl Turn {
    /// It named an owner, so it was no miss.
    pub(crate) fn met(self) {
        self.tally.with(|counts| {
            if let Some(count) = counts.get_mut(&self.source).filter(|count| count.since == self.since) {
                count.missed = count.missed.saturating_sub(1);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000);

    // O-24
    #[test]
    fn few_may_miss_and_then_nobody_is_heard_for_a_minute() {
        let tally = Tally::default();
        for _ in 0..MISSED {
            assert!(tally.turn("s", NOW).is_some());
        }
        assert!(tally.turn("s", NOW.plus(WINDOW - 1)).is_none());
        assert!(tally.turn("elsewhere", NOW).is_some());
        assert!(tally.turn("s", NOW.plus(WINDOW)).is_some());
    }

    // O-24
    #[test]
    fn many_at_once_miss_no_more_often() {
        let tally = Tally::default();
        let turns: Vec<_> = (0..HEARD).map_while(|_| tally.turn("s", NOW)).collect();
        assert_eq!(turns.len(), 3);
    }

    // D-22
    #[test]
    fn those_that_meet_are_few_too() {
        let tally = Tally::default();
        for _ in 0..HEARD {
            tally.turn("s", NOW).unwrap().met();
        }
        assert!(tally.turn("s", NOW).is_none());
        // What began in the minute before gives nothing back in this one.
        let late = tally.turn("t", NOW).unwrap();
        let next = NOW.plus(WINDOW);
        for _ in 0..MISSED {
            assert!(tally.turn("t", next).is_some());
        }
        late.met();
        assert!(tally.turn("t", next).is_none());
    }

    #[test]
    fn the_table_is_bounded() {
        let tally = Tally::default();
        for n in 0..=MOST {
            tally.turn(&format!("s{n}"), NOW.plus(i64::from(n > 0)));
        }
        assert_eq!(tally.with(|counts| counts.len()), MOST);
        assert!(tally.with(|counts| !counts.contains_key("s0")));
    }
}
