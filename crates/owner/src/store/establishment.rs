//! The intents of the port about resource servers: introduced, judged, given tokens, withdrawn (FED-20..37).
//!
//! An introduction never makes an owner and never brings back what she withdrew; where a server stands is read with
//! its token on every call (FED-53).

use super::{Digest, Unavailable};
use crate::ledger::Author;
use crate::registry::{Introduced, Newcomer, Pat, PreApproval, ResourceServer, Standing};
use async_trait::async_trait;
use sayso_protocol::{ClientId, OwnerName, Timestamp};

/// The intents about resource servers. Every method is one.
#[async_trait]
pub trait Establishment: Send + Sync {
    /// Her resource servers.
    async fn resource_servers(&self, owner: &OwnerName) -> Result<Vec<ResourceServer>, Unavailable>;
    /// A resource server under any owner that knows it.
    async fn resource_server(&self, client_id: &ClientId) -> Result<Vec<ResourceServer>, Unavailable>;
    /// Where a resource server stands with her; `None` when she knows none of that id.
    async fn standing(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
    ) -> Result<Option<Standing>, Unavailable>;
    /// Notes set-up's word for the introduction of one key at one resource, in the place of what it said before about
    /// that key or that origin. It admits nobody by itself (D-22). Answers where the server of that origin, or else of
    /// that key, stands with her now.
    async fn pre_approve(
        &self,
        owner: &OwnerName,
        approval: &PreApproval,
        now: Timestamp,
    ) -> Result<Option<Standing>, Unavailable>;
    /// Whether the operator named this resource, to whichever owner: set-up expects its introduction, or vouched for it.
    async fn is_vouched_for(&self, resource_uri: &str, now: Timestamp) -> Result<bool, Unavailable>;
    /// Takes the introduction of a resource server: from then on it waits for her, with its row. One she revoked waits
    /// again and regains nothing (FED-36, FED-37); one she knows otherwise stays as it is.
    ///
    /// One that set-up pre-approved, key, origin and resource, is active instead, recorded as set-up, and a server known by
    /// that key at another origin moves here: its registry and units go with it; its tickets, grants and PATs end (D-22).
    /// That word is spent by it, and does not count for one she ever revoked: it waits for her like any other.
    async fn introduce(
        &self,
        owner: &OwnerName,
        newcomer: &Newcomer,
        now: Timestamp,
    ) -> Result<Introduced, Unavailable>;
    /// Approves or revokes a resource server; revoking ends its PATs and the live grants at it. `None` when there is
    /// no such transition.
    async fn judge_resource_server(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        standing: Standing,
        author: &Author,
        now: Timestamp,
    ) -> Result<Option<()>, Unavailable>;
    /// Records a freshly drawn PAT; of a server that is not active it is not kept, and so authenticates nobody.
    async fn grant_pat(
        &self,
        pat: Digest,
        owner: &OwnerName,
        client_id: &ClientId,
        expires: Timestamp,
    ) -> Result<(), Unavailable>;
    /// The PAT of this digest with its server's standing, read together (FED-53).
    async fn pat(&self, pat: Digest, now: Timestamp) -> Result<Option<Pat>, Unavailable>;
}
