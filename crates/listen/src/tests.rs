//! What is bounded at every listener, over real sockets.

use super::*;
use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;

/// A listener whose one route takes `work`, and the way to close it.
async fn open(work: Duration) -> (std::net::SocketAddr, oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let slow = move || async move {
        tokio::time::sleep(work).await;
        "done"
    };
    let (close, closed) = oneshot::channel();
    let shutdown = async move { drop(closed.await) };
    let serving = tokio::spawn(listen(vec![listener], Router::new().route("/", get(slow)), shutdown));
    (address, close, serving)
}

async fn say(address: std::net::SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A listener may close on what it refuses before it was all read.
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

const ASK: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn what_is_under_way_ends_and_nothing_new_begins() {
    let (address, close, serving) = open(Duration::from_millis(300)).await;
    let asked = tokio::spawn(say(address, ASK));
    tokio::time::sleep(Duration::from_millis(100)).await;
    close.send(()).unwrap();
    assert!(asked.await.unwrap().ends_with("done"));
    serving.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_head_is_bounded_in_size_and_lines() {
    let (address, _close, _serving) = open(Duration::ZERO).await;
    let lines = format!("GET / HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(HEAD_LINES + 1));
    let long = format!("GET / HTTP/1.1\r\nhost: x\r\na: {}\r\n\r\n", "b".repeat(4 * HEAD_BYTES));
    // It comes in one piece, and may be read in one.
    let over = format!("GET / HTTP/1.1\r\nhost: x\r\na: {}\r\n\r\n", "b".repeat(HEAD_BYTES));
    let many =
        format!("GET / HTTP/1.1\r\nhost: x\r\n{}\r\n", format!("a: {}\r\n", "b".repeat(2000)).repeat(40));
    for head in [lines, long, over, many] {
        let answer = say(address, head.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer:.60}");
    }
    let close = "a: ".len() + "\r\nconnection: close".len() + 64;
    let fits = format!(
        "GET / HTTP/1.1\r\nhost: x\r\na: {}\r\nconnection: close\r\n\r\n",
        "b".repeat(HEAD_BYTES - close)
    );
    assert!(say(address, fits.as_bytes()).await.ends_with("done"));
    assert!(say(address, ASK).await.ends_with("done"));
}

#[tokio::test]
async fn an_unfinished_head_does_not_keep_a_listener_open() {
    let (address, close, serving) = open(Duration::ZERO).await;
    let mut stalled = TcpStream::connect(address).await.unwrap();
    stalled.write_all(b"GET / HTTP/1.1\r\nhost").await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    close.send(()).unwrap();
    serving.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

/// Reads one answer and leaves the connection open.
async fn ask_on(stream: &mut TcpStream) -> std::io::Result<String> {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await?;
    let mut answer = vec![0; 4096];
    let read = stream.read(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer[..read]).into_owned())
}

/// Whether the other side has ended it.
async fn has_ended(stream: &mut TcpStream) -> bool {
    let read = tokio::time::timeout(Duration::from_secs(2), stream.read(&mut [0; 16])).await;
    matches!(read, Ok(Ok(0) | Err(_)))
}

#[tokio::test]
async fn idle_connections_make_room_and_busy_ones_do_not() {
    let (address, _close, _serving) = open(Duration::from_millis(300)).await;
    let mut idle = TcpStream::connect(address).await.unwrap();
    let mut partial = TcpStream::connect(address).await.unwrap();
    partial.write_all(b"GET / HTTP/1.1\r\nhos").await.unwrap();
    let mut answered = TcpStream::connect(address).await.unwrap();
    assert!(ask_on(&mut answered).await.unwrap().ends_with("done"));
    let mut crowd = Vec::new();
    for _ in 0..most() {
        crowd.push(TcpStream::connect(address).await.unwrap());
    }
    // All from one place: what never said a whole word went first, half a head among it.
    assert!(has_ended(&mut idle).await && has_ended(&mut partial).await);
    let asked = tokio::spawn(say(address, ASK));
    tokio::time::sleep(Duration::from_millis(50)).await;
    for _ in 0..most() {
        crowd.push(TcpStream::connect(address).await.unwrap());
    }
    assert!(asked.await.unwrap().ends_with("done"), "what is under way is let end");
    assert!(say(address, ASK).await.ends_with("done"));
}

/// A listener that answers with what never ends, or with nothing before it was told everything.
async fn patient() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tell = || async {
        let pieces = futures::stream::once(async { Ok::<_, std::io::Error>("piece") });
        axum::body::Body::from_stream(futures::StreamExt::chain(pieces, futures::stream::pending()))
    };
    let hear = |body: axum::body::Bytes| async move { body.len().to_string() };
    let router = Router::new().route("/", get(tell).post(hear));
    tokio::spawn(listen(vec![listener], router, std::future::pending()));
    address
}

async fn from_elsewhere(last: u8, address: std::net::SocketAddr) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(std::net::SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
    socket.connect(address).await.unwrap()
}

// D-42: two that hold all they can get, by answers that do not end or by questions that do not, keep nobody out.
#[tokio::test]
async fn neither_streams_nor_slow_bodies_of_two_keep_a_third_out() {
    let stream: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let slow: &[u8] = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf";
    for held in [stream, slow] {
        let address = patient().await;
        let mut holding = Vec::new();
        for last in [2, 3] {
            for _ in 0..most() {
                let mut one = from_elsewhere(last, address).await;
                // One that finds no place is closed, which is seen when it is written to or not at all.
                let _ = one.write_all(held).await;
                holding.push(one);
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        for _ in 0..4 {
            let mut newcomer = from_elsewhere(9, address).await;
            newcomer.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nab").await.unwrap();
            let mut answer = [0; 512];
            let read = tokio::time::timeout(Duration::from_secs(5), newcomer.read(&mut answer)).await;
            let read = read.unwrap().unwrap_or(0);
            assert!(answer[..read].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(held));
        }
    }
}

#[tokio::test]
async fn a_router_is_told_where_a_request_came_from() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let told = |axum::Extension(Peer(from)): axum::Extension<Peer>| async move { from.to_string() };
    let router = Router::new().route("/", get(told));
    tokio::spawn(listen(vec![listener], router, std::future::pending()));
    assert!(say(address, ASK).await.ends_with("127.0.0.1"));
}
