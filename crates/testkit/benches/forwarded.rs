//! What a policy adds to a forwarded call: the built program as a gateway, an MCP server behind it, an issuer of access
//! tokens, and calls over real sockets, in turn to the server itself, to a resource that asks nobody, and to one that
//! asks the embedded policy engine. Nothing is asserted about a time.
//!
//! The program is `sayso` beside this benchmark's own folder, or the one that `SAYSO_BIN` names.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that cannot set itself up has failed"
)]

#[path = "forwarded/cast.rs"]
mod cast;

use bytes::Bytes;
use cast::{Gateway, Issuer, Server};
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
/// Calls of each way that are timed, and those before that are not.
const CALLS: usize = 4000;
const WARM: usize = 400;

/// A connection that is kept, and where calls go on it.
struct Way {
    what: &'static str,
    sender: SendRequest<Full<Bytes>>,
    host: String,
    path: &'static str,
    token: Option<String>,
    took: Vec<Duration>,
}

impl Way {
    async fn open(what: &'static str, at: &str, path: &'static str, token: Option<String>) -> Self {
        let host = at.trim_start_matches("http://").to_owned();
        let stream = TcpStream::connect(&host).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self { what, sender, host, path, token, took: Vec::new() }
    }

    fn request(&self) -> Request<Full<Bytes>> {
        let params = format!(r#"{{"name":"look","arguments":{{"account":"acc-9"}},"_meta":{META}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
        let request = Request::post(self.path)
            .header("host", &self.host)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "look");
        let shown = self.token.iter().map(|token| format!("Bearer {token}"));
        let request = shown.fold(request, |request, token| request.header("authorization", token));
        request.body(Full::from(body)).unwrap()
    }

    /// One call, answered with a result.
    async fn call(&mut self) -> Duration {
        let request = self.request();
        let began = Instant::now();
        let response = self.sender.send_request(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let took = began.elapsed();
        let text = String::from_utf8_lossy(&body);
        assert!(status == 200 && text.contains("\"result\""), "{}: {status} {text}", self.what);
        took
    }

    /// The nth of a hundred.
    fn at(&self, hundredth: usize) -> f64 {
        let mut sorted = self.took.clone();
        sorted.sort_unstable();
        let nth = sorted.len() * hundredth / 100;
        sorted.get(nth.min(sorted.len().saturating_sub(1))).map_or(0.0, Duration::as_secs_f64) * 1e6
    }
}

async fn measure() {
    let (issuer, server) = (Issuer::open().await, Server::open().await);
    // Elsewhere: it asks the issuer for its keys before it is ready.
    let (behind, issuing) = (server.url.clone(), issuer.url.clone());
    let gateway = tokio::task::spawn_blocking(move || Gateway::open(&behind, &issuing)).await.unwrap();
    let token = issuer.token(&format!("{}/policed", gateway.url));
    let mut ways = [
        Way::open("the server itself", &server.url, "/mcp", None).await,
        Way::open("forwarded, nobody asked", &gateway.url, "/plain", None).await,
        Way::open("forwarded, policy asked", &gateway.url, "/policed", Some(token)).await,
    ];
    for round in 0..WARM + CALLS {
        // In turn, and each as often the first.
        ways.rotate_left(1);
        for way in &mut ways {
            let took = way.call().await;
            if round >= WARM {
                way.took.push(took);
            }
        }
    }
    show(&ways);
}

fn show(ways: &[Way; 3]) {
    let named = |what: &str| ways.iter().find(|way| way.what.ends_with(what)).unwrap();
    let ways = [named("itself"), named("nobody asked"), named("policy asked")];
    println!("\n{:<28} {:>10} {:>10}", format!("{CALLS} calls of each"), "p50", "p99");
    for way in ways {
        println!("{:<28} {:>7.0} µs {:>7.0} µs", way.what, way.at(50), way.at(99));
    }
    let [_, plain, policed] = ways;
    let more = |hundredth| policed.at(hundredth) - plain.at(hundredth);
    println!("{:<28} {:>7.0} µs {:>7.0} µs", "what the policy adds", more(50), more(99));
    let ratio = |hundredth| policed.at(hundredth) / plain.at(hundredth);
    println!("{:<28} {:>10.2} {:>10.2}", "ratio", ratio(50), ratio(99));
}

fn main() {
    // `cargo test --benches` runs this too, and has nothing to learn from it.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure());
}
