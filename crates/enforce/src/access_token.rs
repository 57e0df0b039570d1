//! The port to whoever validates an OAuth access token of a resource that COAZ alone protects.
//! A token is claims only once its signature, issuer, audience and times have been checked.

use async_trait::async_trait;
use sayso_protocol::{Json, Timestamp};

/// Why a token is no claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// It is not good here; the words are for whoever sent it.
    #[error("{0}")]
    Invalid(&'static str),
    /// Nobody can say now: the keys of its issuer are not known and cannot be had.
    #[error("access tokens cannot be validated now")]
    Unavailable,
}

/// Validates access tokens for one resource.
#[async_trait]
pub trait AccessTokens: Send + Sync {
    /// The claims of a token that is good at this resource now.
    ///
    /// # Errors
    /// When it is not, or nobody can say.
    async fn validate(&self, token: &str, now: Timestamp) -> Result<Json, TokenFault>;

    /// Until when a token of these claims is taken here; what it opened lasts no longer. Nothing where it does not say.
    fn until(&self, claims: &Json) -> Option<Timestamp> {
        claims.get("exp").and_then(Json::as_i64).map(Timestamp)
    }

    /// The issuers whose tokens are taken, as RFC 9728 publishes them.
    fn issuers(&self) -> &[String];
}
