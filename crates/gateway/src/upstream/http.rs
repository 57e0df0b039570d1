//! An upstream reached over plain HTTP/1.1.
//!
//! A checked-out connection is connected and ready before anything is spent, and carries one request; the pool never
//! sends a request twice. The upstream is named by its own host, never by the one the agent used.

use super::{BadUpstream, Broken, headers};
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use sayso_enforce::{Head, Outlet, Unavailable};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

const CONNECT: Duration = Duration::from_secs(5);
/// How long a pooled connection is kept idle: shorter than servers commonly do, since a request that meets a closing
/// connection is not sent again.
const IDLE: Duration = Duration::from_secs(4);

/// A connection of its own.
pub(crate) type Sender = SendRequest<Full<Bytes>>;

/// The MCP endpoint behind a resource.
pub(crate) struct HttpUpstream {
    /// `host:port` to dial.
    dial: String,
    host: HeaderValue,
    path_and_query: String,
    pool: Client<HttpConnector, Full<Bytes>>,
}

impl HttpUpstream {
    pub(crate) fn new(url: &str) -> Result<Self, BadUpstream> {
        let url = Url::parse(url).map_err(|_| BadUpstream::Url)?;
        let plain = url.scheme() == "http" && url.username().is_empty() && url.password().is_none();
        if !plain || url.fragment().is_some() {
            return Err(BadUpstream::Url);
        }
        let name = url.host_str().ok_or(BadUpstream::Url)?;
        let dial = format!("{name}:{}", url.port_or_known_default().ok_or(BadUpstream::Url)?);
        let host = url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        let host = HeaderValue::from_str(&host).map_err(|_| BadUpstream::Url)?;
        let path_and_query =
            url.query().map_or_else(|| url.path().to_owned(), |q| format!("{}?{q}", url.path()));
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT));
        let pool = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .retry_canceled_requests(false)
            .set_host(false)
            .build(connector);
        Ok(Self { dial, host, path_and_query, pool })
    }

    /// Sends over the pool, once.
    pub(crate) async fn send(&self, head: &Head, body: Bytes) -> Result<Response<Body>, Broken> {
        let target = format!("http://{}{}", self.dial, self.target(head));
        let request = self.request(&target, head, body)?;
        let response =
            self.pool.request(request).await.map_err(|error| {
                if error.is_connect() { Broken::Unreachable } else { Broken::Interrupted }
            })?;
        passed_on(response)
    }

    /// Sends over a checked-out connection, which ends with this exchange.
    pub(crate) async fn send_once(
        &self,
        mut sender: Sender,
        head: &Head,
        body: Bytes,
    ) -> Result<Response<Body>, Broken> {
        let request = self.request(&self.target(head), head, body)?;
        passed_on(sender.send_request(request).await.map_err(|_| Broken::Interrupted)?)
    }

    fn request(&self, target: &str, head: &Head, body: Bytes) -> Result<Request<Full<Bytes>>, Broken> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        // A target that cannot be written was not sent to anybody.
        *request.uri_mut() = target.parse::<Uri>().map_err(|_| Broken::Unreachable)?;
        *request.headers_mut() = headers::outbound(&head.headers);
        request.headers_mut().insert("host", self.host.clone());
        Ok(request)
    }

    /// The upstream's own path, with the agent's query behind it where one is served.
    fn target(&self, head: &Head) -> String {
        let own = &self.path_and_query;
        match head.query() {
            None => own.clone(),
            Some(query) if own.contains('?') => format!("{own}&{query}"),
            Some(query) => format!("{own}?{query}"),
        }
    }

    async fn connect(&self) -> Option<Sender> {
        let stream = TcpStream::connect(&self.dial).await.ok()?;
        stream.set_nodelay(true).ok()?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
        // It ends with its one exchange, or when the sender is dropped unused.
        tokio::spawn(async move {
            if connection.await.is_err() {
                tracing::debug!("upstream.connection_broken");
            }
        });
        sender.ready().await.ok()?;
        Some(sender)
    }
}

impl Outlet for HttpUpstream {
    type Sender = Sender;

    async fn checkout(&self) -> Result<Sender, Unavailable> {
        timeout(CONNECT, self.connect()).await.ok().flatten().ok_or(Unavailable::NoUpstream)
    }
}

/// A response as the agent gets it: its body untouched, whatever streams through it.
fn passed_on(response: Response<Incoming>) -> Result<Response<Body>, Broken> {
    let status = response.status();
    if status.is_redirection() || status.is_informational() {
        return Err(Broken::Elsewhere);
    }
    let mut response = response.map(Body::new);
    headers::strip(response.headers_mut());
    Ok(response)
}
