//! How much of requests is held and decided on at once, whoever sends them.
//!
//! A body is small, or it needs a place among the large ones. Read into values it is many times its size, so there is a turn
//! for that, by its size and in the order they came.

use super::MAX_REQUEST;
use super::reading::Unread;
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// What every body may hold.
const SMALL: usize = 64 << 10;
/// What the larger ones may hold together. Each counts as the largest, so that what was begun can be read to its end.
const LARGE: usize = 64 << 20;
/// What of bodies is decided on at once, and in which units it is counted.
const AT_ONCE: usize = 4 << 20;
const UNIT: usize = 1 << 10;

/// The room there is.
pub(super) struct Room {
    large: Arc<Semaphore>,
    turns: Semaphore,
}

/// A body that has come, and its place for as long as it is held.
pub(super) struct Held {
    pub(super) bytes: Bytes,
    _place: Option<OwnedSemaphorePermit>,
}

impl Room {
    pub(super) fn new() -> Self {
        Self { large: Arc::new(Semaphore::new(LARGE / MAX_REQUEST)), turns: Semaphore::new(AT_ONCE / UNIT) }
    }

    /// Reads a body to its end.
    pub(super) async fn body(&self, mut body: Body) -> Result<Held, Unread> {
        let mut whole = BytesMut::new();
        let mut place = None;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
            if data.len() > MAX_REQUEST.saturating_sub(whole.len()) {
                return Err(Unread::TooLarge);
            }
            if place.is_none() && whole.len().saturating_add(data.len()) > SMALL {
                place = Some(Arc::clone(&self.large).try_acquire_owned().map_err(|_| Unread::NoRoom)?);
            }
            whole.extend_from_slice(&data);
        }
        Ok(Held { bytes: whole.freeze(), _place: place })
    }

    /// Waits for the turn of a body; it lasts until this is dropped.
    pub(super) async fn turn(&self, held: &Held) -> Option<SemaphorePermit<'_>> {
        let units = held.bytes.len().div_ceil(UNIT).clamp(1, AT_ONCE / UNIT);
        self.turns.acquire_many(u32::try_from(units).ok()?).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(size: usize) -> Body {
        Body::from(vec![b' '; size])
    }

    // D-10
    #[tokio::test]
    async fn large_bodies_have_so_many_places_and_small_ones_need_none() {
        let room = Room::new();
        let mut all = Vec::new();
        for _ in 0..LARGE / MAX_REQUEST {
            all.push(room.body(of(SMALL + 1)).await.ok().unwrap());
        }
        assert!(matches!(room.body(of(SMALL + 1)).await, Err(Unread::NoRoom)));
        assert!(room.body(of(SMALL)).await.is_ok());
        all.pop();
        assert!(room.body(of(MAX_REQUEST)).await.is_ok());
        assert!(matches!(room.body(of(MAX_REQUEST + 1)).await, Err(Unread::TooLarge)));
    }

    #[tokio::test]
    async fn so_much_is_decided_on_at_once_and_the_rest_waits_its_turn() {
        let room = Room::new();
        let (large, small) =
            (room.body(of(MAX_REQUEST)).await.ok().unwrap(), room.body(of(1)).await.ok().unwrap());
        let mut turns = Vec::new();
        for _ in 0..AT_ONCE / MAX_REQUEST {
            turns.push(room.turn(&large).await.unwrap());
        }
        let waits = tokio::time::timeout(std::time::Duration::from_millis(20), room.turn(&small)).await;
        assert!(waits.is_err());
        turns.pop();
        assert!(room.turn(&small).await.is_some());
    }
}
