//! A session of an older revision as the engine knows it: whose it is, what its server asked, what its streams have told
//! (D-13).
//!
//! It is anybody's until a protected call is forwarded in it, and from then its caller's alone; what was open before is
//! closed in the same step. Ids, connections and the time a session lives are its host's.

mod marks;
mod sightings;

use crate::authority::Unavailable;
use crate::bearer::Holder;
use marks::Marks;
use sayso_protocol::message::RequestId;
use sayso_protocol::payload::protection::{Inactive, Introspection};
use sayso_protocol::{Json, VerifyingKey, b64, json};
pub(crate) use sightings::{Sighted, Sightings};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Requests of a server that are remembered, answered ones among them; the oldest are forgotten.
const ASKED: usize = 256;
/// Event ids that are remembered.
const TOLD: usize = 512;
/// Longest id that is remembered.
const LONGEST_ID: usize = 1024;

/// A token that was good for a call. It has no `Debug`: it must not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Shown(pub(crate) Arc<str>);

/// A session.
pub struct Session {
    state: Mutex<State>,
    /// Whether its beginning and its answers pass here.
    seen: bool,
    /// Counts the moments at which everything open is closed; none once there is nothing to open any more.
    closings: watch::Sender<Option<u64>>,
}

struct State {
    owner: Owner,
    asked: Marks<ASKED>,
    told: Marks<TOLD>,
}

enum Owner {
    Nobody,
    /// Calls of this key are being decided; one that is forwarded makes it the owner.
    Candidate(VerifyingKey, usize),
    Key(VerifyingKey, Shown),
    /// Of whoever a token named when it began, for as long as it lasts.
    Holder(Holder),
}

/// What a request says about sessions.
#[derive(Clone, Copy)]
pub enum Named<'a> {
    /// Nothing that counts in its revision.
    Nothing,
    /// One that is known here.
    Known(&'a Arc<Session>),
    /// One that is not.
    Unknown,
}

/// The session belongs to another key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Foreign;

/// A protected call on its way in a session. Dropped, it leaves the session as it was; kept, the session is its key's.
pub(crate) struct Tie {
    session: Arc<Session>,
    key: VerifyingKey,
    token: Shown,
    kept: bool,
}

/// Until when what was permitted may stay open.
pub struct Closing {
    closings: watch::Receiver<Option<u64>>,
    since: Option<u64>,
}

impl Closing {
    /// Returns when it may not any more.
    pub async fn come(&mut self) {
        let since = self.since;
        // A session that is gone has ended.
        let _ = self.closings.wait_for(|now| now.is_none() || *now != since).await;
    }
}

impl Default for Session {
    fn default() -> Self {
        let state = State { owner: Owner::Nobody, asked: Marks::default(), told: Marks::default() };
        Self { state: Mutex::new(state), seen: true, closings: watch::Sender::new(Some(0)) }
    }
}

impl Session {
    /// A session that a host knows by name alone: it saw neither its beginning nor any answer in it, so what a server may
    /// have asked there fits nothing (D-15).
    pub fn unseen() -> Self {
        Self { seen: false, ..Self::default() }
    }

    pub(crate) fn is_seen(&self) -> bool {
        self.seen
    }

