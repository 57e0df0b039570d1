//! The layer: any tower service that speaks MCP over HTTP, guarded.
//!
//! It answers for its whole address: the resource at exactly its path, the documents at theirs, and nothing at any other
//! spelling, so that no router behind it can take another path for the resource's. What reaches the service was
//! permitted, and is the very bytes that were judged.

use crate::inner::{Goodbye, InnerWay};
use crate::site::Site;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as HttpBody;
use http_body_util::Full;
use http_body_util::combinators::UnsyncBoxBody;
use sayso_enforce::Head;
use sayso_enforce::carry::{BoxError, Carried, Carrier, Source};
use sayso_protocol::envelope::jsonrpc::Codes;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// The body of every answer.
pub type Body = Carried<Inward>;

/// The body of an answer of the service's.
pub(crate) type Inward = UnsyncBoxBody<Bytes, BrokenOff>;

/// An answer of the service's that broke off.
#[derive(Debug, thiserror::Error)]
#[error("the server broke off its answer")]
pub struct BrokenOff(#[source] pub(crate) BoxError);

/// How a refused call is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// With the statuses of HTTP.
    Http,
    /// As a JSON-RPC error.
    JsonRpc(Codes),
}

/// How it answers, and what it knows of the service it is around.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) answers: Answers,
    /// Whether a guard of ours takes the leave of every call that runs.
    pub(crate) guarded: bool,
}

/// Guards the services it is put around.
#[derive(Clone)]
pub struct SiteLayer {
    pub(crate) site: Site,
    manner: Manner,
}

impl SiteLayer {
    pub(crate) fn of(site: Site) -> Self {
        Self { site, manner: Manner { answers: Answers::Http, guarded: false } }
    }

    /// The same layer, around a guard.
    #[cfg(feature = "rmcp")]
    pub(crate) fn guarding(&self) -> Self {
        let manner = Manner { guarded: true, ..self.manner };
        Self { manner, ..self.clone() }
    }

    /// The same layer, answering a refused call as a server does in process: 200, and a JSON-RPC error of −32001 or
    /// −32002 under the call's own id, instead of a status. What is refused before it is known to be a call is answered
    /// with a status all the same.
    #[must_use]
    pub fn in_json_rpc(self) -> Self {
        let answers = Answers::JsonRpc(self.site.0.codes);
        Self { manner: Manner { answers, ..self.manner }, ..self }
    }
}

impl<S> Layer<S> for SiteLayer
where
    S: Service<Request<Full<Bytes>>> + Clone + Send + 'static,
    S::Future: Send,
{
    type Service = Layered<S>;

    fn layer(&self, inner: S) -> Layered<S> {
        let goodbye = Goodbye::to(inner.clone(), self.site.0.path.clone());
        let carrier = Arc::new(Carrier::new(self.site.0.engine.clone(), Arc::new(goodbye)));
        Layered { site: self.site.clone(), carrier, inner, manner: self.manner }
    }
}

/// A guarded service. Each has the legacy sessions that were opened through it and its clones.
#[derive(Clone)]
pub struct Layered<S> {
    site: Site,
    carrier: Arc<Carrier>,
    inner: S,
    manner: Manner,
}

impl<S, B, R> Service<Request<B>> for Layered<S>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    R: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    /// Always: whether the service is ready is asked when a request of its is to be sent to it.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let head = Head { method: parts.method, target: parts.uri, headers: parts.headers };
        let (site, carrier) = (self.site.clone(), Arc::clone(&self.carrier));
        if head.path() != site.0.path {
            return Box::pin(async move { Ok(site.0.published.answer(&head).await.map(Body::from)) });
        }
        let source = parts.extensions.get::<Source>().copied().unwrap_or_default();
        let way = InnerWay::new(self.inner.clone(), parts.extensions, self.manner, site.clone());
        let body = Box::pin(body);
        Box::pin(async move { Ok(carrier.pass(way, &site.0.bodies, source, head, body).await) })
    }
}
