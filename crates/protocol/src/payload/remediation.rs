//! The remediation object: what was refused, under which reference, and where to negotiate (CORE-25..29).
//!
//! Its serialisation is the same bytes in every envelope (MCP-12).

use super::edition::Edition;
use crate::canon::{self, CanonError, S256};
use crate::id::{ResourceId, Scope, ToolName};
use serde::{Deserialize, Serialize};

/// One RFC 9396 authorization detail of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// The detail type of the edition emitted.
    #[serde(rename = "type")]
    pub kind: String,
    /// The resource's origin, one string, no path (D-4).
    pub locations: Vec<String>,
    /// The resource id.
    pub identifier: ResourceId,
    /// The tool.
    pub actions: Vec<ToolName>,
    /// The scopes that would suffice.
    pub datatypes: Vec<Scope>,
}

/// The details of one tool with their digest, computed once per registry entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempted {
    details: Vec<Detail>,
    reference: S256,
}

impl Attempted {
    /// Describes an attempt at `tool` of the resource at `origin`.
    ///
    /// # Errors
    /// When a name has no canonical form.
    pub fn new(
        edition: Edition,
        origin: &str,
        resource: ResourceId,
        tool: ToolName,
        scopes: Vec<Scope>,
    ) -> Result<Self, CanonError> {
        let details = vec![Detail {
            kind: edition.detail_type().into(),
            locations: vec![origin.into()],
            identifier: resource,
            actions: vec![tool],
            datatypes: scopes,
        }];
        let reference = canon::s256_of(&details)?;
        Ok(Self { details, reference })
    }

    /// The digest of the details: the same attempt has the same reference.
    pub fn reference(&self) -> &S256 {
        &self.reference
    }

    /// The remediation for one ticket at one authority.
    pub fn remediation(&self, authorization_server: &str, ticket: &str) -> Remediation {
        Remediation {
            authorization_details: self.details.clone(),
            authorization_reference: self.reference.clone(),
            authorization_server: authorization_server.into(),
            ticket: ticket.into(),
        }
    }
}

/// The remediation object. Member order is the wire's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remediation {
    /// What was attempted (CORE-26).
    pub authorization_details: Vec<Detail>,
    /// `s256` of the details (CORE-27).
    pub authorization_reference: S256,
    /// Equals the challenge's `as_uri` (CORE-28).
    pub authorization_server: String,
    /// Equals the challenge's `ticket` (CORE-29).
    pub ticket: String,
}

impl Remediation {
    /// Whether the reference is the digest of the details carried beside it.
    pub fn is_consistent(&self) -> bool {
        canon::s256_of(&self.authorization_details).is_ok_and(|digest| digest == self.authorization_reference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(edition: Edition, origin: &str, tool: &str) -> String {
        Attempted::new(
            edition,
            origin,
            format!("alice-vault/{tool}").parse().unwrap(),
            tool.parse().unwrap(),
            vec!["trades:execute".parse().unwrap()],
        )
        .unwrap()
        .reference()
        .to_string()
    }

    // CORE-27
    #[test]
    fn the_reference_has_its_known_answer() {
        assert_eq!(
            reference(Edition::Sept11, "https://gateway.uma.lab", "execute_trade"),
            "s256:6cR6qTmCj6s0S95MxCfdfwfXJ8myLtBg-PiL8v93H0g"
        );
        // Letters beyond ASCII are themselves, and no escapes.
        assert_eq!(
            reference(Edition::Sept11, "https://gateway.uma.lab", "grüße_☃"),
            "s256:tNXKjq6a2FhsehzNpS7VwFkyffrhB7cATumO1HJnbwc"
        );
    }
}
