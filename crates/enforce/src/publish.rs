//! What a resource server publishes: one document a resource, in two encodings, its keys, its health, and for her authority the listing.
//!
//! Everything comes from the registry the engine decides by (MCP-02). The root documents exist only where there is
//! exactly one resource to name; what is not published here is not found, however it is spelled.

use crate::answer;
use crate::call::Head;
use crate::engine::Clock;
use crate::listener::{check_host, check_origin};
use crate::listing::{INVALID_SIGNATURE, Listing, NotShown};
use crate::registry::Registry;
use crate::resource::Resource;
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use sayso_protocol::envelope::{aauth, rfc9728};
use sayso_protocol::jws::BadJws;
use sayso_protocol::payload::metadata::{KeySet, RESOURCE_PREFIX, ResourceMetadata};
use sayso_protocol::payload::refusal::{Code, Refusal};
use sayso_protocol::{SigningKey, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;

/// Where a resource server's keys are.
pub const JWKS: &str = "/jwks";
/// Where her authority reads her instances.
pub const OWNER_RESOURCES: &str = "/owner-resources";
/// Where it is asked whether it lives.
pub const HEALTH: &str = "/health";

/// Paths that are a resource server's own, and no resource's.
pub fn is_reserved(path: &str) -> bool {
    [JWKS, OWNER_RESOURCES, HEALTH].contains(&path) || path.starts_with("/.well-known/")
}

/// What one resource server publishes.
pub struct Published {
    /// Its resources.
    pub resources: Vec<Registry>,
    /// The protected layer.
    pub listing: Listing,
    /// The key it signs its documents with.
    pub key: SigningKey,
    /// Hosts it is reached by.
    pub hosts: Vec<String>,
    /// Origins served.
    pub origins: Vec<String>,
    /// The time documents are signed at.
    pub clock: Clock,
}

/// One of the two encodings of what is known of a resource.
type Encoder = fn(&ResourceMetadata, &SigningKey, Timestamp) -> Result<Value, BadJws>;

enum Document {
    Metadata(Arc<Resource>),
    /// The same facts in the older encoding.
    Aauth(Arc<Resource>),
    Keys,
    Listing,
    Health,
}

impl Published {
    /// Answers a request for anything but a resource itself.
    pub async fn answer(&self, head: &Head) -> Response<Bytes> {
        let found = self.find(head.path());
        // The listing is read by signature, and that is made for the configured host; a browser signs nothing.
        let misdirected = match found {
            Some(Document::Listing) => Ok(()),
            _ => check_host(&self.hosts, head),
        };
        if let Err(refusal) = misdirected.and_then(|()| check_origin(&self.origins, &head.headers)) {
            return answer::refusal(&refusal);
        }
        let Some(document) = found else {
            return answer::refusal(&Refusal::new(Code::NotFound, "nothing is served at this address"));
        };
        if head.method != Method::GET && head.method != Method::HEAD {
            return answer::not_allowed("GET, HEAD", "this address serves GET");
        }
        match document {
            Document::Metadata(resource) => self.signed(rfc9728::document, &resource),
            Document::Aauth(resource) => self.signed(aauth::document, &resource),
            Document::Keys => answer::json(StatusCode::OK, &KeySet::of([self.key.verifying()])),
            Document::Health => answer::json(StatusCode::OK, &json!({ "status": "ok" })),
            Document::Listing => self.listing(head).await,
        }
    }

    fn find(&self, path: &str) -> Option<Document> {
        match path {
            JWKS => Some(Document::Keys),
            OWNER_RESOURCES => Some(Document::Listing),
            HEALTH => Some(Document::Health),
            _ => {
                let mut all = self.resources.iter().map(Registry::snapshot);
                match (path, self.resources.as_slice()) {
                    (RESOURCE_PREFIX, [only]) => Some(Document::Metadata(only.snapshot())),
                    // It has no words for tokens.
                    (aauth::PATH, [only]) => Some(only.snapshot())
                        .filter(|only| only.settings().enforcement.policed().is_none())
                        .map(Document::Aauth),
                    _ => all.find(|resource| resource.metadata_path() == path).map(Document::Metadata),
                }
            }
        }
    }

    fn signed(&self, encode: Encoder, resource: &Resource) -> Response<Bytes> {
        let (key, now) = (&self.key, (self.clock)());
        let document = match resource.token_metadata() {
            Some(metadata) => rfc9728::token_document(&metadata, key, now),
            None => encode(&resource.metadata(), key, now),
        };
        match document {
            Ok(document) => answer::json(StatusCode::OK, &document),
            Err(_) => {
                let text = "the document cannot be signed now";
                answer::refusal(&Refusal::new(Code::TemporarilyUnavailable, text))
            }
        }
    }

    async fn listing(&self, head: &Head) -> Response<Bytes> {
        match self.listing.answer(head).await {
            Ok(listing) => answer::json(StatusCode::OK, &listing),
            Err(NotShown::InvalidSignature) => {
                let description =
                    "this listing is for the owner's authority, by a fresh signature of its published key";
                let body = json!({ "error": INVALID_SIGNATURE, "error_description": description });
                answer::json(StatusCode::UNAUTHORIZED, &body)
            }
            Err(NotShown::Unavailable(gone)) => {
                answer::refusal(&Refusal::new(Code::TemporarilyUnavailable, gone.to_string()))
            }
        }
    }
}
