//! The intents of the port that open, use and end her browser's sessions (D-26).
//!
//! Links and sessions are known by their digests; whoever presents the secret is who it was made for. One statement
//! decides who redeems a link.

use super::{Digest, Unavailable};
use crate::ledger::Author;
use crate::session::Session;
use async_trait::async_trait;
use sayso_protocol::{OwnerName, Timestamp};

/// The intents of signing in. Every method is one.
#[async_trait]
pub trait SignIn: Send + Sync {
    /// Makes a link good for her, once, until `expires`.
    async fn create_link(
        &self,
        link: Digest,
        owner: &OwnerName,
        author: &Author,
        expires: Timestamp,
    ) -> Result<(), Unavailable>;
    /// Spends a link and opens the session of this digest and name, with its row; `None` when the link is unknown,
    /// spent or expired.
    async fn redeem_link(
        &self,
        link: Digest,
        session: Digest,
        name: &str,
        now: Timestamp,
    ) -> Result<Option<Session>, Unavailable>;
    /// The live session of this digest. Being asked for is what keeps it from ending unused.
    async fn session(&self, session: Digest, now: Timestamp) -> Result<Option<Session>, Unavailable>;
    /// Ends a session, if there is one.
    async fn end_session(&self, session: Digest) -> Result<(), Unavailable>;
}
