//! JSON-RPC error responses: what is read is in `data` alone, and a challenge that is read can be sent on unchanged
//! (D-2, MCP-10).

use sayso_protocol::envelope::jsonrpc::{Codes, Failure, challenge, response};
use sayso_protocol::json::Limits;
use sayso_protocol::message::RequestId;
use sayso_protocol::payload::challenge::{ERROR, ERROR_OF_PEERS};
use serde_json::Value;

use super::challenge::whole;

const LIMITS: Limits = Limits { bytes: 64 * 1024, depth: 64 };

/// The body.
pub fn check(bytes: &[u8]) {
    let Ok(Some(failure)) = Failure::read(bytes, LIMITS) else { return };
    let lax = serde_json::from_slice::<Value>(bytes);
    let data = lax.as_ref().ok().map(|lax| &lax["error"]["data"]);
    let word = data.map(|data| data["error"].as_str());
    match failure {
        Failure::Challenge(object) => {
            assert_eq!(object.clone().check().as_ref(), Ok(&*object), "an unchecked challenge was read");
            assert!(word.is_none_or(|word| word == Some(object.error.as_str())));
            assert!(
                data.is_none_or(|data| data["ticket"] == *object.ticket && data["as_uri"] == *object.as_uri)
            );
            let Some(ours) = whole(&object) else { return };
            let sent = response(&RequestId::from(1), &challenge(Codes::default(), &ours));
            let read = Failure::read(&sent.expect("a challenge can be written"), Limits::default());
            assert_eq!(read, Ok(Some(Failure::Challenge(Box::new(ours.object())))));
        }
        Failure::Refusal { error, .. } => {
            assert!(error != ERROR && error != ERROR_OF_PEERS, "a challenge read as a refusal");
            assert!(word.is_none_or(|word| word == Some(error.as_str())));
        }
        Failure::Other { .. } => assert!(word.is_none_or(|word| word.is_none())),
    }
}
