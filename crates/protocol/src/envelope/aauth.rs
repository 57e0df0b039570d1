//! A resource's metadata in the older encoding, `aauth-resource.json`, for peers that look nowhere else (AAUTH-19).
//! It keeps one source: written from the very value the document of RFC 9728 is written from (MCP-02), and read back into
//! it. Every rule about the signed copy is that document's.

#[cfg(test)]
mod tests;

use super::rfc9728::{self, BadDocument, Document, Unverified};
use crate::canon::{self, S256};
use crate::id::Timestamp;
use crate::json::{self, Json};
use crate::jws::BadJws;
use crate::key::SigningKey;
use crate::payload::metadata::{ResourceMetadata, ToolSurface};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// Where it is published: one document an origin, so only where the origin has one resource.
pub const PATH: &str = "/.well-known/aauth-resource.json";
/// The `typ` of the signed copy.
pub const TYP: &str = "aauth-resource+jwt";

const ACCESS_MODE: &str = "four-party";
const FORMAT: &str = "mcp";

#[derive(Serialize, Deserialize)]
struct Members {
    resource: String,
    access_mode: String,
    access_servers: Vec<String>,
    jwks_uri: String,
    owner_resources_endpoint: String,
}

const VOCABULARIES: &str = "r3_vocabularies";

/// What can be done there, and the digest it is known by.
#[derive(Serialize, Deserialize)]
struct Vocabulary {
    format: String,
    operations: Vec<ToolSurface>,
    digest: S256,
}

impl Vocabulary {
    fn of(operations: Vec<ToolSurface>) -> Result<Self, BadJws> {
        let digest = canon::s256_of(&operations).map_err(|_| BadJws::Claims)?;
        Ok(Self { format: FORMAT.to_owned(), operations, digest })
    }
}

/// The document of a resource, signed by its key at `now`.
///
/// # Errors
/// When it cannot be serialised.
pub fn document(metadata: &ResourceMetadata, key: &SigningKey, now: Timestamp) -> Result<Value, BadJws> {
    let members = Members {
        resource: metadata.resource.clone(),
        access_mode: ACCESS_MODE.to_owned(),
        access_servers: metadata.authorization_servers.clone(),
        jwks_uri: metadata.jwks_uri.clone(),
        owner_resources_endpoint: metadata.owner_resources_endpoint.clone(),
    };
    let vocabularies = [Vocabulary::of(metadata.tool_surfaces.clone())?];
    let vocabularies = serde_json::to_value(vocabularies).map_err(|_| BadJws::Claims)?;
    let mut plain = serde_json::to_value(members).map_err(|_| BadJws::Claims)?;
    plain.as_object_mut().ok_or(BadJws::Claims)?.insert(VOCABULARIES.to_owned(), vocabularies);
    rfc9728::with_signed_copy(plain, TYP, &metadata.resource, key, now)
}

/// Reads a document that was asked for as that of `resource`.
///
/// # Errors
/// When it is malformed or about another resource.
pub fn read(bytes: &[u8], resource: &str) -> Result<Unverified, BadDocument> {
    rfc9728::read_as(bytes, resource, TYP)
}

/// What a document that somebody vouched for says, as the other encoding would say it. Vocabularies of other formats are
/// passed over: they name nothing that is called here.
///
/// # Errors
/// When a member is missing or of the wrong type, the access mode is another, or a vocabulary is not what its digest
/// says.
pub fn metadata(document: &Document) -> Result<ResourceMetadata, BadDocument> {
    let members: Members = json::typed(&document.0).map_err(|_| BadDocument::Form)?;
    if members.access_mode != ACCESS_MODE {
        return Err(BadDocument::Form);
    }
    let told = document.0.get(VOCABULARIES).and_then(Json::as_array).ok_or(BadDocument::Form)?;
    let mut tool_surfaces = Vec::new();
    for told in told.iter().filter(|told| told.get("format").and_then(Json::as_str) == Some(FORMAT)) {
        tool_surfaces.extend(vocabulary(told)?.operations);
    }
    let scopes: BTreeSet<_> =
        tool_surfaces.iter().flat_map(|surface| surface.resource_scopes.clone()).collect();
    Ok(ResourceMetadata {
        resource: members.resource,
        authorization_servers: members.access_servers,
        jwks_uri: members.jwks_uri,
        scopes_supported: scopes.into_iter().collect(),
        bearer_methods_supported: vec!["header".to_owned()],
        resource_signing_alg_values_supported: vec!["EdDSA".to_owned()],
        tool_surfaces,
        owner_resources_endpoint: members.owner_resources_endpoint,
    })
}

fn vocabulary(told: &Json) -> Result<Vocabulary, BadDocument> {
    let vocabulary: Vocabulary = json::typed(told).map_err(|_| BadDocument::Form)?;
    // Of what was said, not of what was understood of it.
    let digest = told.get("operations").and_then(|operations| canon::s256(operations).ok());
    if digest.as_ref() == Some(&vocabulary.digest) { Ok(vocabulary) } else { Err(BadDocument::Disagreement) }
}
