//! The server behind a resource, and the two ways to send it a request.
//!
//! A single-use call goes over a connection checked out for it before its grant is spent; everything else over a pool,
//! or the one pipe a child process has. Neither retries, neither follows a redirect (D-5, D-14): once sent, a request is
//! sent.

mod credential;
mod dial;
mod headers;
mod http;
pub(crate) mod stdio;

pub use self::http::HttpSettings;
pub(crate) use self::http::HttpUpstream;
pub use credential::{BadCredential, Credential};

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use async_trait::async_trait;
use axum::body::Body;
use bytes::Bytes;
pub(crate) use sayso_enforce::carry::Broken;
use sayso_enforce::carry::{Farewell, SESSION, Sent, Way};
use sayso_enforce::{Head, Incoming, Unavailable};
use std::sync::Arc;
use std::time::Duration;
use stdio::{StdioCommand, StdioUpstream};
use tokio::sync::watch;

/// An upstream that cannot be reached at all, as it is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadUpstream {
    /// Not a plain URL.
    #[error("not an http or https url without user and fragment")]
    Url,
    /// TLS cannot be set up on this machine.
    #[error("tls cannot be set up")]
    Tls,
}

/// What an upstream is, as configuration says it.
pub enum UpstreamConfig {
    /// An MCP endpoint.
    Http(HttpSettings),
    /// A command that speaks MCP over stdio.
    Stdio(StdioCommand),
    /// One that is open already, because it was surveyed.
    Open(Upstream),
}

impl From<String> for UpstreamConfig {
    fn from(url: String) -> Self {
        Self::Http(HttpSettings::at(url))
    }
}

impl From<&str> for UpstreamConfig {
    fn from(url: &str) -> Self {
        Self::Http(HttpSettings::at(url))
    }
}

impl From<HttpSettings> for UpstreamConfig {
    fn from(settings: HttpSettings) -> Self {
        Self::Http(settings)
    }
}

impl From<StdioCommand> for UpstreamConfig {
    fn from(command: StdioCommand) -> Self {
        Self::Stdio(command)
    }
}

impl From<Upstream> for UpstreamConfig {
    fn from(upstream: Upstream) -> Self {
        Self::Open(upstream)
    }
}

/// A server; clones are the same one. Nothing is connected or started before it is first needed, and a child process
/// ends when the last clone is dropped.
#[derive(Clone)]
pub struct Upstream(pub(crate) Arc<Open>);

pub(crate) struct Open {
    pub(crate) kind: Kind,
    /// Counts how often the server said that its tools changed.
    pub(crate) changes: watch::Sender<u64>,
}

pub(crate) enum Kind {
    Http(HttpUpstream),
    Stdio(StdioUpstream),
}

/// What was checked out for one call.
pub(crate) enum Sender {
    Connection(http::Sender),
    Slot(stdio::Slot),
}

impl Upstream {
    /// Opens an upstream.
    ///
    /// # Errors
    /// When it could never be reached.
    pub fn open(config: impl Into<UpstreamConfig>) -> Result<Self, BadUpstream> {
        let changes = watch::Sender::new(0);
        let kind = match config.into() {
            UpstreamConfig::Http(settings) => Kind::Http(HttpUpstream::new(settings)?),
            UpstreamConfig::Stdio(command) => Kind::Stdio(StdioUpstream::new(command, changes.clone())),
            UpstreamConfig::Open(upstream) => return Ok(upstream),
        };
        Ok(Self(Arc::new(Open { kind, changes })))
    }

    /// Counts how often the server said by itself that its tools changed; a reason to survey it again. One over HTTP is
    /// heard while [`Self::attend`] is awaited.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }
}

/// The way of one request.
pub(crate) struct Route(pub(crate) Upstream);

impl Way for Route {
    type Sender = Sender;
    type Body = Body;

    async fn unspoken(&self, incoming: &Incoming) -> Option<Response<Body>> {
        match (&self.0.0.kind, &incoming.body) {
            (Kind::Stdio(upstream), sayso_enforce::Body::Whole(body)) => {
                upstream.unspoken(&incoming.head, body).await
            }
            _ => None,
        }
    }

    /// What is checked out depends on the session of the request, and on the revision it speaks.
    async fn checkout(&self, head: &Head) -> Result<Sender, Unavailable> {
        match &self.0.0.kind {
            Kind::Http(upstream) => upstream.checkout().await.map(Sender::Connection),
            Kind::Stdio(upstream) => upstream.checkout(head).await.map(Sender::Slot),
        }
    }

    async fn send(&self, sent: Sent<'_, Sender>) -> Result<Response<Body>, Broken> {
        let Sent { sender, head, body, .. } = sent;
        match (&self.0.0.kind, sender) {
            (Kind::Http(upstream), Some(Sender::Connection(sender))) => {
                upstream.send_once(sender, head, body).await
            }
            (Kind::Http(upstream), None) => upstream.send(head, body).await,
            (Kind::Stdio(upstream), Some(Sender::Slot(slot))) => upstream.send(Some(slot), head, body).await,
            (Kind::Stdio(upstream), None) => upstream.send(None, head, body).await,
            // INVARIANT: a sender was checked out of this very upstream.
            (Kind::Http(_), Some(Sender::Slot(_))) | (Kind::Stdio(_), Some(Sender::Connection(_))) => {
                Err(Broken::Unreachable)
            }
        }
    }
}

#[async_trait]
impl Farewell for Upstream {
    async fn leave(&self, theirs: HeaderValue) {
        let headers = HeaderMap::from_iter([(HeaderName::from_static(SESSION), theirs)]);
        match &self.0.kind {
            Kind::Http(upstream) => {
                if upstream.ask(Method::DELETE, headers, Bytes::new()).await.is_err() {
                    tracing::debug!("upstream.not_left");
                }
            }
            Kind::Stdio(upstream) => upstream.leave(&headers),
        }
    }

    fn capacity(&self) -> usize {
        match &self.0.kind {
            Kind::Http(_) => usize::MAX,
            // A process each.
            Kind::Stdio(_) => stdio::CHILDREN,
        }
    }

    fn patience(&self) -> Duration {
        match &self.0.kind {
            Kind::Http(_) => Duration::MAX,
            Kind::Stdio(_) => stdio::SILENCE,
        }
    }
}
