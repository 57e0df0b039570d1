//! The intents of the port about resource servers: introduced, judged, given tokens, withdrawn (FED-20..37).
//!
//! An introduction never makes an owner and never brings back what she withdrew; where a server stands is read with
//! its token on every call (FED-53).

use super::{Digest, Unavailable};
use crate::ledger::Author;
use crate::registry::{Introduced, Newcomer, Pat, ResourceServer, Standing};
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
    /// Takes the introduction of a resource server: from then on it waits for her, with its row. One she revoked waits
    /// again and regains nothing (FED-36, FED-37); one she knows otherwise stays as it is.
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
