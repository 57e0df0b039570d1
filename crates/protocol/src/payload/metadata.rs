//! What is published before a call: the authority's metadata, a resource's metadata, the owner's listing.
//!
//! The facts of a resource come from one registry (MCP-02); a public document never names an owner's instances
//! (FED-02, CORE-118), the listing does and is served to her authority alone.

use crate::canon::S256;
use crate::id::{ResourceId, Scope, ToolName};
use crate::key::{Jwk, VerifyingKey};
use serde::{Deserialize, Serialize};

/// Where an authority publishes its metadata: one document at three addresses (O-2).
pub const AUTHORITY_PATHS: [&str; 3] = [
    "/.well-known/uma2-configuration",
    "/.well-known/oauth-authorization-server",
    "/.well-known/uma4agents-configuration",
];
/// The well-known prefix of a resource's metadata (BASE-09).
pub const RESOURCE_PREFIX: &str = "/.well-known/oauth-protected-resource";
/// The profile URIs this implementation stands for (CORE-01, CORE-02).
pub const PROFILES: [&str; 4] = [
    "https://u4a.ai/spec/core/1.0",
    "https://u4a.ai/spec/terms/1.0",
    "https://u4a.ai/spec/fedauthz/1.0",
    "https://u4a.ai/spec/mcp/1.0",
];

/// An authority's metadata (register 1.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityMetadata {
    /// The issuer identifier, byte-equal to every `as_uri` that names it.
    pub issuer: String,
    /// The token endpoint.
    pub token_endpoint: String,
    /// The key set.
    pub jwks_uri: String,
    /// Where attempts are registered.
    pub permission_endpoint: String,
    /// Where grants are introspected.
    pub introspection_endpoint: String,
    /// Where single-use grants are spent.
    pub consume_endpoint: String,
    /// The roster of terms.
    pub terms_endpoint: String,
    /// The owner's own API.
    pub owner_endpoint: String,
    /// Every grant type accepted (CORE-03, CORE-04).
    pub grant_types_supported: Vec<String>,
    /// Every claim token format accepted.
    pub claim_token_formats_supported: Vec<String>,
    /// The profiles implemented.
    pub uma_profiles_supported: Vec<String>,
    /// Where allowed calls are reported (O-48).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sayso_audit_endpoint: Option<String>,
    /// Where resource servers introduce themselves (O-48).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sayso_registration_endpoint: Option<String>,
}

/// One tool a resource offers, as its public metadata says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSurface {
    /// The tool.
    pub tool: ToolName,
    /// Its scopes.
    pub resource_scopes: Vec<Scope>,
    /// Its declared consequence class, from configuration only (FED-04).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consequence: Option<String>,
}

/// The RFC 9728 document of one resource URL. `signed_metadata` is added by its envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceMetadata {
    /// The URL the document was derived from.
    pub resource: String,
    /// The issuers of the authorities that decide.
    pub authorization_servers: Vec<String>,
    /// The resource server's keys.
    pub jwks_uri: String,
    /// Every scope, sorted.
    pub scopes_supported: Vec<Scope>,
    /// `["header"]`.
    #[serde(default)]
    pub bearer_methods_supported: Vec<String>,
    /// `["EdDSA"]`.
    #[serde(default)]
    pub resource_signing_alg_values_supported: Vec<String>,
    /// The tools.
    #[serde(default)]
    pub tool_surfaces: Vec<ToolSurface>,
    /// Where her authority reads one owner's instances (FED-06).
    pub owner_resources_endpoint: String,
}

/// The RFC 9728 document of a resource that takes access tokens and has no owner to ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenResourceMetadata {
    /// The URL the document was derived from.
    pub resource: String,
    /// The issuers whose tokens are taken.
    pub authorization_servers: Vec<String>,
    /// The resource server's keys, by which the signed copy is verified.
    pub jwks_uri: String,
    /// `["header"]`.
    pub bearer_methods_supported: Vec<String>,
}

