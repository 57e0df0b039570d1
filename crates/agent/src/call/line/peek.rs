//! A look at the beginning of an answer: is it the owner's enforcement point that speaks, or the server?
//! It keeps the answer whole: what was read to find out comes first when it is read. A challenge is recognised in both
//! its forms (MCP-15), also at the head of a stream.

use crate::call::events::Events;
use crate::call::reply::{self, MAX_BYTES, Reply};
use crate::fault::{Fault, Party};
use bytes::{Bytes, BytesMut};
use http::Response;
use http::header::CONTENT_TYPE;
use sayso_fetch::{FetchError, Pieces};
use sayso_protocol::Json;
use sayso_protocol::json::Limits;
use sayso_protocol::message::RequestId;

const LIMITS: Limits = Limits { bytes: MAX_BYTES, depth: 128 };

/// What is answered before the server gets to see the request, if that is what this is.
pub(super) async fn reply(
    answer: Response<Pieces>,
    id: Option<&RequestId>,
) -> Result<(Response<Pieces>, Option<Reply>), FetchError> {
    let (answer, head) = beginning(answer).await?;
    let Some(id) = id else { return Ok((answer, None)) };
    let reply = match head {
        Head::Whole(body) => reply::read(&as_is(&answer, body), id).ok(),
        Head::Events(events) => events.into_iter().find_map(|event| {
            let mut one = Response::new(Bytes::from(event));
            one.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
            reply::read(&one, id).ok()
        }),
    };
    let ours = match reply {
        Some(Reply::Challenge(_)) => true,
        // A page of somebody's, or a bare status, is passed on; a word of the protocol's is for the agent.
        Some(Reply::Refused(ref refused)) => refused.code.is_some(),
        _ => false,
    };
    Ok((answer, reply.filter(|_| ours)))
}

/// The result that answers a request, as far as it comes first.
pub(super) async fn result(
    answer: Response<Pieces>,
    id: Option<&RequestId>,
) -> Result<(Response<Pieces>, Option<Json>), Fault> {
    let begun = beginning(answer).await;
    let (answer, head) = begun.map_err(|why| Party::Resource.unavailable(why))?;
    let bodies = match head {
        Head::Whole(body) => vec![body.to_vec()],
        Head::Events(events) => events,
    };
    let found = bodies.iter().find_map(|body| {
        let root = Json::parse(body, LIMITS).ok()?;
        id.and(root.get("result").cloned())
    });
    Ok((answer, found))
}

enum Head {
    /// The whole body.
    Whole(Bytes),
    /// The events that came first.
    Events(Vec<Vec<u8>>),
}

/// Reads until something was said.
async fn beginning(answer: Response<Pieces>) -> Result<(Response<Pieces>, Head), FetchError> {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let stream = kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream");
    let (parts, mut pieces) = answer.into_parts();
    if !stream {
        let body = pieces.rest(MAX_BYTES).await?;
        return Ok((Response::from_parts(parts, Pieces::whole(body.clone())), Head::Whole(body)));
    }
    let (mut read, mut events, mut told) = (BytesMut::new(), Events::default(), Vec::new());
    while told.is_empty() {
        let Some(piece) = pieces.next().await? else { break };
        if piece.len() > MAX_BYTES.saturating_sub(read.len()) {
            return Err(FetchError::TooLarge);
        }
        told = events.feed(&piece);
        read.extend_from_slice(&piece);
    }
    Ok((Response::from_parts(parts, Pieces::after(read.freeze(), pieces)), Head::Events(told)))
}

fn as_is(answer: &Response<Pieces>, body: Bytes) -> Response<Bytes> {
    let mut whole = Response::new(body);
    *whole.status_mut() = answer.status();
    whole.headers_mut().clone_from(answer.headers());
    whole
}
