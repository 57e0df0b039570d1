//! Legacy sessions over HTTP: our ids for the server's, in this process alone (D-13).
//!
//! An id of ours is 256 random bits; the server's never leaves. Whose a session is, the engine says; this is how many
//! there are, how long they live, and which headers name them. After a restart every id is unknown.

mod places;
mod table;

use crate::call::Head;
use crate::session::{Named, Session};
use async_trait::async_trait;
use http::{HeaderValue, Method, Response, StatusCode};
pub(super) use places::Who;
use sayso_protocol::method::Revision;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use table::{Making, Table};
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

    /// How long it keeps a session that is nobody's and in which nothing is said.
    fn patience(&self) -> Duration {
        IDLE
    }
}

/// The sessions of one resource.
pub(super) struct Sessions(Arc<Inner>);

struct Inner {
    farewell: Arc<dyn Farewell>,
    table: Mutex<Table>,
    /// How long one that is nobody's is kept in silence.
    patience: Duration,
    farewells: Arc<Semaphore>,
}

/// A session and the names it has on both sides.
pub(super) struct Visit {
    pub(super) session: Arc<Session>,
    ours: HeaderValue,
    theirs: HeaderValue,
    who: Who,
    used: Mutex<Instant>,
    /// Counts the streams that were taken up again.
    taken_up: watch::Sender<u64>,
}

/// A place for a session that its server may open; given back when it did not.
pub(super) struct Place {
    sessions: Arc<Inner>,
    who: Who,
    kept: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.kept {
            self.sessions.table().places.give_back(&self.who);
        }
    }
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
    /// A session from there, and theirs from its first word if they are known.
    fn new(ours: HeaderValue, theirs: HeaderValue, who: Who) -> Self {
        let (used, taken_up) = (Mutex::new(Instant::now()), watch::Sender::new(0));
        let session = Arc::<Session>::default();
        who.holder.iter().for_each(|holder| session.begin(holder.clone()));
        Self { session, ours, theirs, who, used, taken_up }
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
        let table = Mutex::new(Table::of(capacity));
        let (patience, farewells) = (farewell.patience().min(IDLE), Arc::new(Semaphore::new(FAREWELLS)));
        Self(Arc::new(Inner { farewell, table, patience, farewells }))
    }

    /// The session a request names, if its revision has them. Two names are none, and refused as what they are.
    pub(super) fn find(&self, head: &Head) -> Found {
        let mut lines = head.headers.get_all(SESSION).iter();
        let (Some(name), None, false) = (lines.next(), lines.next(), is_modern(head)) else {
            return Found::Nothing;
        };
        let visit = name.to_str().ok().and_then(|id| self.0.table().by_id.get(id.trim()).cloned());
        match visit {
            Some(visit) if !self.0.is_over(&visit) => {
                visit.touch();
                Found::Visit(visit)
            }
            Some(visit) => {
                self.end(&visit);
                self.0.say_farewell(visit);
                Found::Unknown
            }
            None => Found::Unknown,
        }
    }

    /// A place for another session of theirs, while its server is asked for it. There is one, but for a source that has
    /// its share and no more to spare, and a table full of sessions that are somebody's and in which something was said
    /// of late. What makes room is a session of whichever holder of tokens has most; else one that is nobody's yet, and
    /// one that is stale: the one that was silent longest. A holder who has a share makes room for himself.
    pub(super) fn place(&self, who: Who) -> Option<Place> {
        let mut table = self.0.table();
        if let Making::Room(visit) = table.making(&who)? {
            table.remove(&visit);
            visit.session.end();
            self.0.say_farewell(visit);
        }
        table.places.take(&who);
        Some(Place { sessions: Arc::clone(&self.0), who, kept: false })
    }

    /// Ends a session here.
    pub(super) fn end(&self, visit: &Arc<Visit>) {
        self.0.table().remove(visit);
        visit.session.end();
    }

    /// A session as its server opened it; none where it did not, or by a name that cannot be kept.
    fn open(&self, theirs: &HeaderValue, mut place: Place) -> Option<Arc<Visit>> {
        let kept = theirs.len() <= LONGEST && theirs.to_str().is_ok_and(|id| !id.trim().is_empty());
        let id = Session::draw_id().ok().filter(|_| kept)?;
        let ours = HeaderValue::try_from(&id).ok()?;
        let visit = Arc::new(Visit::new(ours, theirs.clone(), place.who.clone()));
        place.kept = true;
        let mut table = self.0.table();
        table.by_id.insert(id.into(), Arc::clone(&visit));
        if !std::mem::replace(&mut table.swept, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.0)));
        }
        Some(visit)
    }

    /// Puts our name of its session on a response, where it has one, and takes the server's off. The session the
    /// response belongs to comes back; a new one has the place that was kept for it.
    pub(super) fn rename<B>(
        &self,
        response: &mut Response<B>,
        visit: Option<Arc<Visit>>,
        place: Option<Place>,
    ) -> Result<Option<Arc<Visit>>, NoRoom> {
        let status = response.status();
        let theirs = response.headers_mut().remove(SESSION);
        let visit = match (visit, theirs, place) {
            (Some(visit), ..) if status == StatusCode::NOT_FOUND => {
                // The server has forgotten it, so there is none.
                self.end(&visit);
                return Ok(None);
            }
            (Some(visit), ..) => visit,
            (None, Some(theirs), Some(place)) if status.is_success() => {
                self.open(&theirs, place).ok_or(NoRoom)?
            }
            (None, ..) => return Ok(None),
        };
        response.headers_mut().insert(SESSION, visit.ours.clone());
        Ok(Some(visit))
    }
}

impl Inner {
    /// Whether nothing was said in it for too long. A place that is nobody's is given up sooner, where it is dear.
    fn is_over(&self, visit: &Visit) -> bool {
        let patience = if visit.session.is_idle() { self.patience } else { IDLE };
        visit.used().elapsed() >= patience
    }

    /// Ends those that are over, and says whether there are others.
    fn sweep(&self) -> bool {
        let mut table = self.table();
        let over: Vec<_> = table.by_id.values().filter(|visit| self.is_over(visit)).cloned().collect();
        for visit in over {
            table.remove(&visit);
            visit.session.end();
            self.say_farewell(visit);
        }
        table.swept = !table.by_id.is_empty();
        table.swept
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

/// Looks through sessions as long as there are any, so that whoever went away takes nothing up for long.
async fn sweep(sessions: Weak<Inner>) {
    loop {
        sleep(SWEEP).await;
        let Some(sessions) = sessions.upgrade() else { return };
        if !sessions.sweep() {
            return;
        }
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
