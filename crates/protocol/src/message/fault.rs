//! Every fault of the MCP layer, with its status, JSON-RPC code and body (D-3).
//! These keep MCP's own shape: they are about the message, before anybody asks who sent it. Challenges and
//! refusals of UMA are not here.

use crate::canon::write_string;
use crate::json::{JsonError, JsonErrorKind};
use crate::method::Revision;

use super::RequestId;

/// A message that is answered without being looked at further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MessageFault {
    /// HTTP status of the answer.
    pub http_status: u16,
    /// JSON-RPC code of the answer.
    pub jsonrpc_code: i64,
    /// `data.error`, for faults that have a name.
    pub error: Option<&'static str>,
    /// What is wrong, in our words.
    pub message: &'static str,
    /// The id to repeat; `null` is sent when there is none that can be trusted.
    pub id: Option<RequestId>,
    /// The revision the caller asked for, where the fault is that nobody here knows it.
    pub requested: Option<String>,
}

/// Longest part of an unknown version that is repeated to its sender.
const ECHO: usize = 64;

impl MessageFault {
    /// JSON-RPC parse error.
    pub const PARSE_ERROR: i64 = -32700;
    /// JSON-RPC invalid request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// JSON-RPC method not found.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// JSON-RPC invalid params.
    pub const INVALID_PARAMS: i64 = -32602;
    /// MCP: headers and body disagree.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// MCP: revision not supported.
    pub const UNSUPPORTED_VERSION: i64 = -32022;

    const fn new(http_status: u16, jsonrpc_code: i64, message: &'static str) -> MessageFault {
        MessageFault { http_status, jsonrpc_code, error: None, message, id: None, requested: None }
    }

    /// A method this host does not serve: 404 to a modern caller, 403 to a legacy one without a session, 200
    /// inside a session, where 404 would mean that the session is gone.
    #[must_use]
    pub fn not_served(http_status: u16, id: Option<RequestId>) -> MessageFault {
        let fault = MessageFault::new(http_status, MessageFault::METHOD_NOT_FOUND, "method not served here");
        MessageFault { error: Some("unknown_method"), id, ..fault }
    }

    /// A subscription to more than what changed lists tell: contents and results leave by no open door.
    #[must_use]
    pub fn not_heard(id: Option<RequestId>) -> MessageFault {
        let message =
            "only changed lists can be subscribed to here; leave out resourceSubscriptions and taskIds";
        let fault = MessageFault::new(400, MessageFault::INVALID_PARAMS, message);
        MessageFault { error: Some("not_subscribable"), id, ..fault }
    }

    pub(super) fn unreadable(error: JsonError) -> MessageFault {
        let (status, code, message) = match error.kind {
            JsonErrorKind::TooLarge => (413, MessageFault::INVALID_REQUEST, "body too large"),
            JsonErrorKind::TooDeep => (400, MessageFault::INVALID_REQUEST, "body nested too deep"),
            JsonErrorKind::DuplicateMember => (400, MessageFault::INVALID_REQUEST, "duplicate member"),
            JsonErrorKind::LoneSurrogate => {
                (400, MessageFault::INVALID_REQUEST, "lone surrogate in a string")
            }
            _ => (400, MessageFault::PARSE_ERROR, "body is not JSON"),
        };
        let fault = MessageFault::new(status, code, message);
        MessageFault { error: (status == 413).then_some("request_body_too_large"), ..fault }
    }

    pub(super) fn malformed(message: &'static str) -> MessageFault {
        MessageFault::new(400, MessageFault::INVALID_REQUEST, message)
    }

    pub(super) fn mismatch(message: &'static str) -> MessageFault {
        let fault = MessageFault::new(400, MessageFault::HEADER_MISMATCH, message);
        MessageFault { error: Some("header_body_mismatch"), ..fault }
    }

    pub(super) fn missing_header(message: &'static str) -> MessageFault {
        let fault = MessageFault::new(400, MessageFault::HEADER_MISMATCH, message);
        MessageFault { error: Some("missing_routing_headers"), ..fault }
    }

    pub(super) fn missing_meta() -> MessageFault {
        MessageFault::new(400, MessageFault::INVALID_PARAMS, "_meta names no protocol version")
    }

    pub(super) fn unknown_version(requested: &str) -> MessageFault {
        let requested = Some(requested.chars().take(ECHO).collect());
        let fault = MessageFault::new(400, MessageFault::UNSUPPORTED_VERSION, "unsupported protocol version");
        MessageFault { requested, ..fault }
    }

    pub(super) fn about(self, id: Option<&RequestId>) -> MessageFault {
        MessageFault { id: id.cloned(), ..self }
    }

    /// The JSON-RPC answer.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        let id = self.id.as_ref().map_or("null", RequestId::text);
        let code = self.jsonrpc_code;
        let mut out = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"#);
        write_string(&mut out, self.message);
        self.write_data(&mut out);
        out.push_str("}}");
        out.into_bytes()
    }

    fn write_data(&self, out: &mut String) {
        let mut data = Vec::new();
        if let Some(error) = self.error {
            let mut member = r#""error":"#.to_owned();
            write_string(&mut member, error);
            data.push(member);
        }
        if let Some(requested) = &self.requested {
            let supported = Revision::ALL.map(|revision| format!("\"{revision}\"")).join(",");
            let mut member = format!(r#""supported":[{supported}],"requested":"#);
            write_string(&mut member, requested);
            data.push(member);
        }
        if !data.is_empty() {
            out.push_str(r#","data":{"#);
            out.push_str(&data.join(","));
            out.push('}');
        }
    }
}
