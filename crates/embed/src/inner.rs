//! The way from the layer to the service it is around.
//!
//! What of the agent's headers goes on is a list, and what the server's author adds to it (D-10); a service that panics or
//! fails broke the exchange off, and is never asked twice (D-14). One way is for one request.

use crate::layer::{Answers, BrokenOff, Inward, Manner};
use crate::passage::Decided;
use crate::site::Site;
use crate::spoken;
use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body::Body as HttpBody;
use http_body_util::{BodyExt, Full};
use sayso_enforce::carry::{BoxError, Broken, Farewell, SESSION, Sent, Turned, Way, goes_inward};
use sayso_enforce::{Head, Incoming, Unavailable};
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;
use tower_service::Service;

/// How long a service may take to say that it is ready.
const READY: Duration = Duration::from_secs(5);

/// The service, for one request.
pub(crate) struct InnerWay<S> {
    service: Mutex<S>,
    extensions: Extensions,
    manner: Manner,
    site: Site,
}

impl<S> InnerWay<S>
where
    S: Service<Request<Full<Bytes>>> + Clone,
{
    pub(crate) fn new(service: S, extensions: Extensions, manner: Manner, site: Site) -> Self {
        Self { service: Mutex::new(service), extensions, manner, site }
    }

    /// The service, once it is ready.
    async fn ready(&self) -> Option<S> {
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner).clone();
        is_ready(&mut service).await.then_some(service)
    }

    /// What its host knew of the request, and that it may pass.
    fn marked(&self, leave: &Decided) -> Extensions {
        let mut extensions = self.extensions.clone();
        extensions.insert(leave.clone());
        extensions
    }
}

impl<S, R> Way for InnerWay<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    R: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Sender = S;
    type Body = Inward;

    async fn checkout(&self, _head: &Head) -> Result<S, Unavailable> {
        self.ready().await.ok_or(Unavailable::NoUpstream)
    }

    async fn send(&self, sent: Sent<'_, S>) -> Result<Response<Inward>, Broken> {
        let service = match sent.sender {
            Some(service) => service,
            None => self.ready().await.ok_or(Broken::Unreachable)?,
        };
        let leave = Decided::new(sent.spent.cloned());
        let request = inward(sent.head, sent.body, self.marked(&leave), &self.site.0.pass_headers);
        let response = exchange(service, request).await?;
        // A guard takes the leave before it runs the call, so an answer that is whole without that is a refusal of the
        // server's: nobody would learn from it that a grant was spent (D-14).
        let unheard = self.manner.guarded && sent.spent.is_some() && leave.is_good();
        if unheard && !is_stream(&response) { Err(Broken::TurnedAway) } else { Ok(response) }
    }

    fn turn_away(&self, turned: &Turned, incoming: &Incoming) -> Option<Response<Bytes>> {
        match self.manner.answers {
            Answers::Http => None,
            Answers::JsonRpc(codes) => spoken::answer(codes, turned, &incoming.body),
        }
    }
}

/// Whether the call may yet run while its answer is on the way.
fn is_stream(response: &Response<Inward>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    response.status().is_success() && kind.starts_with(b"text/event-stream")
}

async fn is_ready<S: Service<Request<Full<Bytes>>>>(service: &mut S) -> bool {
    let ready = poll_fn(|context| service.poll_ready(context));
    let ready = AssertUnwindSafe(timeout(READY, ready)).catch_unwind().await;
    matches!(ready, Ok(Ok(Ok(()))))
}

async fn exchange<S, R>(mut service: S, request: Request<Full<Bytes>>) -> Result<Response<Inward>, Broken>
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>>,
    R: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    // A service that panics must not take the report of a spent grant with it.
    let answered = AssertUnwindSafe(async { service.call(request).await }).catch_unwind().await;
    match answered {
        Ok(Ok(response)) => {
            Ok(response.map(|body| body.map_err(|error| BrokenOff(error.into())).boxed_unsync()))
        }
        Ok(Err(_)) | Err(_) => Err(Broken::Interrupted),
    }
}

/// A header's value without the blanks around it, which are no part of it (RFC 9110 section 5.5): a service that took them
/// for one would read another value than was judged, and refuse a call that a grant was spent on.
fn bare(value: &HeaderValue) -> HeaderValue {
    let text = value.as_bytes().trim_ascii();
    if text.len() == value.len() {
        return value.clone();
    }
    HeaderValue::from_bytes(text).unwrap_or_else(|_| value.clone())
}

/// The request as the service gets it: the bytes that were judged, and of its headers those that may pass. Its host is
/// what the connection was made to, and its length what the bytes are.
fn inward(head: &Head, body: Bytes, extensions: Extensions, more: &[HeaderName]) -> Request<Full<Bytes>> {
    let passes = |name: &HeaderName| goes_inward(name) || *name == HOST || more.contains(name);
    let passed = head.headers.iter().filter(|(name, _)| passes(name));
    let mut headers: HeaderMap = passed.map(|(name, value)| (name.clone(), bare(value))).collect();
    if !body.is_empty() {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    }
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = head.target.clone();
    *request.headers_mut() = headers;
    *request.extensions_mut() = extensions;
    request
}

/// Tells the service of sessions that ended.
pub(crate) struct Goodbye<S> {
    service: Mutex<S>,
    path: String,
}

impl<S> Goodbye<S> {
    pub(crate) fn to(service: S, path: String) -> Self {
        Self { service: Mutex::new(service), path }
    }
}

#[async_trait]
impl<S> Farewell for Goodbye<S>
where
    S: Service<Request<Full<Bytes>>> + Clone + Send + 'static,
    S::Future: Send,
{
    async fn leave(&self, theirs: HeaderValue) {
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Ok(target) = self.path.parse() else { return };
        let headers = HeaderMap::from_iter([(HeaderName::from_static(SESSION), theirs)]);
        let head = Head { method: Method::DELETE, target, headers };
        let mut extensions = Extensions::new();
        extensions.insert(Decided::new(None));
        if is_ready(&mut service).await {
            let left = async { service.call(inward(&head, Bytes::new(), extensions, &[])).await };
            // It ends by itself as well.
            let _ = AssertUnwindSafe(left).catch_unwind().await;
        }
    }
}
