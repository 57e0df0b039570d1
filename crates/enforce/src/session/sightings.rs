//! Whose sessions are that a host never sees begin: theirs whose token was first let through in them.
//!
//! A host that does not see its server's answers learns a session's name from the requests in it (D-15). How many are
//! remembered is bounded, and by nobody are more forgotten than by whoever names them: a holder's share makes room for
//! his own.

use crate::bearer::Holder;
use http::HeaderMap;
use sayso_protocol::canon::sha256;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sessions that are remembered, and of one holder.
const MOST: usize = 65_536;
const SHARE: usize = 256;

const SESSION: &str = "mcp-session-id";

type Id = [u8; 32];

/// Sessions, and who was first let through in each.
#[derive(Default)]
pub(crate) struct Sightings(Mutex<Table>);

#[derive(Default)]
struct Table {
    /// Counts up, so that the oldest is the first.
    next: u64,
    nth: HashMap<Id, u64>,
    seen: BTreeMap<u64, (Id, Holder)>,
    of: HashMap<Holder, BTreeSet<u64>>,
}

/// The sessions a request names; one, but for requests that are refused for naming several.
fn named(headers: &HeaderMap) -> impl Iterator<Item = Id> {
    headers.get_all(SESSION).iter().map(|name| sha256(name.as_bytes().trim_ascii()))
}

impl Sightings {
    /// Whether a request names a session in which somebody else was let through.
    pub(crate) fn are_anothers(&self, headers: &HeaderMap, holder: &Holder) -> bool {
        let table = self.table();
        named(headers).any(|id| table.holder(&id).is_some_and(|owner| owner != holder))
    }

    /// Notes whose the session of a request is that is let through, and whether it is theirs: another may have come first.
    pub(crate) fn note(&self, headers: &HeaderMap, holder: &Holder) -> bool {
        let mut table = self.table();
        named(headers).all(|id| table.note(id, holder))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // A panic between two of its changes forgets a session at worst.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn holder(&self, id: &Id) -> Option<&Holder> {
        self.seen.get(self.nth.get(id)?).map(|(_, holder)| holder)
    }

    fn note(&mut self, id: Id, holder: &Holder) -> bool {
        if let Some(owner) = self.holder(&id) {
            return owner == holder;
        }
        let full = self.of.get(holder).filter(|share| share.len() >= SHARE);
        if let Some(oldest) = full.and_then(|share| share.first().copied()) {
            self.forget(oldest);
        }
        if self.seen.len() >= MOST
            && let Some(oldest) = self.seen.keys().next().copied()
        {
            self.forget(oldest);
        }
        let nth = self.next;
        self.next = nth.wrapping_add(1);
        self.nth.insert(id, nth);
        self.seen.insert(nth, (id, holder.clone()));
        self.of.entry(holder.clone()).or_default().insert(nth);
        true
    }

    fn forget(&mut self, nth: u64) {
        let Some((id, holder)) = self.seen.remove(&nth) else { return };
        self.nth.remove(&id);
        if let Some(share) = self.of.get_mut(&holder) {
            share.remove(&nth);
            if share.is_empty() {
                self.of.remove(&holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso_protocol::Json;
    use sayso_protocol::json::Limits;

    fn of(subject: &str) -> Holder {
        Holder::of(&Json::parse(format!(r#"{{"sub":"{subject}"}}"#).as_bytes(), Limits::default()).unwrap())
    }

    fn naming(name: &str) -> HeaderMap {
        HeaderMap::from_iter([(SESSION.parse().unwrap(), name.parse().unwrap())])
    }

    // COAZ-MCP-87, D-15
    #[test]
    fn a_session_is_whose_call_was_first_let_through_in_it() {
        let (seen, ann, bob) = (Sightings::default(), of("ann"), of("bob"));
        let one = naming("one");
        assert!(
            !seen.are_anothers(&one, &bob) && !seen.are_anothers(&one, &ann),
            "nobody was let through yet"
        );
        assert!(seen.note(&one, &ann) && seen.note(&one, &ann));
        assert!(!seen.are_anothers(&one, &ann) && seen.are_anothers(&one, &bob));
        assert!(!seen.note(&one, &bob), "one that came at the same time came too late");
        assert!(seen.note(&naming("two"), &bob));
        assert!(seen.note(&HeaderMap::new(), &bob), "a request that names none");
    }

    #[test]
    fn whoever_names_many_forgets_his_own() {
        let (seen, ann, bob) = (Sightings::default(), of("ann"), of("bob"));
        assert!(seen.note(&naming("hers"), &ann));
        for nth in 0..=SHARE {
            assert!(seen.note(&naming(&nth.to_string()), &bob));
        }
        let table = seen.table();
        assert_eq!((table.seen.len(), table.nth.len(), table.of.len()), (SHARE + 1, SHARE + 1, 2));
        drop(table);
        assert!(seen.are_anothers(&naming("hers"), &bob));
        assert!(!seen.are_anothers(&naming("0"), &ann) && seen.are_anothers(&naming("1"), &ann));
    }

    #[test]
    fn there_are_never_more_than_there_may_be() {
        let mut table = Table::default();
        let holders: Vec<Holder> = (0..=MOST / SHARE).map(|nth| of(&nth.to_string())).collect();
        for (nth, holder) in holders.iter().enumerate() {
            for each in 0..SHARE {
                table.note(sha256(format!("{nth} {each}").as_bytes()), holder);
            }
        }
        assert_eq!((table.seen.len(), table.nth.len()), (MOST, MOST));
        assert_eq!(table.of.values().map(BTreeSet::len).sum::<usize>(), MOST);
        assert!(table.holder(&sha256(b"0 0")).is_none(), "the oldest went");
    }
}
