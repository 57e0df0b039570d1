//! An upstream that is a child process of ours and speaks MCP over stdio (D-31).
//!
//! One child for modern requests, if the server answered `server/discover` with the revision; one for every legacy
//! session; and one for legacy requests outside a session, which we introduced ourselves to once, and where
//! notifications about a session end, since they would speak for everybody. Nothing is translated between eras, and
//! nothing is sent twice.

mod board;
mod child;
mod command;
mod hearer;
mod hello;
mod lane;
mod launch;
mod lines;
mod reply;
mod session;
mod skim;
mod splice;

pub(crate) use board::Slot;
pub use command::{BadCommand, StdioCommand};
pub(crate) use hello::{Era, LEGACY, MODERN, own_initialize, own_meta};
pub use launch::launch;
pub(crate) use session::{CHILDREN, SILENCE};

use super::Broken;
use axum::body::Body;
use board::{Caller, Gone};
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use lane::{Lane, Readiness, Spoken};
use reply::{Manner, accepted};
use sayso_enforce::{Head, Unavailable};
use sayso_protocol::json::Limits;
use sayso_protocol::message::{self, Message, MessageFault, RequestId};
use sayso_protocol::method::Revision;
use serde_json::json;
use session::Sessions;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a request waits for a child that is just being started, before anything is decided about it.
const WAIT: Duration = Duration::from_secs(5);
/// And afterwards: what was permitted is sent at once or not at all (D-5).
const AT_ONCE: Duration = Duration::from_millis(400);
/// What a server says when its tools are others now.
pub(crate) const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const INITIALIZE: &str = "initialize";
/// Notifications about a session of the client's own.
const OF_SESSIONS: [&str; 4] = [
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
];

/// A server over stdio.
pub(crate) struct StdioUpstream {
    modern: Lane,
    legacy: Lane,
    sessions: Sessions,
}

impl StdioUpstream {
    pub(crate) fn new(command: StdioCommand, changes: watch::Sender<u64>) -> Self {
        let on_change: board::OnChange = Arc::new(move |method| {
            if method == TOOLS_CHANGED {
                changes.send_modify(|count| *count = count.wrapping_add(1));
            }
        });
        Self {
            modern: Lane::new(command.clone(), Era::Modern, Arc::clone(&on_change)),
            legacy: Lane::new(command.clone(), Era::Legacy, Arc::clone(&on_change)),
            sessions: Sessions::new(command, on_change),
        }
    }

    /// The answer to a request of an era, or revision, that the server does not speak; none to any other. Asked before
    /// anything is decided, so that nothing is spent for it.
    pub(crate) async fn unspoken(&self, head: &Head, body: &[u8]) -> Option<Response<Body>> {
        // What is no message is a fault of its own, and the engine says which.
        let message = message::parse(body, Limits { bytes: usize::MAX, ..Limits::default() }).ok()?;
        // The header of an `initialize` says nothing: its parameters do.
        let asked = version(&head.headers).filter(|_| message.method() != Some(INITIALIZE));
        let spoken = match era(&head.headers) {
            Era::Modern => match self.modern.ready(WAIT).await {
                Readiness::Foreign(spoken) if spoken.is_empty() => match self.legacy.ready(WAIT).await {
                    Readiness::Up(child) => vec![child.hello.version.clone()],
                    _ => return None,
                },
                Readiness::Foreign(spoken) => spoken,
                _ => return None,
            },
            Era::Legacy => match self.legacy.ready(WAIT).await {
                Readiness::Foreign(spoken) if spoken.is_empty() => vec![MODERN.to_string()],
                Readiness::Foreign(spoken) => spoken,
                Readiness::Up(child) if asked.is_some_and(|asked| asked != child.hello.version) => {
                    vec![child.hello.version.clone()]
                }
                _ => return None,
            },
        };
        let requested = asked.unwrap_or(Revision::V20250326.as_str());
        Some(not_spoken(message.request_id(), &spoken, requested))
    }

    /// Room for one call of this request's session, or of its era.
    pub(crate) async fn checkout(&self, head: &Head) -> Result<Slot, Unavailable> {
        if session::is_named(head) {
            return self.sessions.checkout(head).await;
        }
        self.room(era(&head.headers), WAIT).await.ok_or(Unavailable::NoUpstream)
    }

