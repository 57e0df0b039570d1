//! Legacy sessions before a server over stdio: one child each, from its client's own `initialize` to its end (D-13, D-31).
//!
//! Towards the proxy it is what a server over HTTP is: it names a session in the answer to `initialize`, by a name that
//! stays in this process, and knows it by that name from then on. A child that ends takes its session with it; nothing
//! is started again, since what a session remembers cannot be.

use super::board::{Board, Caller, Gone, OnChange, Slot};
use super::child::Child;
use super::command::StdioCommand;
use super::reply::{self, Manner};
use super::splice;
use crate::upstream::Broken;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use sayso_enforce::carry::SESSION;
use sayso_enforce::{Head, Unavailable, answer};
use sayso_protocol::message::{Message, Request};
use sayso_protocol::payload::refusal::{Code, Refusal};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Most children of sessions at once: each is a process, and anybody may ask for one.
pub(crate) const CHILDREN: usize = 32;
/// How long the child of a session is kept that is nobody's and in which nothing is said.
pub(crate) const SILENCE: Duration = Duration::from_secs(600);
/// How long the child may take to answer `initialize`; some are downloaded before they run.
const FIRST_WORD: Duration = Duration::from_secs(30);
/// How long a new session waits for the child of one that has just ended.
const PLACE: Duration = Duration::from_secs(2);
/// How long what was permitted waits for a child that reads slowly (D-5).
const AT_ONCE: Duration = Duration::from_millis(400);

const CANCELLED: &str = "notifications/cancelled";

/// The sessions of one command.
pub(super) struct Sessions {
    command: StdioCommand,
    on_change: OnChange,
    places: Arc<Semaphore>,
    table: Arc<Mutex<Table>>,
    last: AtomicU64,
}

type Table = HashMap<Box<str>, Held>;

/// A session's child. Dropping it ends the child.
struct Held {
    board: Arc<Board>,
    life: JoinHandle<()>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.board.close();
        self.life.abort();
    }
}

/// Whether a request names a session of its upstream's.
pub(super) fn is_named(head: &Head) -> bool {
    head.headers.contains_key(SESSION)
}

impl Sessions {
    pub(super) fn new(command: StdioCommand, on_change: OnChange) -> Self {
        let places = Arc::new(Semaphore::new(CHILDREN));
        Self { command, on_change, places, table: Arc::default(), last: AtomicU64::new(0) }
    }

