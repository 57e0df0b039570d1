//! What a resource server publishes about itself, read and checked: its metadata, its keys, one owner's listing.
//!
//! Everything is fetched from the resource's own origin and held against the identifier it was asked for (FED-14,
//! FED-22, FED-23); an unsigned document is believed by nobody. Whether its owner trusts it is not decided here.

use crate::Authority;
use crate::publisher::{Pace, Publisher};
use sayso_fetch::{FetchError, Limits, get};
use sayso_owner::registry::{IntroducedBy, ResourceServer, Standing};
use sayso_owner::store::Unavailable;
use sayso_protocol::envelope::rfc9728::{self, BadDocument};
use sayso_protocol::payload::metadata::{
    KeySet, OwnedResource, OwnerListing, ResourceMetadata, metadata_url,
};
use sayso_protocol::{OwnerName, VerifyingKey, b64, json, sig};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;

/// How much of an owner's listing is read.
const LISTING: Limits = Limits { bytes: 16 << 20, seconds: 10 };
/// Most instances one owner may have at one resource server.
const MOST_RESOURCES: usize = 2000;
/// The consequence classes there are (FED-04).
const CONSEQUENCES: [&str; 4] = ["reversible", "compensatable", "forward_recoverable", "irreversible"];
/// How often keys are asked for; those of a server that cannot be asked are not used for longer.
const PACE: Pace = Pace { fresh: 60, again: 5, held: 60 };

