//! An MCP server's answers to an agent that meets it and lists its tools: each `STATUS CONTENT-TYPE`, header lines, an
//! empty line, a body; one after another, with a byte 1 between them (MCP-05, MCP-15, MCP-16).
//! The agent ends, in few requests, with tools or with a fault, and never with another message's answer.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use sayso_agent::{Agent, Doors};
use sayso_fetch::{Fetch, FetchError, Limits};
use sayso_protocol::Timestamp;

use super::{framed, ready};

/// An address that needs no resolver.
const RESOURCE: &str = "http://127.0.0.1/mcp";
/// Requests an agent may make before it gives up: the handshake and the pages of a listing.
const MOST: usize = 110;

thread_local! {
    /// What the server of this thread still has to say, and how often it was asked.
    static SCRIPT: RefCell<(VecDeque<Vec<u8>>, usize)> = RefCell::default();
}

/// The body.
pub fn check(bytes: &[u8]) {
    let answers = bytes.split(|byte| *byte == 1).map(<[u8]>::to_vec).collect();
    SCRIPT.set((answers, 0));
    let tools = ready::now(agent().tools(RESOURCE));
    let asked = SCRIPT.with_borrow(|(_, asked)| *asked);
    assert!(asked <= MOST, "{asked} requests");
    for tool in tools.unwrap_or_default() {
        let text = tool.to_string();
        assert!(text.len() <= bytes.len() * 6, "a tool nobody described");
    }
}

/// An agent whose folder is gone again: listing tools neither reads nor writes any of it.
fn agent() -> &'static Agent {
    static AGENT: OnceLock<Agent> = OnceLock::new();
    AGENT.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("sayso-fuzz-{}", std::process::id()));
        let server: Arc<dyn Fetch> = Arc::new(Server);
        let doors = Doors { near: server.clone(), far: server };
        let agent = Agent::open(&folder, doors, || Timestamp(1_800_000_000)).expect("a folder of its own");
        let _ = std::fs::remove_dir_all(&folder);
        agent
    })
}

/// The server of the script.
struct Server;

impl Server {
    fn next() -> Result<Response<Bytes>, FetchError> {
        let answer = SCRIPT.with_borrow_mut(|(answers, asked)| {
            *asked += 1;
            answers.pop_front()
        });
        let answer = answer.ok_or(FetchError::Unreachable)?;
        let (line, rest) = framed::first_line(&answer);
        let (status, kind) = line.split_once(' ').unwrap_or((line, ""));
        let (headers, body) = framed::message(rest);
        let mut response = Response::new(Bytes::copy_from_slice(body));
        *response.status_mut() = status.parse().map_err(|_| FetchError::Interrupted)?;
        *response.headers_mut() = headers;
        let kind = HeaderValue::from_str(kind).map_err(|_| FetchError::Interrupted)?;
        response.headers_mut().insert("content-type", kind);
        Ok(response)
    }
}

#[async_trait]
impl Fetch for Server {
    async fn send(&self, _: Request<Bytes>, _: Limits) -> Result<Response<Bytes>, FetchError> {
        Server::next()
    }

    async fn send_until(
        &self,
        _: Request<Bytes>,
        _: Limits,
        enough: &mut (dyn for<'a> FnMut(&'a [u8]) -> bool + Send),
    ) -> Result<Response<Bytes>, FetchError> {
        let response = Server::next()?;
        let mut read = 0;
        for piece in response.body().chunks(7) {
            read += piece.len();
            if enough(piece) {
                break;
            }
        }
        Ok(response.map(|body| body.slice(..read)))
    }
}
