//! The one door for outbound HTTP: what may be reached, how much is read, how long it may take (D-41).
//! It keeps the guard of `guard`: a URL a stranger named reaches public addresses over https and nothing else.
//! It follows no redirect, uses no proxy, retries nothing, and its errors repeat no word of a peer.

mod client;
mod freshness;
pub mod guard;
mod pieces;
mod tls;

pub use client::Client;
pub use freshness::freshness;
pub use guard::Reach;
pub use pieces::Pieces;
pub use tls::{BadTls, Tls};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};

/// How much of a response is read, and for how long, connecting included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of the body.
    pub bytes: usize,
    /// Most seconds for all of it.
    pub seconds: u64,
}

impl Limits {
    /// For a document somebody else named.
    pub const DOCUMENT: Limits = Limits { bytes: 64 * 1024, seconds: 5 };
}

/// Most bytes of an answer that is read whole although it was to be passed on.
const WHOLE: usize = 8 << 20;

/// An extension of a request that must not meet a connection the server is just closing: it gets one of its own.
/// For what is sent once and cannot be sent again.
#[derive(Debug, Clone, Copy)]
pub struct OwnConnection;

/// Why there is no response. The first two say that nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The guard does not let this URL, or an address its name has, be reached.
    #[error("the address may not be reached from here")]
    Refused,
    /// No connection came about.
    #[error("the server cannot be reached")]
    Unreachable,
    /// The connection broke after the request, or some of it, was sent.
    #[error("the connection broke before the answer was complete")]
    Interrupted,
    /// It took too long; the request may have arrived.
    #[error("the server did not answer in time")]
    TimedOut,
    /// The body is larger than the limit.
    #[error("the answer is too large")]
    TooLarge,
    /// A status other than the one asked for.
    #[error("the server answered with status {0}")]
    Status(u16),
}

impl FetchError {
    /// Whether the request certainly never reached the server.
    pub fn nothing_sent(self) -> bool {
        matches!(self, FetchError::Refused | FetchError::Unreachable)
    }
}

/// Sends requests, once each.
#[async_trait]
pub trait Fetch: Send + Sync {
    /// Sends a request and reads the whole answer.
    async fn send(&self, request: Request<Bytes>, limits: Limits) -> Result<Response<Bytes>, FetchError>;

    /// Sends a request and reads the answer until `enough`, shown each further piece of the body, says so. For
    /// streams that a server may leave open after what was asked for.
    async fn send_until(
        &self,
        request: Request<Bytes>,
        limits: Limits,
        enough: &mut (dyn for<'a> FnMut(&'a [u8]) -> bool + Send),
    ) -> Result<Response<Bytes>, FetchError> {
        let _ = enough;
        self.send(request, limits).await
    }

    /// Sends a request and gives its answer as soon as the head is here, which may take this many seconds. For answers
    /// that are passed on as they come.
    async fn open(&self, request: Request<Bytes>, seconds: u64) -> Result<Response<Pieces>, FetchError> {
        let limits = Limits { bytes: WHOLE, seconds };
        Ok(self.send(request, limits).await?.map(Pieces::whole))
    }
}

/// The body at a URL, if the answer is 200.
///
/// # Errors
/// When there is no answer, or another.
pub async fn get(fetch: &dyn Fetch, url: &str, limits: Limits) -> Result<Bytes, FetchError> {
    get_with_headers(fetch, url, limits).await.map(Response::into_body)
}

/// The answer from a URL, if it is 200: for a document whose headers say something about it.
///
/// # Errors
/// When there is no answer, or another.
pub async fn get_with_headers(
    fetch: &dyn Fetch,
    url: &str,
    limits: Limits,
) -> Result<Response<Bytes>, FetchError> {
    let request = Request::get(url).header(header::ACCEPT, "application/json").body(Bytes::new());
    let response = fetch.send(request.map_err(|_| FetchError::Refused)?, limits).await?;
    match response.status() {
        StatusCode::OK => Ok(response),
        other => Err(FetchError::Status(other.as_u16())),
    }
}
