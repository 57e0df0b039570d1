//! What every role that is a resource server has to do with its owners' authorities: ask them, and know their keys.
//!
//! Between them there is nothing but HTTP, signed with the one key of the resource server.

use super::gateway::warn_of_nothing;
use super::introducer::Introducer;
use crate::clock;
use crate::policed::{Asked, Policies};
use crate::settings::Settings;
use crate::tables::{Hers, ResourceTable};
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
        let authority = |Hers { authority, owner, .. }: Hers<'a>| {
            let asked = HttpAuthority::new(
                Arc::clone(&fetch),
                authority,
                client_id.clone(),
                owner.clone(),
                key.clone(),
                Arc::new(clock::now),
            );
            ((authority, owner), Arc::new(asked))
        };
        let authorities = tables.iter().filter_map(hers).map(authority).collect();
        Ok(Self { authorities, fetch, client_id, tables })
    }

    /// A resource, whoever hosts it.
    pub(super) fn resource(
        &self,
        table: &ResourceTable,
        settings: &Settings,
        policies: &mut Policies,
    ) -> anyhow::Result<ServerResource> {
        warn_of_nothing(table.asked()?, &table.path);
        let url = format!("{}{}", self.client_id, table.path);
        let enforcement = policies
            .enforcement(table.asked()?, &url, &table.wishes())
            .with_context(|| format!("resource {}", table.path))?;
        match (enforcement, hers(table)) {
            (Enforcement::Coaz(policed), _) => {
                let open_methods = table.open_methods.clone();
                let allowed_origins = table.allowed_origins.clone();
                let resource = ServerResource::policed(table.path.clone(), policed)?;
                Ok(ServerResource { open_methods, allowed_origins, ..resource })
            }
            (enforcement, Some(hers)) => self.owned(table, hers, settings, enforcement),
            (_, None) => anyhow::bail!("resource {} has no owner", table.path),
        }
    }

    fn owned(
        &self,
        table: &ResourceTable,
        Hers { authority, owner, realm }: Hers<'_>,
        settings: &Settings,
        enforcement: Enforcement,
    ) -> anyhow::Result<ServerResource> {
        Ok(ServerResource {
            path: table.path.clone(),
            aliases: table.aliases.clone(),
            realm: realm.clone(),
            owner: owner.clone(),
            as_uri: authority.to_owned(),
            authority: self.authority(authority, owner)?,
            edition: settings.edition()?,
            tools: table.tools()?,
            enforcement,
            open_methods: table.open_methods.clone(),
            allowed_origins: table.allowed_origins.clone(),
            accept_uncovered_body: table.accept_uncovered_body,
            serve_query: false,
        })
    }

    /// The authority of a resource.
    fn authority(&self, issuer: &str, owner: &OwnerName) -> anyhow::Result<Arc<HttpAuthority>> {
        self.authorities.get(&(issuer, owner)).cloned().context("a resource of no table")
    }

    /// Whoever is to know of this server, with the first of their resources here. Where nobody is asked, nobody need know.
    pub(super) fn introducers(&self, ask_again: bool) -> anyhow::Result<Vec<Introducer>> {
        let mut introducers = BTreeMap::new();
        for table in self.tables.iter().rev() {
            if let (true, Some(Hers { authority, owner, realm })) = (table.asked()?.asks_owner(), hers(table))
            {
                let introducer = Introducer {
                    authority: self.authority(authority, owner)?,
                    issuer: authority.to_owned(),
                    owner: owner.clone(),
                    client_id: self.client_id.clone(),
                    resource_uri: format!("{}{}", self.client_id, table.path),
                    name: realm.to_string(),
                    ask_again,
                };
                introducers.insert((authority, owner), introducer);
            }
        }
        Ok(introducers.into_values().collect())
    }

    /// Who may read the owners' instances.
    pub(super) fn readers(&self) -> Vec<Reader> {
        let issuers: BTreeSet<&str> =
            self.tables.iter().filter_map(hers).map(|hers| hers.authority).collect();
        let reader = |issuer: &str| Reader {
            issuer: issuer.to_owned(),
            keys: Arc::new(HttpKeys::new(Arc::clone(&self.fetch), issuer, Arc::new(clock::now))),
        };
        issuers.into_iter().map(reader).collect()
    }
}

/// Whose a resource is, where it is anybody's: nobody is asked about one that a policy alone protects.
fn hers(table: &ResourceTable) -> Option<Hers<'_>> {
    let policed = table.asked().is_ok_and(|asked| asked == Asked::Policy);
    table.hers().filter(|_| !policed)
}

/// What agents dial, at this public URL.
pub(super) fn urls(tables: &[ResourceTable], url: &str) -> Vec<String> {
    let paths = tables.iter().flat_map(|table| std::iter::once(&table.path).chain(&table.aliases));
    paths.map(|path| format!("{url}{path}")).collect()
}
