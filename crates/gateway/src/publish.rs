//! What a resource server publishes: one document a resource, its keys, its health, and for her authority the listing.
//!
//! Everything comes from the registry the engine decides by (MCP-02). The root document exists only where there is
//! exactly one resource to name; what is not published here is not found, however it is spelled.

use crate::answer;
use crate::config::{HEALTH, Inner, JWKS, OWNER_RESOURCES, Site};
use axum::body::Body;
use http::{Method, Response, StatusCode};
use sayso_enforce::Head;
use sayso_enforce::listener::{check_host, check_origin};
use sayso_enforce::listing::{INVALID_SIGNATURE, NotShown};
use sayso_protocol::envelope::rfc9728;
use sayso_protocol::payload::metadata::{KeySet, RESOURCE_PREFIX};
use sayso_protocol::payload::refusal::{Code, Refusal};
use serde_json::json;

enum Document<'a> {
    Metadata(&'a Site),
    Keys,
    Listing,
    Health,
}

/// Answers a request for anything but a resource itself.
pub(crate) async fn answer(gateway: &Inner, head: &Head) -> Response<Body> {
    let found = find(gateway, head.path());
    // The listing is read by signature, and that is made for the configured host; a browser signs nothing.
    let misdirected = match found {
        Some(Document::Listing) => Ok(()),
        _ => check_host(&gateway.hosts, head),
    };
    if let Err(refusal) = misdirected.and_then(|()| check_origin(&gateway.origins, &head.headers)) {
        return answer::refusal(&refusal);
    }
    let Some(document) = found else {
        return answer::refusal(&Refusal::new(Code::NotFound, "nothing is served at this address"));
    };
    if head.method != Method::GET && head.method != Method::HEAD {
        return answer::not_allowed("GET, HEAD", "this address serves GET");
    }
    match document {
        Document::Metadata(site) => metadata(gateway, site),
        Document::Keys => answer::json(StatusCode::OK, &KeySet::of([gateway.key.verifying()])),
        Document::Health => answer::json(StatusCode::OK, &json!({ "status": "ok" })),
        Document::Listing => listing(gateway, head).await,
    }
}

fn find<'a>(gateway: &'a Inner, path: &str) -> Option<Document<'a>> {
    match path {
        JWKS => Some(Document::Keys),
        OWNER_RESOURCES => Some(Document::Listing),
        HEALTH => Some(Document::Health),
        _ => {
            let named = gateway.sites.iter().find(|site| site.engine.resource().metadata_path() == path);
            let only = match gateway.sites.as_slice() {
                [only] if path == RESOURCE_PREFIX => Some(only),
                _ => None,
            };
            named.or(only).map(|site| Document::Metadata(site))
        }
    }
}

fn metadata(gateway: &Inner, site: &Site) -> Response<Body> {
    match rfc9728::document(&site.engine.resource().metadata(), &gateway.key, (gateway.clock)()) {
        Ok(document) => answer::json(StatusCode::OK, &document),
        Err(_) => {
            answer::refusal(&Refusal::new(Code::TemporarilyUnavailable, "the document cannot be signed now"))
        }
    }
}

async fn listing(gateway: &Inner, head: &Head) -> Response<Body> {
    match gateway.listing.answer(head).await {
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
