//! An answer of the server's as messages for a client on a pipe: one a line, whether it came as a document or as a stream.
//!
//! Every request is answered once: by the server's own answer under its id, or by an error of ours that says what came
//! instead.

use super::edit::one_line;
use bytes::Bytes;
use http::Response;
use http::header::CONTENT_TYPE;
use sayso_enforce::carry::{Events, Told};
use sayso_fetch::Pieces;
use sayso_protocol::json::{Json, Limits, locate};
use sayso_protocol::message::RequestId;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Most bytes of one message of the server's.
const LONGEST: usize = 8 << 20;

const LIMITS: Limits = Limits { bytes: LONGEST, depth: 128 };

/// Whether an answer comes as a stream of events.
pub(super) fn is_stream<B>(answer: &Response<B>) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
}

/// Carries an answer to the request of this id, with everything that comes before it.
pub(super) async fn carry(answer: Response<Pieces>, id: Option<&RequestId>, out: &mpsc::Sender<Bytes>) {
    let status = answer.status().as_u16();
    if is_stream(&answer) {
        let answered = stream(answer.into_body(), id, out).await;
        if let Some(id) = id.filter(|_| !answered) {
            // Whoever read the answers may have gone.
            let _ = out.send(error(id, -32603, "the server's answer broke off", Value::Null)).await;
        }
        return;
    }
    let body = answer.into_body().rest(LONGEST).await.unwrap_or_default();
    let Some(id) = id else { return };
    let line = if answers(&body, id) { one_line(&body).into() } else { instead(&body, status, id) };
    let _ = out.send(line).await;
}

/// Carries every message of a stream; whether one of them answers the request of this id.
pub(super) async fn stream(mut pieces: Pieces, id: Option<&RequestId>, out: &mpsc::Sender<Bytes>) -> bool {
    let mut events = Events::bounded(LONGEST);
    while let Ok(Some(piece)) = pieces.next().await {
        for told in events.feed(&piece) {
            let Told::Data(data) = told else { continue };
            if Json::parse(&data, LIMITS).is_err() {
                continue;
            }
            let last = id.is_some_and(|id| answers(&data, id));
            if out.send(one_line(&data).into()).await.is_err() || last {
                return last;
            }
        }
    }
    false
}

fn answers(message: &[u8], id: &RequestId) -> bool {
    let Ok(root) = Json::parse(message, LIMITS) else { return false };
    let text = locate(message, &["id"])
        .and_then(|at| message.get(at))
        .and_then(|text| std::str::from_utf8(text).ok());
    let same =
        text.and_then(|text| text.parse::<RequestId>().ok()).is_some_and(|theirs| theirs.says_same(id));
    same && root.get("method").is_none()
}

/// What is said in the place of an answer that is none.
fn instead(body: &[u8], status: u16, id: &RequestId) -> Bytes {
    let root: Value = serde_json::from_slice(body).unwrap_or_default();
    let fault = root.get("error").cloned().unwrap_or_default();
    // An error of the protocol's own that could not name the id.
    if let Some(code) = fault.get("code").and_then(Value::as_i64) {
        let message = fault.get("message").and_then(Value::as_str).unwrap_or("refused");
        return error(id, code, message, fault.get("data").cloned().unwrap_or_default());
    }
    let words = root.get("error_description").and_then(Value::as_str);
    let said = match (fault.as_str(), words) {
        (Some(code), Some(words)) => format!("refused: {code}: {words}"),
        (Some(code), None) => format!("refused: {code}"),
        _ => format!("the server answered with status {status}"),
    };
    error(id, -32603, &crate::terminal::plain(&said), json!({ "error": fault, "status": status }))
}

/// An error under an id.
pub(super) fn error(id: &RequestId, code: i64, message: &str, data: Value) -> Bytes {
    let mut fault = json!({ "code": code, "message": message });
    if let (Some(members), false) = (fault.as_object_mut(), data.is_null()) {
        members.insert("data".into(), data);
    }
    framed(id, "error", &fault)
}

/// A result of ours under an id.
pub(super) fn result(id: &RequestId, result: &Value) -> Bytes {
    framed(id, "result", result)
}

fn framed(id: &RequestId, name: &str, value: &Value) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"{name}\":{value}}}", id.text()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn carried(status: u16, kind: &str, body: &str) -> Vec<String> {
        let answer = Response::builder().status(status).header(CONTENT_TYPE, kind);
        let answer = answer.body(Pieces::whole(Bytes::from(body.to_owned()))).unwrap();
        let (out, mut heard) = mpsc::channel(16);
        carry(answer, Some(&RequestId::from(7)), &out).await;
        drop(out);
        let mut lines = vec![];
        while let Some(line) = heard.recv().await {
            lines.push(String::from_utf8(line.to_vec()).unwrap());
        }
        lines
    }

    #[tokio::test]
    async fn messages_are_lines_and_stay_as_they_are() {
        let pretty = "{\n \"jsonrpc\": \"2.0\",\r\n \"id\": 7, \"result\": {\"odd\": 1.0}\n}";
        let flat = "{  \"jsonrpc\": \"2.0\",   \"id\": 7, \"result\": {\"odd\": 1.0} }";
        assert_eq!(carried(200, "application/json", pretty).await, [flat]);
        let note = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}";
        let answer = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}";
        let text = format!("id: 1\ndata:\n\ndata: {note}\n\ndata: {answer}\n\ndata: {note}\n\n");
        assert_eq!(carried(200, "text/event-stream; charset=utf-8", &text).await, [note, answer]);
    }

    #[tokio::test]
    async fn every_request_is_answered_once() {
        for (status, kind, body, code) in [
            (200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{}}\n\n", -32603),
            (502, "text/html", "<h1>", -32603),
            (200, "application/json", "{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{}}", -32603),
            (403, "application/json", "{\"error\":\"x\",\"error_description\":\"a\\u001b\"}", -32603),
            (
                400,
                "application/json",
                "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32022,\"message\":\"m\",\"data\":{\"supported\":[]}}}",
                -32022,
            ),
        ] {
            let lines = carried(status, kind, body).await;
            let last: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
            assert_eq!((&last["id"], &last["error"]["code"]), (&json!(7), &json!(code)), "{body}");
            assert!(!last["error"]["message"].as_str().unwrap().contains('\u{1b}'));
        }
    }
}