/// Why a resource server is not believed, or not heard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PullFault {
    /// This authority knows no such approved resource server of the owner's.
    #[error("the owner has no approved resource server of this name")]
    NotTrusted,
    /// Its resource URI, or an address its document names, is not on its own origin.
    #[error("an address of the resource server is malformed or leaves its own origin")]
    Elsewhere,
    /// It could not be asked.
    #[error("the resource server could not be asked: {0}")]
    Fetch(#[from] FetchError),
    /// Its document is not to be believed.
    #[error(transparent)]
    Document(#[from] BadDocument),
    /// Its keys, or the listing, are not the JSON expected.
    #[error("the {0} of the resource server is malformed")]
    Malformed(&'static str),
    /// It does not name this authority.
    #[error("the resource does not name this authority among its authorization servers")]
    AnotherAuthority,
    /// The listing contradicts the public document, or itself.
    #[error("the owner's listing contradicts the public metadata or itself")]
    Contradiction,
    /// Nothing is listed any more; too early to believe it (D-30).
    #[error("the listing is empty; what is registered stays for ten minutes")]
    Emptied,
    /// The store, or another part of this program, failed.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// The verified publications of one resource.
pub(crate) struct Published {
    pub(crate) metadata: ResourceMetadata,
    pub(crate) keys: Vec<(String, VerifyingKey)>,
}

/// Published keys, remembered briefly per resource.
#[derive(Default)]
pub(crate) struct Directory {
    entries: Mutex<HashMap<Name, Arc<Publisher<Vec<VerifyingKey>>>>>,
}

/// A resource, by the door it is asked through.
type Name = (IntroducedBy, String);

impl Directory {
    fn entry(&self, server: &ResourceServer) -> Arc<Publisher<Vec<VerifyingKey>>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (server.introduced_by, server.resource_uri.clone());
        entries.entry(name).or_insert_with(|| Publisher::new(PACE)).clone()
    }
}

impl Authority {
    /// The keys a resource publishes, asked for again when `wanted` is not among those remembered. None when it
    /// cannot be asked.
    pub(crate) async fn published_keys(
        self: &Arc<Self>,
        server: &ResourceServer,
        wanted: &[&str],
    ) -> Vec<VerifyingKey> {
        let serves =
            |keys: &Vec<VerifyingKey>| keys.iter().any(|key| wanted.contains(&key.thumbprint().as_str()));
        let ask = || {
            let (authority, resource) = (self.clone(), server.resource_uri.clone());
            let introduced = server.introduced_by;
            async move {
                let published = authority.published(&resource, introduced).await;
                let published = published.inspect_err(
                    |fault| tracing::warn!(resource, why = %fault, "resource_server.unreadable"),
                );
                Some(published.ok()?.keys.into_iter().map(|(_, key)| key).collect())
            }
        };
        self.servers.entry(server).keys(serves, &self.clock, ask).await.unwrap_or_default()
    }

    /// Reads and verifies what a resource publishes (FED-14, FED-22, FED-23), as one that became known in this way.
    pub(crate) async fn published(
        &self,
        resource: &str,
        introduced: IntroducedBy,
    ) -> Result<Published, PullFault> {
        let fetch = self.egress.to(introduced);
        let origin = origin(resource)?;
        let url = metadata_url(resource).map_err(|_| PullFault::Elsewhere)?;
        let bytes = get(fetch, &url, Limits::DOCUMENT).await?;
        let document = rfc9728::read(&bytes, resource)?;
        let jwks_uri = document.jwks_uri().ok_or(BadDocument::Form)?.to_owned();
        at_origin(&jwks_uri, &origin)?;
        let set = get(fetch, &jwks_uri, Limits::DOCUMENT).await?;
        let set: KeySet = json::strict(&set, rfc9728::LIMITS).map_err(|_| PullFault::Malformed("key set"))?;
        let keys = set.keys();
        let metadata = document.verify(&keys, self.now())?;
        if !metadata.authorization_servers.iter().any(|issuer| issuer == self.issuer()) {
            return Err(PullFault::AnotherAuthority);
        }
        let classes = metadata.tool_surfaces.iter().filter_map(|surface| surface.consequence.as_deref());
        if !classes.into_iter().all(|class| CONSEQUENCES.contains(&class)) {
            return Err(PullFault::Malformed("consequence class"));
        }
        at_origin(&metadata.owner_resources_endpoint, &origin)?;
        Ok(Published { metadata, keys })
    }

    /// Asks for the owner's instances under this authority's key (FED-15). A server where several owners of this
    /// authority have something is told whose are asked for; any other is asked as the drafts say.
    pub(crate) async fn listing(
        &self,
        owner: &OwnerName,
        server: &ResourceServer,
        published: &Published,
    ) -> Result<Vec<OwnedResource>, PullFault> {
        let mut endpoint =
            Url::parse(&published.metadata.owner_resources_endpoint).map_err(|_| PullFault::Elsewhere)?;
        let known = self.store.resource_server(&server.client_id).await?;
        if known.iter().filter(|one| one.status == Standing::Active).count() > 1 {
            endpoint.query_pairs_mut().append_pair("owner", owner.as_str());
        }
        let request = self.signed_get(endpoint.as_str())?;
        let response = self.egress.to(server.introduced_by).send(request, LISTING).await?;
        if response.status() != http::StatusCode::OK {
            return Err(FetchError::Status(response.status().as_u16()).into());
        }
        let limits = json::Limits { bytes: LISTING.bytes, depth: 96 };
        let listing: OwnerListing =
            json::strict(response.body(), limits).map_err(|_| PullFault::Malformed("listing"))?;
        consistent(&listing.resources, &published.metadata)?;
        Ok(listing.resources)
    }

    fn signed_get(&self, endpoint: &str) -> Result<http::Request<bytes::Bytes>, PullFault> {
        let url = Url::parse(endpoint).map_err(|_| PullFault::Elsewhere)?;
        let authority = sig::authority_of(&url).ok_or(PullFault::Elsewhere)?;
        let mut headers = http::HeaderMap::new();
        headers.insert(http::header::ACCEPT, http::HeaderValue::from_static("application/json"));
        let facts = sig::Facts {
            method: "GET",
            scheme: url.scheme(),
            authority: &authority,
            path: url.path(),
            query: url.query(),
            headers: &headers,
            body: sig::Body::Whole(b""),
        };
        let nonce = b64::encode(crate::draw::<16>()?);
        let options = sig::SignOptions { nonce: Some(&nonce), ..sig::SignOptions::default() };
        let signed =
            sig::sign(&facts, &self.requests, self.now(), &options).map_err(|_| PullFault::Elsewhere)?;
        let mut request =
            http::Request::get(endpoint).body(bytes::Bytes::new()).map_err(|_| PullFault::Elsewhere)?;
        signed.insert_into(&mut headers);
        *request.headers_mut() = headers;
        Ok(request)
    }
}

fn origin(url: &str) -> Result<url::Origin, PullFault> {
    Url::parse(url).map(|url| url.origin()).map_err(|_| PullFault::Elsewhere)
}

fn at_origin(url: &str, expected: &url::Origin) -> Result<(), PullFault> {
    if origin(url)? == *expected && expected.is_tuple() { Ok(()) } else { Err(PullFault::Elsewhere) }
}

/// A listing repeats the public document's consequence classes and names every instance once (FED-12).
fn consistent(listing: &[OwnedResource], metadata: &ResourceMetadata) -> Result<(), PullFault> {
    let ids: BTreeSet<_> = listing.iter().map(|entry| &entry.id).collect();
    if listing.len() > MOST_RESOURCES || ids.len() != listing.len() {
        return Err(PullFault::Contradiction);
    }
    let agrees = |entry: &OwnedResource| {
        let surface = metadata.tool_surfaces.iter().find(|surface| surface.tool == entry.tool);
        surface.is_none_or(|surface| surface.consequence == entry.consequence)
    };
    if listing.iter().all(agrees) { Ok(()) } else { Err(PullFault::Contradiction) }
}
