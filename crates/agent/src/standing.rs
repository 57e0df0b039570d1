//! Consent given beforehand: terms within a rule are agreed to, and all others are put to whoever is asked otherwise.
//! It keeps to what the terms say of themselves: how long, what must not be done, what for. A rule never widens what
//! is agreed to, and never answers for the owner.

use crate::negotiate::{Ask, Consent, Decision, Narrower, News};
use async_trait::async_trait;
use sayso_protocol::payload::terms::Terms;
use std::collections::BTreeSet;

/// Which words of the owner's a rule agrees to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// Whichever she writes.
    Any,
    /// These and no others, letter for letter.
    Only(BTreeSet<String>),
}

impl Allowed {
    fn has(&self, word: &str) -> bool {
        match self {
            Allowed::Any => true,
            Allowed::Only(words) => words.contains(word),
        }
    }
}

/// Terms that are agreed to without asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The longest that anything is promised for, in seconds.
    pub longest: i64,
    /// What it may forbid.
    pub prohibitions: Allowed,
    /// What it may be for.
    pub purposes: Allowed,
}

impl Rule {
    /// Whether these terms are within it.
    #[must_use]
    pub fn permits(&self, terms: &Terms) -> bool {
        terms.expires_in <= self.longest
            && self.purposes.has(&terms.purpose)
            && terms.prohibited.iter().all(|word| self.prohibitions.has(word))
    }
}

/// Who agrees within a rule and asks somebody else about the rest.
pub struct Standing<C> {
    /// What is agreed to.
    pub rule: Option<Rule>,
    /// Who is asked about everything else.
    pub otherwise: C,
}

/// Nobody: terms that no rule agrees to are not agreed to, and the authority is told nothing.
pub struct Nobody;

#[async_trait]
impl Consent for Nobody {
    async fn agree(&self, _: &Ask<'_>) -> Decision {
        Decision::NotNow
    }
}

#[async_trait]
impl<C: Consent> Consent for Standing<C> {
    async fn agree(&self, ask: &Ask<'_>) -> Decision {
        if self.rule.as_ref().is_some_and(|rule| rule.permits(&ask.proffer.terms)) {
            return Decision::Agree(Narrower::default());
        }
        self.otherwise.agree(ask).await
    }

    fn tell(&self, news: &News<'_>) {
        self.otherwise.tell(news);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        Terms {
            template_id: "a/x/v1".parse().unwrap(),
            purpose: "reading".into(),
            scope: vec![],
            expires_in: 900,
            prohibited: vec!["resale".into(), "training".into()],
            proffered_by: "https://as.example.test".into(),
            per_operation: false,
            enforced: Default::default(),
        }
    }

    fn only(words: &[&str]) -> Allowed {
        Allowed::Only(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn terms_are_within_a_rule_in_every_respect_or_not_at_all() {
        let rule = |longest, prohibitions, purposes| Rule { longest, prohibitions, purposes };
        let both = || only(&["training", "resale", "more"]);
        assert!(rule(900, both(), only(&["reading"])).permits(&terms()));
        assert!(rule(900, Allowed::Any, Allowed::Any).permits(&terms()));
        assert!(!rule(899, both(), only(&["reading"])).permits(&terms()));
        assert!(!rule(900, only(&["resale"]), only(&["reading"])).permits(&terms()));
        assert!(!rule(900, both(), only(&["Reading"])).permits(&terms()));
        assert!(!rule(900, only(&[]), Allowed::Any).permits(&terms()));
    }
}
