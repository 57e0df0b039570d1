//! Who may read the owner's instances: the authority she named, by its published keys, and nobody else (FED-09, FED-10).
//!
//! The core signature profile applies, with `@authority` from configuration (FED-11), and a query is read once. A
//! signature that fits no key at hand makes us look for the keys once more, never hold anything meanwhile (FED-19).

use crate::authority::{AuthorityKeys, Unavailable};
use crate::call::Head;
use crate::engine::Clock;
use crate::registry::Registry;
use crate::replay::Replay;
use crate::resource::Resource;
use sayso_protocol::payload::metadata::OwnerListing;
use sayso_protocol::sig::{self, Body, Facts, Profile, Proof, Unverified, authority_of};
use sayso_protocol::{OwnerName, VerifyingKey};
use std::sync::Arc;
use url::Url;

/// The `error` of a listing refused for its signature; its status is 401.
pub const INVALID_SIGNATURE: &str = "invalid_signature";

/// The member of the query that names an owner, where one authority serves several at this resource server.
const OWNER: &str = "owner";

/// Why the listing is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotShown {
    /// No key of an authority named here signed the query, or it was seen before.
    InvalidSignature,
    /// The keys cannot be had.
    Unavailable(Unavailable),
}

/// The authority of some resources, and its keys.
#[derive(Clone)]
pub struct Reader {
    /// Its issuer.
    pub issuer: String,
    /// Its keys.
    pub keys: Arc<dyn AuthorityKeys>,
}

/// The protected layer of one resource server.
#[derive(Clone)]
pub struct Listing {
    resources: Vec<Registry>,
    readers: Vec<Reader>,
    replay: Arc<Replay>,
    clock: Clock,
    scheme: String,
    authority: String,
}

impl Listing {
    /// The listing served at `endpoint`, whose host is the `@authority` of every query.
    pub fn new(
        endpoint: &Url,
        resources: impl IntoIterator<Item = impl Into<Registry>>,
        readers: Vec<Reader>,
        replay: Arc<Replay>,
        clock: Clock,
    ) -> Self {
        let authority = authority_of(endpoint).unwrap_or_default();
        let resources = resources.into_iter().map(Into::into).collect();
        Self { resources, readers, replay, clock, scheme: endpoint.scheme().to_owned(), authority }
    }

    /// Answers a query.
    ///
    /// # Errors
    /// When it is not signed by the authority of somebody's resources here.
    pub async fn answer(&self, head: &Head) -> Result<OwnerListing, NotShown> {
        let signed = sig::read(&head.headers).map_err(|_| NotShown::InvalidSignature)?;
        let mut gone = None;
        for reader in &self.readers {
            match self.verify(reader, &signed, head).await {
                Ok(Some(proof)) => return self.show(reader, &proof, head),
                Ok(None) => {}
                Err(unavailable) => gone = Some(unavailable),
            }
        }
        Err(gone.map_or(NotShown::InvalidSignature, NotShown::Unavailable))
    }

    async fn verify(
        &self,
        reader: &Reader,
        signed: &Unverified,
        head: &Head,
    ) -> Result<Option<Proof>, Unavailable> {
        for anew in [false, true] {
            let keys = reader.keys.keys(anew).await?;
            if let Some(proof) = keys.iter().find_map(|key| self.prove(signed, head, key)) {
                return Ok(Some(proof));
            }
        }
        Ok(None)
    }

    fn prove(&self, signed: &Unverified, head: &Head, key: &VerifyingKey) -> Option<Proof> {
        let has_body = head.headers.contains_key("transfer-encoding")
            || head.headers.get("content-length").is_some_and(|length| length != "0");
        let facts = Facts {
            method: head.method.as_str(),
            scheme: &self.scheme,
            authority: &self.authority,
            path: head.path(),
            query: head.query(),
            headers: &head.headers,
            body: if has_body { Body::Unavailable } else { Body::Whole(b"") },
        };
        signed.verify(&facts, key, &Profile::default(), (self.clock)()).ok()
    }

    fn show(&self, reader: &Reader, proof: &Proof, head: &Head) -> Result<OwnerListing, NotShown> {
        self.replay.claim(proof, (self.clock)()).map_err(|_| NotShown::InvalidSignature)?;
        let named = owner_named(head);
        let now: Vec<Arc<Resource>> = self.resources.iter().map(Registry::snapshot).collect();
        let mut mine = now.iter().filter(|resource| resource.settings().as_uri == reader.issuer);
        let owner = named.as_ref().or_else(|| mine.clone().next().map(|resource| &resource.settings().owner));
        let belongs = |resource: &Arc<Resource>| Some(&resource.settings().owner) == owner;
        if named.is_none() && !mine.clone().all(belongs) {
            return Err(NotShown::InvalidSignature);
        }
        let resources: Vec<&Arc<Resource>> = mine.by_ref().filter(|resource| belongs(resource)).collect();
        // An empty listing would say that her instances are gone; nobody knows that.
        if !resources.iter().all(|resource| resource.is_listed()) {
            return Err(NotShown::Unavailable(Unavailable::NoUpstream));
        }
        let resources = resources.into_iter();
        Ok(OwnerListing { resources: resources.flat_map(|resource| resource.listing().resources).collect() })
    }
}

fn owner_named(head: &Head) -> Option<OwnerName> {
    let query = head.query()?;
    let (_, owner) = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == OWNER)?;
    OwnerName::parse(owner.into_owned()).ok()
}

#[cfg(test)]
mod tests;
