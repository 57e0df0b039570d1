//! What a resource server says when it introduces itself to an owner's authority (FED-20), and what it is told.
//!
//! The words are a stranger's until the keys of the resource's own origin have verified them; which origin that is
//! follows from the resource alone (FED-22). A name is for people and stays text.

use crate::id::{ClientId, OwnerName};
use crate::json::{self, Limits};
use serde::{Deserialize, Serialize};
use url::Url;

/// Where an authority takes introductions.
pub const PATH: &str = "/rs/register";
/// Largest introduction read, in bytes.
pub const MAX_BYTES: usize = 64 * 1024;
/// Longest name, in bytes.
pub const MAX_NAME: usize = 256;
/// Deepest JSON read.
const DEPTH: usize = 8;

/// An introduction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Introduction {
    /// Whose authority is asked.
    pub owner: OwnerName,
    /// The resource it serves for her, as its metadata names it.
    pub resource_uri: String,
    /// What it calls itself.
    pub name: String,
}

/// An introduction that is not the JSON expected, or whose members are too long, or empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the introduction is not the JSON object expected, or a member of it is empty or too long")]
pub struct BadIntroduction;

impl Introduction {
    /// An introduction; of a name longer than an authority reads, its beginning.
    pub fn new(owner: OwnerName, resource_uri: impl Into<String>, name: &str) -> Self {
        let end = (0..=name.len().min(MAX_NAME)).rev().find(|at| name.is_char_boundary(*at));
        let name = end.and_then(|end| name.get(..end)).unwrap_or_default();
        Self { owner, resource_uri: resource_uri.into(), name: name.to_owned() }
    }

    /// Reads the body of a request. Members nobody knows are passed over.
    ///
    /// # Errors
    /// When it is too large, no strict JSON object, or a member is missing, empty or too long.
    pub fn read(body: &[u8]) -> Result<Self, BadIntroduction> {
        let limits = Limits { bytes: MAX_BYTES, depth: DEPTH };
        let read: Self = json::strict(body, limits).map_err(|_| BadIntroduction)?;
        let fits = |text: &str, most: usize| !text.is_empty() && text.len() <= most;
        if fits(&read.name, MAX_NAME) && fits(&read.resource_uri, crate::id::MAX_BYTES) {
            Ok(read)
        } else {
            Err(BadIntroduction)
        }
    }

    /// The client id of whoever serves the resource: its origin (FED-26). `None` when the resource is no http(s) URL in
    /// its one spelling, without credentials, query or fragment: what is fetched has to be what is written (FED-22).
    pub fn client_id(&self) -> Option<ClientId> {
        let url = Url::parse(&self.resource_uri).ok()?;
        let origin = url.origin().ascii_serialization();
        let plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
            && matches!(url.scheme(), "http" | "https");
        let spelled = url.as_str() == self.resource_uri || origin == self.resource_uri;
        // A path that a server may decode into another one names a document of somebody else.
        let path = self.resource_uri.get(origin.len()..)?;
        let one = !path.contains(['%', '\\']) && !path.contains("//");
        (plain && spelled && one).then(|| ClientId::parse(origin).ok()).flatten()
    }
}

