//! A line to the MCP server of a resource, for a host that has a client of its own: what the client says is sent as it
//! is, and the answer is given back as it comes.
//! It keeps the client's bytes: a call is sent with the same body whether or not it is signed. In a session bound to a
//! key every message is signed by it (D-13). What is done with an answer is the host's business.

mod peek;
mod ride;

use super::dance::Over;
use super::{Agent, Errand, Outcome};
use crate::discover::Dialled;
use crate::fault::{BadServer, Fault, Party};
use crate::negotiate::Consent;
use crate::negotiate::token::sign;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response};
use sayso_fetch::Pieces;
use sayso_protocol::message::{Mirror, RequestId};
use sayso_protocol::{Json, SigningKey};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How long a server may think before it begins to answer, in seconds.
const PATIENCE: u64 = 600;
/// How long the end of a session may take, in seconds.
const FAREWELL: u64 = 5;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// A line to one server, for one client.
pub struct Line {
    dialled: Dialled,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The session the server keeps, and the revision it was agreed to be in.
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// The key the session is bound to.
    signer: Option<SigningKey>,
    /// How the session was begun, where it is ours to begin anew.
    hello: Option<Letter>,
    /// What tools ask to be repeated in headers, once it is known.
    mirrors: Option<Vec<(String, Vec<Mirror>)>>,
}

/// A message as it is sent.
#[derive(Clone)]
pub struct Letter {
    /// Its own headers; those of the session come on top.
    pub headers: HeaderMap,
    /// Its bytes.
    pub body: Bytes,
    /// The id an answer repeats, where it wants one.
    pub id: Option<RequestId>,
}

/// How a call on a line ended.
pub enum Answer {
    /// It did not get through, or was refused.
    Ended(Outcome),
    /// This is the server's answer.
    Carried(Box<Response<Pieces>>),
}

impl Line {
    /// One more to the same server.
    #[must_use]
    pub fn another(&self) -> Line {
        Line { dialled: self.dialled.clone(), state: Mutex::default() }
    }

    /// In a session the host's client knows by name: the host's letters name it, and the host's client begins it.
    #[must_use]
    pub fn bound_to(self, signer: Option<SigningKey>) -> Line {
        self.state().signer = signer;
        self
    }

    /// Whether there is a session of this line's own.
    pub fn has_session(&self) -> bool {
        self.state().session.is_some()
    }

    /// Forgets what is known of the tools; the next call asks again.
    pub fn forget_tools(&self) {
        self.state().mirrors = None;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The headers of a message of this line's session.
    fn headers(&self, own: &HeaderMap) -> HeaderMap {
        let mut headers = own.clone();
        let state = self.state();
        for (name, value) in [(SESSION, &state.session), (VERSION, &state.version)] {
            if let Some(value) = value.as_ref().filter(|_| !headers.contains_key(&name)) {
                headers.insert(name, value.clone());
            }
        }
        headers
    }

    fn request(&self, method: Method, headers: HeaderMap, body: Bytes) -> Result<Request<Bytes>, Fault> {
        let request = Request::builder().method(method).uri(self.dialled.text()).body(body);
        let mut request = request.map_err(|_| Fault::Resource)?;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

impl Agent {
    /// A line to a resource.
    ///
    /// # Errors
    /// When its URL is none, or its name cannot be resolved.
    pub async fn line(&self, resource: &str) -> Result<Line, Fault> {
        Ok(Line { dialled: Dialled::parse(resource).await?, state: Mutex::default() })
    }

    /// The key that a session at a resource is bound to if it is bound, as far as the papers tell.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn signer_at(&self, resource: &str) -> Result<Option<SigningKey>, Fault> {
        let receipts = self.wallet.receipts()?;
        let last = receipts.iter().rev().find(|kept| kept.resource == resource);
        let issuer = last.and_then(|kept| url::Url::parse(&kept.authority).ok());
        Ok(issuer.map(|issuer| self.keys.drawn_for(&issuer)).transpose()?.flatten())
    }

    /// Begins a session, which this line begins anew where the server loses it.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn greet(&self, line: &Line, letter: Letter) -> Result<Response<Pieces>, Fault> {
        {
            let mut state = line.state();
            *state = State { hello: Some(letter.clone()), ..State::default() };
        }
        let request = line.request(Method::POST, letter.headers.clone(), letter.body.clone())?;
        let answer = self.send(request, PATIENCE).await?;
        let session = answer.headers().get(SESSION).cloned();
        let (answer, result) = peek::result(answer, letter.id.as_ref()).await?;
        let version = result.as_ref().and_then(|result| result.get("protocolVersion")?.as_str());
        let version = version.and_then(|version| HeaderValue::from_str(version).ok());
        let mut state = line.state();
        (state.session, state.version) = (session, version);
        drop(state);
        Ok(answer)
    }

    /// Sends a message that needs no grant; the session is begun anew where it was lost and is ours to begin.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn relay(&self, line: &Line, letter: &Letter) -> Result<Response<Pieces>, Fault> {
        let answer = self.post(line, letter).await?;
        if answer.status() == 404 && line.has_session() && self.begin_anew(line).await? {
            return self.post(line, letter).await;
        }
        Ok(answer)
    }

