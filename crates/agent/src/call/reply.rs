//! What an HTTP answer to an MCP request says: a result, a challenge, a refusal, or an error of the server's.
//! It keeps one rule in both encodings (MCP-15, MCP-16): a challenge is recognised by its header or its `data`,
//! never by a number, and an answer counts only under the id that was asked. It decides nothing about either.

use super::events::Events;
use crate::fault::{BadServer, Fault};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use sayso_protocol::Json;
use sayso_protocol::envelope::jsonrpc::Failure;
use sayso_protocol::envelope::www_authenticate;
use sayso_protocol::json::{Limits, locate};
use sayso_protocol::message::RequestId;
use sayso_protocol::payload::challenge::ChallengeObject;

/// Largest answer read.
pub(super) const MAX_BYTES: usize = 8 << 20;

const LIMITS: Limits = Limits { bytes: MAX_BYTES, depth: 128 };

/// What an answer says.
pub(super) enum Reply {
    /// The `result`, as its exact text.
    Result(String),
    /// An error of the server's own: its number, and its exact text.
    Error { code: Option<i64>, json: String },
    /// The owner has to be asked.
    Challenge(Box<ChallengeObject>),
    /// Refused.
    Refused(Refused),
}

/// A refusal that negotiating does not cure. The texts are the peer's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refused {
    /// The HTTP status, or the one a refusal in process names.
    pub status: u16,
    /// Its code, where it has one.
    pub code: Option<String>,
    /// What it says to people.
    pub words: Option<String>,
    /// Whether it says that the grant was spent by the request.
    pub spent: bool,
}

impl Refused {
    /// Whether it says that the session is not known any more. It says so before it looks at anything else.
    pub fn has_no_session(&self) -> bool {
        self.status == 404 && self.code.as_deref() == Some("session_not_found")
    }
}

/// Reads an answer to the request of this id.
pub(super) fn read(response: &Response<Bytes>, id: &RequestId) -> Result<Reply, Fault> {
    let (status, body) = (response.status(), response.body());
    if status == StatusCode::UNAUTHORIZED
        && let Some(challenge) = www_authenticate::decode(response.headers())?
    {
        return Ok(Reply::Challenge(Box::new(challenge)));
    }
    if status == StatusCode::OK {
        let message = answer_to(response, id).ok_or(BadServer::Answer)?;
        return of_message(&message, status.as_u16());
    }
    match Json::parse(body, LIMITS) {
        Ok(root) if root.get("error").is_some_and(|error| error.as_object().is_some()) => {
            of_message(body, status.as_u16())
        }
        Ok(root) => Ok(Reply::Refused(plain(&root, status.as_u16()))),
        Err(_) => Ok(Reply::Refused(Refused { status: status.as_u16(), ..Refused::default() })),
    }
}

/// Whether a piece of a stream completed the answer to the request of this id, so that no more need be read.
pub(super) fn completes(events: &mut Events, piece: &[u8], id: &RequestId) -> bool {
    events.feed(piece).iter().any(|data| answers(data, id))
}

fn answer_to(response: &Response<Bytes>, id: &RequestId) -> Option<Vec<u8>> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("text/event-stream") {
        let messages = Events::default().feed(response.body());
        return messages.into_iter().find(|message| answers(message, id));
    }
    let json = essence.eq_ignore_ascii_case("application/json") && answers(response.body(), id);
    json.then(|| response.body().to_vec())
}

fn answers(message: &[u8], id: &RequestId) -> bool {
    let Ok(root) = Json::parse(message, LIMITS) else { return false };
    let answered = root.get("result").is_some() != root.get("error").is_some();
    let text = locate(message, &["id"])
        .and_then(|at| message.get(at))
        .and_then(|text| std::str::from_utf8(text).ok());
    let same =
        text.and_then(|text| text.parse::<RequestId>().ok()).is_some_and(|theirs| theirs.says_same(id));
    answered && same && root.get("method").is_none()
}

fn of_message(message: &[u8], status: u16) -> Result<Reply, Fault> {
    let exact = |name| locate(message, &[name]).and_then(|at| message.get(at));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| BadServer::Answer);
    if let Some(result) = exact("result") {
        return Ok(Reply::Result(text(result)?));
    }
    let json = text(exact("error").ok_or(BadServer::Answer)?)?;
    let error = Json::parse(json.as_bytes(), LIMITS).map_err(|_| BadServer::Answer)?;
    match Failure::of(&error)? {
        Failure::Challenge(challenge) => Ok(Reply::Challenge(challenge)),
        Failure::Other { code } => Ok(Reply::Error { code, json }),
        Failure::Refusal { error: word, status: named } => {
            let data = error.get("data").map(|data| plain(data, named.unwrap_or(status))).unwrap_or_default();
            Ok(Reply::Refused(Refused { code: Some(word), ..data }))
        }
    }
}

/// A refusal from the members of its plain object.
fn plain(object: &Json, status: u16) -> Refused {
    let text = |name| object.get(name).and_then(Json::as_str).map(str::to_owned);
    Refused {
        status,
        code: text("error"),
        words: text("error_description"),
        spent: object.get("spent").and_then(Json::as_bool).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, kind: &str, body: &str) -> Response<Bytes> {
        let builder = Response::builder().status(status).header(CONTENT_TYPE, kind);
        builder.body(Bytes::from(body.to_owned())).unwrap()
    }

    fn result(kind: &str, body: &str) -> Option<String> {
        match read(&response(200, kind, body), &RequestId::from(7)) {
            Ok(Reply::Result(text)) => Some(text),
            _ => None,
        }
    }

    #[test]
    fn an_answer_counts_under_its_own_id() {
        let json = "application/json; charset=utf-8";
        assert_eq!(
            result(json, r#"{"jsonrpc":"2.0","id":7,"result":{"a": 1.0}}"#),
            Some(r#"{"a": 1.0}"#.into())
        );
        for other in [
            r#"{"jsonrpc":"2.0","id":8,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"x","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{},"id":7}"#,
            "[]",
            "",
        ] {
            assert_eq!(result(json, other), None, "{other}");
        }
        assert_eq!(result("text/html", r#"{"jsonrpc":"2.0","id":7,"result":{}}"#), None);
    }

    #[test]
    fn a_stream_is_searched_for_it() {
        let stream = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n\
                      data: {\"jsonrpc\":\"2.0\",\"id\":6,\"result\":{\"x\":0}}\n\n\
                      data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"x\":1}}\n\n: more\n\n";
        assert_eq!(result("text/event-stream", stream), Some("{\"x\":1}".into()));
        let mut events = Events::default();
        let done: Vec<bool> = stream
            .split_inclusive("\n\n")
            .map(|piece| completes(&mut events, piece.as_bytes(), &RequestId::from(7)))
            .collect();
        assert_eq!(done, [false, false, true, false]);
    }

    #[test]
    fn refusals_are_read_plain_and_in_process() {
        let refused =
            |status, body| match read(&response(status, "application/json", body), &RequestId::from(7)) {
                Ok(Reply::Refused(refused)) => refused,
                _ => panic!("not a refusal: {body}"),
            };
        let plain = refused(502, r#"{"error":"upstream_failed","error_description":"x","spent":true}"#);
        assert_eq!((plain.code.as_deref(), plain.status, plain.spent), (Some("upstream_failed"), 502, true));
        let inside = r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m","data":{"error":"access_revoked","status":403}}}"#;
        assert_eq!(refused(200, inside).status, 403);
        assert_eq!(refused(500, "<html>").code, None);
    }
}
