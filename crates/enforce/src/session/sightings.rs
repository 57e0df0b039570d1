//! Whose sessions are that a host never sees begin: theirs whose token was first let through in them.
//!
//! A host that does not see its server's answers learns a session's name from the requests in it (D-15). How many are
//! remembered is bounded, and by nobody are more forgotten than by whoever names them: a holder's share makes room for
//! his own.

use crate::bearer::Holder;
use crate::carry::SESSION;
use http::HeaderMap;
use sayso_protocol::canon::sha256;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sessions that are remembered, and of one holder.
const MOST: usize = 65_536;
const SHARE: usize = 256;

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

/// Whose the session of a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sighted {
    /// Nobody's that is known, or it names none.
    Never,
    /// Whoever's message it is.
    Theirs,
    /// Somebody else's.
    Anothers,
}

/// The sessions a request names; one, but for requests that are refused for naming several.
fn named(headers: &HeaderMap) -> impl Iterator<Item = Id> {
    headers.get_all(SESSION).iter().map(|name| sha256(name.as_bytes().trim_ascii()))
}

impl Sightings {
    /// Whose the session is that a request of this holder's names; of a token that names no subject nobody is the holder.
    pub(crate) fn of(&self, headers: &HeaderMap, holder: Option<&Holder>) -> Sighted {
        let table = self.table();
        let owners = named(headers).filter_map(|id| table.holder(&id));
        owners.fold(Sighted::Never, |so_far, owner| match so_far {
            Sighted::Never | Sighted::Theirs if Some(owner) == holder => Sighted::Theirs,
            _ => Sighted::Anothers,
        })
    }

    /// Notes whose the session of a request is that is let through, and whether it is theirs: another may have come first.
    pub(crate) fn note(&self, headers: &HeaderMap, holder: Option<&Holder>) -> bool {
        let Some(holder) = holder else { return self.of(headers, None) == Sighted::Never };
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
        let claims = Json::parse(format!(r#"{{"sub":"{subject}"}}"#).as_bytes(), Limits::default()).unwrap();
        Holder::of(&claims, "sub").unwrap()
    }

    fn naming(name: &str) -> HeaderMap {
        HeaderMap::from_iter([(SESSION.parse().unwrap(), name.parse().unwrap())])
    }

    // COAZ-MCP-87, D-15
    #[test]
    fn a_session_is_whose_call_was_first_let_through_in_it() {
        let (seen, ann, bob) = (Sightings::default(), of("ann"), of("bob"));
        let (ann, bob, one) = (Some(&ann), Some(&bob), naming("one"));
        assert_eq!((seen.of(&one, bob), seen.of(&one, None)), (Sighted::Never, Sighted::Never));
        assert!(seen.note(&one, None) && seen.of(&one, bob) == Sighted::Never, "nobody holds it");
        assert!(seen.note(&one, ann) && seen.note(&one, ann));
        assert_eq!((seen.of(&one, ann), seen.of(&one, bob)), (Sighted::Theirs, Sighted::Anothers));
        assert_eq!(seen.of(&one, None), Sighted::Anothers);
        assert!(
            !seen.note(&one, bob) && !seen.note(&one, None),
            "one that came at the same time came too late"
        );
        assert!(seen.note(&naming("two"), bob));
        let mut both = naming("one");
        both.append(SESSION, "three".parse().unwrap());
        assert_eq!((seen.of(&both, ann), seen.of(&both, bob)), (Sighted::Theirs, Sighted::Anothers));
        assert!(seen.note(&HeaderMap::new(), bob), "a request that names none");
        assert_eq!(seen.of(&HeaderMap::new(), bob), Sighted::Never);
    }

    #[test]
    fn whoever_names_many_forgets_his_own() {
        let (seen, ann, bob) = (Sightings::default(), of("ann"), of("bob"));
        let (ann, bob) = (Some(&ann), Some(&bob));
        assert!(seen.note(&naming("hers"), ann));
        for nth in 0..=SHARE {
            assert!(seen.note(&naming(&nth.to_string()), bob));
        }
        let table = seen.table();
        assert_eq!((table.seen.len(), table.nth.len(), table.of.len()), (SHARE + 1, SHARE + 1, 2));
        drop(table);
        assert_eq!(seen.of(&naming("hers"), bob), Sighted::Anothers);
        assert_eq!(
            (seen.of(&naming("0"), ann), seen.of(&naming("1"), ann)),
            (Sighted::Never, Sighted::Anothers)
        );
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
