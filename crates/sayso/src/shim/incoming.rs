//! What a client says, read once: which revision it speaks, what it can do, and how that is sent on.
//!
//! Its bytes are kept but for one thing: that it could fetch a result later (tasks) is never passed on, since a result
//! would leave by a door nobody guards (D-12).

use super::edit::{Escaped, without};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use sayso_agent::Letter;
use sayso_protocol::json::{Json, Limits, locate};
use sayso_protocol::message::{
    self, META_CAPABILITIES, META_VERSION, Message, MessageFault, Mirror, TASKS_EXTENSION, encode_value,
};
use sayso_protocol::method::{Revision, lookup};

/// Most bytes of one message.
pub(super) const LONGEST: usize = 4 << 20;

const LIMITS: Limits = Limits { bytes: LONGEST, depth: 64 };

/// A message of the client's.
#[derive(Clone)]
pub(super) struct Incoming {
    pub(super) message: Message,
    pub(super) body: Bytes,
}

/// Where a client says that it knows tasks, or asks for one.
const TASKS: [&[&str]; 4] = [
    &["params", "_meta", META_CAPABILITIES, "extensions", TASKS_EXTENSION],
    &["params", "_meta", META_CAPABILITIES, "tasks"],
    &["params", "capabilities", "tasks"],
    &["params", "task"],
];

impl Incoming {
    /// Reads a message.
    pub(super) fn read(body: &[u8]) -> Result<Incoming, MessageFault> {
        let message = message::parse(body, LIMITS)?;
        let mut incoming = Incoming { message, body: body.to_vec().into() };
        let Message::Request(request) = &incoming.message else { return Ok(incoming) };
        if matches!(request.method.as_str(), "tools/call" | "initialize") || incoming.is_modern() {
            for path in TASKS {
                incoming.drop(path).map_err(|Escaped| incoming.unreadable())?;
            }
        }
        Ok(incoming)
    }

    /// Takes a member out of it.
    pub(super) fn drop(&mut self, path: &[&str]) -> Result<(), Escaped> {
        if locate(&self.body, path).is_some() {
            self.body = without(&self.body, path)?.into();
            self.message = message::parse(&self.body, LIMITS).map_err(|_| Escaped)?;
        }
        Ok(())
    }

    /// Puts other bytes in its place that say the same but for a member more.
    pub(super) fn replace(&mut self, body: Vec<u8>) -> Result<(), MessageFault> {
        self.message = message::parse(&body, LIMITS)?;
        self.body = body.into();
        Ok(())
    }

    pub(super) fn unreadable(&self) -> MessageFault {
        MessageFault {
            http_status: 400,
            jsonrpc_code: MessageFault::INVALID_REQUEST,
            error: None,
            message: "a member's name is written with escapes",
            id: self.message.request_id().cloned(),
            requested: None,
        }
    }

    /// A member of its parameters.
    pub(super) fn param(&self, name: &str) -> Option<&Json> {
        match &self.message {
            Message::Request(request) => request.params.as_ref()?.get(name),
            Message::Notification(note) => note.params.as_ref()?.get(name),
            Message::Response { .. } => None,
        }
    }

    /// The exact text of the value at this path.
    pub(super) fn text(&self, path: &[&str]) -> Option<&str> {
        let at = locate(&self.body, path)?;
        std::str::from_utf8(self.body.get(at)?).ok()
    }

    fn version(&self) -> Option<&str> {
        self.param("_meta")?.get(META_VERSION)?.as_str()
    }

    /// Whether it carries its own metadata, with no session behind it.
    pub(super) fn is_modern(&self) -> bool {
        self.version().is_some_and(|version| version.parse::<Revision>().is_ok_and(Revision::is_modern))
    }

    /// Whether the client can be asked, by what this very message says: its own metadata, or its handshake.
    pub(super) fn says_it_can_be_asked(&self) -> bool {
        let own = self.param("_meta").and_then(|meta| meta.get(META_CAPABILITIES));
        let capabilities = own.or_else(|| self.param("capabilities"));
        let elicitation = capabilities.and_then(|capabilities| capabilities.get("elicitation"));
        // Without either word it means forms.
        elicitation.is_some_and(|can| can.get("form").is_some() || can.get("url").is_none())
    }

