//! A response body on its way to the agent, and what ends it early.
//!
//! It ends when its session is closed to it, when she no longer stands behind the token it was given for (D-13, D-21),
//! when the access token it was given for expires, and, in the revisions where hanging up cancels, when nobody listens. An older client's answer is read to its end even
//! then (D-10). Its bytes pass untouched; of a session's, what its server asks is noted on the way.

use super::body::{BoxError, Carried, Cut, Piece};
use super::events::{Events, Told};
use super::rounds::Rounds;
use super::sessions::Visit;
use crate::engine::Engine;
use crate::session::{Closing, Shown};
use bytes::Bytes;
use http::Response;
use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt;
use sayso_protocol::message::RequestId;
use sayso_protocol::payload::protection::AccessReport;
use sayso_protocol::{Json, Timestamp, json};
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How long a call runs on without its caller.
const ALONE: Duration = Duration::from_secs(300);
/// Pieces under way to the agent.
const AHEAD: usize = 8;
/// How often her authority is asked about what a stream goes by (D-13), and how long it may take to say: together less
/// than the five seconds in which the stream of a revoked grant ends (D-21).
const ASK: Duration = Duration::from_secs(4);
const ANSWER: Duration = Duration::from_millis(800);
/// Longest event that is read for what it asks.
const EVENT: usize = 1 << 20;

/// Whether a response goes on without its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaving {
    /// Hanging up cancels the call, or ends the listening.
    Ends,
    /// It says nothing.
    RunsOn,
}

/// What a response goes by.
pub(super) struct Terms {
    pub(super) engine: Engine,
    pub(super) leaving: Leaving,
    /// The token of its own call.
    pub(super) token: Option<Shown>,
    /// Until when the access token of its own call is good.
    pub(super) until: Option<Timestamp>,
    /// Its session.
    pub(super) visit: Option<Arc<Visit>>,
    /// Until when its session is open to it.
    pub(super) closing: Option<Closing>,
    /// The call whose tool may ask for another round in it.
    pub(super) asks: Option<AccessReport>,
    /// When it was permitted.
    pub(super) since: Instant,
}

/// The same response, on these terms.
pub(super) fn carry<B>(response: Response<B>, mut terms: Terms) -> Response<Carried<B>>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    if response.body().size_hint().exact().is_some() {
        // A message of known length is no stream: it is one answer, under way.
        (terms.token, terms.until, terms.visit, terms.closing) = (None, None, None, None);
    }
    let free =
        terms.token.is_none() && terms.until.is_none() && terms.visit.is_none() && terms.asks.is_none();
    if terms.leaving == Leaving::Ends && free {
        return response.map(Carried::passed);
    }
    let events = is_events(&response);
    response.map(|body| run(body, terms, events))
}

pub(super) fn is_events<B>(response: &Response<B>) -> bool {
    let kind = response.headers().get("content-type").map_or(&b""[..], |value| value.as_bytes());
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
}

fn run<B>(body: B, terms: Terms, events: bool) -> Carried<B>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let (sender, receiver) = mpsc::channel::<Piece>(AHEAD);
    let closed = Arc::new(AtomicBool::new(false));
    tokio::spawn(pump(body, terms, events, sender, Arc::clone(&closed)));
    Carried::run(receiver, closed, events)
}

async fn pump<B>(
    mut body: B,
    mut terms: Terms,
    events: bool,
    listener: mpsc::Sender<Piece>,
    closed: Arc<AtomicBool>,
) where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let mut rounds = terms.asks.take().map(|call| Rounds::of(terms.engine.clone(), call, events));
    let mut tap = terms.visit.clone().filter(|_| events).map(Tap::of);
    // An answer that was long in coming is looked at before any of it passes.
    if is_over(&terms) || (terms.since.elapsed() >= ASK && is_revoked(&terms).await) {
        return cut(&closed, events, &listener);
    }
    let mut ended = pin!(end(terms.closing.take(), &terms));
    let mut listening = true;
    let mut alone = pin!(left(None));
    loop {
        let piece = tokio::select! {
            biased;
            () = &mut ended => break,
            () = listener.closed(), if listening => {
                if terms.leaving == Leaving::Ends {
                    return;
                }
                listening = false;
                // Only what has event ids can be taken up, and then by another listening.
                let visit = tap.as_ref().filter(|tap| tap.numbered).map(|tap| Arc::clone(&tap.visit));
                alone.set(left(Some((Instant::now() + ALONE, visit))));
                continue;
            }
            () = &mut alone => return,
            piece = body.frame() => piece.map(|piece| piece.map_err(Into::into)),
        };
        if let (Some(tap), Some(Ok(frame))) = (&mut tap, &piece) {
            tap.note(frame);
        }
        let over = piece.is_none();
        let pieces = match &mut rounds {
            Some(rounds) => rounds.read(piece).await,
            None => piece.into_iter().collect(),
        };
        for piece in pieces.into_iter().filter(|_| listening) {
            tokio::select! {
                biased;
                () = &mut ended => return cut(&closed, events, &listener),
                _ = listener.send(piece) => {}
            }
        }
        if over {
            return;
        }
    }
    cut(&closed, events, &listener);
}

