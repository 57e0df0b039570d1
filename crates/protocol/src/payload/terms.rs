//! The owner's terms: one immutable version, served at its own address, and the proffer that demands assent.
//!
//! Members nobody defined are undertakings, not controls, and are not carried here (TERMS-08). A document names
//! its owner no further than the resource id does (TERMS-46).

use super::edition::Edition;
use crate::id::{NegotiationId, ResourceId, Scope, TemplateId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One version of terms, as served at its `terms_uri` (TERMS-02..09).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The stable id of this version: `{owner namespace}/{unit}/v{n}`.
    pub template_id: TemplateId,
    /// What access is for, in the owner's words.
    pub purpose: String,
    /// The scopes these terms can grant.
    pub scope: Vec<Scope>,
    /// The longest agreement, in seconds.
    pub expires_in: i64,
    /// What the agent must promise not to do; may be empty.
    pub prohibited: Vec<String>,
    /// The issuer of the authority that proffers them.
    pub proffered_by: String,
    /// Whether every grant is bound to one operation and spent once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub per_operation: bool,
    /// Prohibitions the enforcement point itself upholds, each with its mechanism (TERMS-44).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub enforced: BTreeMap<String, String>,
}

/// Terms as demanded in one negotiation (TERMS-18).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proffer {
    /// The terms.
    #[serde(flatten)]
    pub terms: Terms,
    /// Where this version is served.
    pub terms_uri: String,
    /// Never used before (TERMS-19).
    pub nonce: String,
    /// The negotiation; the wire says `family`.
    pub family: NegotiationId,
    /// The resource the ticket is for.
    pub resource_id: ResourceId,
}

/// One element of `required_claims`: the demand for an agreement (TERMS-17).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredClaim {
    /// The agreement's claim type.
    pub claim_type: String,
    /// The formats accepted.
    pub claim_token_format: Vec<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub friendly_name: Option<String>,
    /// The terms to agree to.
    pub terms_template: Proffer,
}

impl RequiredClaim {
    /// The demand for assent to `proffer`, in the edition emitted; every accepted format is listed.
    pub fn agreement(edition: Edition, proffer: Proffer) -> Self {
        let mut formats: Vec<String> =
            Edition::ALL.iter().map(|each| each.claim_format().to_owned()).collect();
        formats.sort_by_key(|format| format != edition.claim_format());
        Self {
            claim_type: edition.claim_type().into(),
            claim_token_format: formats,
            friendly_name: Some("agreement to the owner's terms".into()),
            terms_template: proffer,
        }
    }
}
