//! A server over HTTP as the survey talks to it, in either era.
//!
//! `server/discover` first; where that is not answered as a modern server must, `initialize`, with the session a server
//! may ask to keep (D-13, D-30). No redirect is followed, and no more is read than the survey may.

use super::{About, BYTES, SurveyFault, read};
use crate::upstream::stdio::{Era, LEGACY, MODERN, own_initialize, own_meta};
use crate::upstream::{Broken, HttpUpstream};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sayso_enforce::carry::{Events, Told};
use sayso_protocol::Json;
use sayso_protocol::method::Revision;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

const SESSION: &str = "mcp-session-id";
/// How long a server may take to be told that a session is over.
const FAREWELL: Duration = Duration::from_secs(1);

const LISTEN: &str = "subscriptions/listen";

/// What came of asking for a stream.
pub(super) enum Listening {
    Stream(Incoming),
    /// The server has none.
    Nowhere,
    /// It could not be asked.
    Broken,
}

/// A server that can be asked.
pub(super) struct Remote<'a> {
    upstream: &'a HttpUpstream,
    era: Era,
    version: HeaderValue,
    session: Option<HeaderValue>,
    /// Bytes it may still answer.
    left: usize,
    last: u64,
}

impl<'a> Remote<'a> {
    /// Finds out what it speaks.
    pub(super) async fn meet(upstream: &'a HttpUpstream) -> Result<(Self, About), SurveyFault> {
        let version = HeaderValue::from_static(MODERN.as_str());
        let mut remote = Self { upstream, era: Era::Modern, version, session: None, left: BYTES, last: 0 };
        match remote.ask("server/discover", &json!({ "_meta": own_meta() })).await {
            Ok(answer) => {
                if let Some(result) = answer.get("result").filter(|result| speaks_modern(result)) {
                    let about = About::read(Era::Modern, MODERN.to_string(), result);
                    return Ok((remote, about));
                }
            }
            Err(fault @ (SurveyFault::Unreachable | SurveyFault::TooLarge)) => return Err(fault),
            // Older servers answer with whatever occurs to them.
            Err(_) => {}
        }
        remote.introduce().await
    }

    pub(super) fn era(&self) -> Era {
        self.era
    }

    async fn introduce(mut self) -> Result<(Self, About), SurveyFault> {
        self.era = Era::Legacy;
        self.version = HeaderValue::from_static(LEGACY.as_str());
        let (answer, headers) = self.exchange("initialize", &own_initialize()).await?;
        let result = answer.get("result").ok_or(SurveyFault::Unspoken)?;
        let version = result.get("protocolVersion").and_then(Json::as_str).ok_or(SurveyFault::Unspoken)?;
        let known = version.parse().is_ok_and(|revision: Revision| !revision.is_modern());
        if !known {
            return Err(SurveyFault::Unspoken);
        }
        self.version = HeaderValue::from_str(version).map_err(|_| SurveyFault::Unspoken)?;
        self.session = headers.get(SESSION).cloned();
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let response = self.post("notifications/initialized", &told).await?;
        if !response.status().is_success() {
            return Err(SurveyFault::Malformed);
        }
        let about = About::read(Era::Legacy, version.to_owned(), result);
        Ok((self, about))
    }

    /// One question and its answer, an error perhaps.
    pub(super) async fn ask(&mut self, method: &str, params: &Value) -> Result<Json, SurveyFault> {
        self.exchange(method, params).await.map(|(answer, _)| answer)
    }

    /// A stream on which the server says that its tools changed.
    pub(super) async fn listening(&mut self) -> Listening {
        let asked = match self.era {
            Era::Legacy => self.upstream.ask(Method::GET, self.headers(None), Bytes::new()).await.ok(),
            Era::Modern => {
                self.last += 1;
                let wanted = json!({ "_meta": own_meta(), "notifications": { "toolsListChanged": true } });
                let body = json!({ "jsonrpc": "2.0", "id": self.last, "method": LISTEN, "params": wanted });
                self.post(LISTEN, &body).await.ok()
            }
        };
        match asked {
            Some(response) if is_open(&response) => Listening::Stream(response.into_body()),
            Some(_) => Listening::Nowhere,
            None => Listening::Broken,
        }
    }

