//! The same way in for peers that speak HTTP/2 and nothing else: a gateway that asks over gRPC.
//!
//! The bounds are those of every listener, and HTTP/2's own beside them: streams, their heads, and what may be under way
//! of bodies nobody has read yet. There is no upgrade and no negotiation, so no browser gets in here.

use crate::crowd::Line;
use crate::line::Told;
use crate::{HEAD_BYTES, HEAD_TIME, end_or_close, open};
use axum::Router;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// Most requests of one connection at once; a gateway has one connection or a few.
const STREAMS: u32 = 256;
/// Bytes of bodies that may be under way on one connection before they are read.
const WINDOW: u32 = 1 << 20;
/// How often a silent peer is asked whether it is there, and how long it may take to say so.
const ASK: Duration = Duration::from_secs(30);
/// The first bytes of every HTTP/2 connection, by number.
const PREFACE: usize = 24;
/// How long to wait for more of them.
const PAUSE: Duration = Duration::from_millis(20);

/// Serves `router` over HTTP/2 without TLS on every listener until `shutdown`, then lets what is under way end.
pub async fn listen_http2(
    listeners: Vec<TcpListener>,
    router: Router,
    shutdown: impl Future<Output = ()> + Send,
) {
    open(listeners, shutdown, move |stream, line, closed| converse(stream, router.clone(), line, closed))
        .await;
}

async fn converse(stream: TcpStream, router: Router, line: Arc<Line>, mut closed: watch::Receiver<bool>) {
    let begun = timeout(HEAD_TIME, begins(&stream));
    let begun = tokio::select! {
        begun = begun => begun.unwrap_or(false),
        _ = closed.changed() => false,
        () = line.is_to_leave() => false,
    };
    if !begun || stream.set_nodelay(true).is_err() {
        return;
    }
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(HEAD_BYTES).unwrap_or(u32::MAX))
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .keep_alive_interval(ASK)
        .keep_alive_timeout(ASK)
        .serve_connection(
            TokioIo::new(stream),
            TowerToHyperService::new(Told::new(router, Arc::clone(&line))),
        );
    end_or_close(connection, &line, closed).await;
}

/// Whether as much came as every connection begins with: until then the server waits without a bound of its own.
async fn begins(stream: &TcpStream) -> bool {
    let mut first = [0; PREFACE];
    loop {
        match stream.peek(&mut first).await {
            Ok(PREFACE) => return true,
            Ok(read) if read > 0 => tokio::time::sleep(PAUSE).await,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use http_body_util::{BodyExt as _, Empty};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::oneshot;

    async fn open_one() -> (std::net::SocketAddr, oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (close, closed) = oneshot::channel::<()>();
        let router = Router::new().route("/", get(async || "done"));
        let shutdown = async move { drop(closed.await) };
        (address, close, tokio::spawn(listen_http2(vec![listener], router, shutdown)))
    }

    async fn ask(address: std::net::SocketAddr) -> String {
        let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        let request = hyper::Request::get("http://x/").body(Empty::<axum::body::Bytes>::new()).unwrap();
        let body = sender.send_request(request).await.unwrap().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn it_is_served_and_ends() {
        let (address, close, serving) = open_one().await;
        assert_eq!(ask(address).await, "done");
        let silent = TcpStream::connect(address).await.unwrap();
        close.send(()).unwrap();
        timeout(Duration::from_secs(5), serving).await.unwrap().unwrap();
        drop(silent);
    }

    #[tokio::test]
    async fn no_other_version_is_spoken() {
        let (address, _close, _serving) = open_one().await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1"), "{answer:?}");
        assert_eq!(ask(address).await, "done");
    }
}
