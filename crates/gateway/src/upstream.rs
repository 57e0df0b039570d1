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

use crate::session::{CAPACITY, SESSION};
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use axum::body::Body;
use bytes::Bytes;
use sayso_enforce::{Head, Outlet, Unavailable};
use sayso_protocol::payload::refusal::Forwarded;
use std::sync::Arc;
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

/// The way out for one request; what is checked out depends on the revision it speaks.
pub(crate) struct Route<'a> {
    upstream: &'a Upstream,
    head: &'a Head,
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

    pub(crate) fn route<'a>(&'a self, head: &'a Head) -> Route<'a> {
        Route { upstream: self, head }
    }

    /// The answer to a request in a revision that this server is known not to speak.
    pub(crate) async fn unspoken(&self, head: &Head, body: &sayso_enforce::Body) -> Option<Response<Body>> {
        match (&self.0.kind, body) {
            (Kind::Stdio(upstream), sayso_enforce::Body::Whole(body)) => upstream.unspoken(head, body).await,
            _ => None,
        }
    }

    /// Tells the server that a session of its is over.
    pub(crate) async fn leave(&self, session: HeaderValue) {
        let headers = HeaderMap::from_iter([(HeaderName::from_static(SESSION), session)]);
        match &self.0.kind {
            Kind::Http(upstream) => {
                if upstream.ask(Method::DELETE, headers, Bytes::new()).await.is_err() {
                    tracing::debug!("upstream.not_left");
                }
            }
            Kind::Stdio(upstream) => upstream.leave(&headers),
        }
    }

    /// How many sessions it has room for.
    pub(crate) fn capacity(&self) -> usize {
        match &self.0.kind {
            Kind::Http(_) => CAPACITY,
            Kind::Stdio(_) => stdio::CHILDREN,
        }
    }

    /// Sends a message, once; over what was checked out for it, where something was.
    pub(crate) async fn send(
        &self,
        sender: Option<Sender>,
        head: &Head,
        body: Bytes,
    ) -> Result<Response<Body>, Broken> {
        match (&self.0.kind, sender) {
            (Kind::Http(upstream), Some(Sender::Connection(sender))) => {
                upstream.send_once(sender, head, body).await
            }
            (Kind::Http(upstream), None) => upstream.send(head, body).await,
            (Kind::Stdio(upstream), Some(Sender::Slot(slot))) => upstream.send(Some(slot), head, body).await,
            (Kind::Stdio(upstream), None) => upstream.send(None, head, body).await,
            // INVARIANT: a sender comes from this upstream's own route.
            (Kind::Http(_), Some(Sender::Slot(_))) | (Kind::Stdio(_), Some(Sender::Connection(_))) => {
                Err(Broken::Unreachable)
            }
        }
    }
}

impl Outlet for Route<'_> {
    type Sender = Sender;

    async fn checkout(&self) -> Result<Sender, Unavailable> {
        match &self.upstream.0.kind {
            Kind::Http(upstream) => upstream.checkout().await.map(Sender::Connection),
            Kind::Stdio(upstream) => upstream.checkout(self.head).await.map(Sender::Slot),
        }
    }
}

/// Why there is no response of the upstream's to pass on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    /// No connection came about, so nothing was sent.
    #[error("the server behind this address cannot be reached")]
    Unreachable,
    /// The connection broke; the server may have acted.
    #[error("the server behind this address broke off the exchange")]
    Interrupted,
    /// It answered with something that is not passed on: a redirect, or a change of protocol.
    #[error("the server behind this address answered with a redirect or another protocol")]
    Elsewhere,
}

impl Broken {
    pub(crate) fn forwarded(self) -> Forwarded {
        match self {
            Broken::Unreachable => Forwarded::No,
            Broken::Interrupted | Broken::Elsewhere => Forwarded::Unknown,
        }
    }
}
