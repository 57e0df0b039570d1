//! The intents of the port about further rounds of a call: offered when its tool asks, looked at, taken once (D-11).
//!
//! A round is the call's own: of its token, its key and its operation, while she allows rounds and everything else that its
//! grant stood on still stands.

use super::{Digest, Found, Unavailable};
use async_trait::async_trait;
use sayso_protocol::payload::protection::{ConsumeReply, Continuation};
use sayso_protocol::{ClientId, NegotiationId, OwnerName, S256, Timestamp};

/// Rounds one call may be asked for; what MCP clients go along with.
pub const MOST_ROUNDS: i64 = 10;

/// The intents about rounds. Every method is one.
#[async_trait]
pub trait Rounds: Send + Sync {
    /// Finds a grant as [`Store::introspect`](super::Store::introspect) does; one that was spent is live for the round of its call that was offered
    /// under `state` and that nobody took, while she allows rounds and everything else still stands (D-11).
    async fn round(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        token: Digest,
        state: &S256,
        now: Timestamp,
    ) -> Result<Found, Unavailable>;
    /// Notes that the tool of a spent call asks for another round of it; false when this grant carries none, or has had
    /// [`MOST_ROUNDS`]. Asked again with the state of an earlier round, it changes nothing.
    async fn offer(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        family: &NegotiationId,
        state: &S256,
        now: Timestamp,
    ) -> Result<bool, Unavailable>;
    /// Takes an offered round, once, with its row; `attempt` as in [`Store::consume`](super::Store::consume).
    async fn resume(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        token: Digest,
        attempt: &str,
        round: &Continuation,
        now: Timestamp,
    ) -> Result<ConsumeReply, Unavailable>;
}
