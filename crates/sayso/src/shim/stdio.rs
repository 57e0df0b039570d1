//! The shim on a pipe: one client, one message a line, standard output for the protocol alone.
//!
//! A client of an older revision has one session at the server, which is begun anew where it is lost; one of the newest has
//! none. Both are served on the same pipe, each by what its messages say.

use super::carry::{self, carry};
use super::desk::{self, Client, Event};
use super::incoming::{Incoming, LONGEST};
use super::questions::Questions;
use super::{MOST_CALLS, Shim};
use bytes::Bytes;
use http::HeaderMap;
use sayso_agent::{Fault, Line, Stop, Stopper};
use sayso_protocol::json::Json;
use sayso_protocol::message::{Message, RequestId};
use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

/// Messages to the client that may wait to be written.
const QUEUE: usize = 256;
/// How long to wait before a stream that ended is opened again, at first and at most.
const AGAIN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// How long calls under way may take to put themselves away when the client is gone.
const GRACE: Duration = Duration::from_secs(5);

/// A pipe with a client at its end.
struct Pipe {
    shim: Arc<Shim>,
    /// To the server, for clients with a session and without.
    older: Line,
    newest: Line,
    out: mpsc::Sender<Bytes>,
    questions: Questions,
    /// Whether the client of the session can be asked.
    asks: AtomicBool,
    running: Mutex<HashMap<String, Arc<Stopper>>>,
}

/// Serves until the client closes its end.
pub(super) async fn serve(shim: Arc<Shim>) -> anyhow::Result<ExitCode> {
    converse(shim, tokio::io::stdin(), tokio::io::stdout()).await
}

