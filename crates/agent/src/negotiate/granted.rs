//! What ends a negotiation well: a receipt that repeats what was signed, and the grant beside it.
//!
//! Nothing is kept that does not verify under the authority's published keys and is for this very agreement.

use super::{About, Committed, Negotiation};
use crate::fault::BadDemand;
use crate::wallet::Grant;
use sayso_protocol::id::Timestamp;
use sayso_protocol::payload::receipt::Receipt;
use sayso_protocol::{SigningKey, VerifyingKey};

impl Negotiation {
    /// Whether a receipt is the authority's, for exactly what was signed (TERMS-36..39).
    pub(super) fn check(
        &self,
        receipt: &str,
        keys: &[(String, VerifyingKey)],
        key: &SigningKey,
        committed: &Committed,
    ) -> Result<(), BadDemand> {
        let read = Receipt::read(receipt, keys).map_err(|_| BadDemand::Receipt)?;
        let proffer = &committed.proffer;
        let same = read.iss == self.authority.issuer
            && read.sub == *committed.handle.as_ref().unwrap_or(&crate::identity::handle_of(key))
            && read.agreement == committed.agreement
            && read.family == proffer.family
            && read.template_id == proffer.terms.template_id
            && read.terms_uri == proffer.terms_uri;
        if same { Ok(()) } else { Err(BadDemand::Receipt) }
    }

    pub(super) fn grant(
        &self,
        (token, expires_in, receipt): (String, i64, String),
        committed: &Committed,
        now: Timestamp,
    ) -> Result<Grant, BadDemand> {
        let printable = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        if !printable || expires_in <= 0 {
            return Err(BadDemand::Token);
        }
        let About { resource, tool, params_s256, reference, key, .. } = self.about.clone();
        Ok(Grant {
            token,
            receipt,
            resource,
            tool,
            reference,
            key,
            authority: self.authority.issuer.clone(),
            operation: committed.proffer.terms.per_operation.then_some(params_s256),
            spent: false,
            expires: now.plus(expires_in.min(committed.expires_in)),
            family: committed.proffer.family.clone(),
            template_id: committed.proffer.terms.template_id.clone(),
        })
    }
}
