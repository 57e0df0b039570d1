//! The one way in, as `sayso-fetch` is the one way out: connections bounded in number, their heads in size and time.
//!
//! Every listener of ours is served here, so that one bound holds at all of them. Whom a listener serves, and which
//! hosts and origins, is its router's to decide; it is told where each request came from. What is under way when the
//! shutdown comes may end within a grace period. TLS is ahead of a listener, or spoken here where it may be reached from
//! elsewhere (D-42).

mod crowd;
#[cfg(feature = "http2")]
mod http2;
mod line;
#[cfg(feature = "tls")]
mod tls;

#[cfg(feature = "http2")]
pub use http2::listen_http2;
#[cfg(feature = "tls")]
pub use tls::{BadTls, Tls, listen_tls};

use axum::Router;
use crowd::{Crowd, Line, Place};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use hyper_util::service::TowerToHyperService;
use line::Told;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::Arc;
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
/// Most connections of a listener at once. Whoever comes then takes the place of another (`crowd`).
const MOST: usize = 4096;
/// And one in so many of the descriptors that the process may have: each request may need more than its own.
const DESCRIPTORS: u64 = 4;
/// How long one that is to leave has to end by itself: it may be about to say something.
const LINGER: Duration = Duration::from_millis(100);
/// How long what is under way may take to end after the listener closed.
const GRACE: Duration = Duration::from_secs(10);
/// How long to wait after the system refused a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// Where a request came from, in its extensions: the address its connection was made from. Whoever is ahead of a listener
/// makes them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer(pub IpAddr);

/// Serves `router` on every listener until `shutdown`, then lets what is under way end. A connection that fails is its own
/// affair, so there is nothing to report.
pub async fn listen(listeners: Vec<TcpListener>, router: Router, shutdown: impl Future<Output = ()> + Send) {
    open(listeners, shutdown, move |stream, line, closed| talk(stream, router.clone(), line, closed)).await;
}

/// Serves `router` on a socket in the file system, as [`listen`] does on addresses. Who may connect is who may write to it.
pub async fn listen_unix(listener: UnixListener, router: Router, shutdown: impl Future<Output = ()> + Send) {
    open(vec![listener], shutdown, move |stream, line, closed| talk(stream, router.clone(), line, closed))
        .await;
}

/// What connections come in by.
trait Door: Send {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn meet(&self) -> impl Future<Output = std::io::Result<(Self::Stream, IpAddr)>> + Send;
}

impl Door for TcpListener {
    type Stream = TcpStream;

    async fn meet(&self) -> std::io::Result<(TcpStream, IpAddr)> {
        let (stream, from) = self.accept().await?;
        // It fails when the peer is gone, which is seen when it is read.
        let _ = stream.set_nodelay(true);
        Ok((stream, from.ip()))
    }
}

impl Door for UnixListener {
    type Stream = UnixStream;

    async fn meet(&self) -> std::io::Result<(UnixStream, IpAddr)> {
        // Whoever may open it is one of a kind.
        self.accept().await.map(|(stream, _)| (stream, IpAddr::from(Ipv4Addr::LOCALHOST)))
    }
}

/// Accepts at every listener until `shutdown` and gives each connection to `talk`, with what says when to end.
async fn open<D, T>(
    listeners: Vec<D>,
    shutdown: impl Future<Output = ()> + Send,
    talk: impl Fn(D::Stream, Arc<Line>, watch::Receiver<bool>) -> T + Clone,
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
    talk: impl Fn(D::Stream, Arc<Line>, watch::Receiver<bool>) -> T,
    closed: watch::Receiver<bool>,
) where
    D: Door,
    T: Future<Output = ()> + Send + 'static,
{
    let (mut connections, crowd) = (JoinSet::new(), Crowd::of(most()));
    let mut closing = closed.clone();
    loop {
        tokio::select! {
            _ = closing.changed() => break,
            accepted = listener.meet() => match accepted {
                Ok((stream, from)) => match crowd.admit(from) {
                    Some(place) => {
                        let talking = talk(stream, Arc::clone(&place.line), closed.clone());
                        connections.spawn(keep(place, talking));
                    }
                    None => tracing::debug!("connection.refused"),
                },
                // Out of descriptors, or the peer is gone: neither is a reason to stop serving.
                Err(_) => {
                    crowd.thin();
                    tokio::time::sleep(PAUSE).await;
                }
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

/// A connection in its place.
async fn keep(place: Place, talking: impl Future<Output = ()>) {
    talking.await;
    drop(place);
}

/// How many connections there may be: fewer than usual where the system is short of descriptors.
fn most() -> usize {
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let share = descriptors.and_then(|count| usize::try_from(count / DESCRIPTORS).ok());
    share.map_or(MOST, |share| share.clamp(16, MOST))
}

async fn talk<S>(stream: S, router: Router, line: Arc<Line>, closed: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_LINES)
        .serve_connection(
            TokioIo::new(stream),
            TowerToHyperService::new(Told::new(router, Arc::clone(&line))),
        );
    end_or_close(connection, &line, closed).await;
}

/// Serves a connection until it ends, or until it is to close or to leave; then what is under way on it ends.
async fn end_or_close(connection: impl GracefulConnection, line: &Line, mut closed: watch::Receiver<bool>) {
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = closed.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = line.is_to_leave() => {
            connection.as_mut().graceful_shutdown();
            loop {
                match tokio::time::timeout(LINGER, connection.as_mut()).await {
                    Ok(ended) => break ended,
                    // Its last request, which came meanwhile; not what is told for ever in answer to it.
                    Err(_) if line.is_working() => {}
                    Err(_) => return,
                }
            }
        }
    };
    if ended.is_err() {
        tracing::debug!("connection.broken");
    }
}

#[cfg(test)]
mod tests;
