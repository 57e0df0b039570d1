//! An upstream of an older revision: it mints sessions, streams what it is told to, and counts what it got.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// What it got.
#[derive(Clone, Debug)]
pub(super) struct Got {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
}

impl Got {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

#[derive(Default)]
pub(super) struct Server {
    pub(super) got: Mutex<Vec<Got>>,
    /// The streams it holds: the session, what was asked, and the way to tell it something.
    streams: Mutex<Vec<(String, String, mpsc::UnboundedSender<String>)>>,
    sessions: Mutex<Vec<String>>,
    pub(super) sessionless: bool,
}

impl Server {
    pub(super) async fn open(sessionless: bool) -> (Arc<Self>, SocketAddr) {
        let server = Arc::new(Self { sessionless, ..Self::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(serve).with_state(Arc::clone(&server));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (server, address)
    }

    pub(super) fn count(&self) -> usize {
        self.got.lock().unwrap().len()
    }

    pub(super) fn last(&self) -> Got {
        self.got.lock().unwrap().last().cloned().unwrap()
    }

    /// Tells every stream that was opened by this.
    pub(super) fn say(&self, session: &str, asked: &str, event: &str) {
        let streams = self.streams.lock().unwrap();
        let mut told = 0;
        for (_, _, stream) in streams.iter().filter(|(s, a, _)| s == session && a == asked) {
            told += usize::from(stream.send(format!("{event}\n\n")).is_ok());
        }
        assert!(told > 0, "no stream of {session} by {asked}");
    }

    /// Whether it holds a stream opened by this.
    pub(super) fn holds(&self, asked: &str) -> bool {
        self.streams.lock().unwrap().iter().any(|(_, a, stream)| a == asked && !stream.is_closed())
    }

    pub(super) fn forget(&self) {
        self.sessions.lock().unwrap().clear();
    }

    fn stream(&self, session: &str, asked: &str) -> Response<Body> {
        let (sender, receiver) = mpsc::unbounded_channel::<String>();
        sender.send("id: first\ndata: \n\n".into()).unwrap();
        self.streams.lock().unwrap().push((session.into(), asked.into(), sender));
        let told = stream::unfold(receiver, |mut receiver| async move {
            Some((Ok::<_, Infallible>(Bytes::from(receiver.recv().await?)), receiver))
        });
        let mut response = Response::new(Body::from_stream(told));
        response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
        response
    }
}

fn plain(status: u16, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    response
}

async fn serve(State(server): State<Arc<Server>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let got = Got { method: parts.method.clone(), headers: parts.headers.clone() };
    server.got.lock().unwrap().push(got);
    let message: Value = serde_json::from_str(&text).unwrap_or_default();
    let named = parts.headers.get("mcp-session-id").map(|value| value.to_str().unwrap().to_owned());
    if message["method"] == "initialize" && named.is_none() {
        let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } });
        let mut response = plain(200, &json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
        if !server.sessionless {
            let mut sessions = server.sessions.lock().unwrap();
            let id = format!("theirs-{}", sessions.len());
            response.headers_mut().insert("mcp-session-id", id.parse().unwrap());
            sessions.push(id);
        }
        return response;
    }
    let known = named.clone().filter(|id| server.sessions.lock().unwrap().contains(id));
    if known.is_none() && !server.sessionless {
        return plain(404, &json!({ "error": "no session" }));
    }
    let session = known.unwrap_or_default();
    let mut response = answer(&server, &parts.method, &session, &message);
    if !session.is_empty() {
        response.headers_mut().insert("mcp-session-id", session.parse().unwrap());
    }
    response
}

fn answer(server: &Server, method: &Method, session: &str, message: &Value) -> Response<Body> {
    let asked = message["method"].as_str().unwrap_or_default();
    let streams = message["params"]["arguments"]["stream"] == true || message["params"]["stream"] == true;
    match (method, asked) {
        (&Method::GET, _) => server.stream(session, "GET"),
        (&Method::DELETE, _) => {
            server.sessions.lock().unwrap().retain(|known| known != session);
            plain(200, &json!({}))
        }
        (_, asked) if streams => server.stream(session, asked),
        _ if message.get("id").is_none() || asked.is_empty() => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::ACCEPTED;
            response
        }
        _ => plain(200, &json!({ "jsonrpc": "2.0", "id": message["id"], "result": {} })),
    }
}
