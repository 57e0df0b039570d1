//! The one way in, as `sayso-fetch` is the one way out: connections bounded in number, their heads in size and time.
//!
//! Every listener of ours is served here, so that one bound holds at all of them. Whom a listener serves, and which
//! hosts and origins, is its router's to decide. What is under way when the shutdown comes may end within a grace period.
//! TLS is ahead of a listener, or spoken here where it may be reached from elsewhere (D-42).

#[cfg(feature = "http2")]
mod http2;
#[cfg(feature = "tls")]
mod tls;

#[cfg(feature = "http2")]
pub use http2::listen_http2;
#[cfg(feature = "tls")]
pub use tls::{BadTls, Tls, listen_tls};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long a request's head may take; longer than our own client keeps an idle connection, so that the client is the
/// one to close it.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// Most bytes of a request's head.
const HEAD_BYTES: usize = 64 << 10;
/// Most header lines of a request.
const HEAD_LINES: usize = 100;
/// Most connections at once; further ones wait to be accepted.
const MOST: usize = 4096;
/// How long what is under way may take to end after the listener closed.
const GRACE: Duration = Duration::from_secs(10);
/// How long to wait after the system refused a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves `router` on every listener until `shutdown`, then lets what is under way end. A connection that fails is its own
/// affair, so there is nothing to report.
pub async fn listen(listeners: Vec<TcpListener>, router: Router, shutdown: impl Future<Output = ()> + Send) {
    open(listeners, shutdown, move |stream, closed| converse(stream, router.clone(), closed)).await;
}

/// Serves `router` on a socket in the file system, as [`listen`] does on addresses. Who may connect is who may write to it.
pub async fn listen_unix(listener: UnixListener, router: Router, shutdown: impl Future<Output = ()> + Send) {
    open(vec![listener], shutdown, move |stream, closed| talk(stream, router.clone(), closed)).await;
}

/// What connections come in by.
trait Door: Send {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn meet(&self) -> impl Future<Output = std::io::Result<Self::Stream>> + Send;
}

impl Door for TcpListener {
    type Stream = TcpStream;

    async fn meet(&self) -> std::io::Result<TcpStream> {
        self.accept().await.map(|(stream, _)| stream)
    }
}

impl Door for UnixListener {
    type Stream = UnixStream;

    async fn meet(&self) -> std::io::Result<UnixStream> {
        self.accept().await.map(|(stream, _)| stream)
    }
}

/// Accepts at every listener until `shutdown` and gives each connection to `talk`, with what says when to end.
async fn open<D, T>(
    listeners: Vec<D>,
    shutdown: impl Future<Output = ()> + Send,
    talk: impl Fn(D::Stream, watch::Receiver<bool>) -> T + Clone,
) where
    D: Door,
    T: Future<Output = ()> + Send + 'static,
{
    let (closing, closed) = watch::channel(false);
    let doors = listeners.into_iter().map(|listener| attend(listener, talk.clone(), closed.clone()));
    let close = async {
        shutdown.await;
        // Nobody listening any more is what is wanted.
        let _ = closing.send(true);
    };
    tokio::join!(futures::future::join_all(doors), close);
}

async fn attend<D, T>(
    listener: D,
    talk: impl Fn(D::Stream, watch::Receiver<bool>) -> T,
    closed: watch::Receiver<bool>,
) where
    D: Door,
    T: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let mut closing = closed.clone();
    loop {
        tokio::select! {
            _ = closing.changed() => break,
            accepted = listener.meet(), if connections.len() < MOST => match accepted {
                Ok(stream) => {
                    connections.spawn(talk(stream, closed.clone()));
                }
                // Out of descriptors, or the peer is gone: neither is a reason to stop serving.
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ended).await.is_err() {
        tracing::warn!("connections.cut");
    }
}

async fn converse(stream: TcpStream, router: Router, closed: watch::Receiver<bool>) {
    if stream.set_nodelay(true).is_ok() {
        talk(stream, router, closed).await;
    }
}

async fn talk<S>(stream: S, router: Router, closed: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_LINES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    end_or_close(connection, closed).await;
}

/// Serves a connection until it ends, or until it is to close; then what is under way on it ends.
async fn end_or_close(connection: impl GracefulConnection, mut closed: watch::Receiver<bool>) {
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = closed.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if ended.is_err() {
        tracing::debug!("connection.broken");
    }
}

#[cfg(test)]
mod tests;
