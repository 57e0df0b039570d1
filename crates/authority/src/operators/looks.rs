//! How many descriptions of agents are looked at, and which are remembered (D-41, POL-32).
//!
//! What was found is used for five minutes; what was not is looked for again, as often as its source has not failed too
//! often within the minute. Everything here is bounded, whoever asks.

use sayso_protocol::payload::client::ClientMetadata;
use sayso_protocol::{Thumbprint, Timestamp};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How long what was found is used, in seconds (O-42).
const FRESH: i64 = 300;
/// Looks at once, in all and at one source.
const AT_ONCE: usize = 32;
const OF_SOURCE: usize = 8;
/// Failures of one source within a minute, past which it is not asked.
const FAILED: usize = 32;
const MINUTE: i64 = 60;
/// Pages, and sources that failed, that are remembered.
const MOST: usize = 4096;

/// A page that said something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Page {
    /// A client metadata document.
    Client(ClientMetadata),
    /// The keys of a directory.
    Directory(Vec<Thumbprint>),
}

#[derive(Default)]
struct Memory {
    found: HashMap<String, (Timestamp, Page)>,
    looking: HashMap<String, usize>,
    failed: HashMap<String, (Timestamp, usize)>,
}

/// What is remembered. One of these serves all callers.
#[derive(Clone, Default)]
pub(crate) struct Looks {
    memory: Arc<Mutex<Memory>>,
}

/// Room for one look, given back when it is over.
pub(crate) struct Place {
    looks: Looks,
    source: String,
}

impl Looks {
    fn with<T>(&self, act: impl FnOnce(&mut Memory) -> T) -> T {
        act(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A page that was found shortly before.
    pub(crate) fn known(&self, address: &str, now: Timestamp) -> Option<Page> {
        self.with(|memory| {
            let known = memory.found.get(address);
            known.filter(|(at, _)| (0..FRESH).contains(&now.since(*at))).map(|(_, page)| page.clone())
        })
    }

    /// Room for a look at this source, if there is any now.
    pub(crate) fn place(&self, source: &str, now: Timestamp) -> Option<Place> {
        self.with(|memory| {
            let looking: usize = memory.looking.values().sum();
            let here = memory.looking.get(source).copied().unwrap_or_default();
            memory.failed.retain(|_, (at, _)| (0..MINUTE).contains(&now.since(*at)));
            let failed = memory.failed.get(source).map_or(0, |(_, count)| *count);
            // Those under way are among them: many at once must not fail more often than one after the other.
            let failed = failed.saturating_add(here);
            let remembers = memory.failed.len() < MOST || memory.failed.contains_key(source);
            if looking >= AT_ONCE || here >= OF_SOURCE || failed >= FAILED || !remembers {
                return None;
            }
            memory.looking.insert(source.to_owned(), here.saturating_add(1));
            Some(Place { looks: self.clone(), source: source.to_owned() })
        })
    }

    /// Remembers a page.
    pub(crate) fn found(&self, address: &str, page: Page, now: Timestamp) {
        self.with(|memory| {
            if memory.found.len() >= MOST && !memory.found.contains_key(address) {
                let first = memory.found.iter().min_by_key(|(_, (at, _))| at.0).map(|(name, _)| name.clone());
                first.and_then(|name| memory.found.remove(&name));
            }
            memory.found.insert(address.to_owned(), (now, page));
        });
    }

    /// Notes that a look at this source found nothing.
    pub(crate) fn failed(&self, source: &str, now: Timestamp) {
        self.with(|memory| {
            let (_, count) = memory.failed.entry(source.to_owned()).or_insert((now, 0));
            *count = count.saturating_add(1);
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.looks.with(|memory| {
            let left = memory.looking.get(&self.source).copied().unwrap_or_default().saturating_sub(1);
            if left == 0 {
                memory.looking.remove(&self.source);
            } else {
                memory.looking.insert(self.source.clone(), left);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000);

    // D-41
    #[test]
    fn looks_are_bounded_by_source_and_in_all() {
        let looks = Looks::default();
        let mut places: Vec<_> = (0..OF_SOURCE).map(|_| looks.place("s", NOW)).collect();
        assert!(places.iter().all(Option::is_some) && looks.place("s", NOW).is_none());
        places.extend((OF_SOURCE..AT_ONCE).map(|n| looks.place(&format!("s{n}"), NOW)));
        assert!(places.iter().all(Option::is_some) && looks.place("elsewhere", NOW).is_none());
        drop(places);
        assert!(looks.with(|memory| memory.looking.is_empty()));
        for _ in 0..FAILED {
            drop(looks.place("s", NOW).unwrap());
            looks.failed("s", NOW);
        }
        assert!(looks.place("s", NOW).is_none() && looks.place("t", NOW).is_some());
        for _ in 1..FAILED {
            looks.failed("u", NOW);
        }
        let last = looks.place("u", NOW);
        assert!(last.is_some() && looks.place("u", NOW).is_none(), "one under way may fail");
        assert!(looks.place("s", NOW.plus(MINUTE)).is_some());
        for n in 0..MOST {
            looks.failed(&format!("f{n}"), NOW);
        }
        assert!(looks.place("one more", NOW).is_none(), "when too many fail, nobody new is asked");
    }

    // POL-32
    #[test]
    fn only_what_was_found_is_remembered_and_in_bounds() {
        let looks = Looks::default();
        let page = Page::Directory(vec![]);
        assert_eq!(looks.known("a", NOW), None);
        looks.found("a", page.clone(), NOW);
        assert_eq!(looks.known("a", NOW.plus(FRESH - 1)), Some(page.clone()));
        assert_eq!(looks.known("a", NOW.plus(FRESH)), None);
        for n in 0..MOST {
            looks.found(&format!("p{n}"), page.clone(), NOW.plus(1));
        }
        assert_eq!(looks.with(|memory| memory.found.len()), MOST);
        assert_eq!(looks.known("a", NOW), None, "the oldest made room");
    }
}
