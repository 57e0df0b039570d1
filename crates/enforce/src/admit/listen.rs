//! What a subscription may be to where the method is opened by name, or a policy lets it through: changed lists, and
//! nothing of what they hold. A policy is asked about it as a whole, and its yes is for no thing in it (COAZ-MCP-U3).
//!
//! A host that carries the request trims it to that, so that the server's own acknowledgement tells the caller the truth;
//! one that cannot change a request refuses it (ADR 0021). What is left is cut out of the bytes that were judged.

use bytes::Bytes;
use sayso_protocol::Json;
use sayso_protocol::json::locate;
use sayso_protocol::message::{Message, MessageFault, Request};

const METHOD: &str = "subscriptions/listen";

const LISTS: [&str; 3] = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"];

/// What of a subscription is heard.
enum Heard {
    /// It asks for nothing else.
    All,
    /// The message that asks for what of it may be heard.
    Trimmed(Bytes),
    /// Nothing that it asks for.
    Nothing,
}

/// `message`, which is `body`, as it may be forwarded. Of what a resource holds, and of what a task came to, a subscription
/// hears nothing, whoever lets it through. `trims` says whether the host forwards what it is given.
pub(crate) fn trimmed(message: &Message, body: &Bytes, trims: bool) -> Result<Bytes, MessageFault> {
    if message.method() != Some(METHOD) {
        return Ok(body.clone());
    }
    match heard(message, body) {
        Heard::All => Ok(body.clone()),
        Heard::Trimmed(less) if trims => Ok(less),
        Heard::Trimmed(_) | Heard::Nothing => Err(MessageFault::not_heard(message.request_id().cloned())),
    }
}

/// Looks at what it subscribes to.
fn heard(message: &Message, body: &Bytes) -> Heard {
    let Message::Request(Request { params, .. }) = message else { return Heard::Nothing };
    let Some(wanted) = params.as_ref().and_then(|params| params.get("notifications")) else {
        return Heard::All;
    };
    let Some(wanted) = wanted.as_object() else { return Heard::Nothing };
    if wanted.iter().all(|(name, _)| LISTS.contains(&name.as_str())) {
        return Heard::All;
    }
    let lists =
        wanted.iter().filter(|(name, value)| LISTS.contains(&name.as_str()) && *value == Json::Bool(true));
    let lists: Vec<String> = lists.map(|(name, _)| format!("\"{name}\":true")).collect();
    let span = locate(body, &["params", "notifications"]);
    let around = span.and_then(|span| Some((body.get(..span.start)?, body.get(span.end..)?)));
    match around {
        Some((before, after)) if !lists.is_empty() => {
            let lists = format!("{{{}}}", lists.join(","));
            Heard::Trimmed([before, lists.as_bytes(), after].concat().into())
        }
        _ => Heard::Nothing,
    }
}