    /// The token under which the client wants to hear how it goes.
    pub(super) fn progress_token(&self) -> Option<&str> {
        self.text(&["params", "_meta", "progressToken"])
    }

    /// It as it is sent on. `mirrors` are the arguments its tool asks to be repeated in headers.
    pub(super) fn letter(&self, mirrors: &[Mirror]) -> Letter {
        let mut letter = Letter::new(self.body.clone(), self.message.request_id().cloned());
        if let Some(version) = self.version().filter(|_| self.is_modern()) {
            put(&mut letter.headers, "mcp-protocol-version", version);
            let method = self.message.method().unwrap_or_default();
            put(&mut letter.headers, "mcp-method", method);
            let source = lookup(method).and_then(|row| row.name_from);
            if let Some(name) = source.and_then(|member| self.param(member)).and_then(Json::as_str) {
                put(&mut letter.headers, "mcp-name", name);
            }
            for mirror in mirrors {
                let whole = self.param("arguments");
                let argument =
                    mirror.path.iter().fold(whole, |value, name| value.and_then(|value| value.get(name)));
                if let Some(text) = argument.and_then(said) {
                    put(&mut letter.headers, &mirror.header, &text);
                }
            }
        }
        letter
    }
}

/// An argument as a header repeats it.
fn said(argument: &Json) -> Option<String> {
    match argument {
        Json::String(text) => Some(text.clone()),
        Json::Bool(truth) => Some(truth.to_string()),
        Json::Number(number) => Some(number.text().to_owned()),
        _ => None,
    }
}

fn put(headers: &mut HeaderMap, name: &str, value: &str) {
    let (name, value) = (name.parse::<HeaderName>(), HeaderValue::from_str(&encode_value(value)));
    // A method or name that fits no header is one the server will miss, and say so.
    if let (Ok(name), Ok(value)) = (name, value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn modern(params: serde_json::Value) -> Vec<u8> {
        let mut params = params;
        params["_meta"] = json!({ META_VERSION: "2026-07-28", "progressToken": "p1", META_CAPABILITIES: {
            "elicitation": {}, "extensions": { TASKS_EXTENSION: {}, "x/y": {} } } });
        let whole = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params});
        whole.to_string().into_bytes()
    }

    // D-12
    #[test]
    fn tasks_are_never_declared_and_nothing_else_is_lost() {
        let read = Incoming::read(&modern(json!({"name": "x", "task": {"ttl": 1}, "odd": 1}))).unwrap();
        let text = std::str::from_utf8(&read.body).unwrap();
        assert!(!text.contains(TASKS_EXTENSION) && !text.contains("ttl") && text.contains("x/y"), "{text}");
        assert!(text.contains("odd") && read.is_modern() && read.says_it_can_be_asked());
        assert_eq!(read.progress_token(), Some("\"p1\""));
        let hello = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{"tasks":{},"elicitation":{"url":{}}}}}"#;
        let read = Incoming::read(hello).unwrap();
        assert!(!read.is_modern() && !read.says_it_can_be_asked());
        assert!(!std::str::from_utf8(&read.body).unwrap().contains("tasks"));
    }

    #[test]
    fn routing_headers_are_written_from_the_body() {
        let mirror = |header: &str, path: &[&str]| Mirror {
            header: header.into(),
            path: path.iter().map(|name| (*name).to_owned()).collect(),
        };
        let arguments = json!({"region": "Zürich", "deep": {"n": 7}, "none": null});
        let read = Incoming::read(&modern(json!({"name": "look up", "arguments": arguments}))).unwrap();
        let mirrors = [
            mirror("mcp-param-region", &["region"]),
            mirror("mcp-param-n", &["deep", "n"]),
            mirror("mcp-param-none", &["none"]),
            mirror("mcp-param-absent", &["absent"]),
        ];
        let letter = read.letter(&mirrors);
        let header = |name: &str| letter.headers.get(name).map(|value| value.to_str().unwrap());
        assert_eq!(header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!((header("mcp-method"), header("mcp-name")), (Some("tools/call"), Some("look up")));
        assert_eq!(header("mcp-param-region"), Some("=?base64?WsO8cmljaA==?="));
        assert_eq!(header("mcp-param-n"), Some("7"));
        assert_eq!((header("mcp-param-none"), header("mcp-param-absent")), (None, None));
    }
}
