//! The body of an answer on its way to the agent: one of ours, the server's as it is, or the server's as far as it may go.

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::Full;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;

/// Why a body broke off.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A piece of a body under way.
pub(super) type Piece = Result<Frame<Bytes>, BoxError>;

/// What broke off an answer that is no stream of events.
#[derive(Debug, thiserror::Error)]
#[error("what this answer was given for has ended")]
pub(super) struct Cut;

/// The body of an answer, whose server answers with bodies of type `B`.
pub struct Carried<B>(Kind<B>);

enum Kind<B> {
    Ours(Full<Bytes>),
    Passed(B),
    Run(Run),
}

/// A body that somebody reads for the agent, and closes to it.
struct Run {
    pieces: mpsc::Receiver<Piece>,
    closed: Arc<AtomicBool>,
    events: bool,
}

impl<B> Carried<B> {
    /// The server's body, as it is.
    pub(super) fn passed(body: B) -> Self {
        Self(Kind::Passed(body))
    }

    /// What comes through here, until it is closed.
    pub(super) fn run(pieces: mpsc::Receiver<Piece>, closed: Arc<AtomicBool>, events: bool) -> Self {
        Self(Kind::Run(Run { pieces, closed, events }))
    }
}

impl<B> From<Bytes> for Carried<B> {
    fn from(text: Bytes) -> Self {
        Self(Kind::Ours(Full::new(text)))
    }
}

impl Run {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        let piece = ready!(self.pieces.poll_recv(context));
        // What waited for a slow reader is not for it any more.
        if piece.is_some() && self.closed.load(Ordering::Acquire) {
            self.pieces.close();
            while self.pieces.try_recv().is_ok() {}
            return Poll::Ready((!self.events).then(|| Err(Cut.into())));
        }
        Poll::Ready(piece)
    }
}

impl<B> HttpBody for Carried<B>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        match &mut self.0 {
            Kind::Ours(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
            Kind::Passed(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
            Kind::Run(run) => run.poll_piece(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Ours(body) => body.is_end_stream(),
            Kind::Passed(body) => body.is_end_stream(),
            Kind::Run(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Ours(body) => body.size_hint(),
            Kind::Passed(body) => body.size_hint(),
            Kind::Run(_) => SizeHint::default(),
        }
    }
}
