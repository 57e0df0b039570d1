//! What is kept of the sessions that the server has with clients here: no more than it takes to speak in them.
//!
//! Their number is bounded; of more than that, the oldest is forgotten, which costs its client no more than being asked.

use crate::shim::incoming::Incoming;
use crate::shim::questions::Questions;
use http::HeaderMap;
use sayso_agent::{Line, Stopper};
use sayso_protocol::SigningKey;
use sayso_protocol::message::RequestId;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most sessions remembered.
const MOST: usize = 1024;
/// How the names begin that the shim gives.
const OURS: &str = "sayso-";
/// Longest name of one.
const LONGEST: usize = 256;

/// A session, or what there is without one.
pub(super) struct Session {
    pub(super) line: Line,
    pub(super) questions: Questions,
    asks: bool,
    /// Whether it is what all have who have none: in it nobody's id means anything to another.
    shared: bool,
    running: Mutex<HashMap<String, Arc<Stopper>>>,
}

/// A call under way, until it is dropped.
pub(super) struct Running(Arc<Session>, String);

impl Session {
    pub(super) fn new(line: Line, asks: bool) -> Session {
        Session { line, questions: Questions::default(), asks, shared: false, running: Mutex::default() }
    }

    /// Whether its client can be asked.
    pub(super) fn asks(&self) -> bool {
        self.asks
    }

    pub(super) fn running(self: &Arc<Self>, id: &RequestId, stopper: Arc<Stopper>) -> Running {
        if !self.shared {
            self.calls().insert(id.text().to_owned(), stopper);
        }
        Running(self.clone(), id.text().to_owned())
    }

    /// Stops the call that a notification names.
    pub(super) fn cancel(&self, note: &Incoming) {
        let named = note.text(&["params", "requestId"]);
        if let Some(stopper) = named.and_then(|id| self.calls().remove(id)) {
            stopper.stop();
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, Arc<Stopper>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.0.shared {
            self.0.calls().remove(&self.1);
        }
    }
}

/// Every session.
pub(super) struct Sessions {
    none: Arc<Session>,
    known: Mutex<Known>,
}

/// Those with a name, and their names from the oldest on.
#[derive(Default)]
struct Known {
    by_name: HashMap<String, Arc<Session>>,
    order: VecDeque<String>,
}

impl Sessions {
    /// None yet; this line is for what belongs to none.
    pub(super) fn new(line: Line) -> Sessions {
        let none = Session { shared: true, ..Session::new(line, false) };
        Sessions { none: Arc::new(none), known: Mutex::default() }
    }

    /// A line for a further one.
    pub(super) fn line(&self) -> Line {
        self.none.line.another()
    }

    /// What there is without a session.
    pub(super) fn none(&self) -> Arc<Session> {
        self.none.clone()
    }

    pub(super) fn keep(&self, name: String, session: Session) -> Arc<Session> {
        let mut known = self.known();
        let Known { by_name, order } = &mut *known;
        let session = Arc::new(session);
        if by_name.insert(name.clone(), session.clone()).is_none() {
            order.push_back(name);
        }
        while by_name.len() > MOST
            && let Some(oldest) = order.pop_front()
        {
            by_name.remove(&oldest);
        }
        session
    }

    /// The session of a name; one of a shim before this one is bound to the key that `signer` finds.
    pub(super) fn find(&self, name: &str, signer: impl FnOnce() -> Option<SigningKey>) -> Arc<Session> {
        let found = self.known().by_name.get(name).cloned();
        found.unwrap_or_else(|| {
            let line = self.line().bound_to(signer());
            self.keep(name.to_owned(), Session::new(line, false))
        })
    }

    pub(super) fn forget(&self, name: &str) {
        let mut known = self.known();
        known.by_name.remove(name);
        known.order.retain(|one| one != name);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session that headers name.
pub(super) fn name(headers: &HeaderMap) -> Option<String> {
    let name = headers.get("mcp-session-id")?.to_str().ok()?;
    (!name.is_empty() && name.len() <= LONGEST).then(|| name.to_owned())
}

/// Takes a name the shim gave out of headers, which the server does not know; whether there was one.
pub(super) fn take_ours(headers: &mut HeaderMap) -> bool {
    let ours = name(headers).is_some_and(|name| name.starts_with(OURS));
    if ours {
        headers.remove("mcp-session-id");
    }
    ours
}

/// Gives a session a name where its server gave it none.
pub(super) fn give_ours(headers: &mut HeaderMap) -> Option<String> {
    let name = format!("{OURS}{}", sayso_protocol::b64::encode(crate::clock::draw::<18>().ok()?));
    headers.insert("mcp-session-id", name.parse().ok()?);
    Some(name)
}
