//! What every role that is a resource server has to do with its owners' authorities: ask them, and know their keys.
//!
//! Between them there is nothing but HTTP, signed with the one key of the resource server.

use crate::clock;
use crate::tables::ResourceTable;
use sayso_enforce::Authority;
use sayso_enforce::authority::http::HttpAuthority;
use sayso_enforce::authority::keys::HttpKeys;
use sayso_enforce::listing::Reader;
use sayso_fetch::{Client, Fetch, Reach};
use sayso_protocol::{ClientId, SigningKey};
use std::collections::BTreeSet;
use std::sync::Arc;

/// One resource server towards its authorities.
pub(super) struct Asking {
    fetch: Arc<dyn Fetch>,
    client_id: ClientId,
    key: SigningKey,
}

impl Asking {
    /// The server at this public URL.
    pub(super) fn of(url: &str, key: &SigningKey) -> anyhow::Result<Self> {
        let fetch = Arc::new(Client::new(Reach::Configured));
        Ok(Self { fetch, client_id: ClientId::parse(url)?, key: key.clone() })
    }

    /// The authority of a resource.
    pub(super) fn authority(&self, table: &ResourceTable) -> Arc<dyn Authority> {
        Arc::new(HttpAuthority::new(
            Arc::clone(&self.fetch),
            table.authority.clone(),
            self.client_id.clone(),
            table.owner.clone(),
            self.key.clone(),
            Arc::new(clock::now),
        ))
    }

    /// Who may read the owners' instances.
    pub(super) fn readers(&self, tables: &[ResourceTable]) -> Vec<Reader> {
        let issuers: BTreeSet<&str> = tables.iter().map(|table| table.authority.as_str()).collect();
        let reader = |issuer: &str| Reader {
            issuer: issuer.to_owned(),
            keys: Arc::new(HttpKeys::new(Arc::clone(&self.fetch), issuer, Arc::new(clock::now))),
        };
        issuers.into_iter().map(reader).collect()
    }
}
