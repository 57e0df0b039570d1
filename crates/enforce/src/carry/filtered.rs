//! The answer of a server cut to what its reader may have.
//!
//! It is read whole, whether it comes as JSON or as a stream of events of which one is the answer, and leaves as JSON. What
//! cannot be read in time and within bounds is refused, not passed on.

use super::body::{BoxError, Carried};
use super::events::{Events, Told};
use super::stream::is_events;
use crate::policy::Filter;
use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, TRANSFER_ENCODING};
use http_body::Body as HttpBody;
use http_body_util::BodyExt;
use sayso_protocol::Json;
use sayso_protocol::json::Limits;
use std::time::Duration;
use tokio::time::timeout;

/// Most bytes of an answer.
const BYTES: usize = 8 << 20;
/// How long its server may take to say all of it.
const READ: Duration = Duration::from_secs(30);

/// The same answer with less in it, or a refusal in its place. An answer with an error status lists nothing.
pub(super) async fn cut<B>(response: Response<B>, filter: Filter) -> Response<Carried<B>>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    if !response.status().is_success() {
        return response.map(Carried::passed);
    }
    let events = is_events(&response);
    let coded = response.headers().contains_key(CONTENT_ENCODING);
    let (mut parts, body) = response.into_parts();
    let read = timeout(READ, whole(body, events)).await.ok().flatten().filter(|_| !coded);
    let text = filter.apply(read.as_deref()).await;
    for name in [CONTENT_LENGTH, CONTENT_ENCODING, TRANSFER_ENCODING] {
        parts.headers.remove(name);
    }
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Carried::from(text))
}

/// The one message that answers; nothing if there is none.
async fn whole<B>(mut body: B, events: bool) -> Option<Vec<u8>>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let (mut text, mut read) = (Vec::new(), 0_usize);
    let mut reader = Events::bounded(BYTES);
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.ok()?.into_data() else { continue };
        read = read.saturating_add(piece.len());
        if read > BYTES {
            return None;
        }
        if !events {
            text.extend_from_slice(&piece);
            continue;
        }
        let told = reader.feed(&piece).into_iter();
        let mut data = told.filter_map(|told| if let Told::Data(data) = told { Some(data) } else { None });
        if let Some(answer) = data.find(|data| answers(data)) {
            return Some(answer);
        }
    }
    (!events).then_some(text)
}

/// Whether a message is an answer; a stream answers one request.
fn answers(data: &[u8]) -> bool {
    let limits = Limits { bytes: BYTES, ..Limits::default() };
    let said = Json::parse(data, limits).ok();
    said.is_some_and(|said| {
        said.get("method").is_none() && (said.get("result").is_some() || said.get("error").is_some())
    })
}
