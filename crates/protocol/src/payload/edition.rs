//! The three identifiers that differ between editions of the drafts (D-1); behaviour is always the newest.
//!
//! Both sets are accepted and listed everywhere; one setting says which is emitted.

use serde::{Deserialize, Serialize};

/// Which edition's identifiers are emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Edition {
    /// The edition of 11 September 2026, the default.
    #[default]
    #[serde(rename = "2026-09-11")]
    Sept11,
    /// The edition of 15 September 2026.
    #[serde(rename = "2026-09-15")]
    Sept15,
}

impl Edition {
    /// Both editions.
    pub const ALL: [Edition; 2] = [Edition::Sept11, Edition::Sept15];

    /// The `type` of an authorization detail.
    pub fn detail_type(self) -> &'static str {
        match self {
            Edition::Sept11 => "urn:uma4agents:authorization-details:tool-call",
            Edition::Sept15 => "https://u4a.ai/spec/core/1.0#tool-call",
        }
    }

    /// The `claim_type` that demands an agreement.
    pub fn claim_type(self) -> &'static str {
        match self {
            Edition::Sept11 => "urn:uma4agents:claim:myterms-agreement",
            Edition::Sept15 => "https://u4a.ai/spec/terms/1.0#myterms-agreement",
        }
    }

    /// The `claim_token_format` of an agreement.
    pub fn claim_format(self) -> &'static str {
        match self {
            Edition::Sept11 => "urn:uma4agents:format:myterms-agreement-v1+jws",
            Edition::Sept15 => "https://u4a.ai/spec/terms/1.0#myterms-agreement-v1+jws",
        }
    }

    /// Whether `format` is an agreement's format in any edition.
    pub fn accepts_format(format: &str) -> bool {
        Edition::ALL.iter().any(|edition| edition.claim_format() == format)
    }

    /// Whether `claim_type` demands an agreement in any edition.
    pub fn accepts_claim(claim_type: &str) -> bool {
        Edition::ALL.iter().any(|edition| edition.claim_type() == claim_type)
    }
}
