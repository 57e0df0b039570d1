//! What of a message a mapping can see: its method and its parameters.

use sayso_protocol::Json;
use sayso_protocol::json::Limits;
use sayso_protocol::message::{Message, MessageFault};

/// A message that is to be authorized. Responses are none: they answer what was authorized elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation<'a> {
    /// The method, exactly.
    pub method: &'a str,
    /// The parameters, an object when present.
    pub params: Option<&'a Json>,
    /// Whether it has an id and wants an answer.
    pub is_request: bool,
}

const NO_PARAMS: &Json = &Json::Object(Vec::new());

impl<'a> Operation<'a> {
    /// The operation a message asks for; nothing of a response.
    #[must_use]
    pub fn of(message: &'a Message) -> Option<Operation<'a>> {
        match message {
            Message::Request(it) => {
                Some(Operation { method: &it.method, params: it.params.as_ref(), is_request: true })
            }
            Message::Notification(it) => {
                Some(Operation { method: &it.method, params: it.params.as_ref(), is_request: false })
            }
            Message::Response { .. } => None,
        }
    }

    /// The input variable `params`: an empty object when the message has none.
    #[must_use]
    pub fn params(&self) -> &'a Json {
        self.params.unwrap_or(NO_PARAMS)
    }

    /// The tool, of a `tools/call`.
    #[must_use]
    pub fn tool(&self) -> Option<&'a str> {
        if self.method == "tools/call" { self.params?.get("name")?.as_str() } else { None }
    }
}

/// A message as an author of mappings tries it out. It takes shapes a host refuses before any mapping is looked at,
/// so that the mapping's own answer can be seen: a call without a tool's name, a notification with an id.
///
/// Never for enforcement: hosts read `sayso_protocol::message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample(Json);

impl Sample {
    /// Reads a JSON-RPC request or notification.
    ///
    /// # Errors
    /// When it is neither, with the JSON-RPC code a host would answer.
    pub fn read(bytes: &[u8]) -> Result<Sample, NotASample> {
        let json = Json::parse(bytes, Limits::default()).map_err(|error| {
            use sayso_protocol::json::JsonErrorKind::{DuplicateMember, LoneSurrogate, TooDeep, TooLarge};
            let shape = matches!(error.kind, DuplicateMember | LoneSurrogate | TooDeep | TooLarge);
            if shape { NotASample::Shape } else { NotASample::NotJson }
        })?;
        let params = !matches!(json.get("params"), Some(it) if it.as_object().is_none());
        let id = match json.get("id") {
            None => true,
            Some(Json::String(_)) => true,
            Some(Json::Number(number)) => number.is_integer_text(),
            Some(_) => false,
        };
        let version = json.get("jsonrpc").and_then(Json::as_str) == Some("2.0");
        let sample = Sample(json);
        let method = sample.method().is_some_and(|method| {
            sample.0.get("id").is_some() || method == "ping" || method.starts_with("notifications/")
        });
        if params && id && version && method { Ok(sample) } else { Err(NotASample::Shape) }
    }

    fn method(&self) -> Option<&str> {
        self.0.get("method").and_then(Json::as_str)
    }

    /// The operation it asks for.
    #[must_use]
    pub fn operation(&self) -> Operation<'_> {
        let method = self.method().unwrap_or_default();
        Operation { method, params: self.0.get("params"), is_request: self.0.get("id").is_some() }
    }
}

/// Not a message that can be tried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotASample {
    /// Not JSON.
    #[error("not JSON")]
    NotJson,
    /// JSON, but not one JSON-RPC request or notification.
    #[error("not one JSON-RPC request or notification")]
    Shape,
}

impl NotASample {
    /// The JSON-RPC code a host would answer.
    #[must_use]
    pub fn code(self) -> i64 {
        match self {
            NotASample::NotJson => MessageFault::PARSE_ERROR,
            NotASample::Shape => MessageFault::INVALID_REQUEST,
        }
    }
}
