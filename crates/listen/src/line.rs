//! A connection's router: it says of every request where it came from; and of its line when a request is there in full,
//! when its answer begins, and when that was taken. Who sends a body piece by piece has said nothing yet.

use crate::crowd::{Line, Telling, Working};
use crate::{HEAD_BYTES, Peer};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode, Version};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
        if head_bytes(&request) > HEAD_BYTES {
            let ends = request.version() < Version::HTTP_2;
            return Box::pin(async move { Ok(too_large(ends)) });
        }
        self.line.speak();
        let line = Arc::clone(&self.line);
        let work = Arc::new(Work { line: Arc::clone(&line), working: Mutex::default() });
        if request.body().is_end_stream() && !work.begin() {
            return Box::pin(async { Ok(no_place()) });
        }
        let mut request =
            request.map(|body| Body::new(Asked { body: Body::new(body), work: Arc::clone(&work) }));
        request.extensions_mut().insert(Peer(line.from));
        let answering = self.router.call(request);
        Box::pin(async move {
            let response = answering.await;
            let telling = line.tell();
            work.end();
            Ok(response?.map(|body| Body::new(Taken { body, _telling: telling })))
        })
    }
}

/// Whether a request is being worked on.
struct Work {
    line: Arc<Line>,
    working: Mutex<Option<Working>>,
}

impl Work {
    /// Whether it may be.
    fn begin(&self) -> bool {
        let mut working = self.working();
        if working.is_none() {
            *working = self.line.work();
        }
        working.is_some()
    }

    fn end(&self) {
        *self.working() = None;
    }

    fn working(&self) -> MutexGuard<'_, Option<Working>> {
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request's body; with its end the request is there in full.
struct Asked {
    body: Body,
    work: Arc<Work>,
}

impl HttpBody for Asked {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let whole = matches!(polled, Poll::Ready(None)) || self.body.is_end_stream();
        if whole && !self.work.begin() {
            return Poll::Ready(Some(Err(axum::Error::new(std::io::Error::other("the place was given up")))));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// How much a head says. Whether a larger one is noticed while it is read depends on the pieces it comes in.
fn head_bytes<B>(request: &hyper::Request<B>) -> usize {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let lines = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    lines.fold(target, usize::saturating_add)
}

/// 503, on a line that has lost its place.
fn no_place() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// 431, which is the last answer of its connection where there is one request at a time.
fn too_large(ends: bool) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    if ends {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// An answer's body.
struct Taken {
    body: Body,
    _telling: Telling,
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
