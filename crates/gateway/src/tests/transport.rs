//! Time and connections: slow clients, keep-alive, and the end of the process.

use super::cast::{House, TRADE};
use super::wire::Request;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

fn kept_alive(request: &Request) -> Vec<u8> {
    String::from_utf8(request.bytes()).unwrap().replace("Connection: close\r\n", "").into_bytes()
}

async fn read_some(stream: &mut TcpStream) -> String {
    let mut piece = vec![0; 16 << 10];
    let read = timeout(Duration::from_secs(5), stream.read(&mut piece)).await.unwrap().unwrap();
    String::from_utf8_lossy(&piece[..read]).into_owned()
}

#[tokio::test]
async fn a_connection_carries_one_request_after_another_whatever_became_of_the_first() {
    let house = House::open().await;
    let mut stream = TcpStream::connect(house.gateway).await.unwrap();
    for (request, status) in [
        (Request::list(), "200"),
        (Request::call("execute_trade", TRADE), "401"),
        (Request::call("execute_trade", TRADE).with("Origin", "null"), "403"),
        (Request::call("wire_money", "{}"), "403"),
        (Request::list(), "200"),
    ] {
        stream.write_all(&kept_alive(&request)).await.unwrap();
        let answer = read_some(&mut stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    assert_eq!(house.canary.count(), 2);
}

#[tokio::test]
async fn what_is_under_way_at_the_end_is_let_end_and_nothing_new_begins() {
    let mut house = House::open().await;
    let idle = TcpStream::connect(house.gateway).await.unwrap();
    let (sender, _closed) = oneshot::channel();
    *house.canary.held.lock().unwrap() = Some(sender);
    let mut stream = TcpStream::connect(house.gateway).await.unwrap();
    stream.write_all(&Request::list().bytes()).await.unwrap();
    assert!(read_some(&mut stream).await.starts_with("HTTP/1.1 200"));
    house.stop();
    timeout(Duration::from_secs(5), &mut house.ended).await.expect("it ends").unwrap();
    assert!(TcpStream::connect(house.gateway).await.is_err());
    drop(idle);
}

#[tokio::test]
async fn a_client_that_asks_first_is_refused_before_it_sends() {
    let house = House::open().await;
    let mut large = Request::list().with("Content-Length", "10000000").with("Expect", "100-continue");
    large.body.clear();
    let response = timeout(Duration::from_secs(5), house.send(&large)).await.unwrap();
    assert_eq!((response.status, response.json()["error"].as_str()), (413, Some("request_body_too_large")));
    house.assert_untouched("expect");
}

/// The rest of a large body is read for a moment, so that a client that only writes gets to the answer.
#[tokio::test]
async fn a_client_that_cannot_stop_gets_its_answer() {
    let house = House::open().await;
    let mut large = Request::list();
    large.body = vec![b' '; 3 << 20];
    let response = timeout(Duration::from_secs(5), house.send(&large)).await.unwrap();
    assert_eq!(response.status, 413);
}
