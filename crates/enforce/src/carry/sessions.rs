//! Legacy sessions over HTTP: our ids for the server's, in this process alone (D-13).
//!
//! An id of ours is 256 random bits; the server's never leaves. Whose a session is, the engine says; this is how many
//! there are, how long they live, and which headers name them. After a restart every id is unknown.

use crate::bearer::Holder;
use crate::call::Head;
use crate::session::{Named, Session};
use crate::verdict::Clearance;
use async_trait::async_trait;
use http::{HeaderValue, Method, Response, StatusCode};
use sayso_protocol::method::Revision;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};

/// Most sessions of one resource, unless its server has room for fewer.
pub(super) const CAPACITY: usize = 10_000;
/// How long a session is kept in which nothing is said, either way.
pub(super) const IDLE: Duration = Duration::from_secs(3600);
/// How long a session that is somebody's keeps its place in a full table in which nothing is said.
const STALE: Duration = Duration::from_secs(600);
/// How often sessions are looked through for idle ones.
const SWEEP: Duration = Duration::from_secs(60);
/// Longest id of a server's that is kept.
const LONGEST: usize = 1024;
/// How long a server may take to be told that a session is over, and how many are told at once.
const FAREWELL: Duration = Duration::from_secs(2);
const FAREWELLS: usize = 16;

/// How long a server has to notice that a listener is gone before another comes.
const LETTING_GO: Duration = Duration::from_millis(50);

/// The header that names a session.
pub const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
const VERSION: &str = "mcp-protocol-version";

/// Whoever tells a server that a session of its is over.
#[async_trait]
pub trait Farewell: Send + Sync {
    /// Says so, by the server's own name for it; nobody waits for what it says to that.
    async fn leave(&self, theirs: HeaderValue);

    /// How many sessions it has room for.
    fn capacity(&self) -> usize {
        CAPACITY
    }
}

/// The sessions of one resource.
pub(super) struct Sessions {
    farewell: Arc<dyn Farewell>,
    table: Mutex<Table>,
    capacity: usize,
    farewells: Arc<Semaphore>,
}

struct Table {
    by_id: HashMap<Box<str>, Arc<Visit>>,
    swept: Instant,
}

/// A session and the names it has on both sides.
pub(super) struct Visit {
    pub(super) session: Arc<Session>,
    ours: HeaderValue,
    theirs: HeaderValue,
    used: Mutex<Instant>,
    /// Counts the streams that were taken up again.
    taken_up: watch::Sender<u64>,
}

/// The session a request names.
pub(super) enum Found {
    Nothing,
    Visit(Arc<Visit>),
    Unknown,
}

impl Found {
    pub(super) fn named(&self) -> Named<'_> {
        match self {
            Found::Nothing => Named::Nothing,
            Found::Visit(visit) => Named::Known(&visit.session),
            Found::Unknown => Named::Unknown,
        }
    }

    pub(super) fn visit(self) -> Option<Arc<Visit>> {
        if let Found::Visit(visit) = self { Some(visit) } else { None }
    }
}

impl Visit {
    fn new(ours: HeaderValue, theirs: HeaderValue) -> Self {
        let (used, taken_up) = (Mutex::new(Instant::now()), watch::Sender::new(0));
        Self { session: Arc::default(), ours, theirs, used, taken_up }
    }

    /// Something was said in it.
    pub(super) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// A stream is about to be taken up again. A server gives one stream to one listener, so those that are read on for
    /// nobody are let go first.
    pub(super) async fn take_up(&self) {
        if self.taken_up.receiver_count() > 0 {
            self.taken_up.send_modify(|count| *count = count.wrapping_add(1));
            sleep(LETTING_GO).await;
        }
    }

    /// Returns when what is read on for nobody is to be let go.
    pub(super) async fn is_taken_up(&self) {
        // INVARIANT: the sender lives as long as this.
        let _ = self.taken_up.subscribe().changed().await;
    }

    fn used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a request is of a revision without sessions, where hanging up cancels.
///
/// INVARIANT: where it matters the engine holds this header against the body.
pub(super) fn is_modern(head: &Head) -> bool {
    let revision = head.headers.get(VERSION).and_then(|value| value.to_str().ok());
    revision.and_then(|text| text.trim().parse::<Revision>().ok()).is_some_and(Revision::is_modern)
}

impl Sessions {
    pub(super) fn of(farewell: Arc<dyn Farewell>) -> Self {
        let capacity = farewell.capacity().min(CAPACITY);
        Self::bounded(farewell, capacity)
    }

    pub(super) fn bounded(farewell: Arc<dyn Farewell>, capacity: usize) -> Self {
        let table = Table { by_id: HashMap::new(), swept: Instant::now() };
        let farewells = Arc::new(Semaphore::new(FAREWELLS));
        Self { farewell, table: Mutex::new(table), capacity, farewells }
    }

    /// The session a request names, if its revision has them. Two names are none, and refused as what they are.
    pub(super) fn find(&self, head: &Head) -> Found {
        let mut lines = head.headers.get_all(SESSION).iter();
        let (Some(name), None, false) = (lines.next(), lines.next(), is_modern(head)) else {
            return Found::Nothing;
        };
        let visit = name.to_str().ok().and_then(|id| self.table().by_id.get(id.trim()).cloned());
        match visit {
            Some(visit) if visit.used().elapsed() < IDLE => {
                visit.touch();
                Found::Visit(visit)
            }
            Some(visit) => {
                self.end(&visit);
                self.say_farewell(visit);
                Found::Unknown
            }
            None => Found::Unknown,
        }
    }

