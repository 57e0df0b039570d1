//! Which member names MCP gives a meaning, and what could be taken for one of them.
//! It keeps D-10: in the envelope, `params` and `_meta` a name that differs from a protocol name only by letter
//! case is refused, since a reader that ignores case would see another message. Tool arguments are not names of
//! the protocol and are not looked at.

use std::borrow::Cow;

use crate::json::Json;

use super::{META_CAPABILITIES, META_VERSION, MessageFault};

/// An object whose member names belong to the protocol.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Envelope,
    Params,
    Meta,
}

impl Place {
    /// Names some method gives a meaning in this place.
    fn known(self) -> &'static [&'static str] {
        match self {
            Place::Envelope => &["jsonrpc", "id", "method", "params", "result", "error"],
            Place::Params => PARAMS,
            Place::Meta => META,
        }
    }

    /// Names a `tools/call` gives a meaning in this place.
    fn of_a_call(self) -> &'static [&'static str] {
        match self {
            Place::Params => &["name", "arguments", "_meta", "requestState", "inputResponses", "task"],
            Place::Envelope | Place::Meta => self.known(),
        }
    }
}

const PARAMS: &[&str] = &[
    "name",
    "arguments",
    "_meta",
    "uri",
    "cursor",
    "requestState",
    "inputResponses",
    "task",
    "taskId",
    "protocolVersion",
    "capabilities",
    "clientInfo",
    "ref",
    "argument",
    "context",
    "level",
    "notifications",
    "requestId",
    "reason",
    "progressToken",
    "progress",
    "total",
    "message",
];

const META: &[&str] = &[
    META_VERSION,
    META_CAPABILITIES,
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/related-task",
    "io.modelcontextprotocol/subscriptionId",
    "progressToken",
    "traceparent",
    "tracestate",
    "baggage",
];

/// Refuses names that a laxer reader could take for a name of the protocol.
pub(super) fn check(place: Place, members: &[(String, Json)]) -> Result<(), MessageFault> {
    for (name, _) in members {
        // Readers that keep strings as C strings stop at the NUL and see the name before it.
        if name.contains('\0') {
            return Err(MessageFault::malformed("member name with a NUL"));
        }
        let folded = fold(name);
        if place.known().iter().any(|known| name != known && folded.eq_ignore_ascii_case(known)) {
            return Err(MessageFault::malformed("member name in another letter case"));
        }
    }
    Ok(())
}

/// The first member here that a `tools/call` gives no meaning.
pub(super) fn unknown(place: Place, value: Option<&Json>) -> Option<&str> {
    let names = value?.as_object()?.iter().map(|(name, _)| name.as_str());
    names.into_iter().find(|name| !place.of_a_call().contains(name))
}

/// The members of an object whose name some reader takes for `known`.
pub(super) fn like<'a>(object: &'a Json, known: &'a str) -> impl Iterator<Item = &'a Json> {
    let members = object.as_object().unwrap_or_default();
    members.iter().filter(move |(name, _)| fold(name).eq_ignore_ascii_case(known)).map(|(_, value)| value)
}

/// A name such that equality but for ASCII case says whether some reader takes it for an ASCII name.
fn fold(name: &str) -> Cow<'_, str> {
    let name = name.split('\0').next().unwrap_or_default();
    if name.is_ascii() {
        return Cow::Borrowed(name);
    }
    // Upper then lower case brings U+017F to s, U+212A to k, U+0131 to i and U+00DF to ss; U+0130 leaves a dot above.
    let upper = name.chars().flat_map(char::to_uppercase);
    Cow::Owned(upper.flat_map(char::to_lowercase).filter(|character| *character != '\u{307}').collect())
}
