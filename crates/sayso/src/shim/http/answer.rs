//! What a client over HTTP gets: the server's answer as it comes, or ours, as a document where nothing was said on the way
//! and as a stream where something was.

use crate::shim::carry::{carry, is_stream, result};
use crate::shim::desk::Event;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use sayso_agent::Stopper;
use sayso_fetch::Pieces;
use sayso_protocol::message::{MessageFault, RequestId};
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Lines on the way from an answer into a stream.
const QUEUE: usize = 16;

/// Hears about one call. Dropped, nobody waits for it any more.
pub(super) struct Listener {
    id: RequestId,
    hear: mpsc::Receiver<Event>,
    stopper: Arc<Stopper>,
}

impl Listener {
    pub(super) fn new(id: RequestId, hear: mpsc::Receiver<Event>, stopper: Arc<Stopper>) -> Listener {
        Listener { id, hear, stopper }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stopper.stop();
    }
}

/// The answer to a call.
pub(super) async fn from_calls(mut listener: Listener) -> Response {
    match listener.hear.recv().await {
        Some(Event::Note(note)) => streamed(listener, note),
        Some(Event::Carried(answer)) => passed(answer),
        Some(Event::Result(value)) => json(StatusCode::OK, Body::from(result(&listener.id, &value))),
        Some(Event::Fault(fault)) => of_fault(&fault),
        Some(Event::NoSession) => plain(StatusCode::NOT_FOUND, "session_not_found", "initialize anew"),
        // It was cancelled; whoever cancelled it does not wait for this.
        None => accepted(),
    }
}

/// A stream that begins with a note and ends with the answer.
fn streamed(listener: Listener, note: Bytes) -> Response {
    let (say, hear) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        let told = say.clone();
        tokio::select! {
            () = tell(listener, note, &say) => {}
            // The client is gone; the listener goes with it.
            () = told.closed() => {}
        }
    });
    let body = stream::unfold(hear, async |mut hear: mpsc::Receiver<Bytes>| {
        let line = hear.recv().await?;
        let event = [b"event: message\ndata: ", &line[..], b"\n\n"].concat();
        Some((Ok::<_, Infallible>(Bytes::from(event)), hear))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

async fn tell(mut listener: Listener, note: Bytes, out: &mpsc::Sender<Bytes>) {
    let mut next = Some(Event::Note(note));
    while let Some(event) = next {
        let line = match event {
            Event::Note(note) => Some(note),
            Event::Carried(answer) => {
                carry(answer, Some(&listener.id), out).await;
                None
            }
            Event::Result(value) => Some(result(&listener.id, &value)),
            Event::Fault(fault) => Some(fault.body().into()),
            Event::NoSession => {
                let words = "the server lost the session";
                Some(crate::shim::carry::error(&listener.id, -32603, words, serde_json::Value::Null))
            }
        };
        if let Some(line) = line
            && out.send(line).await.is_err()
        {
            return;
        }
        next = listener.hear.recv().await;
    }
}

/// The server's answer, as it comes.
pub(super) fn passed(answer: http::Response<Pieces>) -> Response {
    let stream = is_stream(&answer);
    let (parts, pieces) = answer.into_parts();
    let body = stream::unfold(Some(pieces), async |pieces| {
        let mut pieces: Pieces = pieces?;
        match pieces.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(pieces))),
            Ok(None) => None,
            Err(why) => Some((Err(why), None)),
        }
    });
    let mut response = Response::new(Body::from_stream(body));
    *response.status_mut() = parts.status;
    for (name, value) in &parts.headers {
        let goes = name.as_str().starts_with("mcp-")
            || matches!(name.as_str(), "content-type" | "cache-control" | "allow");
        if goes {
            response.headers_mut().append(name.clone(), value.clone());
        }
    }
    if stream {
        response
            .headers_mut()
            .insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    }
    response
}

pub(super) fn of_fault(fault: &MessageFault) -> Response {
    let status = StatusCode::from_u16(fault.http_status).unwrap_or(StatusCode::BAD_REQUEST);
    json(status, Body::from(fault.body()))
}

/// A refusal of the shim's own.
pub(super) fn plain(status: StatusCode, error: &str, words: &str) -> Response {
    let body = json!({ "error": error, "error_description": words }).to_string();
    let mut response = json(status, Body::from(body));
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(http::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

pub(super) fn json(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// A session of the shim's own is no more.
pub(super) fn ended() -> Response {
    let mut response = accepted();
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}
