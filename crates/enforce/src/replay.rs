//! The replay cache: a signature is good once (D-9).
//!
//! One step checks and inserts, under one lock. Entries outlive every moment at which their signature would be fresh; a
//! full cache refuses rather than forgets. Single use never depends on this: that is the authority's decision.

use crate::authority::Unavailable;
use sayso_protocol::Timestamp;
use sayso_protocol::canon::sha256;
use sayso_protocol::sig::{Proof, SKEW_SECONDS};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How long after its creation a signature is remembered: both skews and a second.
pub const KEPT_SECONDS: i64 = 2 * SKEW_SECONDS + 1;

/// Most signatures remembered: three minutes of 5,000 calls a second, about 30 MiB.
pub const CAPACITY: usize = 1 << 20;

type Mark = [u8; 16];

/// Why a verified signature is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoiled {
    /// It was seen before.
    Replayed,
    /// It was made before this cache began to remember, so nobody knows.
    TooEarly,
    /// There is no room to remember it.
    Full,
}

/// The signatures of one request, now remembered; what releases them.
#[derive(Debug)]
pub struct Claim(Vec<(Timestamp, Mark)>);

/// The signatures seen by one process.
pub struct Replay {
    started: Timestamp,
    capacity: usize,
    seen: Mutex<Seen>,
}

/// Marks by the second their signature was created in, which the signature itself fixes.
#[derive(Default)]
struct Seen {
    by_second: BTreeMap<i64, HashSet<Mark>>,
    count: usize,
}

impl Replay {
    /// An empty cache that begins to remember at `started`.
    pub fn new(started: Timestamp) -> Self {
        Self::bounded(started, CAPACITY)
    }

    fn bounded(started: Timestamp, capacity: usize) -> Self {
        Self { started, capacity, seen: Mutex::default() }
    }

    /// Remembers a verified request by each of its signatures, unless one was seen.
    ///
    /// # Errors
    /// When one was seen, or nobody can know whether it was.
    pub fn claim(&self, proof: &Proof, now: Timestamp) -> Result<Claim, Spoiled> {
        if proof.created < self.started {
            return Err(Spoiled::TooEarly);
        }
        let marks: Vec<_> = proof.each().map(|proof| (proof.created, mark(proof))).collect();
        let mut seen = self.lock();
        seen.forget_before(now.plus(-KEPT_SECONDS));
        if marks.iter().any(|mark| seen.has(mark)) {
            return Err(Spoiled::Replayed);
        }
        if seen.count.saturating_add(marks.len()) > self.capacity {
            return Err(Spoiled::Full);
        }
        for mark in &marks {
            seen.add(mark);
        }
        Ok(Claim(marks))
    }

    /// Forgets a signature whose request was answered 503 with nothing spent or forwarded, so that the same request may
    /// come again (CORE-22).
    pub fn release(&self, claim: &Claim) {
        let mut seen = self.lock();
        for mark in &claim.0 {
            seen.remove(mark);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        // INVARIANT: no step under the lock leaves the marks and their count apart, so a poisoned lock is still true.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn has(&self, (created, mark): &(Timestamp, Mark)) -> bool {
        self.by_second.get(&created.0).is_some_and(|marks| marks.contains(mark))
    }

    fn add(&mut self, (created, mark): &(Timestamp, Mark)) {
        let added = self.by_second.entry(created.0).or_default().insert(*mark);
        self.count = self.count.saturating_add(usize::from(added));
    }

    fn remove(&mut self, (created, mark): &(Timestamp, Mark)) {
        let removed = self.by_second.get_mut(&created.0).is_some_and(|marks| marks.remove(mark));
        self.count = self.count.saturating_sub(usize::from(removed));
    }

    fn forget_before(&mut self, second: Timestamp) {
        while let Some(entry) = self.by_second.first_entry().filter(|entry| *entry.key() < second.0) {
            self.count = self.count.saturating_sub(entry.remove().len());
        }
    }
}

/// Signature and key, shortened: two of them alike would refuse an honest call, never let one through.
fn mark(proof: &Proof) -> Mark {
    let whole = sha256(&[&proof.signature_s256[..], proof.thumbprint.as_str().as_bytes()].concat());
    let mut mark = Mark::default();
    for (to, from) in mark.iter_mut().zip(whole) {
        *to = from;
    }
    mark
}

impl From<Spoiled> for crate::grant::Denied {
    fn from(spoiled: Spoiled) -> Self {
        match spoiled {
            Spoiled::Replayed => crate::grant::Denied::unproven("this signature was used before"),
            Spoiled::TooEarly => crate::grant::Denied::unproven(
                "the signature is older than this enforcement point; sign again",
            ),
            Spoiled::Full => Unavailable::Exhausted.into(),
        }
    }
}

#[cfg(test)]
mod tests;
