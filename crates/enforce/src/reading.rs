//! A request body, read whole or not at all.
//!
//! Bounded in bytes and in time, and all together in memory (D-10). What does not arrive whole is truncated, never a
//! shorter body; the rest of one that is too large is drained for a moment, so that its sender gets to read why.

use crate::call::Body;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body as HttpBody;
use http_body_util::BodyExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long a body may take.
const READ: Duration = Duration::from_secs(30);
/// How long the rest of a refused body is read.
const DRAIN: Duration = Duration::from_secs(1);
/// What is set aside for a body before any of it has come, and what every body may hold.
const FIRST: usize = 64 << 10;
/// What the bodies that grow beyond that may hold together.
const ROOM: usize = 64 << 20;

/// How much of bodies is held.
pub struct Bodies {
    limit: usize,
    large: Arc<Semaphore>,
}

/// A large body's place, if it is one; given back when it is dropped.
pub type Place = Option<OwnedSemaphorePermit>;

/// There is no place for another large body now.
#[derive(Debug)]
pub struct NoRoom;

/// Why a body was not read to its end.
enum Cut {
    Short,
    NoRoom,
}

impl Bodies {
    /// Bodies of at most `limit` bytes. A large one counts as the largest, so that what was begun can be read to its end.
    pub fn new(limit: usize) -> Self {
        let places = (ROOM / limit.max(1)).clamp(1, Semaphore::MAX_PERMITS);
        Self { limit, large: Arc::new(Semaphore::new(places)) }
    }

    /// Reads a body; its place is to be kept as long as it is.
    ///
    /// # Errors
    /// When there is no room for another large body now; nothing of it was kept.
    pub async fn read<B>(&self, mut body: B, headers: &HeaderMap) -> Result<(Body, Place), NoRoom>
    where
        B: HttpBody<Data = Bytes> + Unpin,
    {
        let declared =
            headers.get("content-length").and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if declared.is_some_and(|length| length > self.limit) {
            drain(body, headers).await;
            return Ok((Body::Truncated, None));
        }
        let expected = declared.unwrap_or(FIRST).min(FIRST);
        match timeout(READ, self.collect(&mut body, expected)).await {
            Ok(Ok((bytes, place))) => Ok((Body::Whole(bytes), place)),
            Ok(Err(cut)) => {
                drain(body, headers).await;
                match cut {
                    Cut::Short => Ok((Body::Truncated, None)),
                    Cut::NoRoom => Err(NoRoom),
                }
            }
            Err(_) => Ok((Body::Truncated, None)),
        }
    }

    async fn collect<B>(&self, body: &mut B, expected: usize) -> Result<(Bytes, Place), Cut>
    where
        B: HttpBody<Data = Bytes> + Unpin,
    {
        let mut whole = BytesMut::with_capacity(expected);
        let mut place = None;
        while let Some(frame) = body.frame().await {
            // Trailers are no part of the message, and nobody forwards them.
            let Ok(data) = frame.map_err(|_| Cut::Short)?.into_data() else { continue };
            if data.len() > self.limit.saturating_sub(whole.len()) {
                return Err(Cut::Short);
            }
            if place.is_none() && whole.len().saturating_add(data.len()) > FIRST {
                place = Some(Arc::clone(&self.large).try_acquire_owned().map_err(|_| Cut::NoRoom)?);
            }
            whole.extend_from_slice(&data);
        }
        Ok((whole.freeze(), place))
    }
}

/// Reads what is left and forgets it. A client that waits to be asked for its body is not asked.
pub async fn drain<B>(mut body: B, headers: &HeaderMap)
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    if headers.contains_key("expect") {
        return;
    }
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    // Running out of time is the point.
    let _ = timeout(DRAIN, rest).await;
}