fn cut(closed: &AtomicBool, events: bool, listener: &mpsc::Sender<Piece>) {
    tracing::info!("stream.closed");
    closed.store(true, Ordering::Release);
    if !events {
        // Of events the end is enough; of anything else it would pass for all there is. A reader who has pieces waiting
        // is told by the first of them.
        let _ = listener.try_send(Err(Cut.into()));
    }
}

/// Returns when a response that nobody listens to was read on for long enough.
async fn left(alone: Option<(Instant, Option<Arc<Visit>>)>) {
    match alone {
        None => pending().await,
        Some((until, None)) => sleep_until(until).await,
        Some((until, Some(visit))) => tokio::select! {
            () = sleep_until(until) => {}
            () = visit.is_taken_up() => {}
        },
    }
}

/// Returns when the response must end.
async fn end(closing: Option<Closing>, terms: &Terms) {
    let closed = async {
        match closing {
            Some(mut closing) => closing.come().await,
            None => pending().await,
        }
    };
    tokio::select! {
        () = closed => {}
        () = revoked(terms) => {}
        () = expired(terms) => {}
    }
}

fn is_over(terms: &Terms) -> bool {
    terms.until.is_some_and(|until| terms.engine.now() >= until)
}

/// Returns when the access token is not good any more. By the clock and in steps: a machine that slept has waited for
/// nothing.
async fn expired(terms: &Terms) {
    let Some(until) = terms.until else { return pending().await };
    while !is_over(terms) {
        let left = u64::try_from(until.0.saturating_sub(terms.engine.now().0)).unwrap_or_default();
        sleep(Duration::from_secs(left.max(1)).min(ASK)).await;
    }
}

/// Returns when she no longer stands behind the tokens.
async fn revoked(terms: &Terms) {
    let mut next = terms.since;
    loop {
        next = (next + ASK).max(Instant::now());
        sleep_until(next).await;
        if is_revoked(terms).await {
            return;
        }
    }
}

/// Whether she no longer stands behind the call's own token or the session's last, or nobody can say whether she does.
async fn is_revoked(terms: &Terms) -> bool {
    let last = terms.visit.as_ref().and_then(|visit| visit.session.last_token());
    let other = last.filter(|last| Some(last) != terms.token.as_ref());
    let asking = async {
        for token in terms.token.iter().chain(&other) {
            if terms.engine.has_ended(token).await.unwrap_or(true) {
                return true;
            }
        }
        false
    };
    timeout(ANSWER, asking).await.unwrap_or(true)
}

/// Notes what a session's server asks and tells.
struct Tap {
    events: Events,
    visit: Arc<Visit>,
    /// Whether there was an event id.
    numbered: bool,
}

impl Tap {
    fn of(visit: Arc<Visit>) -> Self {
        Self { events: Events::bounded(EVENT), visit, numbered: false }
    }

    fn note(&mut self, frame: &Frame<Bytes>) {
        let Some(data) = frame.data_ref() else { return };
        self.visit.touch();
        for told in self.events.feed(data) {
            match told {
                Told::Id(id) => {
                    self.numbered = true;
                    self.visit.session.tell(&id);
                }
                Told::Data(data) => {
                    asked(&data).iter().for_each(|id| self.visit.session.ask(id));
                }
            }
        }
    }
}

/// The ids of the requests in it; of an older server's batch, all. What cannot be read strictly asks nothing.
fn asked(data: &[u8]) -> Vec<RequestId> {
    match Json::parse(data, json::Limits { bytes: EVENT, ..json::Limits::default() }) {
        Ok(Json::Array(batch)) => batch.iter().filter_map(request_id).collect(),
        Ok(message) => request_id(&message).into_iter().collect(),
        Err(_) => Vec::new(),
    }
}

fn request_id(message: &Json) -> Option<RequestId> {
    message.get("method").and_then(Json::as_str)?;
    match message.get("id")? {
        Json::Number(number) => number.text().parse().ok(),
        Json::String(text) => serde_json::to_string(text).ok()?.parse().ok(),
        _ => None,
    }
}