    async fn post(&self, line: &Line, letter: &Letter) -> Result<Response<Pieces>, Fault> {
        let headers = self.signed(line, &Method::POST, line.headers(&letter.headers), &letter.body)?;
        self.send(line.request(Method::POST, headers, letter.body.clone())?, PATIENCE).await
    }

    /// Opens the stream on which a server in a session speaks unasked.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn listen(&self, line: &Line, own: &HeaderMap) -> Result<Response<Pieces>, Fault> {
        self.bare(line, Method::GET, own, PATIENCE).await
    }

    /// Ends the session.
    ///
    /// # Errors
    /// When the server does not answer; it ends the session by itself then.
    pub async fn leave(&self, line: &Line, own: &HeaderMap) -> Result<Response<Pieces>, Fault> {
        self.bare(line, Method::DELETE, own, FAREWELL).await
    }

    async fn bare(
        &self,
        line: &Line,
        method: Method,
        own: &HeaderMap,
        seconds: u64,
    ) -> Result<Response<Pieces>, Fault> {
        let mut headers = line.headers(own);
        if method == Method::GET {
            headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        }
        let headers = self.signed(line, &method, headers, b"")?;
        self.send(line.request(method, headers, Bytes::new())?, seconds).await
    }

    /// Signs what is said in a session bound to a key.
    fn signed(
        &self,
        line: &Line,
        method: &Method,
        mut headers: HeaderMap,
        body: &[u8],
    ) -> Result<HeaderMap, Fault> {
        let signer = line.state().signer.clone().filter(|_| headers.contains_key(SESSION));
        if let Some(key) = signer {
            sign(method.as_str(), line.dialled.url(), &mut headers, body, &key, (self.now)())?;
        }
        Ok(headers)
    }

    async fn send(&self, request: Request<Bytes>, seconds: u64) -> Result<Response<Pieces>, Fault> {
        let opened = self.doors.near.open(request, seconds).await;
        opened.map_err(|why| Party::Resource.unavailable(why))
    }

    /// Begins the lost session of a line anew; false where that is its client's to do.
    async fn begin_anew(&self, line: &Line) -> Result<bool, Fault> {
        let (hello, signer, mirrors) = {
            let state = line.state();
            (state.hello.clone(), state.signer.clone(), state.mirrors.clone())
        };
        let Some(hello) = hello else { return Ok(false) };
        let answer = self.greet(line, hello).await?;
        if !answer.status().is_success() || !line.has_session() {
            return Err(BadServer::Answer.into());
        }
        // The new session is bound to nobody yet; who called in the old one calls again.
        drop(signer);
        line.state().mirrors = mirrors;
        let body = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let letter = Letter { headers: usual_headers(), body, id: None };
        self.post(line, &letter).await?;
        Ok(true)
    }

    /// Makes the call a letter holds, negotiating where the owner has to be asked. The errand says what is called.
    ///
    /// # Errors
    /// When a party cannot be asked, or one breaks a rule of the protocol.
    pub async fn call_on(
        &self,
        line: &Line,
        letter: &Letter,
        errand: &Errand,
        consent: &dyn Consent,
    ) -> Result<Answer, Fault> {
        let mut ride = ride::Ride { line, letter };
        Ok(match self.dance(errand, &line.dialled, &mut ride, consent).await? {
            Over::Outcome(outcome) => Answer::Ended(outcome),
            Over::Carried(answer) => Answer::Carried(answer),
        })
    }

    /// What the tool of this name asks to be repeated in headers, as the server lists it.
    ///
    /// # Errors
    /// When its tools cannot be listed.
    pub async fn mirrors(&self, line: &Line, tool: &str) -> Result<Vec<Mirror>, Fault> {
        let of = |all: &[(String, Vec<Mirror>)]| {
            all.iter().find(|(name, _)| name == tool).map(|(_, found)| found.clone()).unwrap_or_default()
        };
        if let Some(known) = &line.state().mirrors {
            return Ok(of(known));
        }
        let server = super::Server::meet(&*self.doors.near, &line.dialled).await?;
        let listed = server.tools(&*self.doors.near, &line.dialled).await;
        server.leave(&*self.doors.near, &line.dialled, None, (self.now)()).await;
        let known: Vec<_> = listed?
            .into_iter()
            .filter_map(|tool| {
                let name = tool.get("name")?.as_str()?.to_owned();
                let schema = Json::from(tool.get("inputSchema")?.clone());
                let found = sayso_protocol::message::mirrors(&schema).ok()?;
                (!found.is_empty()).then_some((name, found))
            })
            .collect();
        let found = of(&known);
        line.state().mirrors = Some(known);
        Ok(found)
    }
}

/// Headers every message has.
pub(super) fn usual_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    headers
}

impl Letter {
    /// A message with the headers every message has.
    #[must_use]
    pub fn new(body: Bytes, id: Option<RequestId>) -> Letter {
        Letter { headers: usual_headers(), body, id }
    }
}
