//! A response body that is read to its end even when nobody listens any more.
//!
//! In revisions before 2026-07-28 hanging up does not cancel a call (D-10), so the upstream must not notice it. The
//! reading stops after five minutes without a listener; nothing is kept.

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// How long a call runs on without its caller.
const ALONE: Duration = Duration::from_secs(300);
/// Pieces under way to the agent.
const AHEAD: usize = 8;

type Piece = Result<Frame<Bytes>, axum::Error>;

/// The same body, on a task of its own.
pub(crate) fn outlive(body: Body) -> Body {
    let (sender, receiver) = mpsc::channel::<Piece>(AHEAD);
    tokio::spawn(pump(body, sender));
    let pieces = stream::unfold(receiver, |mut receiver| async move {
        let piece = receiver.recv().await?;
        Some((piece, receiver))
    });
    Body::new(StreamBody::new(pieces))
}

async fn pump(mut body: Body, listener: mpsc::Sender<Piece>) {
    while let Some(piece) = body.frame().await {
        if listener.send(piece).await.is_err() {
            let rest = async { while let Some(Ok(_)) = body.frame().await {} };
            // Running out of time ends the exchange, which is all there is left to do.
            let _ = timeout(ALONE, rest).await;
            return;
        }
    }
}
