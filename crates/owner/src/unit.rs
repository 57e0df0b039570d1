//! Policy units: resources under one set of terms, and whether the owner is asked.
//!
//! Every edit is a new version with its own immutable terms (TERMS-12, TERMS-13); a version number is never used
//! twice, not even after delete and re-create (O-37). Rules come with a later ring.

use sayso_protocol::payload::terms::Terms;
use sayso_protocol::{OwnerName, ResourceId, Scope, TemplateId, UnitId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Longest life terms may give, in seconds: ten years.
pub const MAX_EXPIRES_IN: i64 = 315_360_000;

/// The terms of a unit before they have a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// What access is for.
    pub purpose: String,
    /// Scopes these terms can grant.
    pub scope: Vec<Scope>,
    /// The longest agreement, in seconds.
    pub expires_in: i64,
    /// What the agent must promise not to do.
    #[serde(default)]
    pub prohibited: Vec<String>,
    /// Whether every grant is for one operation, once.
    #[serde(default)]
    pub per_operation: bool,
    /// Prohibitions the enforcement point upholds, with the mechanism.
    #[serde(default)]
    pub enforced: BTreeMap<String, String>,
}

/// Changes to terms; what is `None` stays (OWN-20).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TermsEdit {
    /// A new purpose.
    pub purpose: Option<String>,
    /// New scopes.
    pub scope: Option<Vec<Scope>>,
    /// A new longest agreement, in seconds.
    pub expires_in: Option<i64>,
    /// New prohibitions.
    pub prohibited: Option<Vec<String>>,
    /// Whether every grant is for one operation. Not hers to say here: a set-up tightens what it set up.
    #[serde(skip)]
    pub per_operation: Option<bool>,
}

impl TermsEdit {
    /// Lays the changes over `terms`. What is enforced cannot outlive the promise it enforces.
    pub fn apply(&self, terms: &mut Draft) {
        fn lay<T: Clone>(change: &Option<T>, over: &mut T) {
            if let Some(new) = change {
                over.clone_from(new);
            }
        }
        lay(&self.purpose, &mut terms.purpose);
        lay(&self.scope, &mut terms.scope);
        lay(&self.expires_in, &mut terms.expires_in);
        lay(&self.prohibited, &mut terms.prohibited);
        lay(&self.per_operation, &mut terms.per_operation);
        terms.enforced.retain(|promise, _| terms.prohibited.contains(promise));
    }
}

/// A policy unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Its id.
    pub id: UnitId,
    /// For people.
    pub name: String,
    /// What it governs.
    pub resources: Vec<ResourceId>,
    /// Whether she is asked when the relationship stands.
    pub ask_me: bool,
    /// Whether its tools may ask follow-up questions within an approved call. She does not see the answers (D-11).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bind: bool,
    /// The version of its terms, from 1.
    pub version: i64,
    /// Its terms.
    pub terms: Draft,
}

/// A unit that cannot be saved, and why, fit to show the owner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// An id that could not stand in an address.
    #[error("a unit id has 1 to 100 letters, digits, `-`, `_` or `.`, and starts with a letter or digit")]
    Id,
    /// A text of the terms is empty or too long.
    #[error("{0} must have between 1 and {1} characters")]
    Text(&'static str, usize),
    /// `expires_in` is out of range.
    #[error("expires_in must be between 1 and {MAX_EXPIRES_IN} seconds")]
    Expiry,
    /// No scope, or too many.
    #[error("terms need between 1 and 64 scopes and at most 64 prohibitions")]
    Scopes,
    /// No resource, or too many.
    #[error("a unit needs between 1 and 1000 resources")]
    Resources,
    /// A resource the registry does not know.
    #[error("{0} is not a registered resource")]
    Unregistered(ResourceId),
    /// A resource under another unit (POL-02).
    #[error("{0} is already governed by unit {1}")]
    Governed(ResourceId, UnitId),
    /// The id is taken.
    #[error("there is already a unit {0}")]
    Taken(UnitId),
    /// An enforced promise that is not among the prohibitions.
    #[error("enforced may only name prohibitions of these terms")]
    Enforced,
    /// Follow-up questions where every call is one of many anyway.
    #[error("follow-up questions are allowed, or not, where each call is approved one at a time")]
    Bind,
}

impl Draft {
    /// Checks what can be checked without the registry.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self) -> Result<(), Unfit> {
        text("purpose", &self.purpose, 500)?;
        for promise in &self.prohibited {
            text("a prohibition", promise, 200)?;
        }
        if !(1..=MAX_EXPIRES_IN).contains(&self.expires_in) {
            return Err(Unfit::Expiry);
        }
        if self.scope.is_empty() || self.scope.len() > 64 || self.prohibited.len() > 64 {
            return Err(Unfit::Scopes);
        }
        let known = self.enforced.keys().all(|promise| self.prohibited.contains(promise));
        if known { Ok(()) } else { Err(Unfit::Enforced) }
    }
}

