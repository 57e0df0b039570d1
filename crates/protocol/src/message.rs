//! One strict parse of a JSON-RPC body as an enforcement point meets it.
//! It keeps D-3, D-4 and D-10: one message, ids as their exact text, and no member name that a laxer reader
//! could take for another; a body that fails is answered 400 with `id: null`.
//! Headers are compared with it in `routing`; what the message may do is decided elsewhere.

mod annotations;
mod fault;
mod id;
mod mirror;
mod names;
mod routing;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "vectors"))]
pub mod vectors;

pub use annotations::{Annotations, Class};
pub use fault::MessageFault;
pub use id::{NotAnId, RequestId};
pub use mirror::{Mirror, NotMirrored, mirrors, reconcile_mirrors};
pub use routing::{decode_value, encode_value, reconcile};

use crate::json::{Json, Limits, locate};
use crate::method::{MethodKind, lookup};
use names::Place;

/// The member of `_meta` that names the revision of a modern request.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The member of `_meta` that says what the client can do.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The extension by which a result can be fetched later.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// One JSON-RPC message from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Wants an answer.
    Request(Request),
    /// Wants none.
    Notification(Notification),
    /// Answers a request of the server's.
    Response {
        /// The id of the request it answers.
        id: RequestId,
    },
}

/// A request. INVARIANT: one of `tools/call` has a string `name`, and `arguments` that are an object or absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its id.
    pub id: RequestId,
    /// Its method.
    pub method: String,
    /// Its parameters, an object when present.
    pub params: Option<Json>,
    extra: Option<String>,
}

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// Its method.
    pub method: String,
    /// Its parameters, an object when present.
    pub params: Option<Json>,
}

/// The parts of a `tools/call` that an operation is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// The tool.
    pub name: &'a str,
    arguments: Option<&'a Json>,
}

impl<'a> Call<'a> {
    /// Its arguments; none at all mean the same as `{}`.
    #[must_use]
    pub fn arguments(&self) -> &'a Json {
        const NONE: &Json = &Json::Object(Vec::new());
        self.arguments.unwrap_or(NONE)
    }
}

impl Message {
    /// The method of a request or notification.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        match self {
            Message::Request(request) => Some(&request.method),
            Message::Notification(notification) => Some(&notification.method),
            Message::Response { .. } => None,
        }
    }

    /// The id a refusal repeats: that of a request.
    #[must_use]
    pub fn request_id(&self) -> Option<&RequestId> {
        if let Message::Request(request) = self { Some(&request.id) } else { None }
    }

    fn params(&self) -> Option<&Json> {
        match self {
            Message::Request(request) => request.params.as_ref(),
            Message::Notification(notification) => notification.params.as_ref(),
            Message::Response { .. } => None,
        }
    }

    /// The revision that `_meta` names.
    fn meta_version(&self) -> Option<&str> {
        self.params()?.get("_meta")?.get(META_VERSION)?.as_str()
    }
}

impl Request {
    /// The call, if this is a `tools/call`.
    #[must_use]
    pub fn call(&self) -> Option<Call<'_>> {
        let params = self.params.as_ref().filter(|_| self.method == "tools/call")?;
        Some(Call { name: params.get("name")?.as_str()?, arguments: params.get("arguments") })
    }

    /// The first member of the envelope, of `params` or of `_meta` that MCP does not define. An upstream may act
    /// on it although no operation covers it, so single-use calls are refused for it (D-10).
    #[must_use]
    pub fn unknown_member(&self) -> Option<&str> {
        let params = self.params.as_ref();
        let meta = params.and_then(|params| params.get("_meta"));
        self.extra
            .as_deref()
            .or_else(|| names::unknown(Place::Params, params))
            .or_else(|| names::unknown(Place::Meta, meta))
    }

    /// Whether the result could be fetched later by somebody else (D-12): the tasks extension is declared, or
    /// `params.task` is present. Spellings that a laxer reader takes for these count.
    #[must_use]
    pub fn declares_tasks(&self) -> bool {
        let Some(params) = self.params.as_ref() else { return false };
        let capabilities = params.get("_meta").and_then(|meta| meta.get(META_CAPABILITIES));
        let extensions = capabilities.into_iter().flat_map(|found| names::like(found, "extensions"));
        params.get("task").is_some()
            || extensions.flat_map(|found| names::like(found, TASKS_EXTENSION)).next().is_some()
            || capabilities.is_some_and(|found| names::like(found, "tasks").next().is_some())
    }
}

