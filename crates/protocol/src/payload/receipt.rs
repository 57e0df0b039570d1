//! The receipt: the authority's counter-signature over the agreement it accepted (TERMS-36..39).

use crate::canon::S256;
use crate::id::{Handle, NegotiationId, TemplateId, Timestamp};
use crate::jws::{self, BadJws, KeyName, Unverified};
use crate::key::{SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};

/// The `typ` of a receipt.
pub const TYP: &str = "myterms-receipt+jws";
/// Longest receipt read, in bytes: it embeds an agreement.
pub const LONGEST: usize = 128 * 1024;

/// The claims of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The authority.
    pub iss: String,
    /// The agent's handle.
    pub sub: Handle,
    /// When it was issued.
    pub iat: Timestamp,
    /// Where the terms are served.
    pub terms_uri: String,
    /// The terms' version.
    pub template_id: TemplateId,
    /// `s256` of the agreement as transmitted.
    pub agreement: S256,
    /// The agreement as received.
    pub agreement_jws: String,
    /// The negotiation.
    pub family: NegotiationId,
}

impl Receipt {
    /// Signs the receipt.
    ///
    /// # Errors
    /// When it cannot be serialised.
    pub fn sign(&self, key: &SigningKey) -> Result<String, BadJws> {
        jws::sign(key, TYP, &KeyName::Kid(&key.kid()), self)
    }

    /// Reads a receipt under the authority's published `keys`, by `kid`.
    ///
    /// # Errors
    /// When it is malformed, signed by an unpublished key, or its digest is not that of what it embeds.
    pub fn read(compact: &str, keys: &[(String, VerifyingKey)]) -> Result<Self, BadJws> {
        let jws = Unverified::parse(compact, LONGEST)?;
        if jws.typ() != Some(TYP) {
            return Err(BadJws::Form);
        }
        let kid = jws.kid().ok_or(BadJws::Form)?.to_owned();
        let (_, key) = keys.iter().find(|(name, _)| *name == kid).ok_or(BadJws::Signature)?;
        let receipt: Receipt = jws.verify(key)?.claims()?;
        let digest = crate::canon::s256_bytes(receipt.agreement_jws.as_bytes());
        if digest == receipt.agreement { Ok(receipt) } else { Err(BadJws::Claims) }
    }
}
