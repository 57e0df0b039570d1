//! An introduction as an authority reads it, and the reply as a gateway does: one of each member, whoever reads it; and a
//! resource leads to its own origin or nowhere, however it is spelled.

use sayso_protocol::json::{self, Limits};
use sayso_protocol::payload::introduction::{Introduction, IntroductionReply, MAX_BYTES, MAX_NAME};
use sayso_protocol::payload::metadata::{RESOURCE_PREFIX, metadata_url};
use serde_json::Value;
use url::Url;

/// The body.
pub fn check(bytes: &[u8]) {
    if let Ok(reply) = json::strict::<IntroductionReply>(bytes, Limits { bytes: MAX_BYTES, depth: 8 }) {
        let again = serde_json::to_vec(&reply).expect("a reply can be written");
        assert_eq!(serde_json::from_slice::<IntroductionReply>(&again).ok(), Some(reply));
    }
    let Ok(said) = Introduction::read(bytes) else { return };
    assert!(!said.name.is_empty() && said.name.len() <= MAX_NAME);
    // In a member that nobody reads, a number may be larger than other readers can hold.
    let lax: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let members =
        [("owner", said.owner.as_str()), ("resource_uri", &said.resource_uri), ("name", &said.name)];
    for (member, value) in members {
        assert!(lax.is_null() || lax[member] == value, "another reader finds another {member}");
    }
    let again = serde_json::to_vec(&said).expect("an introduction can be written");
    // Escapes may make it longer than what is read.
    assert!(again.len() > MAX_BYTES || Introduction::read(&again).ok() == Some(said.clone()));
    leads_home(&said);
}

/// What is fetched for it is at the origin it is known by, and names exactly what it says.
fn leads_home(said: &Introduction) {
    let Some(client_id) = said.client_id() else { return };
    let path = said.resource_uri.strip_prefix(client_id.as_str()).expect("a resource is under its origin");
    assert!(path.is_empty() || path.starts_with('/'));
    assert!(!path.split('/').any(|segment| segment == ".." || segment == "."));
    assert!(!path.contains(['?', '#', '\\', '%']));
    let document = metadata_url(&said.resource_uri).expect("its metadata has an address");
    let path = if path == "/" { "" } else { path };
    assert_eq!(document, format!("{client_id}{RESOURCE_PREFIX}{path}"));
    let parsed = Url::parse(&document).expect("that address is a URL");
    assert_eq!(parsed.as_str(), document, "a client would ask for another address");
    assert_eq!(parsed.origin().ascii_serialization(), client_id.as_str());
}
