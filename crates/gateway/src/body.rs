//! A request body, read whole or not at all.
//!
//! Bounded in bytes and in time (D-10). What does not arrive whole is truncated, never a shorter body; the rest of one
//! that is too large is drained for a moment, so that its sender gets to read why.

use axum::body::Body as HttpBody;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body_util::BodyExt;
use sayso_enforce::Body;
use std::time::Duration;
use tokio::time::timeout;

/// How long a body may take.
const READ: Duration = Duration::from_secs(30);
/// How long the rest of a refused body is read.
const DRAIN: Duration = Duration::from_secs(1);
/// What is set aside for a body before any of it has come.
const FIRST: usize = 64 << 10;

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read(mut body: HttpBody, headers: &HeaderMap, limit: usize) -> Body {
    let declared =
        headers.get("content-length").and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limit) {
        drain(body, headers).await;
        return Body::Truncated;
    }
    let expected = declared.unwrap_or(FIRST).min(FIRST);
    match timeout(READ, collect(&mut body, expected, limit)).await {
        Ok(Some(bytes)) => Body::Whole(bytes),
        Ok(None) => {
            drain(body, headers).await;
            Body::Truncated
        }
        Err(_) => Body::Truncated,
    }
}

async fn collect(body: &mut HttpBody, expected: usize, limit: usize) -> Option<Bytes> {
    let mut whole = BytesMut::with_capacity(expected);
    while let Some(frame) = body.frame().await {
        // Trailers are no part of the message, and nobody forwards them.
        let Ok(data) = frame.ok()?.into_data() else { continue };
        if data.len() > limit.saturating_sub(whole.len()) {
            return None;
        }
        whole.extend_from_slice(&data);
    }
    Some(whole.freeze())
}

/// Reads what is left and forgets it. A client that waits to be asked for its body is not asked.
pub(crate) async fn drain(mut body: HttpBody, headers: &HeaderMap) {
    if headers.contains_key("expect") {
        return;
    }
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    // Running out of time is the point.
    let _ = timeout(DRAIN, rest).await;
}
