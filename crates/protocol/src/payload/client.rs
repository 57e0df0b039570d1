//! How an agent is described by somebody else: a client metadata document, at the address that is its client id, and a
//! key directory at the same origin (CORE-51..54, POL-30).
//!
//! Both are written here for an operator to host, and read here for an authority that was told of them. What they say
//! lets nobody in and turns nobody away.

use crate::id::MAX_BYTES;
use crate::json::{self, Limits};
use crate::key::VerifyingKey;
use crate::payload::metadata::KeySet;
use serde::{Deserialize, Serialize};
use url::Url;

/// Where an origin publishes its keys for message signatures.
pub const DIRECTORY: &str = "/.well-known/http-message-signatures-directory";
/// The media type of that directory.
pub const DIRECTORY_TYPE: &str = "application/http-message-signatures-directory+json";
/// What of a document is read.
const LIMITS: Limits = Limits { bytes: 64 * 1024, depth: 32 };
/// Longest name of an agent that is kept, in characters.
const MAX_NAME: usize = 128;

/// The address or document is not one that describes an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the description of an agent")]
pub struct BadDescription;

/// A client metadata document, as far as it says something here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientMetadata {
    /// The address it is at.
    pub client_id: String,
    /// What it calls the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// Where people can read about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_uri: Option<String>,
    /// Where its keys are: the directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
}

impl ClientMetadata {
    /// Reads the document found at `address`, which has to name that address as its own.
    ///
    /// # Errors
    /// When it is none, or describes another client.
    pub fn read(address: &str, document: &[u8]) -> Result<Self, BadDescription> {
        let mut read: ClientMetadata = json::strict(document, LIMITS).map_err(|_| BadDescription)?;
        if read.client_id != address {
            return Err(BadDescription);
        }
        read.client_name = read.client_name.map(|name| name.chars().take(MAX_NAME).collect());
        Ok(read)
    }
}

/// The URL of a client id that is an address: https with a path, in its plain form.
///
/// # Errors
/// When it is none.
pub fn client_address(client_id: &str) -> Result<Url, BadDescription> {
    let url = Url::parse(client_id).map_err(|_| BadDescription)?;
    let plain = url.scheme() == "https"
        && url.as_str() == client_id
        && client_id.len() <= MAX_BYTES
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none()
        && url.path() != "/";
    if plain { Ok(url) } else { Err(BadDescription) }
}

/// The address of the directory at an origin, where it is that of `client`: one elsewhere says nothing about this
/// client (POL-30).
pub fn directory_of(client: &Url, origin: &str) -> Option<String> {
    let named = Url::parse(origin).ok()?;
    let bare = named.path() == "/" && named.query().is_none() && named.fragment().is_none();
    let same = bare && named.username().is_empty() && named.origin() == client.origin();
    same.then(|| format!("{}{DIRECTORY}", client.origin().ascii_serialization()))
}

/// The keys of a directory: the keys themselves, whatever names it gives them.
///
/// # Errors
/// When it is no key set.
pub fn directory_keys(document: &[u8]) -> Result<Vec<VerifyingKey>, BadDescription> {
    let set: KeySet = json::strict(document, LIMITS).map_err(|_| BadDescription)?;
    Ok(set.keys().into_iter().map(|(_, key)| key).collect())
}

/// A directory of these keys.
pub fn directory<'a>(keys: impl IntoIterator<Item = &'a VerifyingKey>) -> KeySet {
    KeySet::of(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SigningKey;
    use serde_json::json;

    const ADDRESS: &str = "https://op.example/agents/one.json";

    // CORE-51
    #[test]
    fn only_an_https_address_with_a_path_can_describe() {
        assert!(client_address(ADDRESS).is_ok());
        for odd in [
            "http://op.example/a",
            "https://op.example",
            "https://op.example/",
            "https://op.example/a#b",
            "https://u@op.example/a",
            "https://op.example/a/../b",
            "https://OP.example/a",
            "https://op.example:443/a",
            "my-client",
            "",
        ] {
            assert!(client_address(odd).is_err(), "{odd}");
        }
        assert!(client_address(&format!("https://op.example/{}", "a".repeat(600))).is_err());
    }

    // CORE-51
    #[test]
    fn a_document_describes_the_client_at_its_own_address() {
        let read =
            |document: serde_json::Value| ClientMetadata::read(ADDRESS, document.to_string().as_bytes());
        let good =
            read(json!({ "client_id": ADDRESS, "client_name": "x".repeat(500), "more": [1] })).unwrap();
        assert_eq!(good.client_name.map(|name| name.len()), Some(MAX_NAME));
        for other in [
            json!({ "client_id": "https://op.example/agents/two.json" }),
            json!({ "client_name": "no id" }),
            json!({ "client_id": ADDRESS, "client_name": 7 }),
            json!([ADDRESS]),
        ] {
            assert!(read(other).is_err());
        }
        assert!(ClientMetadata::read(ADDRESS, b"{\"client_id\":\"a\",\"client_id\":\"b\"}").is_err());
    }

    // POL-30
    #[test]
    fn a_directory_counts_at_the_clients_origin_alone() {
        let client = client_address(ADDRESS).unwrap();
        let there = "https://op.example/.well-known/http-message-signatures-directory";
        for origin in ["https://op.example", "https://op.example/"] {
            assert_eq!(directory_of(&client, origin).as_deref(), Some(there));
        }
        for other in [
            "https://other.example",
            "http://op.example",
            "https://op.example:8443",
            "https://op.example/x",
            "x",
        ] {
            assert_eq!(directory_of(&client, other), None, "{other}");
        }
    }

    #[test]
    fn a_directory_holds_keys_and_not_names() {
        let keys = [3, 4].map(|seed| SigningKey::from_seed(&[seed; 32]).unwrap());
        let written = serde_json::to_value(directory(keys.iter().map(SigningKey::verifying))).unwrap();
        let read = directory_keys(written.to_string().as_bytes()).unwrap();
        assert_eq!(read, keys.each_ref().map(|key| key.verifying().clone()));
        let mut lying = written.clone();
        lying["keys"][0]["kid"] = keys[1].kid().into();
        lying["keys"].as_array_mut().unwrap().pop();
        let read = directory_keys(lying.to_string().as_bytes()).unwrap();
        assert_eq!(read, [keys[0].verifying().clone()]);
        assert!(directory_keys(b"[]").is_err());
    }
}
