//! A credential of the gateway's own towards an upstream (D-32).
//!
//! With one the server can refuse everybody else, so that nobody goes round the gateway. It is never printed and never
//! sent to any other place.

use http::{HeaderName, HeaderValue};

/// Names that say something else on a request of ours.
const TAKEN: [&str; 9] = [
    "host",
    "content-length",
    "content-type",
    "accept",
    "transfer-encoding",
    "connection",
    "upgrade",
    "last-event-id",
    "traceparent",
];

/// A header and its secret value.
#[derive(Clone)]
pub struct Credential {
    pub(super) name: HeaderName,
    pub(super) value: HeaderValue,
}

/// Not a header that a credential can travel in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a credential is one header line, and not of a name that requests use already")]
pub struct BadCredential;

impl Credential {
    /// A credential in a header of this name, e.g. `Authorization` and `Bearer …`.
    ///
    /// # Errors
    /// When it is no header, or a name that has another meaning.
    pub fn parse(name: &str, value: &str) -> Result<Self, BadCredential> {
        let name = HeaderName::try_from(name).map_err(|_| BadCredential)?;
        if TAKEN.contains(&name.as_str()) || name.as_str().starts_with("mcp-") || value.is_empty() {
            return Err(BadCredential);
        }
        let mut value = HeaderValue::try_from(value).map_err(|_| BadCredential)?;
        value.set_sensitive(true);
        Ok(Self { name, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_a_header_of_its_own() {
        assert!(Credential::parse("Authorization", "Bearer x").is_ok_and(|it| it.value.is_sensitive()));
        assert!(Credential::parse("X-Api-Key", "x").is_ok());
        for (name, value) in
            [("Host", "x"), ("Mcp-Name", "x"), ("a b", "x"), ("X-Key", "a\r\nb: c"), ("X-Key", "")]
        {
            assert_eq!(Credential::parse(name, value).err(), Some(BadCredential), "{name}");
        }
    }
}
