//! Ids and progress tokens, exchanged in place: the only change to the bytes of a message that crosses (D-31).
//!
//! Clients choose their ids without knowing of one another, so on one child each call has a number of its own, and the
//! exact text of the client's comes back in the answer (D-4). A line break between two tokens becomes a space, since a
//! line is the frame; it cannot stand anywhere else in JSON.

use sayso_protocol::json::{Json, Limits, locate};
use std::ops::Range;

/// Longest line of a child.
pub(super) const LINE: usize = 8 << 20;

const META: &str = "_meta";
const TOKEN: &str = "progressToken";
/// By which a modern server says which subscription a notification belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What a client called a call: the exact texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) id: String,
    pub(super) token: Option<String>,
}

/// A client's request as a line with our number in it, and what has to be put back.
///
/// INVARIANT: `body` was accepted by the strict parser.
pub(super) fn outbound(body: &[u8], number: u64) -> Option<(Vec<u8>, Names)> {
    let id = locate(body, &["id"])?;
    let token = locate(body, &["params", META, TOKEN]).filter(|span| is_token(body, span));
    let names = Names { id: text(body, &id)?, token: token.as_ref().and_then(|span| text(body, span)) };
    let number = number.to_string();
    let places = [Some((id, number.as_str())), token.map(|span| (span, number.as_str()))];
    Some((frame(replace(body, places)), names))
}

/// A message as it is, as a line.
pub(super) fn frame(mut body: Vec<u8>) -> Vec<u8> {
    for byte in &mut body {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    body.push(b'\n');
    body
}

/// Whose a line of the child's is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The response to a call.
    Answer(u64),
    /// Progress of a call, by its token.
    Progress(u64),
    /// A notification of a subscription.
    Subscribed(u64),
    /// The child ends a call without an answer.
    Cancelled(u64),
    /// A request of the child's own, with the exact text of its id.
    Asks { id: String, method: String },
    /// A notification to nobody in particular.
    Tells { method: String },
}

/// Reads a line strictly; none if it is no message.
pub(super) fn claim(line: &[u8]) -> Option<Claim> {
    let root = Json::parse(line, Limits { bytes: LINE, depth: sayso_protocol::json::MAX_DEPTH }).ok()?;
    if root.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
        return None;
    }
    let Some(method) = root.get("method") else {
        let answers = ["result", "error"].iter().filter(|name| root.get(name).is_some()).count();
        return Some(Claim::Answer(root.get("id")?.as_u64().filter(|_| answers == 1)?));
    };
    let method = method.as_str()?.to_owned();
    if root.get("id").is_some() {
        let id = locate(line, &["id"]).and_then(|span| text(line, &span))?;
        return Some(Claim::Asks { id, method });
    }
    let params = root.get("params");
    let number = |name: &str| params.and_then(|params| params.get(name)).and_then(Json::as_u64);
    let subscription = params.and_then(|params| params.get(META)?.get(SUBSCRIPTION)?.as_u64());
    Some(match (method.as_str(), subscription) {
        ("notifications/progress", _) => Claim::Progress(number(TOKEN)?),
        ("notifications/cancelled", _) => Claim::Cancelled(number("requestId")?),
        (_, Some(number)) => Claim::Subscribed(number),
        _ => Claim::Tells { method },
    })
}

/// A response with the client's id in it again.
pub(super) fn answer(line: &[u8], number: u64, names: &Names) -> Option<Vec<u8>> {
    let echoed = ours(line, &["result", META, SUBSCRIPTION], number).map(|span| (span, names.id.as_str()));
    let id = ours(line, &["id"], number)?;
    Some(replace(line, [Some((id, names.id.as_str())), echoed]))
}

/// A progress notification with the client's token in it again; none if the client gave none.
pub(super) fn progress(line: &[u8], number: u64, names: &Names) -> Option<Vec<u8>> {
    let token = names.token.as_deref()?;
    Some(replace(line, [Some((ours(line, &["params", TOKEN], number)?, token)), None]))
}

/// A client's cancellation with our number for the call it names; none if it names none under way.
pub(super) fn cancelled(body: &[u8], number_of: impl Fn(&str) -> Option<u64>) -> Option<Vec<u8>> {
    let span = locate(body, &["params", "requestId"])?;
    let number = number_of(&text(body, &span)?)?.to_string();
    Some(replace(body, [Some((span, number.as_str())), None]))
}

/// A notification of a subscription with the client's id in it again.
pub(super) fn subscribed(line: &[u8], number: u64, names: &Names) -> Option<Vec<u8>> {
    let span = ours(line, &["params", META, SUBSCRIPTION], number)?;
    Some(replace(line, [Some((span, names.id.as_str())), None]))
}

fn ours(line: &[u8], path: &[&str], number: u64) -> Option<Range<usize>> {
    let span = locate(line, path)?;
    (line.get(span.clone())? == number.to_string().as_bytes()).then_some(span)
}

/// MCP's tokens are strings and numbers; whatever else stands there is no token and stays.
fn is_token(body: &[u8], span: &Range<usize>) -> bool {
    body.get(span.start).is_some_and(|first| matches!(first, b'"' | b'-' | b'0'..=b'9'))
}

fn text(bytes: &[u8], span: &Range<usize>) -> Option<String> {
    std::str::from_utf8(bytes.get(span.clone())?).ok().map(str::to_owned)
}

fn replace(bytes: &[u8], places: [Option<(Range<usize>, &str)>; 2]) -> Vec<u8> {
    let mut places: Vec<(Range<usize>, &str)> = places.into_iter().flatten().collect();
    places.sort_by_key(|(span, _)| span.start);
    let mut out = Vec::with_capacity(bytes.len() + 64);
    let mut at = 0;
    for (span, text) in places {
        out.extend_from_slice(bytes.get(at..span.start).unwrap_or_default());
        out.extend_from_slice(text.as_bytes());
        at = span.end;
    }
    out.extend_from_slice(bytes.get(at..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests;
