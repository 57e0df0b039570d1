//! Routing headers against the body: MCP-25 to MCP-27, D-3, and MCP's own rules for mirrored values.
//! The body decides; a header that says otherwise, is there twice, or is missing where the revision requires it
//! is a fault, because somebody else may route on it. Which origin or host is allowed is not checked here.

use http::header::{HeaderMap, HeaderName};
use std::borrow::Cow;

use crate::b64;
use crate::json::Json;
use crate::method::{Revision, lookup};

use super::{Message, MessageFault};

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Headers beside `Mcp-*` of which a second line is malformed, never a tie to break (RFC 9110 section 5.3).
const SINGLE: &[&str] = &[
    "authorization",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "origin",
    "traceparent",
    "transfer-encoding",
];

/// Methods whose modern form must carry `Mcp-Name`.
const NAMED: &[&str] = &["tools/call", "resources/read", "prompts/get"];

/// Holds the headers of a request against the message in its body, and says which revision it speaks.
pub fn reconcile(headers: &HeaderMap, message: &Message) -> Result<Revision, MessageFault> {
    check(headers, message).map_err(|fault| fault.about(message.request_id()))
}

fn check(headers: &HeaderMap, message: &Message) -> Result<Revision, MessageFault> {
    headers.keys().try_for_each(|name| check_single(headers, name))?;
    let revision = version(headers, message)?;
    let modern_request = revision.is_modern() && message.request_id().is_some();
    match header(headers, METHOD)? {
        Some(value) if Some(value) != message.method() => {
            return Err(MessageFault::mismatch("Mcp-Method differs from the body"));
        }
        None if modern_request => return Err(MessageFault::missing_header("Mcp-Method is required")),
        _ => {}
    }
    check_name(headers, message, modern_request)?;
    Ok(revision)
}

/// One line each, and no other spelling that a CGI-like server would read as the same header.
fn check_single(headers: &HeaderMap, name: &HeaderName) -> Result<(), MessageFault> {
    let spelled = if name.as_str().contains('_') {
        Cow::Owned(name.as_str().replace('_', "-"))
    } else {
        Cow::Borrowed(name.as_str())
    };
    if !(spelled.starts_with("mcp-") || SINGLE.contains(&&*spelled)) {
        return Ok(());
    }
    if spelled != name.as_str() {
        return Err(MessageFault::mismatch("header name with an underscore"));
    }
    if headers.get_all(name).iter().nth(1).is_some() {
        return Err(MessageFault::mismatch("header sent twice"));
    }
    Ok(())
}

/// The higher of header and `_meta`; they may not differ, so that neither can be used to lower the other. That they
/// differ is said before that one of them is unknown: a caller cannot be told which of the two it asked for.
fn version(headers: &HeaderMap, message: &Message) -> Result<Revision, MessageFault> {
    let known = |text: &str| text.parse::<Revision>().map_err(|_| MessageFault::unknown_version(text));
    let (header, meta) = (header(headers, VERSION)?, message.meta_version());
    if header.is_some() && meta.is_some() && header != meta {
        return Err(MessageFault::mismatch("MCP-Protocol-Version differs from _meta"));
    }
    let header = header.map(known).transpose()?;
    let meta = meta.map(known).transpose()?;
    match (header, meta) {
        (Some(header), None) if header.is_modern() && message.request_id().is_some() => {
            Err(MessageFault::missing_meta())
        }
        (None, Some(meta)) if meta.is_modern() => {
            Err(MessageFault::missing_header("MCP-Protocol-Version is required"))
        }
        (Some(revision), _) | (None, Some(revision)) => Ok(revision),
        (None, None) => Ok(Revision::V20250326),
    }
}

fn check_name(headers: &HeaderMap, message: &Message, modern_request: bool) -> Result<(), MessageFault> {
    let Some(value) = header(headers, NAME)? else {
        let required = modern_request && message.method().is_some_and(|method| NAMED.contains(&method));
        return if required { Err(MessageFault::missing_header("Mcp-Name is required")) } else { Ok(()) };
    };
    // What an extension mirrors is between its client and the upstream that knows it.
    let row = message.method().map(lookup);
    if row == Some(None) {
        return Ok(());
    }
    let source = row.flatten().and_then(|row| row.name_from);
    let named = source.and_then(|member| message.params()?.get(member)).and_then(Json::as_str);
    if named.is_some() && decode_value(value).as_deref() == named {
        Ok(())
    } else {
        Err(MessageFault::mismatch("Mcp-Name differs from the body"))
    }
}

/// The text of a header, trimmed; text that is not visible ASCII is malformed.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, MessageFault> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = value.to_str().map_err(|_| MessageFault::mismatch("header value is not visible ASCII"))?;
    Ok(Some(text.trim_matches([' ', '\t'])))
}

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// What a mirrored header value stands for; `None` if it is marked as encoded and is not.
#[must_use]
pub fn decode_value(value: &str) -> Option<String> {
    match value.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)) {
        None => Some(value.to_owned()),
        Some(encoded) => String::from_utf8(b64::decode_standard(encoded).ok()?).ok(),
    }
}

/// The header value that stands for a text.
#[must_use]
pub fn encode_value(text: &str) -> String {
    let plain = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
        && text.trim_matches([' ', '\t']) == text
        && !(text.starts_with(PREFIX) && text.ends_with(SUFFIX));
    if plain { text.to_owned() } else { format!("{PREFIX}{}{SUFFIX}", b64::encode_standard(text)) }
}
