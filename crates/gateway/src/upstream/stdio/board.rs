//! The switchboard between callers and one child: who waits for what.
//!
//! Each call has a number no other has; a line that cannot be traced to one live call is dropped, except that a changed
//! list is told onward (D-31). The child of a session has one client, so there every other line is that client's. When
//! the child ends every waiting caller learns it, and nothing is sent again.

use super::hearer::Hearer;
use super::lines::Line;
use super::splice::{self, Claim, Names};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{mpsc, oneshot};

/// Calls that may be under way on one child.
const CALLS: usize = 1024;
/// Notifications that may wait for a caller who reads slowly; further ones are dropped, the answer never.
const NOTES: usize = 64;

/// Told when the child says that one of its lists changed; the argument is the notification's method.
pub(super) type OnChange = Arc<dyn Fn(&str) + Send + Sync>;

/// The child is gone, and got nothing of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone;

/// The switchboard.
pub(super) struct Board {
    state: Mutex<State>,
    on_change: OnChange,
}

struct State {
    /// None once the child has ended.
    input: Option<mpsc::Sender<Bytes>>,
    calls: HashMap<u64, Call>,
    last: u64,
    /// The one client of a session's child.
    hearer: Option<Hearer>,
}

struct Call {
    names: Names,
    notes: mpsc::Sender<Bytes>,
    /// Whether its caller reads notes.
    streams: bool,
    answer: oneshot::Sender<Bytes>,
}

/// Room for one line: a place in the queue of a child that lives.
pub(crate) struct Slot {
    board: Arc<Board>,
    place: mpsc::OwnedPermit<Bytes>,
}

/// What a caller does beside waiting for the answer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Caller {
    /// Whether its hanging up cancels the call.
    pub(super) cancels: bool,
    /// Whether it reads what is said before the answer.
    pub(super) streams: bool,
}

/// A call under way. Dropping it forgets the call, and tells the child so where hanging up cancels.
pub(super) struct Exchange {
    /// What the child says about the call before it answers.
    pub(super) notes: mpsc::Receiver<Bytes>,
    /// The answer; broken off when the child ends.
    pub(super) answer: oneshot::Receiver<Bytes>,
    board: Weak<Board>,
    number: u64,
    cancels: bool,
}

impl Board {
    /// Between strangers and a child.
    pub(super) fn new(input: mpsc::Sender<Bytes>, on_change: OnChange) -> Arc<Self> {
        Self::with(input, on_change, None)
    }

    /// Between one client and the child of its session.
    pub(super) fn of_session(input: mpsc::Sender<Bytes>, on_change: OnChange) -> Arc<Self> {
        Self::with(input, on_change, Some(Hearer::default()))
    }

    fn with(input: mpsc::Sender<Bytes>, on_change: OnChange, hearer: Option<Hearer>) -> Arc<Self> {
        let state = State { input: Some(input), calls: HashMap::new(), last: 0, hearer };
        Arc::new(Self { state: Mutex::new(state), on_change })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // INVARIANT: every change under the lock is one insertion or removal, so a panic leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room.
    pub(super) async fn reserve(self: &Arc<Self>) -> Result<Slot, Gone> {
        let input = {
            let state = self.state();
            state.input.clone().filter(|_| state.calls.len() < CALLS).ok_or(Gone)?
        };
        let place = input.reserve_owned().await.map_err(|_| Gone)?;
        Ok(Slot { board: Arc::clone(self), place })
    }

    /// The child has ended: everybody who waits is told by the end of what they wait on.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.input = None;
        state.calls.clear();
        state.hearer = None;
    }

