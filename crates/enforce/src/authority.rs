//! The owner's authority as an enforcement point meets it: four questions, and none of them is about policy.
//!
//! Whatever cannot be asked, or answers nonsense, is [`Unavailable`] and fails closed (CORE-22). Answers are not cached:
//! introspection is asked on every call (D-20).

pub mod http;
pub mod keys;
mod pat;
#[cfg(feature = "scripted")]
pub mod scripted;

use async_trait::async_trait;
use sayso_protocol::canon::S256;
use sayso_protocol::payload::protection::{
    AccessReport, ConsumeReply, Continuation, Inactive, Introspection, PermissionFault, PermissionReply,
    PermissionRequest,
};

pub use keys::AuthorityKeys;
pub(crate) use pat::random_text;

/// Something the decision needs cannot be had. The request may be sent again, freshly signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// It was not asked: no connection, or none in time.
    #[error("the owner's authority cannot be reached")]
    Unreachable,
    /// It was asked, and what it did is not known.
    #[error("the owner's authority did not answer in time")]
    Interrupted,
    /// It answered what no authority may answer.
    #[error("the owner's authority gave no usable answer")]
    Nonsense,
    /// It does not admit this resource server: the owner has not approved it, or has withdrawn it (O-46).
    #[error("the owner has not admitted this resource server to her authority")]
    NotAdmitted,
    /// No connection to the upstream can be had.
    #[error("the server behind this address cannot be reached")]
    NoUpstream,
    /// This host cannot draw random bytes or remember another signature.
    #[error("this enforcement point cannot decide now")]
    Exhausted,
}

impl Unavailable {
    /// Whether the authority certainly did nothing: what was to be spent is unspent.
    pub fn nothing_done(self) -> bool {
        match self {
            Unavailable::Unreachable
            | Unavailable::NotAdmitted
            | Unavailable::NoUpstream
            | Unavailable::Exhausted => true,
            Unavailable::Interrupted | Unavailable::Nonsense => false,
        }
    }
}

/// The authority of a resource that has no owner: asked by nobody, it knows nothing and permits nothing.
pub struct Nobody;

#[async_trait]
impl Authority for Nobody {
    async fn permission(
        &self,
        _request: &PermissionRequest,
    ) -> Result<Result<PermissionReply, PermissionFault>, Unavailable> {
        Err(Unavailable::NotAdmitted)
    }

    async fn introspect(&self, _token: &str) -> Result<Introspection, Unavailable> {
        Err(Unavailable::NotAdmitted)
    }

    async fn consume(&self, _token: &str, _attempt: &str) -> Result<ConsumeReply, Unavailable> {
        Err(Unavailable::NotAdmitted)
    }

    async fn report(&self, _report: &AccessReport) -> Result<(), Unavailable> {
        Err(Unavailable::NotAdmitted)
    }
}

/// Her authority.
#[async_trait]
pub trait Authority: Send + Sync {
    /// Registers an attempt; the answer is a permission ticket (CORE-82).
    async fn permission(
        &self,
        request: &PermissionRequest,
    ) -> Result<Result<PermissionReply, PermissionFault>, Unavailable>;

    /// Says what a token is now, without spending it.
    async fn introspect(&self, token: &str) -> Result<Introspection, Unavailable>;

    /// Spends a single-use token, once. `attempt` is drawn by the enforcement point for this one request (D-14), so that
    /// no two callers can both be told they won.
    async fn consume(&self, token: &str, attempt: &str) -> Result<ConsumeReply, Unavailable>;

    /// Says what a token is now to the round of its call that was asked for with `state` (D-11). An authority that
    /// knows of no rounds says what it would say of any call.
    async fn introspect_round(&self, token: &str, _state: &S256) -> Result<Introspection, Unavailable> {
        self.introspect(token).await
    }

    /// Takes one round that a spent token's call was asked for, once; otherwise as [`Self::consume`].
    async fn resume(
        &self,
        _token: &str,
        _attempt: &str,
        _round: &Continuation,
    ) -> Result<ConsumeReply, Unavailable> {
        Ok(ConsumeReply { consumed: false, error: Some(Inactive::AlreadyConsumed.into()) })
    }

    /// Reports a call that was allowed, or what became of it (FED-48).
    async fn report(&self, report: &AccessReport) -> Result<(), Unavailable>;
}
