//! Who is asked about the messages to a resource before they are forwarded (D-6).
//!
//! Whoever is to be asked is there, or there is no such value: a resource cannot ask a policy that nobody set up.

use crate::access_token::AccessTokens;
use crate::policy::Policy;
use std::fmt;
use std::sync::Arc;

/// What is asked before a message is forwarded (D-6).
#[derive(Clone, Default)]
pub enum Enforcement {
    /// The owner, by way of her authority.
    #[default]
    Uma,
    /// A policy, about every message of whoever shows an access token.
    Coaz(Policed),
    /// Both: the policy about what the owner's grants are for, the owner last.
    UmaAndCoaz(Arc<Policy>),
    /// Nobody: what is one well-formed message passes, whatever its method.
    Nothing,
}

/// A policy, and who says whose a token is.
#[derive(Clone)]
pub struct Policed {
    /// The policy.
    pub policy: Arc<Policy>,
    /// Whoever validates access tokens for this resource.
    pub tokens: Arc<dyn AccessTokens>,
}

impl Enforcement {
    /// Whether the owner is asked.
    pub fn asks_owner(&self) -> bool {
        matches!(self, Enforcement::Uma | Enforcement::UmaAndCoaz(_))
    }

    /// Whether nobody is.
    pub fn asks_nobody(&self) -> bool {
        matches!(self, Enforcement::Nothing)
    }

    /// The policy that is asked.
    pub fn policy(&self) -> Option<&Arc<Policy>> {
        match self {
            Enforcement::Uma | Enforcement::Nothing => None,
            Enforcement::Coaz(policed) => Some(&policed.policy),
            Enforcement::UmaAndCoaz(policy) => Some(policy),
        }
    }

    /// What is asked where a policy alone is.
    pub fn policed(&self) -> Option<&Policed> {
        if let Enforcement::Coaz(policed) = self { Some(policed) } else { None }
    }
}

impl fmt::Debug for Enforcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Enforcement::Uma => "Uma",
            Enforcement::Coaz(_) => "Coaz",
            Enforcement::UmaAndCoaz(_) => "UmaAndCoaz",
            Enforcement::Nothing => "Nothing",
        })
    }
}
