//! `WWW-Authenticate`, one line of input a header line. A challenge that is read can be written, and is then read as
//! the same: nothing in it poses as another parameter or another challenge (CORE-14, CORE-25).

use http::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use sayso_protocol::Scope;
use sayso_protocol::envelope::www_authenticate::{MAX_BYTES, decode, encode};
use sayso_protocol::payload::challenge::{Challenge, ChallengeObject};

/// The body.
pub fn check(bytes: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(WWW_AUTHENTICATE, value);
        }
    }
    let Ok(Some(object)) = decode(&headers) else { return };
    assert_eq!(object.clone().check().as_ref(), Ok(&object), "an unchecked challenge was read");
    let Some(challenge) = whole(&object) else { return };
    let written = encode(&challenge).expect("what stood in a header fits a header");
    if written.len() < MAX_BYTES {
        let read = decode(&HeaderMap::from_iter([(WWW_AUTHENTICATE, written)]));
        assert_eq!(read, Ok(Some(challenge.object())));
    }
}

/// The challenge of an object that lacks nothing.
pub(crate) fn whole(object: &ChallengeObject) -> Option<Challenge> {
    Some(Challenge {
        realm: object.realm.clone()?,
        as_uri: object.as_uri.clone(),
        ticket: object.ticket.clone(),
        resource_metadata: object.resource_metadata.clone()?,
        scopes: Scope::split(object.scope.as_ref()?).ok()?,
        remediation: object.authorization_remediation.clone()?,
    })
}
