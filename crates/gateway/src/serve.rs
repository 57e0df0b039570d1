//! The listener: every request to the resource of exactly its path, or to what is published; connections bounded in
//! number, time and size.
//!
//! Paths are compared as they were sent, but for a fragment, which the HTTP library drops. Nothing is decoded, merged or
//! stripped, so every other spelling of a resource is not found. TLS is ahead of this listener or not at all (D-42).

use crate::config::Gateway;
use crate::{proxy, publish};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use http::Response;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use sayso_enforce::Head;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long a request's head may take.
const HEAD_TIME: Duration = Duration::from_secs(10);
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

/// The gateway as a service: for a listener of one's own, or for tests.
pub fn router(gateway: Gateway) -> Router {
    Router::new().fallback(dispatch).with_state(gateway)
}

async fn dispatch(State(Gateway(gateway)): State<Gateway>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let head = Head { method: parts.method, target: parts.uri, headers: parts.headers };
    match gateway.site(head.path()) {
        Some(site) => proxy::pass(Arc::clone(site), &gateway.bodies, head, body).await,
        None => publish::answer(&gateway, &head).await,
    }
}

/// Serves until `shutdown`, then lets what is under way end.
///
/// # Errors
/// Never at present; a connection that fails is its own affair.
pub async fn serve(
    listener: TcpListener,
    gateway: Gateway,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let router = router(gateway);
    let (closing, closed) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = shutdown.as_mut() => break,
            accepted = listener.accept(), if connections.len() < MOST => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, router.clone(), closed.clone()));
                }
                // Out of descriptors, or the peer is gone: neither is a reason to stop serving.
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    // Nobody listening any more is what is wanted.
    let _ = closing.send(true);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ended).await.is_err() {
        tracing::warn!("connections were cut at shutdown");
    }
    Ok(())
}

async fn converse(stream: TcpStream, router: Router, mut closed: watch::Receiver<bool>) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_LINES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => {
            if ended.is_err() {
                tracing::debug!("connection.broken");
            }
            return;
        }
        _ = closed.changed() => connection.as_mut().graceful_shutdown(),
    }
    if connection.await.is_err() {
        tracing::debug!("connection.broken");
    }
}
