//! What a child said about a call, as the HTTP response of a server.
//!
//! One JSON body when the answer comes first; a stream of events when the child told of progress before, if the client
//! takes one. Apart from the ids the bytes are the child's.

use super::board::Exchange;
use crate::upstream::Broken;
use axum::body::Body;
use bytes::Bytes;
use futures::{Stream, stream};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use sayso_enforce::answer;
use sayso_protocol::envelope::jsonrpc::{self, Codes};
use sayso_protocol::json::{Json, Limits, MAX_DEPTH};
use sayso_protocol::message::{MessageFault, RequestId};
use sayso_protocol::payload::refusal::{Code, Forwarded, Refusal};
use std::convert::Infallible;
use tokio::sync::mpsc;

/// Errors of a modern request that have a status of their own; every other rides on 200.
const BAD_REQUEST: [i64; 6] = [-32700, -32600, -32602, -32020, -32021, -32022];

/// How a call is answered.
pub(super) struct Manner {
    /// The client's id, for what we have to say ourselves.
    pub(super) id: RequestId,
    /// Whether the client takes events.
    pub(super) streams: bool,
    /// Whether errors have statuses.
    pub(super) modern: bool,
    /// Whether a grant was spent on the call.
    pub(super) spent: bool,
}

/// Waits for the child's first word about a call.
pub(super) async fn respond(mut exchange: Exchange, manner: Manner) -> Result<Response<Body>, Broken> {
    let answer = tokio::select! {
        biased;
        Some(note) = exchange.notes.recv(), if manner.streams => return Ok(telling(exchange, manner, note)),
        answer = &mut exchange.answer => answer,
    };
    answer.map(|answer| whole(answer, manner.modern)).map_err(|_| Broken::Interrupted)
}

/// An answer of ours or the child's, as one body.
pub(super) fn whole(text: Bytes, modern: bool) -> Response<Body> {
    let status = if modern { status(&text) } else { StatusCode::OK };
    answer::bytes(status, text)
}

/// A message was taken that has no answer.
pub(super) fn accepted(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// What a child tells its one client beside answers, for as long as it is the one who listens.
pub(super) fn listening(lines: mpsc::Receiver<Bytes>) -> Response<Body> {
    events(stream::unfold(lines, |mut lines| async move {
        let said = lines.recv().await?;
        Some((Ok::<_, Infallible>(event(&said)), lines))
    }))
}

fn status(text: &[u8]) -> StatusCode {
    let root = Json::parse(text, Limits { bytes: usize::MAX, depth: MAX_DEPTH }).ok();
    let code = root.and_then(|root| root.get("error")?.get("code")?.as_i64());
    match code {
        Some(MessageFault::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(code) if BAD_REQUEST.contains(&code) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

enum Telling {
    First(Box<Exchange>, Manner, Bytes),
    On(Box<Exchange>, Manner),
    Last(Box<Exchange>, Bytes),
    Done,
}

fn telling(exchange: Exchange, manner: Manner, first: Bytes) -> Response<Body> {
    events(stream::unfold(Telling::First(Box::new(exchange), manner, first), |telling| async move {
        let (said, next) = match telling {
            Telling::First(exchange, manner, first) => (first, Telling::On(exchange, manner)),
            Telling::On(exchange, manner) => listen(exchange, manner).await,
            Telling::Last(exchange, last) => end(exchange, last),
            Telling::Done => return None,
        };
        Some((Ok::<_, Infallible>(event(&said)), next))
    }))
}

fn events(said: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response<Body> {
    let mut response = Response::new(Body::from_stream(said));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The next thing said. Notes stay ahead of the answer, as the child wrote them.
async fn listen(mut exchange: Box<Exchange>, manner: Manner) -> (Bytes, Telling) {
    tokio::select! {
        biased;
        Some(note) = exchange.notes.recv() => (note, Telling::On(exchange, manner)),
        answer = &mut exchange.answer => {
            let last = answer.unwrap_or_else(|_| broken_off(&manner));
            end(exchange, last)
        }
    }
}

fn end(mut exchange: Box<Exchange>, last: Bytes) -> (Bytes, Telling) {
    match exchange.notes.try_recv() {
        Ok(note) => (note, Telling::Last(exchange, last)),
        Err(_) => (last, Telling::Done),
    }
}

fn event(said: &[u8]) -> Bytes {
    // INVARIANT: what a child said is one line, so it is one line of data.
    [b"event: message\ndata: ", said, b"\n\n"].concat().into()
}

/// The status is long sent, so a stream ends with the refusal that a status would have been.
fn broken_off(manner: &Manner) -> Bytes {
    let text = Broken::Interrupted.to_string();
    let refusal = if manner.spent {
        Refusal::after_spend(text, Forwarded::Unknown)
    } else {
        Refusal { forwarded: Some(Forwarded::Unknown), ..Refusal::new(Code::UpstreamFailed, text) }
    };
    let error = jsonrpc::refusal(Codes::default(), &refusal);
    jsonrpc::response(&manner.id, &error).unwrap_or_default().into()
}

/// Whether a client takes events.
pub(super) fn takes_events(headers: &HeaderMap) -> bool {
    headers.get_all("accept").iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|range| {
            let range = range.split(';').next().unwrap_or_default().trim();
            ["text/event-stream", "text/*", "*/*"].iter().any(|taken| range.eq_ignore_ascii_case(taken))
        })
    })
}
