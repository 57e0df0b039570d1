//! The shim over HTTP: the server's own transport, passed through, with the dance where a call wants it.
//!
//! Sessions are the server's and go by its names; what is kept of one here is whether its client can be asked, and which
//! key it is bound to. A shim that was started anew knows the latter from its papers, and asks no more than it knows.

mod answer;
mod sessions;

use super::desk::{self, Client};
use super::door::{Bound, Guard, Place};
use super::incoming::{Incoming, LONGEST};
use super::{MOST_CALLS, Shim, words};
use answer::{Listener, from_calls, passed, plain};
use anyhow::Context as _;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode};
use sayso_agent::{Fault, Letter, Stopper};
use sayso_protocol::message::{Message, RequestId};
use serde_json::json;
use sessions::{Session, Sessions};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc};

/// Path of the endpoint.
const PATH: &str = "/mcp";
/// Messages on the way that may wait for a client to read them.
const QUEUE: usize = 256;

/// What every request meets.
pub(super) struct House {
    shim: Arc<Shim>,
    guard: Guard,
    sessions: Sessions,
    calls: Arc<Semaphore>,
}

/// Serves until it is told to stop.
pub(super) async fn serve(shim: Arc<Shim>, place: &Place, secret: &Path) -> anyhow::Result<ExitCode> {
    let (bound, guard) = place.open(secret).await?;
    let url = match &bound {
        Bound::Socket(..) => format!("http://localhost{PATH}"),
        Bound::Address(listener) => format!("http://{}{PATH}", listener.local_addr()?),
    };
    let sessions = Sessions::new(shim.agent.line(&shim.resource).await?);
    let calls = Arc::new(Semaphore::new(MOST_CALLS * 4));
    let resource = shim.resource.clone();
    let house = Arc::new(House { shim, guard, sessions, calls });
    let router = Router::new().fallback(meet).with_state(house);
    let (socket, secret) = match (&bound, place) {
        (Bound::Socket(..), Place::Socket(path)) => (Some(shown(path)), None),
        _ => (None, Some(shown(secret))),
    };
    println!(
        "{}",
        json!({ "ready": true, "url": url, "socket": socket, "secret_file": secret, "resource": resource })
    );
    match bound {
        Bound::Socket(listener, _mine) => sayso_listen::listen_unix(listener, router, told_to_stop()).await,
        Bound::Address(listener) => sayso_listen::listen(vec![listener], router, told_to_stop()).await,
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

async fn told_to_stop() {
    let terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
    match terminated.context("signals cannot be heard") {
        Ok(mut terminated) => tokio::select! {
            _ = terminated.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        },
        Err(_) => std::future::pending().await,
    }
}

async fn meet(State(house): State<Arc<House>>, request: Request) -> Response {
    if let Err((status, error, words)) = house.guard.admit(request.headers()) {
        return plain(status, error, words);
    }
    if request.uri().path() != PATH || request.uri().query().is_some() {
        return plain(StatusCode::NOT_FOUND, "not_found", "the endpoint is /mcp");
    }
    match request.method().clone() {
        Method::POST => house.post(request).await,
        method @ (Method::GET | Method::DELETE) => house.bare(&method, request.headers()).await,
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "POST, GET or DELETE"),
    }
}

impl House {
    async fn post(self: Arc<Self>, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        if parts.headers.contains_key(http::header::CONTENT_ENCODING) {
            return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_coding", "send the body uncoded");
        }
        let Ok(body) = to_bytes(body, LONGEST).await else {
            return plain(
                StatusCode::PAYLOAD_TOO_LARGE,
                "request_body_too_large",
                "the body is cut short or too large",
            );
        };
        let incoming = match Incoming::read(&body) {
            Ok(incoming) => incoming,
            Err(fault) => return answer::of_fault(&fault),
        };
        let mut own = own(&parts.headers);
        let session = self.session(&own, &incoming);
        sessions::take_ours(&mut own);
        match &incoming.message {
            Message::Response { id } if session.questions.answer(id.text(), &incoming.body) => {
                return answer::accepted();
            }
            Message::Notification(note) if note.method == "notifications/cancelled" => {
                session.cancel(&incoming)
            }
            Message::Request(request) if request.call().is_some() => {
                let id = request.id.clone();
                return self.call(id, incoming, own, session).await;
            }
            _ => {}
        }
        let letter = Letter { headers: own, body: incoming.body.clone(), id: None };
        let answered = self.shim.agent.relay(&session.line, &letter).await;
        match answered {
            Ok(answered) => {
                let begins =
                    incoming.message.method() == Some("initialize") && answered.status().is_success();
                let mut passed = passed(answered);
                if begins {
                    self.begun(passed.headers_mut(), &incoming);
                }
                passed
            }
            Err(fault) => self.unanswered(&fault, incoming.message.request_id()),
        }
    }

    /// Remembers a session that began with this answer. A server that keeps none gets no name for it; its client does,
    /// so that it is known who can be asked.
    fn begun(&self, answered: &mut HeaderMap, hello: &Incoming) {
        let named = sessions::name(answered).or_else(|| sessions::give_ours(answered));
        if let Some(name) = named {
            self.sessions.keep(name, Session::new(self.sessions.line(), hello.says_it_can_be_asked()));
        }
    }

    /// The session a message belongs to.
    fn session(&self, own: &HeaderMap, incoming: &Incoming) -> Arc<Session> {
        let named = sessions::name(own).filter(|_| !incoming.is_modern());
        match named {
            None => self.sessions.none(),
            Some(name) => self.known(&name),
        }
    }

    fn known(&self, name: &str) -> Arc<Session> {
        self.sessions.find(name, || {
            // Of a shim before this one: it is bound to the one key there is, or to the one that last agreed here.
            self.shim.key.clone().or_else(|| self.shim.agent.signer_at(&self.shim.resource).ok().flatten())
        })
    }

    async fn call(
        self: Arc<Self>,
        id: RequestId,
        incoming: Incoming,
        own: HeaderMap,
        session: Arc<Session>,
    ) -> Response {
        let Ok(place) = self.calls.clone().try_acquire_owned() else {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many calls at once");
        };
        let (stopper, stop) = Stopper::new();
        let stopper = Arc::new(stopper);
        let asks = if incoming.is_modern() { incoming.says_it_can_be_asked() } else { session.asks() };
        let (say, hear) = mpsc::channel(QUEUE);
        let running = session.running(&id, stopper.clone());
        let listener = Listener::new(id, hear, stopper);
        tokio::spawn(async move {
            let (line, questions) = (&session.line, &session.questions);
            let client = Client { asks, questions, line, headers: Some(own), out: say, stop };
            desk::call(&self.shim, client, incoming).await;
            drop((running, place));
        });
        from_calls(listener).await
    }

    /// A stream the server speaks on unasked, or the end of a session.
    async fn bare(&self, method: &Method, headers: &HeaderMap) -> Response {
        let mut own = own(headers);
        let name = sessions::name(&own);
        if sessions::take_ours(&mut own) && method == Method::DELETE {
            name.iter().for_each(|name| self.sessions.forget(name));
            return answer::ended();
        }
        let session = name.as_deref().map_or_else(|| self.sessions.none(), |name| self.known(name));
        let answered = if method == Method::GET {
            self.shim.agent.listen(&session.line, &own).await
        } else {
            self.shim.agent.leave(&session.line, &own).await
        };
        if let (&Method::DELETE, Some(name)) = (method, &name) {
            self.sessions.forget(name);
        }
        match answered {
            Ok(answered) => passed(answered),
            Err(fault) => self.unanswered(&fault, None),
        }
    }

    fn unanswered(&self, fault: &Fault, id: Option<&RequestId>) -> Response {
        let words = words::fault(fault, &self.shim.resource);
        match id {
            Some(id) => {
                let body = super::carry::error(id, -32603, &words, serde_json::Value::Null);
                answer::json(StatusCode::BAD_GATEWAY, Body::from(body))
            }
            None => plain(StatusCode::BAD_GATEWAY, "upstream_failed", "the resource did not answer"),
        }
    }
}

/// The headers of the client's that are for the server.
fn own(headers: &HeaderMap) -> HeaderMap {
    let goes = |name: &str| {
        name.starts_with("mcp-")
            || matches!(name, "accept" | "content-type" | "last-event-id" | "traceparent")
    };
    let all = headers.iter().filter(|(name, _)| goes(name.as_str()));
    let mut own = HeaderMap::new();
    for (name, value) in all {
        own.append(name.clone(), value.clone());
    }
    own
}
