//! What happens, as it happens: server-sent events read from her record (OWN-25).
//!
//! The record is shared by every process on one store, so a decision made at another one is streamed here too. An
//! event's id is the row's place, and `Last-Event-ID` goes on after it. Nothing of an agent's words is in an event.

use super::super::Shared;
use super::super::answer::{Detail, Fault};
use super::Hers;
use crate::Authority;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{self, Stream, StreamExt as _};
use http::StatusCode;
use sayso_owner::ledger::{Kind, Row};
use sayso_protocol::OwnerName;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How often the record is looked at; one indexed read.
const TICK: Duration = Duration::from_millis(250);
/// Rows read at once.
const BATCH: i64 = 200;
/// Streams open at once, over all owners.
const STREAMS: usize = 256;
/// How long a stream lives; a client goes on with `Last-Event-ID`.
const LIFE: Duration = Duration::from_secs(3600);

/// A place among the open streams, given back when dropped.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Watch {
    authority: Arc<Authority>,
    owner: OwnerName,
    after: i64,
    _place: Place,
}

pub(in super::super) async fn stream(State(authority): Shared, hers: Hers) -> Result<Response, Detail> {
    let after = match hers.header("last-event-id") {
        None => authority.store.last_row(&hers.owner).await?,
        Some(id) => id
            .parse()
            .ok()
            .filter(|after| *after >= 0)
            .ok_or_else(|| Detail::invalid("Last-Event-ID must be the id of an event of this stream"))?,
    };
    let streams = Arc::clone(&authority.streams);
    let place = Place(Arc::clone(&streams));
    if streams.fetch_add(1, Ordering::Relaxed) >= STREAMS {
        return Err(Fault::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "temporarily_unavailable",
            "too many event streams are open; close one or try again later",
        )
        .into());
    }
    let mut closing = authority.closing.subscribe();
    let watch = Watch { authority, owner: hers.owner, after, _place: place };
    let ended = async move {
        // A listener that is gone closes too.
        let _ = tokio::time::timeout(LIFE, closing.wait_for(|closing| *closing)).await;
    };
    let events = events(watch).take_until(Box::pin(ended));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response())
}

/// The events after a place, for as long as somebody listens. A store that does not answer ends the stream, and its
/// client asks again.
fn events(watch: Watch) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(watch, |mut watch| async move {
        loop {
            let rows = watch.authority.store.ledger(&watch.owner, None, watch.after, BATCH).await.ok()?;
            if let Some(last) = rows.last() {
                watch.after = last.seq;
                let told: Vec<_> = rows.iter().filter_map(event).map(Ok).collect();
                if !told.is_empty() {
                    return Some((stream::iter(told), watch));
                }
            }
            tokio::time::sleep(TICK).await;
        }
    })
    .flatten()
}

/// The event a row is, by the names of O-38, if it is one.
fn event(row: &Row) -> Option<Event> {
    let record = &row.record;
    let kind = match (record.kind, &record.family) {
        (Kind::Promised, None) => "resource_server",
        (Kind::Promised, _) if record.entry.get("asks").is_some() => "pending",
        (Kind::Approved | Kind::Denied, Some(_)) => "decided",
        (Kind::Connected, None) if record.handle.is_none() => "signed_in",
        (Kind::Approved | Kind::Revoked, None) if record.handle.is_none() => "resource_server",
        (Kind::Revoked, _) => "revoked",
        _ => return None,
    };
    // An origin holds no words of anybody's.
    let server = record.entry.get("resource_server").filter(|_| kind == "resource_server");
    let mut data =
        json!({ "type": kind, "seq": row.seq, "ts": row.ts, "family": record.family, "what": record.kind });
    if let (Some(server), Some(members)) = (server, data.as_object_mut()) {
        members.insert("resource_server".into(), server.clone());
    }
    Some(Event::default().event(kind).id(row.seq.to_string()).data(data.to_string()))
}
