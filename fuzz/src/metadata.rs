//! Published documents: a resource's, with and without the signed copy, an authority's, an owner's listing, terms.
//! A signed copy is believed when it says what the plain one says, and for nothing else (FED-07, FED-14).

use sayso_protocol::Timestamp;
use sayso_protocol::envelope::rfc9728::{BadDocument, LIMITS, TYP, read};
use sayso_protocol::jws::{KeyName, sign};
use sayso_protocol::payload::metadata::{
    AuthorityMetadata, OwnerListing, RESOURCE_PREFIX, ResourceMetadata, metadata_url,
};
use sayso_protocol::payload::terms::{RequiredClaim, Terms};
use serde_json::Value;

use super::{jws, same};

/// A time for every document.
const NOW: Timestamp = Timestamp(1_790_000_000);

/// The body.
pub fn check(bytes: &[u8]) {
    same::round_trip::<AuthorityMetadata>(bytes);
    same::round_trip::<ResourceMetadata>(bytes);
    same::round_trip::<OwnerListing>(bytes);
    same::round_trip::<Terms>(bytes);
    same::round_trip::<RequiredClaim>(bytes);
    let Ok(Value::Object(plain)) = serde_json::from_slice::<Value>(bytes) else { return };
    let Some(resource) = plain.get("resource").and_then(Value::as_str) else { return };
    address(resource);
    let Ok(document) = read(bytes, resource) else { return };
    assert_eq!(document.is_signed(), plain.contains_key("signed_metadata"));
    assert_eq!(document.jwks_uri(), plain.get("jwks_uri").and_then(Value::as_str));
    assert_eq!(read(bytes, &format!("{resource}/")).err(), Some(BadDocument::AnotherResource));
    match document.accept_unsigned() {
        Ok(document) => {
            let _ = (document.authorization_servers(), document.metadata());
            vouched(&plain, resource);
        }
        Err(fault) => {
            assert_eq!(fault, BadDocument::Unverified);
            let keys = [(jws::KID.to_owned(), jws::key().verifying().clone())];
            let _ = read(bytes, resource).map(|document| document.trust(&keys, NOW).is_ok());
        }
    }
}

/// A signed copy of the same document is believed, one of another is not.
fn vouched(plain: &serde_json::Map<String, Value>, resource: &str) {
    let key = jws::key();
    let keys = [(key.kid(), key.verifying().clone())];
    let with_copy_of = |members: &serde_json::Map<String, Value>| {
        let mut claims = members.clone();
        claims.insert("iss".into(), resource.into());
        let copy = sign(&key, TYP, &KeyName::Kid(&key.kid()), &claims).expect("a document can be signed");
        let mut document = plain.clone();
        document.insert("signed_metadata".into(), copy.into());
        serde_json::to_vec(&document).expect("a document can be written")
    };
    let honest = with_copy_of(plain);
    let of_the_jwt = ["iss", "iat", "exp", "nbf", "jti", "aud", "sub"];
    if honest.len() < LIMITS.bytes && !of_the_jwt.iter().any(|name| plain.contains_key(*name)) {
        let trusted = read(&honest, resource).map(|document| document.trust(&keys, NOW).err());
        assert_eq!(trusted.ok(), Some(None), "an honest copy is not believed");
    }
    let mut other = plain.clone();
    other.insert("jwks_uri".into(), "https://elsewhere.example/keys".into());
    if other != *plain {
        let fault =
            read(&with_copy_of(&other), resource).ok().and_then(|document| document.trust(&keys, NOW).err());
        assert!(fault.is_some() || honest.len() >= LIMITS.bytes, "two documents, and one is believed");
    }
}

/// The address of a document is on the origin of its resource.
fn address(resource: &str) {
    let Ok(address) = metadata_url(resource) else { return };
    let (Ok(address), Ok(resource)) = (url::Url::parse(&address), url::Url::parse(resource)) else {
        return assert!(url::Url::parse(&address).is_ok(), "an address that is no URL");
    };
    assert_eq!(address.origin(), resource.origin());
    let path = resource.path().trim_end_matches('/');
    assert_eq!(address.path().trim_end_matches('/'), format!("{RESOURCE_PREFIX}{path}"));
}
