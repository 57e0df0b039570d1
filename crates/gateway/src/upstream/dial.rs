//! Connections to an upstream, plain or over TLS, bounded in time.
//!
//! The certificate is checked against the host that was configured, whatever `Host` is sent (D-42). A connection that
//! did not come about in full carried nothing.

use super::BadUpstream;
use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long a connection may take, its handshake included.
pub(super) const CONNECT: Duration = Duration::from_secs(5);

/// Connects to one upstream.
#[derive(Clone)]
pub(super) struct Dialer(Arc<Target>);

struct Target {
    /// `host:port`.
    address: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Dialer {
    pub(super) fn plain(address: String) -> Self {
        Self(Arc::new(Target { address, tls: None }))
    }

    pub(super) fn secure(
        address: String,
        host: &url::Host<&str>,
        tls: Arc<ClientConfig>,
    ) -> Result<Self, BadUpstream> {
        let name = match host {
            url::Host::Domain(name) => {
                ServerName::try_from((*name).to_owned()).map_err(|_| BadUpstream::Url)?
            }
            url::Host::Ipv4(address) => ServerName::from(std::net::IpAddr::from(*address)),
            url::Host::Ipv6(address) => ServerName::from(std::net::IpAddr::from(*address)),
        };
        Ok(Self(Arc::new(Target { address, tls: Some((TlsConnector::from(tls), name)) })))
    }

    /// Connects, once.
    pub(super) async fn dial(&self) -> io::Result<Line> {
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        timeout(CONNECT, self.connect()).await.map_err(late)?
    }

    async fn connect(&self) -> io::Result<Line> {
        let stream = TcpStream::connect(&self.0.address).await?;
        stream.set_nodelay(true)?;
        match &self.0.tls {
            None => Ok(Line(Box::new(stream))),
            Some((tls, name)) => Ok(Line(Box::new(tls.connect(name.clone(), stream).await?))),
        }
    }
}

/// For a pool, which keeps one upstream's connections only: the address it asks for is the one that was configured.
impl tower::Service<Uri> for Dialer {
    type Response = TokioIo<Line>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Line>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move { dialer.dial().await.map(TokioIo::new) })
    }
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection.
pub(super) struct Line(Box<dyn Duplex>);

impl Connection for Line {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}

/// TLS with the roots the system trusts, read when it is first needed.
pub(super) fn system_tls() -> Result<Arc<ClientConfig>, BadUpstream> {
    static SYSTEM: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(known) = SYSTEM.get() {
        return Ok(Arc::clone(known));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let tls = tls(roots)?;
    Ok(Arc::clone(SYSTEM.get_or_init(|| tls)))
}

/// TLS with these roots and no others.
pub(super) fn tls(roots: RootCertStore) -> Result<Arc<ClientConfig>, BadUpstream> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config =
        versions.map_err(|_| BadUpstream::Tls)?.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