async fn converse(
    shim: Arc<Shim>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> anyhow::Result<ExitCode> {
    let (older, newest) = (shim.agent.line(&shim.resource).await?, shim.agent.line(&shim.resource).await?);
    let (out, queue) = mpsc::channel(QUEUE);
    let writing = tokio::spawn(write(queue, output));
    let (questions, asks, running) = (Questions::default(), AtomicBool::new(false), Mutex::default());
    let pipe = Arc::new(Pipe { shim, older, newest, out, questions, asks, running });
    let mut lines = BufReader::new(input);
    loop {
        let line = tokio::select! {
            line = next(&mut lines) => line,
            // The client reads no longer.
            () = pipe.out.closed() => break,
        };
        match line {
            None => break,
            Some(None) => pipe.say(too_long()).await,
            Some(Some(line)) if line.trim_ascii().is_empty() => {}
            Some(Some(line)) => pipe.hear(&line).await,
        }
    }
    pipe.close().await;
    writing.abort();
    Ok(ExitCode::SUCCESS)
}

async fn write(mut queue: mpsc::Receiver<Bytes>, mut output: impl AsyncWrite + Unpin) {
    while let Some(line) = queue.recv().await {
        let framed = [&line[..], b"\n"].concat();
        if output.write_all(&framed).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

/// The next line; none at the end, and an empty one in the place of one that is too long.
async fn next(lines: &mut BufReader<impl AsyncRead + Unpin>) -> Option<Option<Vec<u8>>> {
    let (mut held, mut long) = (Vec::new(), false);
    loop {
        let seen = lines.fill_buf().await.ok().filter(|seen| !seen.is_empty())?;
        let end = seen.iter().position(|byte| *byte == b'\n');
        let piece = seen.get(..end.unwrap_or(seen.len())).unwrap_or_default();
        let used = piece.len().saturating_add(usize::from(end.is_some()));
        long |= piece.len() > LONGEST.saturating_sub(held.len());
        if !long {
            held.extend_from_slice(piece);
        }
        lines.consume(used);
        if end.is_some() {
            return Some((!long).then_some(held));
        }
    }
}

fn too_long() -> Bytes {
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"message too large","data":{"error":"request_body_too_large"}}}"#;
    Bytes::from_static(body.as_bytes())
}

impl Pipe {
    async fn say(&self, line: Bytes) {
        // A client that is gone is noticed where lines are read.
        let _ = self.out.send(line).await;
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<Stopper>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears one message. The handshake is finished before the next is heard; everything else goes its own way.
    async fn hear(self: &Arc<Self>, line: &[u8]) {
        let incoming = match Incoming::read(line) {
            Ok(incoming) => incoming,
            Err(fault) => return self.say(fault.body().into()).await,
        };
        match &incoming.message {
            Message::Request(request) if request.method == "initialize" => self.begin(&incoming).await,
            Message::Request(request) => {
                let (id, called) = (request.id.clone(), request.call().is_some());
                self.start(id, incoming, called).await;
            }
            Message::Notification(note) if note.method == "notifications/cancelled" => {
                self.cancel(incoming).await
            }
            Message::Notification(note) if note.method == "notifications/initialized" => {
                self.pass(&incoming).await;
                if self.older.has_session() {
                    tokio::spawn(self.clone().listen());
                }
            }
            Message::Notification(_) => self.pass(&incoming).await,
            Message::Response { id } => {
                if !self.questions.answer(id.text(), &incoming.body) {
                    self.pass(&incoming).await;
                }
            }
        }
    }

    async fn begin(&self, incoming: &Incoming) {
        self.asks.store(incoming.says_it_can_be_asked(), Ordering::Relaxed);
        let letter = incoming.letter(&[]);
        let answer = self.shim.agent.greet(&self.older, letter).await;
        self.give(answer.map_err(|fault| self.unanswered(&fault, incoming)), incoming.message.request_id())
            .await;
    }

    /// Sends what wants no answer.
    async fn pass(&self, incoming: &Incoming) {
        // A notification that does not arrive has nobody to tell.
        let _ = self.shim.agent.relay(&self.older, &incoming.letter(&[])).await;
    }

    async fn cancel(&self, incoming: Incoming) {
        let named = incoming.text(&["params", "requestId"]).and_then(|text| text.parse::<RequestId>().ok());
        let stopper = named.as_ref().and_then(|id| self.running().get(&key(id)).cloned());
        if let Some(stopper) = stopper {
            stopper.stop();
        }
        if self.older.has_session() {
            self.pass(&incoming).await;
        }
    }

    async fn start(self: &Arc<Self>, id: RequestId, incoming: Incoming, called: bool) {
        let Some(stop) = self.admit(&id) else {
            let error =
                carry::error(&id, -32600, "too many requests at once, or two of one id", Default::default());
            return self.say(error).await;
        };
        let pipe = self.clone();
        tokio::spawn(async move {
            if called {
                pipe.call(&id, incoming, stop).await;
            } else {
                pipe.ask(&id, &incoming, &stop).await;
            }
            pipe.running().remove(&key(&id));
        });
    }

    /// A place among what is under way; what says in it that nobody waits any more.
    fn admit(&self, id: &RequestId) -> Option<Stop> {
        let (stopper, stop) = Stopper::new();
        let mut running = self.running();
        if running.len() >= MOST_CALLS || running.contains_key(&key(id)) {
            return None;
        }
        running.insert(key(id), Arc::new(stopper));
        Some(stop)
    }

    fn line(&self, incoming: &Incoming) -> &Line {
        if incoming.is_modern() { &self.newest } else { &self.older }
    }

    /// A request that needs no grant.
    async fn ask(&self, id: &RequestId, incoming: &Incoming, stop: &Stop) {
        let line = self.line(incoming);
        if incoming.message.method() == Some("tools/list") {
            line.forget_tools();
        }
        let letter = incoming.letter(&[]);
        let asked = async {
            let answer = self.shim.agent.relay(line, &letter).await;
            self.give(answer.map_err(|fault| self.unanswered(&fault, incoming)), Some(id)).await;
        };
        tokio::select! {
            () = asked => {}
            () = stop.said() => {}
        }
    }

    async fn give(&self, answer: Result<http::Response<sayso_fetch::Pieces>, Bytes>, id: Option<&RequestId>) {
        match answer {
            Ok(answer) => carry(answer, id, &self.out).await,
            Err(error) => self.say(error).await,
        }
    }

    fn unanswered(&self, fault: &Fault, incoming: &Incoming) -> Bytes {
        let id = incoming.message.request_id().cloned().unwrap_or_else(|| RequestId::from(0));
        carry::error(&id, -32603, &super::words::fault(fault, &self.shim.resource), Default::default())
    }

    /// A tool call.
    async fn call(&self, id: &RequestId, incoming: Incoming, stop: Stop) {
        let (say, mut hear) = mpsc::channel(QUEUE);
        let asks = if incoming.is_modern() {
            incoming.says_it_can_be_asked()
        } else {
            self.asks.load(Ordering::Relaxed)
        };
        let client = Client {
            asks,
            questions: &self.questions,
            line: self.line(&incoming),
            headers: None,
            out: say,
            stop: stop.clone(),
        };
        let tell = async {
            while let Some(event) = hear.recv().await {
                match event {
                    Event::Note(note) => self.say(note).await,
                    Event::Carried(answer) => tokio::select! {
                        () = carry(answer, Some(id), &self.out) => {}
                        () = stop.said() => {}
                    },
                    Event::Result(result) => self.say(carry::result(id, &result)).await,
                    Event::Fault(fault) => self.say(fault.body().into()).await,
                    Event::NoSession => {
                        let error =
                            carry::error(id, -32603, "the server lost the session", Default::default());
                        self.say(error).await;
                    }
                }
            }
        };
        tokio::join!(desk::call(&self.shim, client, incoming), tell);
    }

    /// Passes on what the server says unasked, for as long as the session lasts.
    async fn listen(self: Arc<Self>) {
        let mut pause = AGAIN.0;
        while !self.out.is_closed() {
            match self.shim.agent.listen(&self.older, &HeaderMap::new()).await {
                Ok(answer) if answer.status().is_success() && carry::is_stream(&answer) => {
                    pause = AGAIN.0;
                    carry::stream(answer.into_body(), None, &self.out).await;
                }
                // It has no such stream.
                Ok(answer) if answer.status() == 405 => return,
                _ => pause = (pause * 2).min(AGAIN.1),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.out.closed() => return,
            }
        }
    }

    /// Lets calls put themselves away, and ends the session.
    async fn close(&self) {
        let stoppers: Vec<_> = self.running().values().cloned().collect();
        for stopper in stoppers {
            stopper.stop();
        }
        let quiet = async {
            while !self.running().is_empty() || self.out.capacity() < self.out.max_capacity() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        // What has not put itself away by then is taken up from what it last wrote down.
        let _ = tokio::time::timeout(GRACE, quiet).await;
        if self.older.has_session() {
            let _ = self.shim.agent.leave(&self.older, &HeaderMap::new()).await;
        }
    }
}

/// An id as what it says, however it is written.
fn key(id: &RequestId) -> String {
    match Json::parse(id.text().as_bytes(), Default::default()) {
        Ok(Json::String(text)) => format!("\"{text}"),
        _ => id.text().to_owned(),
    }
}
