//! A server over HTTP says that its tools changed, and the gateway hears it on a stream of its own (D-30).

use super::{Server, discovered, error, respond, result};
use crate::{HttpSettings, Upstream};
use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, Method, Response};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};

type Streams = Arc<Mutex<Vec<UnboundedSender<String>>>>;

fn stream(streams: &Streams) -> Response<Body> {
    let (sender, receiver) = unbounded_channel::<String>();
    streams.lock().unwrap().push(sender);
    let told = stream::unfold(receiver, |mut receiver| async move {
        Some((Ok::<_, Infallible>(Bytes::from(receiver.recv().await?)), receiver))
    });
    respond(200, "text/event-stream", Body::from_stream(told))
}

async fn opened(streams: &Streams, many: usize) -> UnboundedSender<String> {
    for _ in 0..200 {
        if let Some(sender) = streams.lock().unwrap().get(many - 1) {
            return sender.clone();
        }
        sleep(Duration::from_millis(25)).await;
    }
    panic!("no stream was opened");
}

fn event(method: &str) -> String {
    format!("event: message\ndata: {}\n\n", json!({ "jsonrpc": "2.0", "method": method }))
}

/// Attends to a server, and says whether each thing it says is heard as a change.
async fn hears(server: &Server, streams: &Streams) {
    let upstream = Upstream::open(HttpSettings::at(&server.url)).unwrap();
    let mut changes = upstream.changes();
    let attending = tokio::spawn(async move { upstream.attend().await });
    let sender = opened(streams, 1).await;
    for gossip in
        [": nothing\n\n".to_owned(), "data: not json\n\n".to_owned(), event("notifications/message")]
    {
        sender.send(gossip).unwrap();
    }
    sender.send(format!("data: {}\n\n", "x".repeat(100_000))).unwrap();
    assert!(timeout(Duration::from_millis(300), changes.changed()).await.is_err());
    sender.send(event("notifications/tools/list_changed")).unwrap();
    timeout(Duration::from_secs(5), changes.changed()).await.unwrap().unwrap();
    assert_eq!(*changes.borrow_and_update(), 1);
    // A stream that ends is opened again.
    drop(sender);
    streams.lock().unwrap()[0] = unbounded_channel().0;
    let sender = opened(streams, 2).await;
    sender.send(event("notifications/tools/list_changed")).unwrap();
    timeout(Duration::from_secs(5), changes.changed()).await.unwrap().unwrap();
    attending.abort();
}

// D-30
#[tokio::test]
async fn a_modern_server_is_subscribed_to_for_its_tools_alone() {
    let streams = Streams::default();
    let held = Arc::clone(&streams);
    let server =
        Server::open(move |_: &Method, headers: &HeaderMap, asked: &Value| match asked["method"].as_str() {
            Some("server/discover") => result(asked, discovered()),
            Some("subscriptions/listen") => {
                assert_eq!(headers["mcp-method"], "subscriptions/listen");
                assert_eq!(asked["params"]["notifications"], json!({ "toolsListChanged": true }));
                stream(&held)
            }
            _ => error(404, asked, -32601),
        })
        .await;
    hears(&server, &streams).await;
}

// D-30, D-13
#[tokio::test]
async fn an_older_server_is_listened_to_in_a_session_of_ours() {
    let streams = Streams::default();
    let held = Arc::clone(&streams);
    let server = Server::open(move |method: &Method, headers: &HeaderMap, asked: &Value| {
        let named = headers.get("mcp-session-id").is_some_and(|id| id == "s1");
        match (method, asked["method"].as_str()) {
            (&Method::GET, _) if named => stream(&held),
            (&Method::DELETE, _) => respond(200, "application/json", "{}"),
            (_, Some("initialize")) => {
                let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} } });
                let mut response = result(asked, hello);
                response.headers_mut().insert("mcp-session-id", "s1".parse().unwrap());
                response
            }
            (_, Some("notifications/initialized")) => respond(202, "text/plain", ""),
            _ => error(400, asked, -32600),
        }
    })
    .await;
    hears(&server, &streams).await;
    let asked = server.asked.lock().unwrap();
    let ended = asked.iter().filter(|(method, _, _)| *method == Method::DELETE).count();
    assert_eq!(ended, 1, "the session of the stream that ended");
}

#[tokio::test]
async fn a_server_without_such_a_stream_is_asked_once_in_a_while() {
    let server =
        Server::open(|method: &Method, _: &HeaderMap, asked: &Value| match asked["method"].as_str() {
            Some("initialize") => {
                result(asked, json!({ "protocolVersion": "2025-11-25", "capabilities": {} }))
            }
            Some("notifications/initialized") => respond(202, "text/plain", ""),
            _ if method == Method::GET => respond(405, "text/plain", ""),
            _ => error(400, asked, -32600),
        })
        .await;
    let upstream = Upstream::open(HttpSettings::at(&server.url)).unwrap();
    let attending = tokio::spawn(async move { upstream.attend().await });
    sleep(Duration::from_millis(1500)).await;
    attending.abort();
    let listened =
        server.asked.lock().unwrap().iter().filter(|(method, _, _)| *method == Method::GET).count();
    assert_eq!(listened, 1);
}
