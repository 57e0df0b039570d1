//! What this authority itself checked about an agent when it agreed: three things, never one number (POL-28, POL-29).
//!
//! It is recorded with the agreement and shown to her. It admits nobody and turns nobody away (CORE-53, POL-33); what an
//! agent says of itself is no part of it, but for the names that were looked up.

use crate::connection::Identity;
use sayso_protocol::Handle;
use sayso_protocol::payload::assertion::Asserted;
use sayso_protocol::payload::credential::Credential;
use serde::{Deserialize, Serialize};

/// What was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The issuer whose published key signed its credential, which the operator of this authority believes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// What that issuer calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The agent it belongs to, by that issuer's word (AAUTH-13).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Handle>,
    /// For whom it acts, by the word of a provider this authority believes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asserted: Option<Asserted>,
    /// Who it says runs it, and what came of looking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<Operator>,
}

/// Who an agent says runs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operator {
    /// The client id it gave, an address.
    pub client_id: String,
    /// What the document there calls it: a stranger's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What came of looking.
    pub found: Found,
}

/// What came of looking at a client id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// No document there describes it, or it could not be read (CORE-54).
    Nothing,
    /// A document there describes it.
    Described,
    /// It does, and the key directory of the same origin has the key that signed (POL-30).
    KeyPublished,
}

impl Evidence {
    /// The evidence of an agreement whose credential, if any, was verified, and whose operator was looked for.
    pub fn of(credential: Option<&Credential>, operator: Option<Operator>) -> Self {
        Self {
            issuer: credential.map(|credential| credential.issuer.clone()),
            subject: credential.map(|credential| credential.subject.clone()),
            parent: credential.and_then(|credential| credential.parent.clone()),
            asserted: None,
            operator,
        }
    }

    /// How the agent is known.
    pub fn identity(&self) -> Identity {
        if self.issuer.is_some() { Identity::Identified } else { Identity::Pseudonymous }
    }

    /// Whether somebody other than the agent binds its key to a name: 0 or 1.
    pub fn binding(&self) -> u8 {
        u8::from(self.issuer.is_some())
    }

    /// Whether an issuer that is believed here says where it comes from: 0 or 1.
    pub fn provenance(&self) -> u8 {
        u8::from(self.issuer.is_some())
    }

    /// Whether somebody who can be found describes it: 0, 1 or 2.
    pub fn accountability(&self) -> u8 {
        match self.operator.as_ref().map(|operator| operator.found) {
            None | Some(Found::Nothing) => 0,
            Some(Found::Described) => 1,
            Some(Found::KeyPublished) => 2,
        }
    }

    /// Whether nothing was shown beside a key.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // POL-28, POL-29
    #[test]
    fn each_level_is_the_outcome_of_a_check() {
        let levels = |it: &Evidence| (it.binding(), it.provenance(), it.accountability());
        assert_eq!(levels(&Evidence::default()), (0, 0, 0));
        let operator = |found| Operator { client_id: "https://op.example/a".into(), name: None, found };
        for (found, level) in [(Found::Nothing, 0), (Found::Described, 1), (Found::KeyPublished, 2)] {
            let evidence = Evidence::of(None, Some(operator(found)));
            assert_eq!(levels(&evidence), (0, 0, level));
            assert_eq!(evidence.identity(), Identity::Pseudonymous);
        }
        let identified = Evidence { issuer: Some("https://ps.example".into()), ..Evidence::default() };
        assert_eq!(levels(&identified), (1, 1, 0));
        assert_eq!(identified.identity(), Identity::Identified);
    }

    #[test]
    fn a_commitment_from_before_has_none() {
        assert!(serde_json::from_str::<Evidence>("{}").unwrap().is_empty());
        assert_eq!(serde_json::to_string(&Evidence::default()).unwrap(), "{}");
    }
}