    /// Ends a session, if there is one and it can be ended.
    pub(super) async fn leave(&mut self) {
        if self.session.is_some() {
            let farewell = self.upstream.ask(Method::DELETE, self.headers(None), Bytes::new());
            // Servers may refuse to end sessions; they end by themselves.
            let _ = timeout(FAREWELL, farewell).await;
        }
    }

    async fn exchange(&mut self, method: &str, params: &Value) -> Result<(Json, HeaderMap), SurveyFault> {
        self.last += 1;
        let id = self.last;
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let mut response = self.post(method, &body).await?;
        if matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(SurveyFault::Denied(response.status().as_u16()));
        }
        let headers = std::mem::take(response.headers_mut());
        let streams = headers.get("content-type").is_some_and(is_stream);
        let body = response.into_body();
        let answer = if streams { self.listen(body, id).await? } else { self.whole(body, id).await? };
        Ok((answer, headers))
    }

    async fn post(&self, method: &str, body: &Value) -> Result<Response<Incoming>, SurveyFault> {
        let response = self.upstream.ask(Method::POST, self.headers(Some(method)), body.to_string().into());
        response.await.map_err(|broken| match broken {
            Broken::Unreachable | Broken::Interrupted => SurveyFault::Unreachable,
            Broken::Elsewhere | Broken::TurnedAway | Broken::Status(_) => SurveyFault::Malformed,
        })
    }

    fn headers(&self, method: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("accept", HeaderValue::from_static("application/json, text/event-stream"));
        // What `initialize` settles cannot be said before it.
        if method != Some("initialize") {
            headers.insert("mcp-protocol-version", self.version.clone());
        }
        if let (Era::Modern, Some(Ok(method))) = (self.era, method.map(HeaderValue::from_str)) {
            headers.insert("mcp-method", method);
        }
        if let Some(session) = &self.session {
            headers.insert(SESSION, session.clone());
        }
        headers
    }

    async fn whole(&mut self, mut body: Incoming, id: u64) -> Result<Json, SurveyFault> {
        let mut text = Vec::new();
        while let Some(piece) = self.piece(&mut body).await? {
            text.extend_from_slice(&piece);
        }
        let answer = read(&text)?;
        if answers(&answer, id) { Ok(answer) } else { Err(SurveyFault::Malformed) }
    }

    /// Whatever else a server says on the stream is not for us.
    async fn listen(&mut self, mut body: Incoming, id: u64) -> Result<Json, SurveyFault> {
        let mut events = Events::bounded(BYTES);
        while let Some(piece) = self.piece(&mut body).await? {
            for told in events.feed(&piece) {
                let Told::Data(data) = told else { continue };
                if data.is_empty() {
                    continue;
                }
                let said = read(&data)?;
                if answers(&said, id) {
                    return Ok(said);
                }
            }
        }
        Err(SurveyFault::Unreachable)
    }

    async fn piece(&mut self, body: &mut Incoming) -> Result<Option<Bytes>, SurveyFault> {
        loop {
            let Some(frame) = body.frame().await else { return Ok(None) };
            let Ok(piece) = frame.map_err(|_| SurveyFault::Unreachable)?.into_data() else { continue };
            self.left = self.left.checked_sub(piece.len()).ok_or(SurveyFault::TooLarge)?;
            return Ok(Some(piece));
        }
    }
}

fn is_open(response: &Response<Incoming>) -> bool {
    response.status().is_success() && response.headers().get("content-type").is_some_and(is_stream)
}

fn is_stream(kind: &HeaderValue) -> bool {
    let essence = kind.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
}

/// An error without an id is about the one request that was made.
fn answers(said: &Json, id: u64) -> bool {
    let named = said.get("id").filter(|named| **named != Json::Null);
    said.get("method").is_none()
        && match named {
            Some(named) => named.as_u64() == Some(id),
            None => said.get("error").is_some(),
        }
}

fn speaks_modern(result: &Json) -> bool {
    let versions = result.get("supportedVersions").and_then(Json::as_array).unwrap_or_default();
    versions.iter().any(|version| version.as_str() == Some(MODERN.as_str()))
}
