//! The same way in over TLS, for the few listeners that may be reached from elsewhere without a proxy ahead (D-34).
//!
//! A handshake has no more time than a head has, and counts among the connections from its first byte on.

use crate::crowd::Line;
use crate::{HEAD_TIME, open, talk};
use axum::Router;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// A certificate with its key, ready to be shown.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// Why TLS cannot be spoken.
#[derive(Debug, thiserror::Error)]
pub enum BadTls {
    /// There is no certificate, or one that is none.
    #[error("holds no chain of certificates in PEM")]
    Certificate,
    /// There is no key, or one that is none.
    #[error("holds no private key in PEM")]
    Key,
    /// They do not belong together, or are of a kind nobody here knows.
    #[error("certificate and key cannot be used together: {0}")]
    Pair(rustls::Error),
}

impl Tls {
    /// A chain of certificates, the server's own first, and the key of that one, both in PEM.
    ///
    /// # Errors
    /// When they are not, or do not belong together.
    pub fn read(chain: &[u8], key: &[u8]) -> Result<Self, BadTls> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|_| BadTls::Certificate)?;
        if chain.is_empty() {
            return Err(BadTls::Certificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| BadTls::Key)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
            .map_err(BadTls::Pair)?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

/// Serves `router` over TLS on every listener until `shutdown`, then lets what is under way end.
pub async fn listen_tls(
    listeners: Vec<TcpListener>,
    tls: Tls,
    router: Router,
    shutdown: impl Future<Output = ()> + Send,
) {
    open(listeners, shutdown, move |stream, line, closed| {
        converse(stream, tls.clone(), router.clone(), line, closed)
    })
    .await;
}

async fn converse(
    stream: TcpStream,
    tls: Tls,
    router: Router,
    line: Arc<Line>,
    mut closed: watch::Receiver<bool>,
) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let stream = tokio::select! {
        stream = timeout(HEAD_TIME, tls.0.accept(stream)) => stream,
        _ = closed.changed() => return,
        () = line.is_to_leave() => return,
    };
    match stream {
        Ok(Ok(stream)) => talk(stream, router, line, closed).await,
        Ok(Err(_)) | Err(_) => tracing::debug!("connection.without_tls"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, RootCertStore};
    use std::time::Duration;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::oneshot;
    use tokio_rustls::TlsConnector;

    const CHAIN: &[u8] = include_bytes!("../../gateway/tests/fixtures/tls/cert.pem");
    const KEY: &[u8] = include_bytes!("../../gateway/tests/fixtures/tls/key.pem");

    async fn open_one() -> (std::net::SocketAddr, oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (close, closed) = oneshot::channel::<()>();
        let router = Router::new().route("/", get(async || "done"));
        let tls = Tls::read(CHAIN, KEY).unwrap();
        let shutdown = async move { drop(closed.await) };
        (address, close, tokio::spawn(listen_tls(vec![listener], tls, router, shutdown)))
    }

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

    async fn read(mut stream: impl tokio::io::AsyncRead + Unpin) -> String {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn it_is_served_under_its_certificate_and_ends() {
        let (address, close, serving) = open_one().await;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(CHAIN).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        let answer = read(stream).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
        // Somebody who never begins a handshake does not hold up the end.
        let silent = TcpStream::connect(address).await.unwrap();
        close.send(()).unwrap();
        timeout(Duration::from_secs(5), serving).await.unwrap().unwrap();
        drop(silent);
    }

    #[tokio::test]
    async fn nothing_is_served_without_tls() {
        let (address, _close, _serving) = open_one().await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        let answer = read(stream).await;
        assert!(!answer.contains("HTTP/1.1"), "{answer}");
    }

    #[test]
    fn what_is_no_certificate_or_key_is_refused() {
        for (chain, key, words) in [
            (&b""[..], KEY, "no chain"),
            (KEY, KEY, "no chain"),
            (CHAIN, b"", "no private key"),
            (CHAIN, CHAIN, "no private key"),
        ] {
            let fault = Tls::read(chain, key).err().unwrap().to_string();
            assert!(fault.contains(words), "{fault}");
        }
    }
}
