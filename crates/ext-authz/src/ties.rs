//! Whose the sessions of older clients are, as far as that is known here: the key of the first call that was let through
//! in one.
//!
//! Sessions begin and are answered where this host does not see it, so only their names are known, and only of those in
//! which somebody with a grant has called (D-13, D-15). Another process, or this one after a restart, knows none of them.

use http::HeaderMap;
use sayso_enforce::carry::SESSION;
use sayso_enforce::{Head, Session};
use sayso_protocol::VerifyingKey;
use sayso_protocol::canon::sha256;
use sayso_protocol::method::Revision;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const VERSION: &str = "mcp-protocol-version";
/// Most sessions that are known; past that the one that was silent longest is forgotten.
const CAPACITY: usize = 10_000;
/// Most of one key, past which its own make room: by nobody are more forgotten than by whoever names them.
const SHARE: usize = 256;
/// How long one is known in which nothing is said.
const IDLE: Duration = Duration::from_secs(3600);

/// The resource a session is at, and what its server calls it, digested.
type Name = [u8; 32];

/// The sessions that are somebody's.
#[derive(Default)]
pub(crate) struct Ties(Mutex<HashMap<Name, Known>>);

struct Known {
    session: Arc<Session>,
    key: VerifyingKey,
    used: Instant,
}

impl Ties {
    /// The session of an older client's request: the one it names, where that is somebody's, else one of nobody's. None in
    /// a revision without sessions.
    pub(crate) fn session(&self, head: &Head) -> Option<Arc<Session>> {
        if is_modern(&head.headers) {
            return None;
        }
        let now = Instant::now();
        let mut known = self.known();
        let found = name(head).and_then(|name| known.get_mut(&name)).filter(|known| known.is_fresh(now));
        let session = found.map(|found| {
            found.used = now;
            Arc::clone(&found.session)
        });
        Some(session.unwrap_or_else(|| Arc::new(Session::unseen())))
    }

    /// Remembers whose it is, if it is somebody's now. Whoever was first stays.
    pub(crate) fn keep(&self, head: &Head, session: &Arc<Session>) {
        let (Some(name), Some(key)) = (name(head), session.bound_key()) else { return };
        let used = Instant::now();
        let mut known = self.known();
        if !known.contains_key(&name) {
            make_room(&mut known, &key, used);
        }
        let theirs = || Known { session: Arc::clone(session), key: key.clone(), used };
        let one = known.entry(name).or_insert_with(theirs);
        if !one.is_fresh(used) {
            *one = theirs();
        }
        one.used = used;
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Name, Known>> {
        // INVARIANT: every change under the lock is one step of the map, so a panic leaves it true.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room for one more session of whoever this one is.
fn make_room(known: &mut HashMap<Name, Known>, key: &VerifyingKey, now: Instant) {
    if known.len() >= CAPACITY {
        known.retain(|_, one| one.is_fresh(now));
    }
    let theirs = |one: &Known| one.key == *key;
    let share = known.values().filter(|one| theirs(one)).count() >= SHARE;
    if !share && known.len() < CAPACITY {
        return;
    }
    let silent = known.iter().filter(|(_, one)| !share || theirs(one)).min_by_key(|(_, one)| one.used);
    if let Some(name) = silent.map(|(name, _)| *name) {
        known.remove(&name);
    }
}

impl Known {
    fn is_fresh(&self, now: Instant) -> bool {
        now.duration_since(self.used) < IDLE
    }
}

/// What a request calls its session, if it calls it one thing.
fn name(head: &Head) -> Option<Name> {
    let mut lines = head.headers.get_all(SESSION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let line = line.as_bytes().trim_ascii();
    // A path holds no blank.
    (!line.is_empty()).then(|| sha256(&[head.path().as_bytes(), b" ", line].concat()))
}

/// INVARIANT: where it matters the engine holds this header against the body.
fn is_modern(headers: &HeaderMap) -> bool {
    let revision = headers.get(VERSION).and_then(|value| value.to_str().ok());
    revision.and_then(|text| text.trim().parse::<Revision>().ok()).is_some_and(Revision::is_modern)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, Method};
    use sayso_protocol::SigningKey;

    fn head(path: &'static str, lines: &[(&'static str, &'static str)]) -> Head {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        Head { method: Method::POST, target: path.parse().unwrap(), headers }
    }

    // D-15
    #[test]
    fn only_an_older_client_has_a_session_and_only_a_call_makes_it_somebodys() {
        let ties = Ties::default();
        let legacy = head("/mcp", &[(SESSION, "a")]);
        assert!(ties.session(&head("/mcp", &[(SESSION, "a"), (VERSION, "2026-07-28")])).is_none());
        let session = ties.session(&legacy).unwrap();
        ties.keep(&legacy, &session);
        assert!(ties.known().is_empty(), "it is nobody's");
        assert!(!Arc::ptr_eq(&session, &ties.session(&legacy).unwrap()));
        for odd in [
            head("/mcp", &[]),
            head("/mcp", &[(SESSION, "")]),
            head("/mcp", &[(SESSION, "a"), (SESSION, "b")]),
        ] {
            assert_eq!(name(&odd), None);
        }
        assert_ne!(name(&legacy), name(&head("/other", &[(SESSION, "a")])));
        let long: &'static str = "x".repeat(5000).leak();
        assert!(name(&head("/mcp", &[(SESSION, long)])).is_some(), "however long it is");
    }

    // D-13
    #[test]
    fn whoever_names_many_has_none_of_anothers_forgotten() {
        let key = |seed| SigningKey::from_seed(&[seed; 32]).unwrap().verifying().clone();
        let (mut known, (mine, another), now) = (HashMap::new(), (key(1), key(2)), Instant::now());
        let one = |key: &VerifyingKey| Known { session: Arc::default(), key: key.clone(), used: now };
        known.insert(sha256(b"another"), one(&another));
        for nth in 0..2 * SHARE {
            make_room(&mut known, &mine, now);
            known.insert(sha256(&nth.to_be_bytes()), one(&mine));
        }
        assert_eq!(known.len(), SHARE + 1);
        assert!(known.contains_key(&sha256(b"another")));
    }
}
