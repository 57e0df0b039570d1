//! The switchboard between many callers and one child: who waits for what.
//!
//! Each call has a number no other has; a line that cannot be traced to one live call is dropped, except that a changed
//! list is told onward (D-31). When the child ends every waiting caller learns it, and nothing is sent again.

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
}

struct Call {
    names: Names,
    notes: mpsc::Sender<Bytes>,
    answer: oneshot::Sender<Bytes>,
}

/// Room for one line: a place in the queue of a child that lives.
pub(crate) struct Slot {
    board: Arc<Board>,
    place: mpsc::OwnedPermit<Bytes>,
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
    pub(super) fn new(input: mpsc::Sender<Bytes>, on_change: OnChange) -> Arc<Self> {
        let state = State { input: Some(input), calls: HashMap::new(), last: 0 };
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
        match claim {
            Claim::Answer(number) => self.answer(number, line),
            Claim::Progress(number) => self.note(number, |names| splice::progress(line, number, names)),
            Claim::Subscribed(number) => self.note(number, |names| splice::subscribed(line, number, names)),
            Claim::Cancelled(number) => drop(self.state().calls.remove(&number)),
            Claim::Asks { id, method } => self.reply(&id, &method),
            Claim::Tells { method } if method.ends_with("/list_changed") => (self.on_change)(&method),
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
    /// Sends a request. `cancels` says whether forgetting the exchange cancels the call.
    pub(super) fn call(self, body: &[u8], cancels: bool) -> Result<Exchange, Gone> {
        let (notes, noted) = mpsc::channel(NOTES);
        let (answer, answered) = oneshot::channel();
        let Self { board, place } = self;
        let (number, line) = {
            let mut state = board.state();
            if state.input.is_none() {
                return Err(Gone);
            }
            state.last += 1;
            let number = state.last;
            let (line, names) = splice::outbound(body, number).ok_or(Gone)?;
            state.calls.insert(number, Call { names, notes, answer });
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
