//! A connection's router: it says of every request where it came from, and that it is under way until its answer was
//! taken.

use crate::Peer;
use crate::crowd::{Busy, Line};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_service::Service;

#[derive(Clone)]
pub(crate) struct Told {
    router: Router,
    line: Arc<Line>,
}

impl Told {
    pub(crate) fn new(router: Router, line: Arc<Line>) -> Self {
        Self { router, line }
    }
}

impl<B> Service<hyper::Request<B>> for Told
where
    B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.router, context)
    }

    fn call(&mut self, request: hyper::Request<B>) -> Self::Future {
        let busy = self.line.begin();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(self.line.from));
        let answering = self.router.call(request);
        Box::pin(async move {
            let response = answering.await?;
            Ok(response.map(|body| Body::new(Taken { body, _busy: busy })))
        })
    }
}

/// A body; its request is under way for as long as it is.
struct Taken {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Taken {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
