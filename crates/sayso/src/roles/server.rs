//! What every role that is a resource server has to do with its owners' authorities: ask them, and know their keys.
//!
//! Between them there is nothing but HTTP, signed with the one key of the resource server.

use super::gateway::warn_of_nothing;
use super::introducer::Introducer;
use crate::clock;
use crate::settings::Settings;
use crate::tables::ResourceTable;
use anyhow::Context as _;
use sayso_enforce::authority::http::HttpAuthority;
use sayso_enforce::authority::keys::HttpKeys;
use sayso_enforce::listing::Reader;
use sayso_enforce::{Enforcement, ServerResource};
use sayso_fetch::{Client, Fetch, Reach};
use sayso_protocol::{ClientId, OwnerName, SigningKey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One resource server towards its authorities.
pub(super) struct Asking<'a> {
    fetch: Arc<dyn Fetch>,
    client_id: ClientId,
    tables: &'a [ResourceTable],
    /// One for each owner at each issuer: whatever a server has of hers, it logs in once.
    authorities: BTreeMap<(&'a str, &'a OwnerName), Arc<HttpAuthority>>,
}

impl<'a> Asking<'a> {
    /// The server at this public URL, with these resources.
    pub(super) fn of(url: &str, key: &SigningKey, tables: &'a [ResourceTable]) -> anyhow::Result<Self> {
        let fetch: Arc<dyn Fetch> = Arc::new(Client::new(Reach::Configured));
        let client_id = ClientId::parse(url)?;
        let authority = |table: &'a ResourceTable| {
            let authority = HttpAuthority::new(
                Arc::clone(&fetch),
                table.authority.clone(),
                client_id.clone(),
                table.owner.clone(),
                key.clone(),
                Arc::new(clock::now),
            );
            (whose(table), Arc::new(authority))
        };
        Ok(Self { authorities: tables.iter().map(authority).collect(), fetch, client_id, tables })
    }

    /// A resource, whoever hosts it.
    pub(super) fn resource(
        &self,
        table: &ResourceTable,
        settings: &Settings,
    ) -> anyhow::Result<ServerResource> {
        warn_of_nothing(table.enforcement()?, &table.path);
        Ok(ServerResource {
            path: table.path.clone(),
            aliases: table.aliases.clone(),
            realm: table.realm.clone(),
            owner: table.owner.clone(),
            as_uri: table.authority.clone(),
            authority: self.authority(table)?,
            edition: settings.edition()?,
            tools: table.tools()?,
            enforcement: table.enforcement()?,
            open_methods: table.open_methods.clone(),
            allowed_origins: table.allowed_origins.clone(),
            accept_uncovered_body: table.accept_uncovered_body,
            serve_query: false,
        })
    }

    /// The authority of a resource.
    fn authority(&self, table: &ResourceTable) -> anyhow::Result<Arc<HttpAuthority>> {
        self.authorities.get(&whose(table)).cloned().context("a resource of no table")
    }

    /// Whoever is to know of this server, with the first of their resources here. Where nobody is asked, nobody need know.
    pub(super) fn introducers(&self, ask_again: bool) -> anyhow::Result<Vec<Introducer>> {
        let mut introducers = BTreeMap::new();
        for table in self.tables.iter().rev() {
            if table.enforcement()? == Enforcement::Uma {
                let introducer = Introducer {
                    authority: self.authority(table)?,
                    issuer: table.authority.clone(),
                    owner: table.owner.clone(),
                    client_id: self.client_id.clone(),
                    resource_uri: format!("{}{}", self.client_id, table.path),
                    name: table.realm.to_string(),
                    ask_again,
                };
                introducers.insert(whose(table), introducer);
            }
        }
        Ok(introducers.into_values().collect())
    }

    /// Who may read the owners' instances.
    pub(super) fn readers(&self) -> Vec<Reader> {
        let issuers: BTreeSet<&str> = self.tables.iter().map(|table| table.authority.as_str()).collect();
        let reader = |issuer: &str| Reader {
            issuer: issuer.to_owned(),
            keys: Arc::new(HttpKeys::new(Arc::clone(&self.fetch), issuer, Arc::new(clock::now))),
        };
        issuers.into_iter().map(reader).collect()
    }
}

fn whose(table: &ResourceTable) -> (&str, &OwnerName) {
    (&table.authority, &table.owner)
}

/// What agents dial, at this public URL.
pub(super) fn urls(tables: &[ResourceTable], url: &str) -> Vec<String> {
    let paths = tables.iter().flat_map(|table| std::iter::once(&table.path).chain(&table.aliases));
    paths.map(|path| format!("{url}{path}")).collect()
}