    /// Starts a child for a client that introduces itself, and names the session if the child accepts it.
    pub(super) async fn open(&self, body: &Bytes) -> Result<Response<Body>, Broken> {
        let place = timeout(PLACE, Arc::clone(&self.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else { return Ok(no_place()) };
        let child = Child::start(&self.command).await.map_err(|fault| {
            tracing::warn!(upstream = self.command.name(), kind = ?fault.kind(), "upstream.not_started");
            Broken::Unreachable
        })?;
        // The first word it hears is a stranger's.
        child.confide();
        let board = Board::of_session(child.input.clone(), Arc::clone(&self.on_change));
        let name: Box<str> = self.last.fetch_add(1, Ordering::Relaxed).to_string().into();
        let (table, of) = (Arc::downgrade(&self.table), name.clone());
        let living = live(child, Arc::clone(&board));
        let life = tokio::spawn(async move {
            living.await;
            drop(place);
            if let Some(table) = table.upgrade() {
                drop(lock(&table).remove(&of));
            }
        });
        let held = Held { board, life };
        let exchange =
            room(&held.board).await?.call(body, Caller::default()).map_err(|Gone| Broken::Unreachable)?;
        let said = timeout(FIRST_WORD, exchange.answered()).await;
        let said = said.ok().flatten().ok_or(Broken::Interrupted)?;
        let accepted = sayso_protocol::json::locate(&said, &["result"]).is_some();
        let mut response = reply::whole(said, false);
        if let (true, Ok(theirs)) = (accepted, HeaderValue::from_str(&name)) {
            response.headers_mut().insert(SESSION, theirs);
            let board = Arc::clone(&held.board);
            lock(&self.table).insert(name.clone(), held);
            // One that ended before it was kept was not there to be removed.
            if board.is_gone() {
                lock(&self.table).remove(&name);
            }
        }
        Ok(response)
    }

    /// Room for one call of a session's.
    pub(super) async fn checkout(&self, head: &Head) -> Result<Slot, Unavailable> {
        let board = self.board(&head.headers).ok_or(Unavailable::NoUpstream)?;
        room(&board).await.map_err(|_| Unavailable::NoUpstream)
    }

    /// Sends what is said in a session to its child.
    pub(super) async fn send(
        &self,
        slot: Option<Slot>,
        head: &Head,
        body: &Bytes,
        message: Option<&Message>,
    ) -> Result<Response<Body>, Broken> {
        let board = match self.board(&head.headers) {
            Some(board) => board,
            // Somebody paid for what was checked out, and it went nowhere.
            None if slot.is_some() => return Err(Broken::Unreachable),
            None => return Ok(gone()),
        };
        match (&head.method, message) {
            (&Method::DELETE, _) => {
                self.end(&head.headers);
                Ok(reply::accepted(StatusCode::NO_CONTENT))
            }
            (&Method::GET, _) => Ok(board.listen().map_or_else(gone, reply::listening)),
            (_, Some(Message::Request(request))) => call(&board, slot, head, body, request).await,
            (_, Some(Message::Notification(told))) if told.method == CANCELLED => {
                if let Some(body) = splice::cancelled(body, |id| board.number_of(id)) {
                    room(&board).await?.tell(&body);
                }
                Ok(reply::accepted(StatusCode::ACCEPTED))
            }
            (_, Some(Message::Notification(_) | Message::Response { .. })) => {
                room(&board).await?.tell(body);
                Ok(reply::accepted(StatusCode::ACCEPTED))
            }
            (_, None) => Err(Broken::Unreachable),
        }
    }

    /// Ends the session these headers name.
    pub(super) fn end(&self, headers: &HeaderMap) {
        let ended = name(headers).and_then(|name| lock(&self.table).remove(name));
        drop(ended);
    }

    fn board(&self, headers: &HeaderMap) -> Option<Arc<Board>> {
        lock(&self.table).get(name(headers)?).map(|held| Arc::clone(&held.board))
    }
}

/// A child's life. A function of its own: it holds the whole child, not only what it reads of it.
async fn live(mut child: Child, board: Arc<Board>) {
    while let Some(line) = child.output.recv().await {
        board.deliver(line);
    }
    board.close();
}

async fn call(
    board: &Arc<Board>,
    slot: Option<Slot>,
    head: &Head,
    body: &Bytes,
    request: &Request,
) -> Result<Response<Body>, Broken> {
    let streams = reply::takes_events(&head.headers);
    let manner = Manner { id: request.id.clone(), streams, modern: false, spent: slot.is_some() };
    let slot = match slot {
        Some(slot) => slot,
        None => room(board).await?,
    };
    let exchange = slot.call(body, Caller { cancels: false, streams }).map_err(|Gone| Broken::Unreachable)?;
    reply::respond(exchange, manner).await
}

async fn room(board: &Arc<Board>) -> Result<Slot, Broken> {
    timeout(AT_ONCE, board.reserve()).await.ok().and_then(Result::ok).ok_or(Broken::Unreachable)
}

fn name(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION)?.to_str().ok()
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    // INVARIANT: the table is changed by whole entries, so a panic leaves it true.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Its child has ended, and the session with it; a client begins anew on 404.
fn gone() -> Response<Body> {
    answer::refusal(&Refusal::new(Code::SessionNotFound, "this session is not known here; initialize anew"))
}

fn no_place() -> Response<Body> {
    let text = "there is no room for another session now";
    answer::refusal(&Refusal::new(Code::TemporarilyUnavailable, text))
}
