//! What a look at a stranger's resource found, remembered for a minute (FED-51), and how many are looked at at once.
//!
//! A resource whose documents hold is remembered with its keys, so that bad requests in its name keep nobody from
//! looking at a good one; no request about a remembered resource makes us ask anybody. Nor do made-up places near it: a
//! resource that proved itself once is looked at whatever has failed beside it.

use super::Claimed;
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
/// The same of one origin, so that made-up names beside it leave it room.
const FAILED_OF_ORIGIN: usize = 8;
/// Resources of one source that are remembered for having proved themselves, past which its oldest is forgotten.
const PROVEN_OF_SOURCE: usize = 32;
/// Resources remembered; past that the oldest is forgotten.
const MOST: usize = 4096;

/// What is known of a resource.
struct Known {
    origin: String,
    source: String,
    /// When it was looked at; `None` while it is.
    at: Option<Timestamp>,
    keys: Vec<VerifyingKey>,
    failed: bool,
}

/// A resource a signature of which held.
struct Proven {
    origin: String,
    source: String,
    at: Timestamp,
}

#[derive(Default)]
struct Memory {
    known: HashMap<String, Known>,
    proven: HashMap<String, Proven>,
}

/// What is remembered of newcomers. One of these serves all callers.
#[derive(Clone, Default)]
pub(crate) struct Newcomers {
    memory: Arc<Mutex<Memory>>,
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

/// One look. Given up unless it came to an end: whoever looks goes on when its caller went away.
pub(crate) struct Place {
    newcomers: Newcomers,
    resource: String,
    done: bool,
}

impl Newcomers {
    fn with<T>(&self, act: impl FnOnce(&mut Memory) -> T) -> T {
        act(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is known of a resource, or a place to look at it from. One that is `named` was not made up by a stranger.
    pub(crate) fn look(&self, claimed: &Claimed<'_>, named: bool, now: Timestamp) -> Look {
        self.with(|memory| {
            memory.known.retain(|_, one| one.at.is_none_or(|at| (0..WINDOW).contains(&now.since(at))));
            if let Some(one) = memory.known.get(claimed.resource) {
                return if one.at.is_some() { Look::Known(one.keys.clone()) } else { Look::Busy };
            }
            if !memory.has_room(claimed, named) {
                return Look::Busy;
            }
            if memory.known.len() >= MOST {
                forget_first(&mut memory.known, |_| true, |one| one.at.map_or(i64::MAX, |at| at.0));
            }
            let (origin, source) = (claimed.origin.to_owned(), claimed.source.to_owned());
            let one = Known { origin, source, at: None, keys: vec![], failed: false };
            memory.known.insert(claimed.resource.to_owned(), one);
            Look::Anew(Place { newcomers: self.clone(), resource: claimed.resource.to_owned(), done: false })
        })
    }

    /// Notes that a signature of the resource's held.
    pub(crate) fn proved(&self, claimed: &Claimed<'_>, now: Timestamp) {
        self.with(|Memory { proven, .. }| {
            if !proven.contains_key(claimed.resource) {
                let alike = |one: &Proven| one.source == claimed.source;
                if proven.values().filter(|one| alike(one)).count() >= PROVEN_OF_SOURCE {
                    forget_first(proven, alike, |one| one.at.0);
                } else if proven.len() >= MOST {
                    forget_first(proven, |_| true, |one| one.at.0);
                }
            }
            let (origin, source) = (claimed.origin.to_owned(), claimed.source.to_owned());
            proven.insert(claimed.resource.to_owned(), Proven { origin, source, at: now });
        });
    }

    /// Notes that a request about a resource failed; whether that was so before, within the window.
    pub(crate) fn failed(&self, resource: &str) -> bool {
        self.with(|memory| {
            memory.known.get_mut(resource).is_some_and(|one| std::mem::replace(&mut one.failed, true))
        })
    }
}

impl Memory {
    /// Whether one more may be looked at now.
    fn has_room(&self, claimed: &Claimed<'_>, named: bool) -> bool {
        let looking = self.known.values().filter(|one| one.at.is_none()).count();
        if looking >= AT_ONCE || named || self.proven.contains_key(claimed.resource) {
            return looking < AT_ONCE;
        }
        let alike = || self.known.values().filter(|one| one.source == claimed.source);
        // Those under way are among them: many at once must not fail more often than one after the other.
        let failed = || alike().filter(|one| one.failed || one.at.is_none());
        let vouched = self.proven.values().any(|one| one.origin == claimed.origin);
        alike().filter(|one| one.at.is_none()).count() < OF_SOURCE
            && failed().filter(|one| one.origin == claimed.origin).count() < FAILED_OF_ORIGIN
            && (vouched || failed().count() < FAILED)
    }
}

/// Forgets the first of those that are meant.
fn forget_first<T>(all: &mut HashMap<String, T>, meant: impl Fn(&T) -> bool, at: impl Fn(&T) -> i64) {
    let first = all.iter().filter(|(_, one)| meant(one)).min_by_key(|(_, one)| at(one));
    let first = first.map(|(name, _)| name.clone());
    first.and_then(|name| all.remove(&name));
}

impl Place {
    /// Remembers what was found.
    pub(crate) fn found(mut self, keys: &[VerifyingKey], now: Timestamp) {
        self.done = true;
        self.newcomers.with(|memory| {
            if let Some(one) = memory.known.get_mut(&self.resource) {
                one.at = Some(now);
                one.keys = keys.to_vec();
            }
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.done {
            self.newcomers.with(|memory| memory.known.remove(&self.resource));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso_protocol::SigningKey;

    const NOW: Timestamp = Timestamp(1_800_000_000);

    fn claimed<'a>(resource: &'a str, origin: &'a str, source: &'a str) -> Claimed<'a> {
        Claimed { resource, origin, source }
    }

    /// Each resource at an origin of its own.
    fn anew(newcomers: &Newcomers, resource: &str, source: &str) -> Option<Place> {
        anew_at(newcomers, resource, resource, source)
    }

    fn anew_at(newcomers: &Newcomers, resource: &str, origin: &str, source: &str) -> Option<Place> {
        match newcomers.look(&claimed(resource, origin, source), false, NOW) {
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
        assert!(matches!(newcomers.look(&claimed("r", "r", "s"), false, NOW), Look::Busy), "one at a time");
        place.found(std::slice::from_ref(&key), NOW);
        let known = |now| match newcomers.look(&claimed("r", "r", "s"), false, now) {
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

    // FED-51
    #[test]
    fn looks_under_way_may_fail() {
        let newcomers = Newcomers::default();
        for n in 1..FAILED_OF_ORIGIN {
            fail(&newcomers, &format!("f{n}"), "o");
        }
        let last = anew_at(&newcomers, "last", "o", "s");
        assert!(last.is_some() && anew_at(&newcomers, "more", "o", "s").is_none());
        drop(last);
        assert!(anew_at(&newcomers, "more", "o", "s").is_some());
    }

    fn fail(newcomers: &Newcomers, resource: &str, origin: &str) -> bool {
        let place = anew_at(newcomers, resource, origin, "s");
        place.map(|place| place.found(&[], NOW)).is_some_and(|()| !newcomers.failed(resource))
    }

    // FED-51, D-22: whoever makes up places near a resource keeps nobody from introducing it.
    #[test]
    fn made_up_places_are_in_nobodys_way() {
        let newcomers = Newcomers::default();
        newcomers.proved(&claimed("known", "victim", "s"), NOW);
        let made_up = (0..FAILED).filter(|n| fail(&newcomers, &format!("v{n}"), "victim")).count();
        assert_eq!(made_up, FAILED_OF_ORIGIN, "at an origin that is there");
        assert!(anew_at(&newcomers, "other", "sibling", "s").is_some(), "its siblings have room");
        for n in 0..FAILED {
            fail(&newcomers, &format!("f{n}"), &format!("f{n}"));
        }
        assert!(anew_at(&newcomers, "other", "sibling", "s").is_none());
        assert!(anew_at(&newcomers, "known", "victim", "s").is_some(), "what proved itself");
        newcomers.proved(&claimed("seen", "vouched", "s"), NOW);
        assert!(anew_at(&newcomers, "another", "vouched", "s").is_some(), "and what is beside it");
        assert!(anew_at(&newcomers, "more", "elsewhere", "t").is_some());
    }

    // FED-51, D-22: what set-up named is looked at whatever failed beside it, once at a time and never past what is looked at
    // in all.
    #[test]
    fn what_was_named_beforehand_is_in_nobodys_hands() {
        let newcomers = Newcomers::default();
        for n in 0..FAILED {
            fail(&newcomers, &format!("f{n}"), "house");
        }
        let look = |resource: &str, named| newcomers.look(&claimed(resource, "house", "s"), named, NOW);
        assert!(matches!(look("house/mcp", false), Look::Busy));
        let Look::Anew(_place) = look("house/mcp", true) else { panic!("a look") };
        assert!(matches!(look("house/mcp", true), Look::Busy), "one at a time");
        let _others: Vec<_> =
            (1..AT_ONCE).map(|n| anew(&newcomers, &format!("r{n}"), &format!("s{n}"))).collect();
        assert!(matches!(look("house/other", true), Look::Busy));
    }

    #[test]
    fn what_proved_itself_is_remembered_in_bounds() {
        let newcomers = Newcomers::default();
        newcomers.proved(&claimed("victim", "victim", "v"), NOW.plus(-9));
        for n in 0..=PROVEN_OF_SOURCE {
            newcomers.proved(&claimed(&format!("r{n}"), "o", "s"), NOW.plus(i64::from(n > 0)));
        }
        let has = |name: &str| newcomers.with(|memory| memory.proven.contains_key(name));
        assert!(has("victim") && !has("r0") && has("r1"), "each source forgets its own");
        for n in 0..MOST {
            newcomers.proved(&claimed(&format!("m{n}"), "o", &format!("s{n}")), NOW);
        }
        assert_eq!(newcomers.with(|memory| memory.proven.len()), MOST);
    }

    #[test]
    fn the_oldest_is_forgotten_first() {
        let newcomers = Newcomers::default();
        for n in 0..MOST {
            let place = anew(&newcomers, &format!("r{n}"), &format!("s{n}")).unwrap();
            place.found(&[], if n == 9 { NOW.plus(-9) } else { NOW });
        }
        anew(&newcomers, "more", "s").unwrap().found(&[], NOW);
        assert_eq!(newcomers.with(|memory| memory.known.len()), MOST);
        assert!(
            newcomers.with(|memory| !memory.known.contains_key("r9") && memory.known.contains_key("more"))
        );
    }
}
