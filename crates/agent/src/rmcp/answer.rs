//! A server's answer in the shapes rmcp takes it in.
//!
//! Every request is answered under its id, or fails with a status and a code; what is read is bounded, a whole body and
//! each event of a stream.

use super::{Failed, Failure, Posted, SESSION};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use rmcp::model::{ErrorData, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{SseError, StreamableHttpError, StreamableHttpPostResponse};
use sayso_fetch::{FetchError, Pieces};
use sayso_protocol::json::locate;
use sayso_protocol::message::RequestId;
use serde_json::Value;
use sse_stream::{Sse, SseStream};

/// Most bytes of an answer that is no stream, and of one event.
const LONGEST: usize = 8 << 20;

/// What was asked.
pub(super) struct Asked {
    /// The id of a request.
    pub(super) id: Option<RequestId>,
    pub(super) session: Option<String>,
    /// The name and the arguments, if it calls a tool.
    pub(super) call: Option<(String, String)>,
    /// Whether that answers what the tool asked in the call before.
    pub(super) follows_up: bool,
    /// Its id as rmcp reads one.
    pub(super) number: Value,
}

impl Asked {
    /// Reads what rmcp has written.
    pub(super) fn of(body: &[u8], session: Option<&str>) -> Result<Asked, serde_json::Error> {
        let value: Value = serde_json::from_slice(body)?;
        let method = value.get("method").and_then(Value::as_str);
        let exact = |path: &[&str]| {
            locate(body, path).and_then(|at| body.get(at)).and_then(|text| std::str::from_utf8(text).ok())
        };
        let id = method.and_then(|_| exact(&["id"])).and_then(|id| id.parse().ok());
        let name = value.pointer("/params/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let arguments = exact(&["params", "arguments"]).unwrap_or("{}").to_owned();
        let call = (method == Some("tools/call")).then_some((name, arguments));
        let follows_up =
            ["/params/requestState", "/params/inputResponses"].map(|at| value.pointer(at).is_some());
        let number = value.get("id").cloned().unwrap_or_default();
        let session = session.map(str::to_owned);
        Ok(Asked { id, session, call, follows_up: follows_up.contains(&true), number })
    }

    /// A result under its id.
    pub(super) fn result(&self, result: &Value) -> Posted {
        let message = serde_json::json!({ "jsonrpc": "2.0", "id": self.number, "result": result });
        Ok(StreamableHttpPostResponse::Json(serde_json::from_value(message)?, None))
    }

    fn error(&self, error: ErrorData) -> Result<ServerJsonRpcMessage, serde_json::Error> {
        let id = serde_json::from_value(self.number.clone())?;
        Ok(ServerJsonRpcMessage::error(error, Some(id)))
    }
}

/// An answer to a message.
pub(super) async fn passed(answer: Response<Pieces>, asked: &Asked) -> Posted {
    let (status, session) = (answer.status(), session(&answer));
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match status.as_u16() {
        202 | 204 => return Ok(StreamableHttpPostResponse::Accepted),
        404 if asked.session.is_some() => return Err(StreamableHttpError::SessionExpired),
        200 if kind == "text/event-stream" => {
            return Ok(StreamableHttpPostResponse::Sse(stream(answer), session));
        }
        _ => {}
    }
    let body = answer.into_body().rest(LONGEST).await.map_err(broken)?;
    if status.is_success() && kind == "application/json" {
        return Ok(StreamableHttpPostResponse::Json(serde_json::from_slice(&body)?, session));
    }
    refused(status, &body, asked)
}

/// An answer that is none: an error of the server's under the id that was asked, else what there is of a reason.
fn refused(status: StatusCode, body: &[u8], asked: &Asked) -> Posted {
    if asked.id.is_some()
        && let Ok(JsonRpcMessage::Error(error)) = serde_json::from_slice::<ServerJsonRpcMessage>(body)
    {
        return Ok(StreamableHttpPostResponse::Json(asked.error(error.error)?, None));
    }
    let plain: Value = serde_json::from_slice(body).unwrap_or_default();
    let code = plain.get("error").and_then(Value::as_str).filter(|code| {
        code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    });
    let words = code.map_or_else(|| format!("status {status}"), |code| format!("status {status}: {code}"));
    let closed = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if status.is_client_error() && !closed && asked.id.is_some() && asked.session.is_none() {
        // A server of an older revision that knows no such request says so in ways of its own.
        return Ok(StreamableHttpPostResponse::Json(
            asked.error(ErrorData::invalid_request(words, None))?,
            None,
        ));
    }
    Err(StreamableHttpError::UnexpectedServerResponse(words.into()))
}

fn broken(why: FetchError) -> Failure {
    StreamableHttpError::Client(Failed::Fetch(why))
}

fn session(answer: &Response<Pieces>) -> Option<String> {
    answer.headers().get(SESSION).and_then(|name| name.to_str().ok()).map(str::to_owned)
}

/// The events of a stream.
pub(super) fn stream(answer: Response<Pieces>) -> BoxStream<'static, Result<Sse, SseError>> {
    let begun = (answer.into_body(), Event::default());
    let pieces = stream::unfold(Some(begun), async |begun| {
        let (mut pieces, mut event): (Pieces, Event) = begun?;
        match pieces.next().await {
            Ok(Some(piece)) if event.takes(&piece) => Some((Ok(piece), Some((pieces, event)))),
            Ok(Some(_)) => Some((Err(FetchError::TooLarge), None)),
            Ok(None) => None,
            Err(why) => Some((Err(why), None)),
        }
    });
    SseStream::from_bytes_stream(pieces).boxed()
}

/// How long the event that is being read is by now.
#[derive(Default)]
struct Event {
    bytes: usize,
    line: usize,
}

impl Event {
    /// Whether a piece leaves every event within bounds.
    fn takes(&mut self, piece: &Bytes) -> bool {
        for byte in piece {
            self.bytes = self.bytes.saturating_add(1);
            match byte {
                b'\n' if self.line == 0 => self.bytes = 0,
                b'\n' => self.line = 0,
                b'\r' => {}
                _ => self.line = self.line.saturating_add(1),
            }
            if self.bytes > LONGEST {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(session: Option<&str>) -> Asked {
        Asked::of(br#"{"jsonrpc":"2.0","id":7,"method":"server/discover"}"#, session).unwrap()
    }

    fn answer(status: u16, kind: &str, body: &str) -> Response<Pieces> {
        let answer = Response::builder().status(status).header(CONTENT_TYPE, kind);
        answer.body(Pieces::whole(Bytes::from(body.to_owned()))).unwrap()
    }

    async fn said(status: u16, body: &str, session: Option<&str>) -> Result<Value, String> {
        match passed(answer(status, "application/json", body), &asked(session)).await {
            Ok(StreamableHttpPostResponse::Json(message, _)) => Ok(serde_json::to_value(message).unwrap()),
            Ok(other) => Err(format!("{other:?}")),
            Err(why) => Err(why.to_string()),
        }
    }

    #[tokio::test]
    async fn every_request_is_answered_under_its_id_or_fails_with_a_reason() {
        let unknown = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"m"}}"#;
        let error = said(404, unknown, None).await.unwrap();
        assert_eq!((&error["id"], &error["error"]["code"]), (&7.into(), &(-32601).into()));
        assert_eq!(said(400, "<html>", None).await.unwrap()["error"]["code"], -32600);
        assert!(said(404, unknown, Some("s")).await.unwrap_err().contains("Session expired"));
        assert!(said(403, r#"{"error":"unknown_tool"}"#, None).await.unwrap_err().contains("unknown_tool"));
        let hostile = said(403, "{\"error\":\"a\\u001b[2J\"}", None).await.unwrap_err();
        assert!(hostile.contains("403") && !hostile.contains('\u{1b}'), "{hostile}");
        assert!(said(502, "", None).await.unwrap_err().contains("502"));
    }

    #[tokio::test]
    async fn an_event_is_bounded_and_a_stream_is_not() {
        let piece = Bytes::from(vec![b'x'; LONGEST / 2]);
        let mut event = Event::default();
        assert!(event.takes(&piece) && event.takes(&Bytes::from_static(b"\r\n\r\n")));
        assert!(event.takes(&piece) && event.takes(&Bytes::from_static(b"\n")) && !event.takes(&piece));
    }
}
