//! A resource's metadata as the document of RFC 9728, with the signed copy beside the plain one (FED-07, FED-14).
//! It keeps one source: both copies are written from one value, and a reader that finds them different believes
//! neither. Fetching the document and the keys is the caller's, and so is asking the right URL for them.

#[cfg(test)]
mod tests;

use crate::id::Timestamp;
use crate::json::{self, Json, Limits};
use crate::jws::{self, BadJws, KeyName};
use crate::key::{SigningKey, VerifyingKey};
use crate::payload::metadata::{ResourceMetadata, TokenResourceMetadata};
use crate::sig::SKEW_SECONDS;
use serde_json::Value;

/// The `typ` of the signed copy.
pub const TYP: &str = "oauth-protected-resource+jwt";
/// Largest document read.
pub const LIMITS: Limits = Limits { bytes: 64 * 1024, depth: 16 };

/// Claims of the signed copy that are about the copy and not members of the document.
const OF_THE_JWT: [&str; 7] = ["iss", "iat", "exp", "nbf", "jti", "aud", "sub"];

/// Why a document is not to be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadDocument {
    /// Not a strict JSON object, or a member has the wrong type.
    #[error("resource metadata is malformed")]
    Form,
    /// `resource` is not, byte for byte, the identifier the document was asked for.
    #[error("resource metadata is about another resource")]
    AnotherResource,
    /// There is no signed copy.
    #[error("resource metadata is not signed")]
    Unsigned,
    /// There is a signed copy that was not verified.
    #[error("resource metadata is signed and was not verified")]
    Unverified,
    /// The signed copy is not a JWS of this kind under a published key.
    #[error("the signature of the resource metadata does not verify")]
    Signature,
    /// The signed copy is not of this time, or its times are not whole numbers.
    #[error("the signed copy of the resource metadata is not valid now")]
    Time,
    /// The signed copy says something else than the plain one.
    #[error("the signed copy of the resource metadata says something else")]
    Disagreement,
}

/// The document of a resource, signed by its key at `now`.
///
/// # Errors
/// When it cannot be serialised.
pub fn document(metadata: &ResourceMetadata, key: &SigningKey, now: Timestamp) -> Result<Value, BadJws> {
    let plain = serde_json::to_value(metadata).map_err(|_| BadJws::Claims)?;
    with_signed_copy(plain, TYP, &metadata.resource, key, now)
}

/// The document of a resource that takes access tokens, signed by its key at `now`.
///
/// # Errors
/// When it cannot be serialised.
pub fn token_document(
    metadata: &TokenResourceMetadata,
    key: &SigningKey,
    now: Timestamp,
) -> Result<Value, BadJws> {
    let plain = serde_json::to_value(metadata).map_err(|_| BadJws::Claims)?;
    with_signed_copy(plain, TYP, &metadata.resource, key, now)
}

/// A document beside its signed copy, in any encoding.
pub(super) fn with_signed_copy(
    mut plain: Value,
    typ: &str,
    resource: &str,
    key: &SigningKey,
    now: Timestamp,
) -> Result<Value, BadJws> {
    let mut claims = plain.clone();
    let members = claims.as_object_mut().ok_or(BadJws::Claims)?;
    members.insert("iss".into(), resource.into());
    members.insert("iat".into(), now.0.into());
    let signed = jws::sign(key, typ, &KeyName::Kid(&key.kid()), &claims)?;
    plain.as_object_mut().ok_or(BadJws::Claims)?.insert("signed_metadata".into(), signed.into());
    Ok(plain)
}

/// A document that is about the right resource; nobody has vouched for it yet.
pub struct Unverified {
    plain: Json,
    signed: Option<jws::Unverified>,
    resource: String,
    typ: &'static str,
}

/// Reads a document that was asked for as that of `resource`. The comparison is of bytes, never of parsed URLs.
///
/// # Errors
/// When it is malformed or about another resource.
pub fn read(bytes: &[u8], resource: &str) -> Result<Unverified, BadDocument> {
    read_as(bytes, resource, TYP)
}

/// The same for an encoding whose signed copy is of this `typ`.
pub(super) fn read_as(bytes: &[u8], resource: &str, typ: &'static str) -> Result<Unverified, BadDocument> {
    let plain = Json::parse(bytes, LIMITS).map_err(|_| BadDocument::Form)?;
    if plain.as_object().is_none() {
        return Err(BadDocument::Form);
    }
    if plain.get("resource").and_then(Json::as_str) != Some(resource) {
        return Err(BadDocument::AnotherResource);
    }
    let signed = match plain.get("signed_metadata") {
        None => None,
        Some(Json::String(compact)) => {
            Some(jws::Unverified::parse(compact, LIMITS.bytes).map_err(|_| BadDocument::Signature)?)
        }
        Some(_) => return Err(BadDocument::Form),
    };
    Ok(Unverified { plain, signed, resource: resource.to_owned(), typ })
}