    /// Sends a message, once. A slot was checked out before a grant was spent.
    pub(crate) async fn send(
        &self,
        slot: Option<Slot>,
        head: &Head,
        body: Bytes,
    ) -> Result<Response<Body>, Broken> {
        let message = message::parse(&body, Limits { bytes: usize::MAX, ..Limits::default() }).ok();
        if session::is_named(head) {
            return self.sessions.send(slot, head, &body, message.as_ref()).await;
        }
        let message = message.ok_or(Broken::Unreachable)?;
        let era = era(&head.headers);
        let request = match &message {
            Message::Request(request) => request,
            Message::Notification(told) => return self.tell(era, &told.method, &body).await,
            // Outside a session nobody here was asked anything.
            Message::Response { .. } => return Ok(accepted(StatusCode::ACCEPTED)),
        };
        if request.method == INITIALIZE && era == Era::Legacy {
            return self.sessions.open(&body).await;
        }
        let manner = Manner {
            id: request.id.clone(),
            streams: reply::takes_events(&head.headers),
            modern: era == Era::Modern,
            spent: slot.is_some(),
        };
        let slot = match slot {
            Some(slot) => slot,
            None => self.room(era, AT_ONCE).await.ok_or(Broken::Unreachable)?,
        };
        let caller = Caller { cancels: manner.modern, streams: manner.streams };
        let exchange = slot.call(&body, caller).map_err(|Gone| Broken::Unreachable)?;
        reply::respond(exchange, manner).await
    }

    /// A session is over.
    pub(crate) fn leave(&self, headers: &HeaderMap) {
        self.sessions.end(headers);
    }

    /// One request of our own, for the survey; none if this era cannot be asked.
    pub(crate) async fn ask(&self, era: Era, method: &str, params: &serde_json::Value) -> Option<Bytes> {
        hello::ask(&self.child(era, WAIT).await?.board, method, params).await.ok()
    }

    /// What the child of an era said of itself.
    pub(crate) async fn hello(&self, era: Era) -> Option<(String, Bytes)> {
        self.child(era, WAIT).await.map(|child| (child.hello.version.clone(), child.hello.result.clone()))
    }

    async fn tell(&self, era: Era, method: &str, body: &[u8]) -> Result<Response<Body>, Broken> {
        if !OF_SESSIONS.contains(&method) {
            self.room(era, AT_ONCE).await.ok_or(Broken::Unreachable)?.tell(body);
        }
        Ok(accepted(StatusCode::ACCEPTED))
    }

    async fn room(&self, era: Era, wait: Duration) -> Option<Slot> {
        let child = self.child(era, wait).await?;
        timeout(wait, child.board.reserve()).await.ok()?.ok()
    }

    async fn child(&self, era: Era, wait: Duration) -> Option<Arc<Spoken>> {
        let lane = match era {
            Era::Modern => &self.modern,
            Era::Legacy => &self.legacy,
        };
        match lane.ready(wait).await {
            Readiness::Up(child) => Some(child),
            Readiness::Foreign(_) | Readiness::Away => None,
        }
    }
}

fn not_spoken(id: Option<&RequestId>, spoken: &[String], requested: &str) -> Response<Body> {
    let data = json!({ "supported": spoken, "requested": requested });
    let error = json!({
        "code": MessageFault::UNSUPPORTED_VERSION,
        "message": "the server behind this address does not speak this revision",
        "data": data,
    });
    let id = id.map_or("null", RequestId::text);
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
    sayso_enforce::answer::bytes(StatusCode::BAD_REQUEST, text)
}

fn version(headers: &HeaderMap) -> Option<&str> {
    headers.get("mcp-protocol-version").and_then(|value| value.to_str().ok()).map(str::trim)
}

/// INVARIANT: where it matters the engine has held this header against the body.
fn era(headers: &HeaderMap) -> Era {
    let revision = version(headers).and_then(|version| version.parse::<Revision>().ok());
    if revision.is_some_and(Revision::is_modern) { Era::Modern } else { Era::Legacy }
}
