//! An rmcp client as a requesting agent: the agent is the HTTP client under rmcp's own streamable transport.
//!
//! rmcp speaks MCP as it always does, and a call the owner has to be asked about is taken through the dance below it. How a
//! call ended that brought no answer of the server's is a failed result, in words and under [`OUTCOME`]; a wait is not lost
//! with it, and the same call takes it up again.
//!
//! ```no_run
//! # async fn f(agent: sayso_agent::Agent, consent: impl sayso_agent::Consent + 'static) -> Result<(), Box<dyn std::error::Error>> {
//! use rmcp::ServiceExt as _;
//! let url = "https://vault.example/mcp";
//! let client = ().serve(sayso_agent::rmcp::Settings::new(agent, url, consent).transport().await?).await?;
//! # Ok(()) }
//! ```

mod answer;
mod told;

pub use told::OUTCOME;

use crate::{Agent, Answer, Consent, Errand, Fault, Letter, Line, Outcome, Shows, Stopper};
use answer::{Asked, passed, stream};
use bytes::Bytes;
use futures::stream::BoxStream;
use http::{HeaderMap, HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sayso_protocol::SigningKey;
use sayso_protocol::id::ToolName;
use sse_stream::Sse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use told::{told, told_fault};

/// Most sessions that are remembered. Of one that is forgotten the key is not known until its next call is challenged.
const MOST: usize = 64;
/// How long a call waits for the owner, in seconds, unless it is set.
const WAIT: u32 = 60;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// A party could not be asked, or broke a rule.
    #[error(transparent)]
    Agent(#[from] Fault),
    /// The connection broke.
    #[error(transparent)]
    Fetch(#[from] sayso_fetch::FetchError),
}

type Failure = StreamableHttpError<Failed>;
type Posted = Result<StreamableHttpPostResponse, Failure>;

/// How the calls of an rmcp client are made, at one resource.
pub struct Settings {
    agent: Agent,
    resource: String,
    consent: Box<dyn Consent>,
    /// The key to use in place of the authority's own.
    pub key: Option<SigningKey>,
    /// What to show beside the key; nothing unless it is set.
    pub shows: Shows,
    /// Why, for the owner to read.
    pub reason: Option<String>,
    /// How long a call waits for the owner, in seconds; 60 unless it is set.
    pub wait: u32,
}

impl Settings {
    /// Calls by this agent at the resource of this URL, whose terms are agreed to by `consent` or not at all.
    pub fn new(agent: Agent, resource: &str, consent: impl Consent + 'static) -> Settings {
        let (resource, consent) = (resource.to_owned(), Box::new(consent));
        Settings { agent, resource, consent, key: None, shows: Shows::default(), reason: None, wait: WAIT }
    }

    /// The transport to serve an rmcp client on.
    ///
    /// # Errors
    /// When the URL is none, or its name cannot be resolved.
    pub async fn transport(self) -> Result<StreamableHttpClientTransport<Negotiator>, Fault> {
        let config = StreamableHttpClientTransportConfig::with_uri(self.resource.clone());
        Ok(StreamableHttpClientTransport::with_client(self.client().await?, config))
    }

    /// The HTTP client alone, for a transport with settings of its own; it is to dial the same URL.
    ///
    /// # Errors
    /// When the URL is none, or its name cannot be resolved.
    pub async fn client(self) -> Result<Negotiator, Fault> {
        let none = Arc::new(self.agent.line(&self.resource).await?);
        Ok(Negotiator(Arc::new(Inner { settings: self, none, sessions: Mutex::default() })))
    }
}

/// An agent as the HTTP client of rmcp.
#[derive(Clone)]
pub struct Negotiator(Arc<Inner>);

struct Inner {
    settings: Settings,
    /// The line of messages outside a session.
    none: Arc<Line>,
    sessions: Mutex<HashMap<String, Arc<Line>>>,
}

impl Inner {
    /// The line of a session, which remembers the key that the session's first signed call bound it to.
    fn line(&self, session: Option<&str>) -> Arc<Line> {
        let Some(session) = session else { return self.none.clone() };
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = sessions.get(session) {
            return line.clone();
        }
        if sessions.len() >= MOST {
            sessions.clear();
        }
        let line = Arc::new(self.none.another());
        sessions.insert(session.to_owned(), line.clone());
        line
    }

    async fn post(&self, body: Bytes, asked: Asked, own: HeaderMap, stopper: &Stopper) -> Posted {
        let mut letter = Letter::new(body, asked.id.clone());
        letter.headers.extend(own);
        let line = self.line(asked.session.as_deref());
        let agent = &self.settings.agent;
        let Some((tool, arguments)) = asked.call.clone() else {
            return passed(agent.relay(&line, &letter).await.map_err(failed)?, &asked).await;
        };
        let Ok(tool) = ToolName::parse(tool) else {
            return told(&asked, &Outcome::Refused(crate::Refused::default()));
        };
        let mut errand = match Errand::new(&self.settings.resource, tool, &arguments) {
            Ok(errand) => errand,
            Err(fault) => return told_fault(&asked, &fault),
        };
        errand.key.clone_from(&self.settings.key);
        errand.shows = self.settings.shows.clone();
        errand.reason.clone_from(&self.settings.reason);
        errand.wait = self.settings.wait;
        errand.follows_up = asked.follows_up;
        errand.stop = Some(stopper.heard());
        match agent.call_on(&line, &letter, &errand, &*self.settings.consent).await {
            Ok(Answer::Carried(answer)) => passed(*answer, &asked).await,
            Ok(Answer::Ended(Outcome::Refused(refused))) if refused.has_no_session() => {
                Err(StreamableHttpError::SessionExpired)
            }
            Ok(Answer::Ended(outcome)) => told(&asked, &outcome),
            Err(fault) => told_fault(&asked, &fault),
        }
    }
}

fn failed(fault: Fault) -> Failure {
    StreamableHttpError::Client(Failed::Agent(fault))
}

fn headers(custom: HashMap<HeaderName, HeaderValue>, session: Option<&str>) -> HeaderMap {
    let mut headers: HeaderMap = custom.into_iter().collect();
    if let Some(session) = session.and_then(|session| HeaderValue::from_str(session).ok()) {
        headers.insert(SESSION, session);
    }
    headers
}

/// Says that nobody waits any more when it is dropped.
struct Waits(Arc<Stopper>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl StreamableHttpClient for Negotiator {
    type Error = Failed;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Posted {
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let asked = Asked::of(&body, session_id.as_deref())?;
        let own = headers(custom_headers, session_id.as_deref());
        // rmcp drops what it waits for no longer, and a ticket must not be dropped in the middle of its presentation.
        let stopper = Arc::new(Stopper::new().0);
        let (inner, waits) = (self.0.clone(), Waits(stopper.clone()));
        let answered = tokio::spawn(async move { inner.post(body, asked, own, &stopper).await }).await;
        drop(waits);
        answered?
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let own = headers(custom_headers, Some(&session_id));
        let line = self.0.line(Some(&session_id));
        let answer = self.0.settings.agent.leave(&line, &own).await.map_err(failed)?;
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(&*session_id);
        match answer.status().as_u16() {
            405 => Err(StreamableHttpError::ServerDoesNotSupportDeleteSession),
            _ => Ok(()),
        }
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let mut own = headers(custom_headers, session_id.as_deref());
        if let Some(last) = last_event_id.and_then(|last| HeaderValue::from_str(&last).ok()) {
            own.insert(LAST_EVENT, last);
        }
        let line = self.0.line(session_id.as_deref());
        let answer = self.0.settings.agent.listen(&line, &own).await.map_err(failed)?;
        match answer.status().as_u16() {
            405 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            404 if session_id.is_some() => Err(StreamableHttpError::SessionExpired),
            200 => Ok(stream(answer)),
            other => Err(StreamableHttpError::UnexpectedServerResponse(format!("status {other}").into())),
        }
    }
}
