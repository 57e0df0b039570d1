//! What a subscription may be to where the method is opened by name: changed lists, and nothing of what they hold.
//!
//! A host that carries the request trims it to that, so that the server's own acknowledgement tells the caller the truth;
//! one that cannot change a request refuses it (ADR 0021). What is left is cut out of the bytes that were judged.

use bytes::Bytes;
use sayso_protocol::Json;
use sayso_protocol::json::locate;
use sayso_protocol::message::{Message, Request};

pub(super) const METHOD: &str = "subscriptions/listen";

const LISTS: [&str; 3] = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"];

/// What of a subscription is heard.
pub(super) enum Heard {
    /// It asks for nothing else.
    All,
    /// The message that asks for what of it may be heard.
    Trimmed(Bytes),
    /// Nothing that it asks for.
    Nothing,
}

/// Looks at what `message`, which is `body`, subscribes to.
pub(super) fn heard(message: &Message, body: &Bytes) -> Heard {
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
