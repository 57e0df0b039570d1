//! Answers as they travel: a decision, a list of them, or an HTTP error whose body is its message (AuthZEN section 10).

use super::reading::Unread;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use sayso_coaz::answer::{AnswerFault, Decision};
use sayso_coaz::authzen::Object;
use sayso_coaz::{Fault, Why};
use serde::Serialize;
use serde_json::{Value, json};

/// One decision.
#[derive(Debug, Serialize)]
pub(super) struct Said {
    pub(super) decision: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Value>,
}

impl Said {
    pub(super) fn of(decision: &Decision) -> Self {
        let context = decision.context.as_ref().and_then(|it: &Object| serde_json::to_value(it).ok());
        Self { decision: decision.decision, context }
    }
}

/// Why there is no decision on one entry.
#[derive(Debug)]
pub(super) struct Item {
    status: StatusCode,
    message: String,
}

impl Item {
    /// What a decision point says when it cannot decide: the request's own fault, or its own.
    pub(super) fn of(fault: &Fault) -> Self {
        let Why::Answer(why) = &fault.why else { return Self::none() };
        let status = match why {
            AnswerFault::Number | AnswerFault::Unfit | AnswerFault::TooMuch => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let message =
            if fault.place.is_empty() { why.to_string() } else { format!("{}: {why}", fault.place) };
        Self { status, message }
    }

    pub(super) fn none() -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, message: AnswerFault::None.to_string() }
    }

    /// The same beside decisions: no, with what went wrong.
    pub(super) fn said(self) -> Said {
        let error = json!({ "status": self.status.as_u16(), "message": self.message });
        Said { decision: false, context: Some(json!({ "error": error })) }
    }
}

impl From<Unread> for Item {
    fn from(unread: Unread) -> Self {
        Self { status: unread.status(), message: unread.to_string() }
    }
}

impl IntoResponse for Item {
    fn into_response(self) -> Response {
        refusal(self.status, &self.message)
    }
}

impl IntoResponse for Unread {
    fn into_response(self) -> Response {
        refusal(self.status(), &self.to_string())
    }
}

pub(super) fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
        Err(_) => refusal(StatusCode::INTERNAL_SERVER_ERROR, "the answer cannot be written"),
    }
}

pub(super) fn refusal(status: StatusCode, message: &str) -> Response {
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], message.to_owned()).into_response()
}