fn text(what: &'static str, value: &str, most: usize) -> Result<(), Unfit> {
    let length = value.chars().count();
    if (1..=most).contains(&length) { Ok(()) } else { Err(Unfit::Text(what, most)) }
}

impl Unit {
    /// Checks what can be checked without the registry.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self) -> Result<(), Unfit> {
        // The id is a segment of `terms_uri` and of the owner's own addresses.
        let id = self.id.as_str();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let starts = id.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
        if !starts || id.len() > 100 || !id.bytes().all(plain) {
            return Err(Unfit::Id);
        }
        text("name", &self.name, 200)?;
        if self.resources.is_empty() || self.resources.len() > 1000 {
            return Err(Unfit::Resources);
        }
        if self.bind && !self.terms.per_operation {
            return Err(Unfit::Bind);
        }
        self.terms.check()
    }

    /// The id of this version's terms: `{namespace}/{unit}/v{n}`.
    ///
    /// # Errors
    /// When the parts are too long together.
    pub fn template_id(&self, namespace: &str) -> Result<TemplateId, sayso_protocol::id::BadId> {
        TemplateId::parse(format!("{namespace}/{}/v{}", self.id, self.version))
    }

    /// This version's terms as they are published.
    ///
    /// # Errors
    /// When the parts of the id are too long together.
    pub fn published(&self, namespace: &str, issuer: &str) -> Result<Terms, sayso_protocol::id::BadId> {
        Ok(Terms {
            template_id: self.template_id(namespace)?,
            purpose: self.terms.purpose.clone(),
            scope: self.terms.scope.clone(),
            expires_in: self.terms.expires_in,
            prohibited: self.terms.prohibited.clone(),
            proffered_by: issuer.to_owned(),
            per_operation: self.terms.per_operation,
            enforced: self.terms.enforced.clone(),
        })
    }
}

/// One owner of an authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Her name at this authority; never in a public document outside the demo (TERMS-46).
    pub name: OwnerName,
    /// The opaque first segment of her template ids.
    pub namespace: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> Unit {
        Unit {
            id: "trading".parse().unwrap(),
            name: "Trading".into(),
            resources: vec!["vault/execute_trade".parse().unwrap()],
            ask_me: true,
            bind: false,
            version: 3,
            terms: Draft {
                purpose: "one trade".into(),
                scope: vec!["trades:execute".parse().unwrap()],
                expires_in: 900,
                prohibited: vec!["resale".into()],
                per_operation: true,
                enforced: BTreeMap::new(),
            },
        }
    }

    // TERMS-02, TERMS-03, TERMS-04, TERMS-06, TERMS-07
    #[test]
    fn published_terms_carry_their_version_and_issuer() {
        let terms = unit().published("ns", "https://as.example").unwrap();
        assert_eq!(terms.template_id.as_str(), "ns/trading/v3");
        assert_eq!(terms.proffered_by, "https://as.example");
        let document = serde_json::to_value(&terms).unwrap();
        assert_eq!(document["purpose"], "one trade");
        assert_eq!(document["scope"], serde_json::json!(["trades:execute"]));
        assert_eq!(document["prohibited"], serde_json::json!(["resale"]));
    }

    // TERMS-11: `constraints` was dropped from the drafts; what nobody enforces is not taken in either.
    #[test]
    fn a_draft_takes_no_member_that_would_bind_nobody() {
        let mut draft = serde_json::to_value(&unit().terms).unwrap();
        assert!(serde_json::from_value::<Draft>(draft.clone()).is_ok());
        draft["constraints"] = serde_json::json!({ "max": 1 });
        assert!(serde_json::from_value::<Draft>(draft).is_err());
    }

    // TERMS-05
    #[test]
    fn unfit_units_say_what_is_wrong() {
        assert_eq!(unit().check(), Ok(()));
        let with = |change: fn(&mut Unit)| {
            let mut unit = unit();
            change(&mut unit);
            unit.check().unwrap_err()
        };
        assert_eq!(with(|unit| unit.terms.expires_in = 0), Unfit::Expiry);
        assert_eq!(with(|unit| unit.terms.scope.clear()), Unfit::Scopes);
        assert_eq!(with(|unit| unit.resources.clear()), Unfit::Resources);
        for id in ["a/b", "a b", "..", "a?b", "\u{e9}"] {
            let mut unit = unit();
            unit.id = id.parse().unwrap();
            assert_eq!(unit.check(), Err(Unfit::Id), "{id}");
        }
        assert_eq!(with(|unit| unit.name.clear()), Unfit::Text("name", 200));
        let many = |unit: &mut Unit| (unit.bind, unit.terms.per_operation) = (true, false);
        assert_eq!(with(many), Unfit::Bind);
        let enforced = |unit: &mut Unit| drop(unit.terms.enforced.insert("x".into(), "y".into()));
        assert_eq!(with(enforced), Unfit::Enforced);
    }
}
