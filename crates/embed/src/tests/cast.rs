//! The parties of these tests.

use super::request::{Answer, Call};
use crate::{Hers, Layered, Site, SiteConfig, ToolSettings};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use sayso_enforce::authority::keys::KnownKeys;
use sayso_enforce::listing::Reader;
use sayso_enforce::{Authority, Clock};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tower::ServiceExt;
use tower_layer::Layer;
use tower_service::Service;

pub(super) const DOCUMENT: &str = "http://gw.example.test/.well-known/oauth-protected-resource/mcp";
pub(super) use sayso_enforce::authority::scripted::{AS_URI, HOST, NOW, PUBLIC, Scripted, TRADE, grant, key};

/// What the service behind the layer does next; without a word it answers with a result.
pub(super) enum Turn {
    Answer(Response<Full<Bytes>>),
    Stream(tokio::sync::mpsc::Receiver<&'static str>),
    Fail,
    Panic,
}

/// The service behind the layer: keeps what it got.
#[derive(Clone, Default)]
pub(super) struct Inside {
    pub(super) got: Arc<Mutex<Vec<Request<Bytes>>>>,
    pub(super) turns: Arc<Mutex<VecDeque<Turn>>>,
    pub(super) unready: Arc<AtomicBool>,
}

pub(super) const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

pub(super) fn result() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(RESULT));
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    response
}

impl Inside {
    pub(super) fn count(&self) -> usize {
        self.got.lock().unwrap().len()
    }

    pub(super) fn next(&self, turn: Turn) {
        self.turns.lock().unwrap().push_back(turn);
    }
}

type Answered = Response<http_body_util::combinators::UnsyncBoxBody<Bytes, std::convert::Infallible>>;

impl Service<Request<Full<Bytes>>> for Inside {
    type Response = Answered;
    type Error = &'static str;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Answered, &'static str>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        if self.unready.load(Ordering::SeqCst) { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let inside = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            inside.got.lock().unwrap().push(Request::from_parts(parts, body));
            let turn = inside.turns.lock().unwrap().pop_front();
            match turn {
                None => Ok(result().map(BodyExt::boxed_unsync)),
                Some(Turn::Answer(response)) => Ok(response.map(BodyExt::boxed_unsync)),
                Some(Turn::Stream(pieces)) => {
                    let told = futures::stream::unfold(pieces, |mut pieces| async move {
                        let piece = pieces.recv().await?;
                        Some((Ok(http_body::Frame::data(Bytes::from(piece))), pieces))
                    });
                    let mut response = Response::new(http_body_util::StreamBody::new(told).boxed_unsync());
                    response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
                    Ok(response)
                }
                Some(Turn::Fail) => Err("broken"),
                Some(Turn::Panic) => panic!("the server has a fault"),
            }
        })
    }
}

/// A site and its neighbours.
pub(crate) struct House {
    pub(super) authority: Arc<Scripted>,
    pub(crate) site: Site,
    pub(super) inside: Inside,
    pub(super) layered: Layered<Inside>,
}

pub(super) fn config(authority: Arc<dyn Authority>) -> SiteConfig {
    let keys = Arc::new(KnownKeys(vec![key(0x11).verifying().clone()]));
    let hers = Hers { issuer: AS_URI.into(), authority, reader: Reader { issuer: AS_URI.into(), keys } };
    let tool = |name: &str, scope: &str| {
        let id = format!("vault/{name}").parse().unwrap();
        ToolSettings::new(name.parse().unwrap(), id, vec![scope.parse().unwrap()])
    };
    let trade = ToolSettings { single_use: true, ..tool("execute_trade", "trades:execute") };
    SiteConfig {
        tools: vec![tool("get_positions", "positions:read"), trade],
        allowed_origins: vec!["https://app.example.test".into()],
        body_limit: 64 << 10,
        ..SiteConfig::new(PUBLIC, "vault".parse().unwrap(), "alice".parse().unwrap(), hers, key(0x44))
    }
}

/// The replay cache starts a little in the past, so that signatures made at any time of a test are its own.
pub(super) fn clock() -> Clock {
    let first = AtomicU64::new(0);
    Arc::new(move || if first.fetch_add(1, Ordering::SeqCst) == 0 { NOW.plus(-300) } else { NOW })
}

impl House {
    pub(crate) fn open() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut SiteConfig)) -> Self {
        let authority = Arc::new(Scripted::default());
        let mut config = config(authority.clone());
        change(&mut config);
        let site = Site::new(config, clock()).unwrap();
        let inside = Inside::default();
        let layered = site.layer().layer(inside.clone());
        Self { authority, site, inside, layered }
    }

    pub(super) async fn send(&self, call: &Call) -> Answer {
        Answer::read(self.open_answer(call.request()).await).await
    }

    pub(super) async fn open_answer(&self, request: Request<Full<Bytes>>) -> Response<crate::Body> {
        self.layered.clone().oneshot(request).await.unwrap()
    }

    /// Nothing reached the service, and no trade token was spent.
    pub(crate) fn assert_untouched(&self, what: &str) {
        assert_eq!(self.inside.count(), 0, "{what}: it got there");
        self.authority.assert_untouched(what);
    }
}