    /// Whether there is room for another session: always, but for a table full of sessions that are somebody's and in
    /// which something was said of late. One that is nobody's yet makes room, else one that is stale: the one that was
    /// silent longest.
    pub(super) fn has_room(&self) -> bool {
        let mut table = self.table();
        let full = table.by_id.len() >= self.capacity;
        if full || table.swept.elapsed() > SWEEP {
            table.swept = Instant::now();
            self.sweep(&mut table);
        }
        if table.by_id.len() < self.capacity {
            return true;
        }
        let longest = |one: fn(&Session) -> bool| {
            let visits = table.by_id.values().filter(|visit| one(&visit.session));
            visits.min_by_key(|visit| visit.used())
        };
        // One in which a first call is being decided is neither: what is spent for it must have somewhere to go.
        let stale = || longest(Session::is_bound).filter(|visit| visit.used().elapsed() >= STALE);
        let Some(longest) = longest(Session::is_idle).or_else(stale).cloned() else { return false };
        table.by_id.retain(|_, visit| !Arc::ptr_eq(visit, &longest));
        longest.session.end();
        self.say_farewell(longest);
        true
    }

    fn sweep(&self, table: &mut Table) {
        let idle = table.by_id.extract_if(|_, visit| visit.used().elapsed() >= IDLE);
        for (_, visit) in idle {
            visit.session.end();
            self.say_farewell(visit);
        }
    }

    /// Ends a session here.
    pub(super) fn end(&self, visit: &Arc<Visit>) {
        if let Ok(ours) = visit.ours.to_str() {
            self.table().by_id.remove(ours);
        }
        visit.session.end();
    }

    /// A session as its server opened it; none where it did not, or by a name that cannot be kept.
    fn open(&self, theirs: &HeaderValue, holder: Option<Holder>) -> Option<Arc<Visit>> {
        let kept = theirs.len() <= LONGEST && theirs.to_str().is_ok_and(|id| !id.trim().is_empty());
        let id = Session::draw_id().ok().filter(|_| kept)?;
        let visit = Arc::new(Visit::new(HeaderValue::try_from(&id).ok()?, theirs.clone()));
        if let Some(holder) = holder {
            visit.session.begin(holder);
        }
        let mut table = self.table();
        if table.by_id.len() >= self.capacity {
            // Filled by others between the question and the answer.
            drop(table);
            self.say_farewell(visit);
            return None;
        }
        table.by_id.insert(id.into(), Arc::clone(&visit));
        Some(visit)
    }

    /// Puts our name of its session on a response, where it has one, and takes the server's off. The session the
    /// response belongs to comes back.
    pub(super) fn rename<S, B>(
        &self,
        response: &mut Response<B>,
        clearance: &Clearance<S>,
        visit: Option<Arc<Visit>>,
    ) -> Result<Option<Arc<Visit>>, NoRoom> {
        let status = response.status();
        let theirs = response.headers_mut().remove(SESSION);
        let visit = match (visit, theirs) {
            (Some(visit), _) if status == StatusCode::NOT_FOUND => {
                // The server has forgotten it, so there is none.
                self.end(&visit);
                return Ok(None);
            }
            (Some(visit), _) => visit,
            (None, Some(theirs)) if clearance.introduces && status.is_success() => {
                self.open(&theirs, clearance.holder.clone()).ok_or(NoRoom)?
            }
            (None, _) => return Ok(None),
        };
        response.headers_mut().insert(SESSION, visit.ours.clone());
        Ok(Some(visit))
    }

    /// Tells the server that a session is over, a few at once and each in its turn: what a server keeps for a session it
    /// may keep until it is told.
    fn say_farewell(&self, visit: Arc<Visit>) {
        let (farewell, turns) = (Arc::clone(&self.farewell), Arc::clone(&self.farewells));
        tokio::spawn(async move {
            // INVARIANT: nobody closes the turns.
            let _turn = turns.acquire_owned().await;
            let _ = timeout(FAREWELL, farewell.leave(visit.theirs.clone())).await;
        });
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // INVARIANT: the table is changed by whole entries, so a panic leaves it true.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session was opened for which there is no place.
#[derive(Debug)]
pub(super) struct NoRoom;

/// Whether a request takes up a stream that broke off.
pub(super) fn takes_up(head: &Head) -> bool {
    head.method == Method::GET && head.headers.contains_key(LAST_EVENT)
}

/// The head as the server gets it: with its own name for the session, or none, and an event only where the engine has
/// held it against the session's.
pub(super) fn outward<'h>(head: &'h Head, visit: Option<&Visit>) -> Cow<'h, Head> {
    let listens = visit.is_some() && head.method == Method::GET;
    if visit.is_none() && !head.headers.contains_key(SESSION) && !head.headers.contains_key(LAST_EVENT) {
        return Cow::Borrowed(head);
    }
    let mut outward = head.clone();
    outward.headers.remove(SESSION);
    if !listens {
        outward.headers.remove(LAST_EVENT);
    }
    if let Some(visit) = visit {
        outward.headers.insert(SESSION, visit.theirs.clone());
    }
    Cow::Owned(outward)
}

#[cfg(test)]
mod tests;
