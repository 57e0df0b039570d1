//! Every refusal an enforcement point makes that is not a challenge: code, status, and what to do next.
//!
//! Closed and exhaustive: adding one breaks every envelope until it is rendered (CORE-16..24, D-3). Faults of the
//! MCP layer keep MCP's own shape and live in `message`.

use serde::Serialize;
use std::borrow::Cow;

/// A refusal's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The owner ended the connection; negotiating cannot cure it.
    AccessRevoked,
    /// A single-use grant was spent by another request.
    AlreadyConsumed,
    /// The grant names no operation where one is needed.
    OperationRequired,
    /// The grant is for another operation.
    OperationMismatch,
    /// The origin is not served.
    InvalidOrigin,
    /// The body was or may have been cut.
    RequestBodyTooLarge,
    /// The authority, or another part the decision needs, cannot be asked.
    TemporarilyUnavailable,
    /// Possession of the grant's key was not proven.
    InvalidToken,
    /// The tool is not one this resource governs.
    UnknownTool,
    /// The tool's declared class leaves less remedy than the grant's.
    ConsequenceChanged,
    /// The tool is not the one the owner has seen.
    ToolChanged,
    /// A protected call may not be run as a task here.
    TaskNotServed,
    /// The call answers a question, and its grant is not for that.
    ContinuationRefused,
    /// The session is another key's.
    SessionBound,
    /// The session is not one this process knows.
    SessionNotFound,
    /// The request is malformed in a way no other code names.
    InvalidRequest,
    /// The content coding is not served.
    UnsupportedMediaType,
    /// The host is not one this listener serves.
    Misdirected,
    /// The HTTP method is not served at this address.
    MethodNotAllowed,
    /// Nothing is published at this address.
    NotFound,
    /// The upstream failed after the decision.
    UpstreamFailed,
}

impl Code {
    /// Every code, for tables and tests.
    pub const ALL: [Code; 21] = [
        Code::AccessRevoked,
        Code::AlreadyConsumed,
        Code::OperationRequired,
        Code::OperationMismatch,
        Code::InvalidOrigin,
        Code::RequestBodyTooLarge,
        Code::TemporarilyUnavailable,
        Code::InvalidToken,
        Code::UnknownTool,
        Code::ConsequenceChanged,
        Code::ToolChanged,
        Code::TaskNotServed,
        Code::ContinuationRefused,
        Code::SessionBound,
        Code::SessionNotFound,
        Code::InvalidRequest,
        Code::UnsupportedMediaType,
        Code::Misdirected,
        Code::MethodNotAllowed,
        Code::NotFound,
        Code::UpstreamFailed,
    ];

    /// The `error` value on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::AccessRevoked => "access_revoked",
            Code::AlreadyConsumed => "already_consumed",
            Code::OperationRequired => "operation_required",
            Code::OperationMismatch => "operation_mismatch",
            Code::InvalidOrigin => "invalid_origin",
            Code::RequestBodyTooLarge => "request_body_too_large",
            Code::TemporarilyUnavailable => "temporarily_unavailable",
            Code::InvalidToken => "invalid_token",
            Code::UnknownTool => "unknown_tool",
            Code::ConsequenceChanged => "consequence_changed",
            Code::ToolChanged => "tool_changed",
            Code::TaskNotServed => "task_not_served",
            Code::ContinuationRefused => "continuation_refused",
            Code::SessionBound => "session_bound",
            Code::SessionNotFound => "session_not_found",
            Code::InvalidRequest => "invalid_request",
            Code::UnsupportedMediaType => "unsupported_media_type",
            Code::Misdirected => "misdirected_request",
            Code::MethodNotAllowed => "method_not_allowed",
            Code::NotFound => "not_found",
            Code::UpstreamFailed => "upstream_failed",
        }
    }

    /// The HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Code::AccessRevoked
            | Code::AlreadyConsumed
            | Code::OperationRequired
            | Code::OperationMismatch
            | Code::InvalidOrigin
            | Code::UnknownTool
            | Code::ConsequenceChanged
            | Code::ToolChanged
            | Code::ContinuationRefused
            | Code::SessionBound => 403,
            Code::RequestBodyTooLarge => 413,
            Code::TemporarilyUnavailable => 503,
            Code::InvalidToken => 401,
            Code::TaskNotServed | Code::InvalidRequest => 400,
            Code::UnsupportedMediaType => 415,
            Code::Misdirected => 421,
            Code::MethodNotAllowed => 405,
            Code::NotFound | Code::SessionNotFound => 404,
            Code::UpstreamFailed => 502,
        }
    }
}

/// A refusal: a code and a sentence that says what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: Code,
    /// For the person behind the agent; never echoes what the agent sent.
    pub description: Cow<'static, str>,
    /// Whether a grant was spent by the request refused (D-14).
    pub spent: bool,
    /// Whether the upstream got the request, where that is not a plain no (D-14).
    pub forwarded: Option<Forwarded>,
}

/// What is known about a request after its grant was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Forwarded {
    /// The upstream did not get it.
    No,
    /// The upstream may have run it.
    Unknown,
}

/// The JSON body of a refusal (CORE-23).
#[derive(Debug, Serialize)]
pub struct RefusalBody<'a> {
    error: &'static str,
    error_description: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    spent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    forwarded: Option<Forwarded>,
}

impl Refusal {
    /// A refusal of this code. Nothing was spent or forwarded.
    pub fn new(code: Code, description: impl Into<Cow<'static, str>>) -> Self {
        Self { code, description: description.into(), spent: false, forwarded: None }
    }

    /// A failure after a single-use grant was spent (D-14).
    pub fn after_spend(description: impl Into<Cow<'static, str>>, forwarded: Forwarded) -> Self {
        Self {
            code: Code::UpstreamFailed,
            description: description.into(),
            spent: true,
            forwarded: Some(forwarded),
        }
    }

    /// The JSON body.
    pub fn body(&self) -> RefusalBody<'_> {
        RefusalBody {
            error: self.code.as_str(),
            error_description: &self.description,
            spent: self.spent,
            forwarded: self.forwarded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // CORE-23
    #[test]
    fn a_refusal_is_an_object_with_an_error() {
        let refusal = Refusal::new(Code::AccessRevoked, "the owner ended this connection");
        let body = serde_json::to_value(refusal.body()).unwrap();
        assert_eq!(body["error"], "access_revoked");
        assert_eq!(body.as_object().unwrap().len(), 2);
    }

    // CORE-17, CORE-18, CORE-19, CORE-20, CORE-21, CORE-22
    #[test]
    fn statuses_are_the_drafts() {
        let table = [
            ("access_revoked", 403),
            ("already_consumed", 403),
            ("operation_required", 403),
            ("operation_mismatch", 403),
            ("invalid_origin", 403),
            ("request_body_too_large", 413),
            ("temporarily_unavailable", 503),
        ];
        for (name, status) in table {
            let code = Code::ALL.into_iter().find(|code| code.as_str() == name).unwrap();
            assert_eq!(code.status(), status);
        }
        assert!(Code::ALL.iter().all(|code| code.status() >= 400));
    }
}
