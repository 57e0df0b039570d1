//! An upstream reached over HTTP/1.1, with TLS where its URL says so.
//!
//! A checked-out connection is connected and ready before anything is spent, and carries one request; the pool never
//! sends a request twice. The upstream is named by its own host unless another is configured, never by whatever host
//! the agent used.

use super::credential::Credential;
use super::dial::{Dialer, system_tls, tls};
use super::{BadUpstream, Broken, headers};
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::RootCertStore;
use sayso_enforce::{Head, Unavailable};
use std::time::Duration;
use url::Url;

/// How long a pooled connection is kept idle: shorter than servers commonly do, since a request that meets a closing
/// connection is not sent again.
const IDLE: Duration = Duration::from_secs(4);

/// A connection of its own.
pub(crate) type Sender = SendRequest<Full<Bytes>>;

/// An MCP endpoint, and how it is spoken to.
pub struct HttpSettings {
    /// Its URL, `http` or `https`.
    pub url: String,
    /// The `Host` it is sent: its own when there is none here (`upstream_host = rewrite`), or the public host that
    /// agents dial (`preserve`).
    pub host: Option<String>,
    /// What the gateway shows it.
    pub credential: Option<Credential>,
}

impl HttpSettings {
    /// The endpoint at this URL, by its own name and without a credential.
    pub fn at(url: impl Into<String>) -> Self {
        Self { url: url.into(), host: None, credential: None }
    }
}

/// The MCP endpoint behind a resource.
pub(crate) struct HttpUpstream {
    /// `http://host:port` or `https://…`: what the pool knows it by.
    origin: String,
    host: HeaderValue,
    path_and_query: String,
    credential: Option<Credential>,
    dialer: Dialer,
    pool: Client<Dialer, Full<Bytes>>,
}

impl HttpUpstream {
    pub(crate) fn new(settings: HttpSettings) -> Result<Self, BadUpstream> {
        Self::trusting(settings, None)
    }

    /// `roots` stand in for those of the system.
    pub(crate) fn trusting(
        settings: HttpSettings,
        roots: Option<RootCertStore>,
    ) -> Result<Self, BadUpstream> {
        let url = Url::parse(&settings.url).map_err(|_| BadUpstream::Url)?;
        let bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        let name = url.host_str().filter(|_| bare).ok_or(BadUpstream::Url)?;
        let address = format!("{name}:{}", url.port_or_known_default().ok_or(BadUpstream::Url)?);
        let origin = format!("{}://{address}", url.scheme());
        let dialer = match (url.scheme(), url.host()) {
            ("http", _) => Dialer::plain(address),
            ("https", Some(host)) => {
                let tls = roots.map_or_else(system_tls, tls)?;
                Dialer::secure(address, &host, tls)?
            }
            _ => return Err(BadUpstream::Url),
        };
        let own = url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        let host = HeaderValue::from_str(&settings.host.unwrap_or(own)).map_err(|_| BadUpstream::Url)?;
        let path_and_query =
            url.query().map_or_else(|| url.path().to_owned(), |q| format!("{}?{q}", url.path()));
        let pool = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .retry_canceled_requests(false)
            .set_host(false)
            .build(dialer.clone());
        Ok(Self { origin, host, path_and_query, credential: settings.credential, dialer, pool })
    }

    /// Sends over the pool, once.
    pub(crate) async fn send(&self, head: &Head, body: Bytes) -> Result<Response<Body>, Broken> {
        let target = format!("{}{}", self.origin, self.target(head));
        let request = self.request(head.method.clone(), &target, headers::outbound(&head.headers), body)?;
        Ok(self.exchange(request).await?.map(Body::new))
    }

    /// Sends over a checked-out connection, which ends with this exchange.
    pub(crate) async fn send_once(
        &self,
        mut sender: Sender,
        head: &Head,
        body: Bytes,
    ) -> Result<Response<Body>, Broken> {
        let request =
            self.request(head.method.clone(), &self.target(head), headers::outbound(&head.headers), body)?;
        let sent = sender.send_request(request).await;
        sent.map(|response| response.map(Body::new)).map_err(|_| Broken::Interrupted)
    }

    /// Sends a request of our own, once, over the pool.
    pub(crate) async fn ask(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Broken> {
        let target = format!("{}{}", self.origin, self.path_and_query);
        self.exchange(self.request(method, &target, headers, body)?).await
    }

    /// A connection of its own, ready to send.
    pub(crate) async fn checkout(&self) -> Result<Sender, Unavailable> {
        self.connect().await.ok_or(Unavailable::NoUpstream)
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Broken> {
        let sent = self.pool.request(request).await;
        sent.map_err(|error| if error.is_connect() { Broken::Unreachable } else { Broken::Interrupted })
    }

    fn request(
        &self,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, Broken> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        // A target that cannot be written was not sent to anybody.
        *request.uri_mut() = target.parse::<Uri>().map_err(|_| Broken::Unreachable)?;
        *request.headers_mut() = headers;
        request.headers_mut().insert("host", self.host.clone());
        if let Some(Credential { name, value }) = &self.credential {
            request.headers_mut().insert(name.clone(), value.clone());
        }
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
        let line = self.dialer.dial().await.ok()?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(line)).await.ok()?;
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