/// What an authority answers, whatever the answer (FED-26).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntroductionReply {
    /// The name the resource server is known by: its origin.
    pub client_id: ClientId,
    /// `pending`, or `active` when the owner knows it and nothing has changed.
    pub status: String,
    /// `authorization_pending` while it waits for her.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What that means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_description: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sig::content_digest;

    const EXAMPLE: &str = "{\n  \"owner\": \"alice\",\n  \"resource_uri\": \"https://rs.example/mcp/alice\",\n  \
                           \"name\": \"Meridian Vault\"\n}";

    // FED-20, FED-21
    #[test]
    fn the_drafts_example_reads_and_digests() {
        let read = Introduction::read(EXAMPLE.as_bytes()).unwrap();
        assert_eq!((read.owner.as_str(), read.name.as_str()), ("alice", "Meridian Vault"));
        assert_eq!(read.client_id().unwrap().as_str(), "https://rs.example");
        let digest = content_digest(EXAMPLE.as_bytes());
        assert_eq!(digest, "sha-256=:Tmn1PBTGYjBHkU9XV2NHLt2YstMuZTPQqpEBaE28JJM=:");
        let again = Introduction::read(&serde_json::to_vec(&read).unwrap()).unwrap();
        assert_eq!(again, read);
    }

    #[test]
    fn members_are_bounded_and_there_once() {
        let with = |owner: &str, uri: &str, name: &str| {
            let body = serde_json::json!({ "owner": owner, "resource_uri": uri, "name": name, "more": 1 });
            Introduction::read(body.to_string().as_bytes())
        };
        assert!(with("alice", "https://h/x", "n").is_ok());
        assert!(with("alice", "https://h/x", &"n".repeat(MAX_NAME)).is_ok());
        let long = format!("https://h/{}", "x".repeat(600));
        for (owner, uri, name) in [
            ("", "https://h/x", "n"),
            ("alice", "", "n"),
            ("alice", "https://h/x", ""),
            ("alice", &long, "n"),
            ("alice", "https://h/x", &"n".repeat(MAX_NAME + 1)),
            ("a\u{0}", "https://h/x", "n"),
        ] {
            assert_eq!(with(owner, uri, name), Err(BadIntroduction));
        }
        let twice = r#"{"owner":"alice","owner":"bob","resource_uri":"https://h/x","name":"n"}"#;
        for body in [twice, "", "[]", "null", r#"["alice","https://h/x","n"]"#, r#"{"owner":"alice"}"#, "{"] {
            assert_eq!(Introduction::read(body.as_bytes()), Err(BadIntroduction), "{body}");
        }
        assert!(Introduction::read(&vec![b' '; MAX_BYTES + 1]).is_err());
        assert!(Introduction::read(&[b'['; 4000]).is_err());
    }

    // FED-22
    #[test]
    fn a_resource_has_one_spelling_and_an_origin() {
        let origin = |uri: &str| {
            let read =
                Introduction { owner: "alice".parse().unwrap(), resource_uri: uri.into(), name: "n".into() };
            read.client_id().map(String::from)
        };
        for (uri, expected) in [
            ("https://rs.example/mcp", "https://rs.example"),
            ("https://rs.example", "https://rs.example"),
            ("https://rs.example/", "https://rs.example"),
            ("https://rs.example:8443/a/b", "https://rs.example:8443"),
            ("http://127.0.0.1:1/mcp", "http://127.0.0.1:1"),
            ("https://[2001:db8::1]/mcp", "https://[2001:db8::1]"),
            ("https://xn--bcher-kva.example/x", "https://xn--bcher-kva.example"),
        ] {
            assert_eq!(origin(uri).as_deref(), Some(expected), "{uri}");
        }
        for odd in [
            "https://rs.example/mcp/../other",
            "https://rs.example/mcp/%2e%2e/other",
            "https://rs.example/mcp%2f..%2fother",
            "https://rs.example/a//b",
            "https://rs.example\\mcp",
            "https://RS.example/mcp",
            "https://rs.example:443/mcp",
            "https://bücher.example/x",
            "https://u:p@rs.example/mcp",
            "https://u@rs.example/mcp",
            "https://rs.example/mcp?x",
            "https://rs.example/mcp#x",
            "https://rs.example/mcp ",
            " https://rs.example/mcp",
            "https://rs.example/m cp",
            "https://0x7f000001/a",
            "https://127.1/a",
            "https:rs.example/mcp",
            "file:///etc/passwd",
            "gopher://rs.example/a",
            "data:text/plain,x",
            "rs.example/mcp",
            "/mcp",
        ] {
            assert_eq!(origin(odd), None, "{odd}");
        }
    }
}
