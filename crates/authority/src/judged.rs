//! Her answer to a resource server, as every surface of hers gives it.
//!
//! The store decides, once. One she approves is read at once, so that she finds what it has; her answer does not wait
//! for that, nor fail with it.

use crate::Authority;
use sayso_owner::ledger::Author;
use sayso_owner::registry::Standing;
use sayso_owner::store::Unavailable;
use sayso_protocol::{ClientId, OwnerName};
use std::sync::Arc;

/// Approves or withdraws a resource server; `None` when there is no such transition.
pub(crate) async fn judge(
    authority: &Arc<Authority>,
    owner: &OwnerName,
    client_id: &ClientId,
    standing: Standing,
    author: &Author,
) -> Result<Option<()>, Unavailable> {
    let now = authority.now();
    let judged = authority.store.judge_resource_server(owner, client_id, standing, author, now).await?;
    if judged.is_some() {
        tracing::info!(client_id = %client_id, standing = ?standing, "resource_server.judged");
    }
    if judged.is_some() && standing == Standing::Active {
        let (authority, owner, client_id) = (Arc::clone(authority), owner.clone(), client_id.clone());
        tokio::spawn(async move {
            if let Err(fault) = authority.pull(&owner, &client_id).await {
                tracing::warn!(client_id = %client_id, why = %fault, "registry.pull_failed");
            }
        });
    }
    Ok(judged)
}
