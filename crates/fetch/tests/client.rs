//! The client against small real servers: what it reads, what it refuses, and what it never sends.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its server has failed")]

use bytes::Bytes;
use http::Request;
use sayso_fetch::{Client, Fetch, FetchError, Limits, OwnConnection, Reach, get};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const SMALL: Limits = Limits { bytes: 1024, seconds: 2 };

/// A server that answers every connection with `answer` and counts the connections.
async fn server(answer: &'static [u8], then_close: bool) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, count) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let seen = count.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            seen.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                let _ = stream.read(&mut buffer).await;
                let _ = stream.write_all(answer).await;
                if !then_close {
                    tokio::time::sleep(Duration::from_secs(30)).await;
                }
            });
        }
    });
    (port, count)
}

fn ask(url: &str) -> Request<Bytes> {
    Request::get(url).body(Bytes::new()).unwrap()
}

#[tokio::test]
async fn an_answer_is_read_whole() {
    let (port, _) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-a: 1\r\n\r\nhi", true).await;
    let client = Client::new(Reach::Configured);
    for host in ["127.0.0.1", "localhost"] {
        let answer = client.send(ask(&format!("http://{host}:{port}/a?b=c")), SMALL).await.unwrap();
        assert_eq!((answer.status().as_u16(), &answer.body()[..]), (200, &b"hi"[..]));
        assert_eq!(answer.headers()["x-a"], "1");
    }
    assert_eq!(get(&client, &format!("http://127.0.0.1:{port}/"), SMALL).await.unwrap(), "hi");
}

// FED-50
#[tokio::test]
async fn a_stranger_is_not_led_home() {
    let (port, count) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", true).await;
    for reach in [Reach::Public, Reach::PublicAnyPort] {
        let client = Client::new(reach);
        for url in ["http://127.0.0.1:P/", "https://127.0.0.1:P/", "https://localhost:P/"] {
            let url = url.replace('P', &port.to_string());
            assert_eq!(client.send(ask(&url), SMALL).await.unwrap_err(), FetchError::Refused, "{url}");
        }
    }
    // Not every resolver knows this spelling; those that do lead home.
    let dotted =
        Client::new(Reach::PublicAnyPort).send(ask(&format!("https://localhost.:{port}/")), SMALL).await;
    assert!(dotted.unwrap_err().nothing_sent());
    let public = Client::new(Reach::Public);
    assert_eq!(public.send(ask("https://localhost/"), SMALL).await.unwrap_err(), FetchError::Refused);
    assert_eq!(count.load(Ordering::SeqCst), 0, "nothing was connected to");
}

// FED-50
#[tokio::test]
async fn redirects_are_answers() {
    let (other, reached) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", true).await;
    let text =
        format!("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{other}/\r\ncontent-length: 0\r\n\r\n");
    let (port, _) = server(text.leak().as_bytes(), true).await;
    let url = format!("http://127.0.0.1:{port}/");
    let client = Client::new(Reach::Configured);
    assert_eq!(client.send(ask(&url), SMALL).await.unwrap().status(), 302);
    assert_eq!(get(&client, &url, SMALL).await, Err(FetchError::Status(302)));
    assert_eq!(reached.load(Ordering::SeqCst), 0);
}

// FED-50
#[tokio::test]
async fn a_body_has_an_end() {
    let client = Client::new(Reach::Configured);
    let (announced, _) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n", false).await;
    let url = format!("http://127.0.0.1:{announced}/");
    assert_eq!(client.send(ask(&url), SMALL).await.unwrap_err(), FetchError::TooLarge);
    let body = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1025));
    let (unannounced, _) = server(body.leak().as_bytes(), true).await;
    let url = format!("http://127.0.0.1:{unannounced}/");
    assert_eq!(client.send(ask(&url), SMALL).await.unwrap_err(), FetchError::TooLarge);
    let (endless, _) = server(b"HTTP/1.1 200 OK\r\n\r\nx", false).await;
    let url = format!("http://127.0.0.1:{endless}/");
    let limits = Limits { bytes: 1024, seconds: 1 };
    assert_eq!(client.send(ask(&url), limits).await.unwrap_err(), FetchError::TimedOut);
}

#[tokio::test]
async fn reading_stops_when_there_is_enough() {
    let (port, _) = server(b"HTTP/1.1 200 OK\r\n\r\ndata: x\n\n", false).await;
    let client = Client::new(Reach::Configured);
    let mut seen = Vec::new();
    let mut enough = |piece: &[u8]| {
        seen.extend_from_slice(piece);
        seen.ends_with(b"\n\n")
    };
    let request = ask(&format!("http://127.0.0.1:{port}/"));
    let answer = client.send_until(request, SMALL, &mut enough).await.unwrap();
    assert_eq!(answer.body(), "data: x\n\n");
}

// D-14
#[tokio::test]
async fn a_broken_connection_is_not_tried_again() {
    let (port, count) = server(b"", true).await;
    let client = Client::new(Reach::Configured);
    let fault = client.send(ask(&format!("http://127.0.0.1:{port}/")), SMALL).await.unwrap_err();
    assert_eq!(fault, FetchError::Interrupted);
    assert!(!fault.nothing_sent());
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

/// A server that answers every request of a connection and counts connections.
async fn patient_server() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, count) = (format!("http://{}/", listener.local_addr().unwrap()), Arc::new(AtomicUsize::new(0)));
    let seen = count.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            seen.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
                }
            });
        }
    });
    (url, count)
}

#[tokio::test]
async fn what_can_be_sent_once_gets_a_connection_of_its_own() {
    let (url, count) = patient_server().await;
    let client = Client::new(Reach::Configured);
    for _ in 0..3 {
        client.send(ask(&url), SMALL).await.unwrap();
        // The connection goes back to the pool in the background.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(count.load(Ordering::SeqCst), 1, "connections are reused");
    for _ in 0..2 {
        let mut once = ask(&url);
        once.extensions_mut().insert(OwnConnection);
        client.send(once, SMALL).await.unwrap();
    }
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn nobody_there_means_nothing_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let client = Client::new(Reach::Configured);
    let fault = client.send(ask(&format!("http://127.0.0.1:{port}/")), SMALL).await.unwrap_err();
    assert_eq!(fault, FetchError::Unreachable);
    assert!(fault.nothing_sent());
}

#[tokio::test]
async fn a_url_that_would_be_rewritten_is_refused() {
    let (port, count) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", true).await;
    let client = Client::new(Reach::Configured);
    for path in ["/a/../b", "/a/./b", "/%2e%2e/b", "/a/%2E"] {
        let url = format!("http://127.0.0.1:{port}{path}");
        assert_eq!(client.send(ask(&url), SMALL).await.unwrap_err(), FetchError::Refused, "{path}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_certificate_nobody_vouches_for_is_no_connection() {
    let (port, _) = server(b"not tls", true).await;
    let client = Client::new(Reach::Configured);
    let fault = client.send(ask(&format!("https://127.0.0.1:{port}/")), SMALL).await.unwrap_err();
    assert_eq!(fault, FetchError::Unreachable);
}
