//! What a look at a stranger's resource found, remembered for a minute (FED-51), and how many are looked at at once.
//!
//! A resource whose documents hold is remembered with its keys, so that bad requests in its name keep nobody from
//! looking at a good one; no request about a remembered resource makes us ask anybody.

use super::tally::Tally;
use sayso_protocol::{Timestamp, VerifyingKey};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How long what was found is used, in seconds.
const WINDOW: i64 = 60;
/// Resources looked at at once.
const AT_ONCE: usize = 32;
/// Of those, of one source.
const OF_SOURCE: usize = 8;
/// Resources of one source that failed within the window: more is what a stranger can make us ask of anybody.
const FAILED: usize = 32;
/// Resources remembered; past that the oldest is forgotten.
const MOST: usize = 4096;

/// What is known of a resource.
struct Known {
    source: String,
    /// When it was looked at; `None` while it is.
    at: Option<Timestamp>,
    keys: Vec<VerifyingKey>,
    failed: bool,
}

/// What is remembered of newcomers. One of these serves all callers.
#[derive(Clone, Default)]
pub(crate) struct Newcomers {
    known: Arc<Mutex<HashMap<String, Known>>>,
    /// How often who proved itself is heard.
    pub(crate) tally: Tally,
}

/// What to do about a resource.
pub(crate) enum Look {
    /// These keys were found within the window; none when it was not to be believed.
    Known(Vec<VerifyingKey>),
    /// Nothing now.
    Busy,
    /// Look, and say what was found.
    Anew(Place),
}

/// One look. Given up unless something was found: a caller that goes away leaves nothing behind.
pub(crate) struct Place {
    newcomers: Newcomers,
    resource: String,
    done: bool,
}

impl Newcomers {
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, Known>) -> T) -> T {
        act(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is known of a resource, or a place to look at it from.
    pub(crate) fn look(&self, resource: &str, source: &str, now: Timestamp) -> Look {
        self.with(|known| {
            known.retain(|_, one| one.at.is_none_or(|at| (0..WINDOW).contains(&now.since(at))));
            if let Some(one) = known.get(resource) {
                return if one.at.is_some() { Look::Known(one.keys.clone()) } else { Look::Busy };
            }
            let looking = known.values().filter(|one| one.at.is_none()).count();
            let alike = || known.values().filter(|one| one.source == source);
            let looking_alike = alike().filter(|one| one.at.is_none()).count();
            let failed = alike().filter(|one| one.failed).count();
            if looking >= AT_ONCE || looking_alike >= OF_SOURCE || failed >= FAILED {
                return Look::Busy;
            }
            if known.len() >= MOST {
                let at = |one: &Known| one.at.map_or(i64::MAX, |at| at.0);
                let oldest = known.iter().min_by_key(|(_, one)| at(one)).map(|(name, _)| name.clone());
                oldest.and_then(|name| known.remove(&name));
            }
            let one = Known { source: source.to_owned(), at: None, keys: vec![], failed: false };
            known.insert(resource.to_owned(), one);
            Look::Anew(Place { newcomers: self.clone(), resource: resource.to_owned(), done: false })
        })
    }

    /// Notes that a request about a resource failed; whether that was so before, within the window.
    pub(crate) fn failed(&self, resource: &str) -> bool {
        self.with(|known| known.get_mut(resource).is_some_and(|one| std::mem::replace(&mut one.failed, true)))
    }
}

impl Place {
    /// Remembers what was found.
    pub(crate) fn found(mut self, keys: &[VerifyingKey], now: Timestamp) {
        self.done = true;
        self.newcomers.with(|known| {
            if let Some(one) = known.get_mut(&self.resource) {
                one.at = Some(now);
                one.keys = keys.to_vec();
            }
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.done {
            self.newcomers.with(|known| known.remove(&self.resource));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso_protocol::SigningKey;

    const NOW: Timestamp = Timestamp(1_800_000_000);

    fn anew(newcomers: &Newcomers, resource: &str, source: &str) -> Option<Place> {
        match newcomers.look(resource, source, NOW) {
            Look::Anew(place) => Some(place),
            Look::Known(_) | Look::Busy => None,
        }
    }

    // FED-51
    #[test]
    fn what_was_found_is_known_for_a_minute() {
        let newcomers = Newcomers::default();
        let key = SigningKey::from_seed(&[7; 32]).unwrap().verifying().clone();
        let place = anew(&newcomers, "r", "s").unwrap();
        assert!(matches!(newcomers.look("r", "s", NOW), Look::Busy), "one at a time");
        place.found(std::slice::from_ref(&key), NOW);
        let known = |now| match newcomers.look("r", "s", now) {
            Look::Known(keys) => Some(keys),
            Look::Busy | Look::Anew(_) => None,
        };
        assert_eq!(known(NOW.plus(WINDOW - 1)), Some(vec![key]));
        assert!(!newcomers.failed("r") && newcomers.failed("r"));
        assert_eq!(known(NOW.plus(WINDOW)), None);
        assert!(!newcomers.failed("r"), "forgotten with the rest");
    }

    #[test]
    fn a_look_that_was_given_up_leaves_nothing() {
        let newcomers = Newcomers::default();
        drop(anew(&newcomers, "r", "s"));
        assert!(anew(&newcomers, "r", "s").is_some());
    }

    // D-22
    #[test]
    fn looks_are_bounded_by_source_and_in_all() {
        let newcomers = Newcomers::default();
        let mut places: Vec<_> = (0..OF_SOURCE).map(|n| anew(&newcomers, &format!("r{n}"), "s")).collect();
        assert!(places.iter().all(Option::is_some));
        assert!(anew(&newcomers, "more", "s").is_none());
        places.extend((OF_SOURCE..AT_ONCE).map(|n| anew(&newcomers, &format!("r{n}"), &format!("s{n}"))));
        assert!(places.iter().all(Option::is_some));
        assert!(anew(&newcomers, "more", "elsewhere").is_none());
        drop(places);
        for n in 0..FAILED {
            anew(&newcomers, &format!("f{n}"), "s").unwrap().found(&[], NOW);
            assert!(!newcomers.failed(&format!("f{n}")));
        }
        assert!(anew(&newcomers, "more", "s").is_none(), "what failed counts for its source");
        assert!(anew(&newcomers, "more", "elsewhere").is_some());
    }

    #[test]
    fn the_oldest_is_forgotten_first() {
        let newcomers = Newcomers::default();
        for n in 0..MOST {
            let place = anew(&newcomers, &format!("r{n}"), &format!("s{n}")).unwrap();
            place.found(&[], if n == 9 { NOW.plus(-9) } else { NOW });
        }
        anew(&newcomers, "more", "s").unwrap().found(&[], NOW);
        assert_eq!(newcomers.with(|known| known.len()), MOST);
        assert!(newcomers.with(|known| !known.contains_key("r9") && known.contains_key("more")));
    }
}
