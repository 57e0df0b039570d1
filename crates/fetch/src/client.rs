//! The real client: reqwest under the guard, every name resolved once and every answer judged before connecting.
//! It keeps what leaves equal to what was asked for: a URL that a parser would rewrite is refused, since its path is
//! signed elsewhere as it was written. What TLS trusts is `tls`'s; the system's roots are read when https is first used.

use crate::guard::{Reach, admit, is_secure, resolve};
use crate::{Fetch, FetchError, Limits, OwnConnection, Pieces, Tls};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use url::Url;

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an unused connection is kept, shorter than servers commonly do.
const IDLE: Duration = Duration::from_secs(15);

/// An HTTP client that reaches what its [`Reach`] allows.
pub struct Client {
    reach: Reach,
    tls: Tls,
    pooled: Pair,
    unpooled: Pair,
}

/// One client a scheme, each built when it is first needed.
#[derive(Default)]
struct Pair {
    plain: OnceLock<reqwest::Client>,
    secure: OnceLock<reqwest::Client>,
}

impl Client {
    /// A client for URLs of this provenance.
    #[must_use]
    pub fn new(reach: Reach) -> Client {
        Client::with_tls(reach, Tls::system())
    }

    /// A client that trusts, and shows, what this says.
    #[must_use]
    pub fn with_tls(reach: Reach, tls: Tls) -> Client {
        Client { reach, tls, pooled: Pair::default(), unpooled: Pair::default() }
    }

    fn inner(&self, secure: bool, own: bool) -> Result<&reqwest::Client, FetchError> {
        let pair = if own { &self.unpooled } else { &self.pooled };
        let cell = if secure { &pair.secure } else { &pair.plain };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let built = build(self.reach, &self.tls, secure, own)?;
        Ok(cell.get_or_init(|| built))
    }

    async fn exchange(
        &self,
        request: Request<Bytes>,
        limits: Limits,
        enough: &mut (dyn for<'a> FnMut(&'a [u8]) -> bool + Send),
    ) -> Result<Response<Bytes>, FetchError> {
        let mut answer = self.execute(request).await?;
        if answer
            .content_length()
            .is_some_and(|length| usize::try_from(length).is_ok_and(|n| n > limits.bytes))
        {
            return Err(FetchError::TooLarge);
        }
        let mut body = BytesMut::new();
        while let Some(piece) = answer.chunk().await.map_err(fault)? {
            if piece.len() > limits.bytes.saturating_sub(body.len()) {
                return Err(FetchError::TooLarge);
            }
            body.extend_from_slice(&piece);
            if enough(&piece) {
                break;
            }
        }
        head(&mut answer).body(body.freeze()).map_err(|_| FetchError::Interrupted)
    }

    /// Sends a request; its answer's head is here with that.
    async fn execute(&self, request: Request<Bytes>) -> Result<reqwest::Response, FetchError> {
        let (url, secure) = self.target(&request)?;
        let (parts, body) = request.into_parts();
        let mut outbound = reqwest::Request::new(parts.method, url);
        *outbound.headers_mut() = parts.headers;
        if !body.is_empty() {
            *outbound.body_mut() = Some(body.into());
        }
        let own = parts.extensions.get::<OwnConnection>().is_some();
        self.inner(secure, own)?.execute(outbound).await.map_err(fault)
    }

    /// The URL of a request, if it may be tried and says what the request says.
    fn target(&self, request: &Request<Bytes>) -> Result<(Url, bool), FetchError> {
        let uri = request.uri();
        let url = Url::parse(&uri.to_string()).map_err(|_| FetchError::Refused)?;
        self.reach.check(&url)?;
        if url.path() != uri.path() || url.query() != uri.query() {
            return Err(FetchError::Refused);
        }
        let secure = is_secure(&url)?;
        Ok((url, secure))
    }
}

#[async_trait]
impl Fetch for Client {
    async fn send(&self, request: Request<Bytes>, limits: Limits) -> Result<Response<Bytes>, FetchError> {
        self.send_until(request, limits, &mut |_| false).await
    }

    async fn send_until(
        &self,
        request: Request<Bytes>,
        limits: Limits,
        enough: &mut (dyn for<'a> FnMut(&'a [u8]) -> bool + Send),
    ) -> Result<Response<Bytes>, FetchError> {
        let whole = Duration::from_secs(limits.seconds);
        let exchanged = tokio::time::timeout(whole, self.exchange(request, limits, enough)).await;
        exchanged.map_err(|_| FetchError::TimedOut)?
    }

    async fn open(&self, request: Request<Bytes>, seconds: u64) -> Result<Response<Pieces>, FetchError> {
        let executed = tokio::time::timeout(Duration::from_secs(seconds), self.execute(request)).await;
        let mut answer = executed.map_err(|_| FetchError::TimedOut)??;
        let response = head(&mut answer);
        response.body(Pieces::arriving(answer)).map_err(|_| FetchError::Interrupted)
    }
}

/// Status and headers of an answer.
fn head(answer: &mut reqwest::Response) -> http::response::Builder {
    let mut response = Response::builder().status(answer.status());
    if let Some(headers) = response.headers_mut() {
        *headers = std::mem::take(answer.headers_mut());
    }
    response
}

#[expect(clippy::disallowed_methods, reason = "this is the door that the other crates have to use")]
fn build(reach: Reach, tls: &Tls, secure: bool, own: bool) -> Result<reqwest::Client, FetchError> {
    let mut builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .connect_timeout(CONNECT)
        .pool_idle_timeout(IDLE)
        .dns_resolver(Arc::new(Names { reach, secure }))
        .pool_max_idle_per_host(if own { 0 } else { usize::MAX })
        .https_only(secure);
    // Without https there is nothing to verify, and reading the system's roots takes a while.
    let config = if secure { tls.config() } else { Tls::unused() };
    builder = builder.tls_backend_preconfigured(config.map_err(|_| FetchError::Unreachable)?);
    builder.build().map_err(|_| FetchError::Unreachable)
}

/// Resolves a name once; the addresses judged are the addresses connected to.
struct Names {
    reach: Reach,
    secure: bool,
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, secure) = (self.reach, self.secure);
        Box::pin(async move {
            let addresses = admit(reach, secure, resolve(name.as_str()).await?)?;
            let addresses: Addrs = Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

/// What became of a request, as far as the client can tell; whatever is unclear counts as sent.
pub(crate) fn fault(error: reqwest::Error) -> FetchError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        if let Some(ours) = inner.downcast_ref::<FetchError>() {
            return *ours;
        }
        cause = inner.source();
    }
    if error.is_connect() || error.is_builder() { FetchError::Unreachable } else { FetchError::Interrupted }
}