/// Parses a body that must be exactly one message.
pub fn parse(body: &[u8], limits: Limits) -> Result<Message, MessageFault> {
    let root = Json::parse(body, limits).map_err(MessageFault::unreadable)?;
    let Json::Object(members) = root else { return Err(MessageFault::malformed("body is not one message")) };
    let envelope = Envelope::sort(members)?;
    for (place, value) in [(Place::Params, envelope.params.as_ref()), (Place::Meta, envelope.meta())] {
        match value {
            None => {}
            Some(Json::Object(members)) => names::check(place, members)?,
            Some(_) => return Err(MessageFault::malformed("params or _meta is not an object")),
        }
    }
    if envelope
        .meta()
        .and_then(|meta| meta.get(META_VERSION))
        .is_some_and(|version| version.as_str().is_none())
    {
        return Err(MessageFault::malformed("protocol version is not a string"));
    }
    envelope.into_message(body)
}

/// The members of the envelope, each in its place.
#[derive(Default)]
struct Envelope {
    version: Option<Json>,
    id: Option<Json>,
    method: Option<Json>,
    params: Option<Json>,
    result: Option<Json>,
    error: Option<Json>,
    extra: Option<String>,
}

impl Envelope {
    fn sort(members: Vec<(String, Json)>) -> Result<Envelope, MessageFault> {
        names::check(Place::Envelope, &members)?;
        let mut envelope = Envelope::default();
        for (name, value) in members {
            match name.as_str() {
                "jsonrpc" => envelope.version = Some(value),
                "id" => envelope.id = Some(value),
                "method" => envelope.method = Some(value),
                "params" => envelope.params = Some(value),
                "result" => envelope.result = Some(value),
                "error" => envelope.error = Some(value),
                _ => envelope.extra = Some(name),
            }
        }
        Ok(envelope)
    }

    fn meta(&self) -> Option<&Json> {
        self.params.as_ref()?.get("_meta")
    }

    fn into_message(self, body: &[u8]) -> Result<Message, MessageFault> {
        if self.version.as_ref().and_then(Json::as_str) != Some("2.0") {
            return Err(MessageFault::malformed("jsonrpc is not \"2.0\""));
        }
        let id = self.id.as_ref().map(|id| exact_id(id, body)).transpose()?;
        let answers = [&self.result, &self.error].into_iter().flatten().collect::<Vec<_>>();
        match (self.method, id, answers.as_slice()) {
            (Some(Json::String(method)), Some(id), []) => request(id, method, self.params, self.extra),
            (Some(Json::String(method)), None, []) => notification(method, self.params),
            (None, Some(id), [Json::Object(_)]) if self.params.is_none() => Ok(Message::Response { id }),
            (Some(Json::String(_)) | None, _, _) => {
                Err(MessageFault::malformed("neither request nor response"))
            }
            (Some(_), _, _) => Err(MessageFault::malformed("method is not a string")),
        }
    }
}

fn exact_id(id: &Json, body: &[u8]) -> Result<RequestId, MessageFault> {
    let text = match id {
        Json::Number(number) => Some(number.text()),
        _ => locate(body, &["id"])
            .and_then(|span| body.get(span))
            .and_then(|text| std::str::from_utf8(text).ok()),
    };
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| MessageFault::malformed("id is not a string or integer"))
}

fn request(
    id: RequestId,
    method: String,
    params: Option<Json>,
    extra: Option<String>,
) -> Result<Message, MessageFault> {
    // Sent with an id, a notification would be answered by some servers and acted on in silence by others.
    if method.starts_with("notifications/") {
        return Err(MessageFault::malformed("notification with an id"));
    }
    if method == "tools/call" {
        check_call(params.as_ref())?;
    }
    Ok(Message::Request(Request { id, method, params, extra }))
}

fn check_call(params: Option<&Json>) -> Result<(), MessageFault> {
    if params.and_then(|params| params.get("name")).and_then(Json::as_str).is_none() {
        return Err(MessageFault::malformed("tool name is not a string"));
    }
    match params.and_then(|params| params.get("arguments")) {
        None | Some(Json::Object(_)) => Ok(()),
        Some(_) => Err(MessageFault::malformed("arguments are not an object")),
    }
}

fn notification(method: String, params: Option<Json>) -> Result<Message, MessageFault> {
    // Without an id a call would be executed by some servers, with nobody to tell about it.
    if lookup(&method).is_some_and(|row| row.kind == MethodKind::Request) {
        return Err(MessageFault::malformed("request without an id"));
    }
    Ok(Message::Notification(Notification { method, params }))
}