    /// Whether the child has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.state().input.is_none()
    }

    /// Takes a line of the child's.
    pub(super) fn deliver(&self, line: Line) {
        match line {
            Line::Whole(line) if line.is_empty() => {}
            Line::Whole(line) => match splice::claim(&line) {
                Some(claim) => self.hand(claim, &line),
                None => {
                    let mut skim = super::skim::Skim::default();
                    skim.feed(&line);
                    self.lose(skim.response(), line.len());
                }
            },
            Line::Long(line, number) => self.lose(number, line.len()),
        }
    }

    /// A line nobody can be given. If a call waits for it, it need not wait longer.
    fn lose(&self, number: Option<u64>, bytes: usize) {
        let waited = number.and_then(|number| self.state().calls.remove(&number)).is_some();
        tracing::warn!(bytes, waited, "upstream.line_dropped");
    }

    fn hand(&self, claim: Claim, line: &[u8]) {
        if let Claim::Tells { method } = &claim
            && method.ends_with("/list_changed")
        {
            (self.on_change)(method);
        }
        match claim {
            Claim::Asks { .. } | Claim::Tells { .. } | Claim::Cancelled(_) if self.pass_on(line) => {}
            Claim::Answer(number) => self.answer(number, line),
            Claim::Progress(number) => self.note(number, |names| splice::progress(line, number, names)),
            Claim::Subscribed(number) => self.note(number, |names| splice::subscribed(line, number, names)),
            Claim::Cancelled(number) => drop(self.state().calls.remove(&number)),
            Claim::Asks { id, method } => self.reply(&id, &method),
            Claim::Tells { .. } => tracing::debug!("upstream.untraceable"),
        }
    }

    fn answer(&self, number: u64, line: &[u8]) {
        let Some(call) = self.state().calls.remove(&number) else {
            tracing::debug!("upstream.untraceable");
            return;
        };
        // What has no number in it to replace does not get here; a caller who is gone needs no answer.
        if let Some(answer) = splice::answer(line, number, &call.names) {
            let _ = call.answer.send(answer.into());
        }
    }

    fn note(&self, number: u64, restore: impl Fn(&Names) -> Option<Vec<u8>>) {
        let state = self.state();
        let restored = state.calls.get(&number).and_then(|call| Some((call, restore(&call.names)?)));
        let Some((call, note)) = restored else { return tracing::debug!("upstream.untraceable") };
        if call.notes.try_send(note.into()).is_err() {
            tracing::debug!("upstream.note_dropped");
        }
    }

    /// Gives a line to the one client there is, if there is one: on the stream of its only call under way, or of its
    /// listening, or of its latest call. What it cannot be given now is kept for its listening.
    fn pass_on(&self, line: &[u8]) -> bool {
        let mut state = self.state();
        let State { calls, hearer, .. } = &mut *state;
        let Some(hearer) = hearer else { return false };
        let streaming = calls.iter().filter(|(_, call)| call.streams && !call.notes.is_closed());
        let alone = streaming.clone().count() == 1;
        let latest = streaming.max_by_key(|(number, _)| **number).map(|(_, call)| &call.notes);
        let line = Bytes::copy_from_slice(line);
        match latest {
            Some(notes) if alone || !hearer.listens() => {
                if notes.try_send(line).is_err() {
                    tracing::debug!("upstream.note_dropped");
                }
            }
            _ => hearer.hear(line),
        }
        true
    }

    /// What the child tells its one client beside answers, from now on to this listening and no other. None where there
    /// is no such client, or the child is gone.
    pub(super) fn listen(&self) -> Option<mpsc::Receiver<Bytes>> {
        self.state().hearer.as_mut().map(Hearer::listen)
    }

    /// The number by which the child knows a client's call, by the exact text of the client's id.
    pub(super) fn number_of(&self, id: &str) -> Option<u64> {
        self.state().calls.iter().find(|(_, call)| call.names.id == id).map(|(number, _)| *number)
    }

    /// Answers for a client that declared nothing: it is there, and can do nothing else.
    fn reply(&self, id: &str, method: &str) {
        let body = if method == "ping" {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
        } else {
            let error = r#"{"code":-32601,"message":"this client declared no such capability"}"#;
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
        };
        self.whisper(body.into_bytes());
    }

    /// Sends a line if there is room at once.
    fn whisper(&self, body: Vec<u8>) {
        let input = self.state().input.clone();
        if input.is_none_or(|input| input.try_send(splice::frame(body).into()).is_err()) {
            tracing::debug!("upstream.line_not_sent");
        }
    }
}

impl Slot {
    /// Sends a request.
    pub(super) fn call(self, body: &[u8], caller: Caller) -> Result<Exchange, Gone> {
        let (notes, noted) = mpsc::channel(NOTES);
        let (answer, answered) = oneshot::channel();
        let Self { board, place } = self;
        let Caller { cancels, streams } = caller;
        let (number, line) = {
            let mut state = board.state();
            if state.input.is_none() {
                return Err(Gone);
            }
            state.last += 1;
            let number = state.last;
            let (line, names) = splice::outbound(body, number).ok_or(Gone)?;
            state.calls.insert(number, Call { names, notes, streams, answer });
            (number, line)
        };
        drop(place.send(line.into()));
        Ok(Exchange { notes: noted, answer: answered, board: Arc::downgrade(&board), number, cancels })
    }

    /// Sends a notification.
    pub(super) fn tell(self, body: &[u8]) {
        drop(self.place.send(splice::frame(body.to_vec()).into()));
    }
}

impl Exchange {
    /// The answer alone; none if the child ends before.
    pub(super) async fn answered(mut self) -> Option<Bytes> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let Some(board) = self.board.upgrade() else { return };
        let forgotten = board.state().calls.remove(&self.number).is_some();
        if forgotten && self.cancels {
            let number = self.number;
            let params = format!(r#"{{"requestId":{number},"reason":"the client hung up"}}"#);
            board.whisper(
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#)
                    .into_bytes(),
            );
        }
    }
}

#[cfg(test)]
mod tests;
