//! The answer of a server cut to what its reader may have.
//!
//! It is read whole, whether it comes as JSON or as a stream of events of which one is the answer, and leaves as JSON. What
//! cannot be read in time and within bounds is refused, not passed on.

use super::body::{BoxError, Carried};
use super::events::{Events, Told};
use super::sessions::SESSION;
use super::stream::is_events;
use crate::policy::Filter;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response};
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
    parts.headers = beside(&parts.headers);
    Response::from_parts(parts, Carried::from(text))
}

/// The headers of a cut answer. A tag, a digest or a count of the whole would tell its reader what is not there, and what
/// is kept of it is kept for nobody else.
fn beside(whole: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(session) = whole.get(SESSION) {
        headers.insert(SESSION, session.clone());
    }
    headers
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

#[cfg(all(test, feature = "coaz"))]
mod tests {
    use super::*;
    use crate::scripted_policy::{Point, Says, filtering};
    use http_body_util::Full;

    // COAZ-FW-43: the headers of the whole answer are not those of the cut one, in whichever form it came.
    #[tokio::test]
    async fn no_header_of_the_whole_answer_passes_beside_a_cut_one() {
        let list = r#"{"jsonrpc":"2.0","id":"x","result":{"tools":[{"name":"a"},{"name":"b"}]}}"#;
        for (kind, text) in
            [("application/json", list.to_owned()), ("text/event-stream", format!("id: 1\ndata: {list}\n\n"))]
        {
            let whole = Response::builder().header("content-type", kind).header("content-length", text.len());
            let whole = whole.header("etag", "\"two\"").header("x-total-count", "2").header("link", "</2>");
            let whole = whole.header("content-digest", "sha-256=:AA==:").header("last-modified", "today");
            let whole = whole.header("cache-control", "public, max-age=60").header("mcp-session-id", "ours");
            let whole = whole.body(Full::new(Bytes::from(text))).unwrap();
            let cut = cut(whole, filtering(&Point::saying(Says::FirstOnly))).await;
            let mut headers: Vec<_> =
                cut.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
            headers.sort_unstable();
            assert_eq!(
                headers,
                [
                    ("cache-control", "no-store"),
                    ("content-type", "application/json"),
                    ("mcp-session-id", "ours"),
                ]
            );
            let body = cut.into_body().collect().await.unwrap().to_bytes();
            let said: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(said["result"]["tools"], serde_json::json!([{ "name": "a" }]), "{kind}");
        }
    }
}