    /// 256 random bits, as text: what a host calls a session.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn draw_id() -> Result<String, Unavailable> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).map_err(|_| Unavailable::Exhausted)?;
        Ok(b64::encode(bytes))
    }

    /// Whether it is somebody's.
    pub fn is_bound(&self) -> bool {
        matches!(self.state().owner, Owner::Key(..) | Owner::Holder(_))
    }

    /// The key it belongs to, if it belongs to one.
    pub fn bound_key(&self) -> Option<VerifyingKey> {
        self.owner().map(|(key, _)| key)
    }

    /// Makes it theirs who began it, before anybody else learns its name.
    pub(crate) fn begin(&self, holder: Holder) {
        self.state().owner = Owner::Holder(holder);
    }

    /// Whether it is theirs.
    pub(crate) fn is_of(&self, holder: &Holder) -> bool {
        matches!(&self.state().owner, Owner::Holder(owner) if owner == holder)
    }

    /// Whether it is nobody's, and no call that would make it somebody's is being decided.
    pub fn is_idle(&self) -> bool {
        matches!(self.state().owner, Owner::Nobody)
    }

    /// The token of the last call that was forwarded in it.
    pub fn last_token(&self) -> Option<Shown> {
        self.owner().map(|(_, token)| token)
    }

    /// Its server asked something by this id, perhaps again.
    pub fn ask(&self, id: &RequestId) {
        if let Some(id) = canonical(id) {
            self.state().asked.add(&id);
        }
    }

    /// One of its streams told an event of this id.
    pub fn tell(&self, event: &[u8]) {
        if event.len() <= LONGEST_ID {
            self.state().told.add(event);
        }
    }

    /// Closes whatever is open in it, and whatever would be opened.
    pub fn end(&self) {
        self.closings.send_replace(None);
    }

    /// Until when something permitted now may stay open. To be taken before the owner is looked at.
    pub(crate) fn closing(&self) -> Closing {
        let closings = self.closings.subscribe();
        let since = *closings.borrow();
        Closing { closings, since }
    }

    pub(crate) fn owner(&self) -> Option<(VerifyingKey, Shown)> {
        match &self.state().owner {
            Owner::Key(key, token) => Some((key.clone(), token.clone())),
            Owner::Nobody | Owner::Candidate(..) | Owner::Holder(_) => None,
        }
    }

    /// Whether its server asked this and has no answer yet; from now on it has one.
    pub(crate) fn answer(&self, id: &RequestId) -> bool {
        canonical(id).is_some_and(|id| self.state().asked.strike(&id))
    }

    /// Whether one of its streams told this event.
    pub(crate) fn has_told(&self, event: &[u8]) -> bool {
        self.state().told.has(event)
    }

    /// Begins a call by whoever holds `key`.
    pub(crate) fn tie(self: &Arc<Self>, key: &VerifyingKey, token: &str) -> Result<Tie, Foreign> {
        let mut state = self.state();
        match &mut state.owner {
            owner @ Owner::Nobody => *owner = Owner::Candidate(key.clone(), 1),
            Owner::Candidate(candidate, calls) if candidate == key => *calls = calls.saturating_add(1),
            Owner::Key(owner, _) if owner == key => {}
            Owner::Candidate(..) | Owner::Key(..) | Owner::Holder(_) => return Err(Foreign),
        }
        drop(state);
        Ok(Tie { session: Arc::clone(self), key: key.clone(), token: Shown(token.into()), kept: false })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // INVARIANT: every change under the lock is one assignment or one step of a ring, so a panic leaves it true.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tie {
    /// The call is being forwarded: the session is its key's, and what others opened in it is closed.
    pub(crate) fn keep(mut self) -> Closing {
        self.kept = true;
        let owner = Owner::Key(self.key.clone(), self.token.clone());
        let before = std::mem::replace(&mut self.session.state().owner, owner);
        if !matches!(before, Owner::Key(..)) {
            tracing::info!("session.bound");
            self.session.closings.send_modify(|count| *count = count.map(|count| count.wrapping_add(1)));
        }
        self.session.closing()
    }
}

impl Drop for Tie {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let mut state = self.session.state();
        if let Owner::Candidate(_, calls) = &mut state.owner {
            *calls = calls.saturating_sub(1);
            if *calls == 0 {
                state.owner = Owner::Nobody;
            }
        }
    }
}

/// Whether what is open under a token must close: not because it was spent or is over, but because she, or her authority,
/// no longer stands behind it.
pub(crate) fn ends(answer: &Introspection) -> bool {
    !matches!(
        answer,
        Introspection::Live(_) | Introspection::Dead(Inactive::AlreadyConsumed | Inactive::Expired)
    )
}

/// An id as what it says, however it is escaped.
fn canonical(id: &RequestId) -> Option<Vec<u8>> {
    let text = id.text();
    if text.len() > LONGEST_ID {
        return None;
    }
    match Json::parse(text.as_bytes(), json::Limits::default()).ok()? {
        Json::String(said) => Some([b"\"", said.as_bytes()].concat()),
        _ => Some(text.as_bytes().to_vec()),
    }
}

#[cfg(test)]
mod tests;
