//! Text that names something: identifiers, scopes, digests, request ids, revisions, mirrored header values.
//! What parses is bounded, is written as it was read, and one value has one spelling where the form promises it.

use sayso_protocol::id::MAX_BYTES;
use sayso_protocol::message::{RequestId, decode_value, encode_value};
use sayso_protocol::method::{Revision, UmaClass, lookup, uma_class};
use sayso_protocol::{Handle, ResourceId, S256, Scope, ToolName, b64};

/// The body.
pub fn check(bytes: &[u8]) {
    encoded(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(id) = ResourceId::parse(text) {
        assert!(!text.is_empty() && text.len() <= MAX_BYTES && !text.contains(char::is_control));
        assert_eq!(id.as_str(), text);
        let written = serde_json::to_vec(&id).expect("an id can be written");
        assert_eq!(serde_json::from_slice::<ResourceId>(&written).ok(), Some(id));
    }
    assert_eq!(ResourceId::parse(text).is_ok(), ToolName::parse(text).is_ok());
    scopes(text);
    handles(text);
    if let Ok(digest) = text.parse::<S256>() {
        assert_eq!(digest.as_str(), text);
        let bytes = text.strip_prefix("s256:").and_then(|rest| b64::decode(rest).ok()).unwrap_or_default();
        assert_eq!((bytes.len(), format!("s256:{}", b64::encode(bytes)).as_str()), (32, text));
    }
    if let Ok(id) = text.parse::<RequestId>() {
        assert_eq!(id.text().parse().as_ref(), Ok(&id));
        assert!(id.says_same(&id) && text.contains(id.text()));
        let written = serde_json::to_string(&id).expect("an id can be written");
        assert_eq!(written, id.text(), "an id is not its exact text");
    }
    let value = encode_value(text);
    assert_eq!(decode_value(&value).as_deref(), Some(text));
    assert!(value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')), "not a header value");
    assert_eq!(
        text.parse::<Revision>().is_ok(),
        Revision::ALL.iter().any(|revision| revision.as_str() == text)
    );
    assert!(lookup(text).is_some() || uma_class(text) == UmaClass::NotServed);
}

/// Base64 has one spelling, in both alphabets.
fn encoded(bytes: &[u8]) {
    if let Ok(decoded) = b64::decode(bytes) {
        assert_eq!(b64::encode(decoded).as_bytes(), bytes);
    }
    if let Ok(decoded) = b64::decode_standard(bytes) {
        assert_eq!(b64::encode_standard(decoded).as_bytes(), bytes);
    }
    assert_eq!(b64::decode(b64::encode(bytes)).as_deref(), Ok(bytes));
}

/// Scopes travel joined by spaces, so none may hold one (CORE-12).
fn scopes(text: &str) {
    if let Ok(scopes) = Scope::split(text) {
        assert_eq!(Scope::split(&Scope::join(&scopes)).as_ref(), Ok(&scopes));
    }
    if let Ok(scope) = Scope::parse(text) {
        assert_eq!(Scope::split(scope.as_str()), Ok(vec![scope.clone()]), "one scope travels as several");
    }
}

/// An identified handle ends with its issuer, so it is never that of a bare key (CORE-45, CORE-49).
fn handles(text: &str) {
    let Some((subject, issuer)) = text.split_once('\n') else { return };
    if let Ok(handle) = Handle::identified(subject, issuer) {
        let bare = issuer.split_once("://").map_or(issuer, |(_, rest)| rest).trim_end_matches('/');
        assert!(handle.as_str().starts_with(subject) && handle.as_str().ends_with(&format!("@{bare}")));
    }
}