/// One instance of an owner at a resource server (FED-09).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedResource {
    /// The resource id.
    #[serde(rename = "_id")]
    pub id: ResourceId,
    /// For people; the tool's name.
    pub name: String,
    /// What kind of thing it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// The tool behind it.
    pub tool: ToolName,
    /// Its scopes.
    pub resource_scopes: Vec<Scope>,
    /// The declared class, equal to the public document's (FED-12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consequence: Option<String>,
    /// `s256` of the pinned definition (D-30).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<S256>,
    /// What the tool says of itself, for its owner to compare; the server's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<serde_json::Value>,
}

/// The answer of `owner_resources_endpoint`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerListing {
    /// The instances of the asking authority's owner.
    pub resources: Vec<OwnedResource>,
}

/// A published key set. Keys that are not acceptable Ed25519 keys are skipped on reading.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct KeySet {
    keys: Vec<serde_json::Value>,
}

/// Most keys considered in a published set.
const MAX_KEYS: usize = 64;

impl KeySet {
    /// A key set of these keys, each under its thumbprint as `kid`.
    pub fn of<'a>(keys: impl IntoIterator<Item = &'a VerifyingKey>) -> Self {
        let entry = |key: &VerifyingKey| {
            let mut entry = serde_json::to_value(key.jwk()).unwrap_or_default();
            if let Some(members) = entry.as_object_mut() {
                members.insert("kid".into(), key.thumbprint().as_str().into());
                members.insert("use".into(), "sig".into());
                members.insert("alg".into(), "EdDSA".into());
            }
            entry
        };
        Self { keys: keys.into_iter().map(entry).collect() }
    }

    /// The acceptable keys with their `kid`, or their thumbprint where they have none.
    pub fn keys(&self) -> Vec<(String, VerifyingKey)> {
        let read = |entry: &serde_json::Value| {
            // serde would take an array for a key, member by member.
            let entry = Some(entry).filter(|entry| entry.is_object())?;
            let key = serde_json::from_value::<Jwk>(entry.clone()).ok()?.key().ok()?;
            let kid = entry.get("kid").and_then(|kid| kid.as_str()).map(str::to_owned);
            Some((kid.unwrap_or_else(|| key.thumbprint().as_str().to_owned()), key))
        };
        self.keys.iter().take(MAX_KEYS).filter_map(read).collect()
    }
}

/// The metadata URL of a resource identifier: the well-known string between host and path (BASE-09).
///
/// # Errors
/// When the identifier is not an absolute http(s) URL without query or fragment.
pub fn metadata_url(resource: &str) -> Result<String, url::ParseError> {
    let url = url::Url::parse(resource)?;
    let plain = matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none();
    if !plain {
        return Err(url::ParseError::RelativeUrlWithoutBase);
    }
    let path = if url.path() == "/" { "" } else { url.path() };
    Ok(format!("{}{RESOURCE_PREFIX}{path}", url.origin().ascii_serialization()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // BASE-09
    #[test]
    fn the_well_known_string_goes_between_host_and_path() {
        let url = metadata_url("https://h.example/mcp/alice").unwrap();
        assert_eq!(url, "https://h.example/.well-known/oauth-protected-resource/mcp/alice");
        let root = metadata_url("https://h.example").unwrap();
        assert_eq!(root, "https://h.example/.well-known/oauth-protected-resource");
        assert!(metadata_url("https://h.example/mcp?x=1").is_err());
        assert!(metadata_url("file:///etc").is_err());
    }

    #[test]
    fn a_key_set_keeps_only_what_it_can_use() {
        let key = crate::key::SigningKey::from_seed(&[5; 32]).unwrap();
        let json = serde_json::to_value(KeySet::of([key.verifying()])).unwrap();
        let mut keys = json["keys"].as_array().unwrap().clone();
        keys.push(serde_json::json!({"kty": "EC", "crv": "P-256"}));
        keys.push(serde_json::json!([keys[0]["crv"], keys[0]["kty"], keys[0]["x"]]));
        for x in crate::key::tests::unfit_points() {
            keys.push(serde_json::json!({"kty": "OKP", "crv": "Ed25519", "x": crate::b64::encode(x)}));
        }
        assert!(keys.len() < MAX_KEYS);
        let set: KeySet = serde_json::from_value(serde_json::json!({ "keys": keys })).unwrap();
        assert_eq!(set.keys(), vec![(key.kid(), key.verifying().clone())]);
    }
}