impl Unverified {
    /// Where the resource says its keys are. Before they are fetched the URL must be held against the origin the
    /// document came from; a key somebody else publishes vouches for nothing.
    pub fn jwks_uri(&self) -> Option<&str> {
        self.plain.get("jwks_uri").and_then(Json::as_str)
    }

    /// Whether there is a signed copy, which then has to be verified.
    pub fn is_signed(&self) -> bool {
        self.signed.is_some()
    }

    /// Verifies the signed copy under the resource's published keys, by `kid`, and holds the plain one against it.
    ///
    /// # Errors
    /// When there is no signed copy, no published key signed it, its `iss` is another resource, it is not valid `now`, or
    /// the copies differ.
    pub fn trust(self, keys: &[(String, VerifyingKey)], now: Timestamp) -> Result<Document, BadDocument> {
        let signed = self.signed.ok_or(BadDocument::Unsigned)?;
        if signed.typ() != Some(self.typ) {
            return Err(BadDocument::Signature);
        }
        let kid = signed.kid().ok_or(BadDocument::Signature)?.to_owned();
        let (_, key) = keys.iter().find(|(name, _)| *name == kid).ok_or(BadDocument::Signature)?;
        let verified = signed.verify(key).map_err(|_| BadDocument::Signature)?;
        let claims = verified.json().map_err(|_| BadDocument::Signature)?;
        if claims.get("iss").and_then(Json::as_str) != Some(&self.resource) {
            return Err(BadDocument::AnotherResource);
        }
        if !is_timely(&claims, now) {
            return Err(BadDocument::Time);
        }
        if !agree(&self.plain, &claims) {
            return Err(BadDocument::Disagreement);
        }
        Ok(Document(self.plain))
    }

    /// [`Unverified::trust`], as the whole of what this profile's resource servers publish.
    ///
    /// # Errors
    /// As there, and when a member the profile requires is missing.
    pub fn verify(
        self,
        keys: &[(String, VerifyingKey)],
        now: Timestamp,
    ) -> Result<ResourceMetadata, BadDocument> {
        self.trust(keys, now)?.metadata()
    }

    /// Takes a document that has no signed copy as it is.
    ///
    /// # Errors
    /// When there is a signed copy: it may not be passed over.
    pub fn accept_unsigned(self) -> Result<Document, BadDocument> {
        if self.signed.is_some() { Err(BadDocument::Unverified) } else { Ok(Document(self.plain)) }
    }
}

/// Whether the times the copy gives admit `now`. None need be given; one that is no whole number is not passed over.
fn is_timely(claims: &Json, now: Timestamp) -> bool {
    let holds = |name: &str, rule: fn(i64, i64) -> bool| match claims.get(name) {
        None => true,
        Some(Json::Number(at)) => at.as_i64().is_some_and(|at| rule(at, now.0)),
        Some(_) => false,
    };
    holds("exp", |exp, now| now < exp)
        && holds("nbf", |nbf, now| nbf <= now.saturating_add(SKEW_SECONDS))
        && holds("iat", |_, _| true)
}

/// Whether the two copies have the same members with the same values.
fn agree(plain: &Json, claims: &Json) -> bool {
    let (Some(plain_members), Some(claimed)) = (plain.as_object(), claims.as_object()) else { return false };
    let told = plain_members.iter().filter(|(name, _)| name != "signed_metadata");
    let signed = claimed.iter().filter(|(name, _)| !OF_THE_JWT.contains(&name.as_str()));
    told.into_iter().all(|(name, value)| claims.get(name) == Some(value))
        && signed.into_iter().all(|(name, value)| plain.get(name) == Some(value))
}

/// A document somebody vouched for.
pub struct Document(pub(super) Json);

impl Document {
    /// The issuers of the authorities the resource names.
    pub fn authorization_servers(&self) -> Vec<&str> {
        let listed = self.0.get("authorization_servers").and_then(Json::as_array).unwrap_or_default();
        listed.iter().filter_map(Json::as_str).collect()
    }

    /// All of this profile's members.
    ///
    /// # Errors
    /// When one that is required is missing or has the wrong type.
    pub fn metadata(&self) -> Result<ResourceMetadata, BadDocument> {
        json::typed(&self.0).map_err(|_| BadDocument::Form)
    }
}
