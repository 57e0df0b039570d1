//! A server's listing as the source of the mappings its tools declare (D-36).

use crate::upstream::Upstream;
use async_trait::async_trait;
use sayso_enforce::policy::Lister;
use sayso_protocol::Json;

#[async_trait]
impl Lister for Upstream {
    async fn list(&self) -> Option<Vec<Json>> {
        self.pages()
            .await
            .inspect_err(|fault| tracing::warn!("the server's tools are not known: {fault}"))
            .ok()
    }

    fn changes(&self) -> u64 {
        *self.0.changes.borrow()
    }
}
