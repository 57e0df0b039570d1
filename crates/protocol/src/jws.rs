//! Compact JWS under Ed25519: parsed, then verified, and only then readable.
//!
//! Claims cannot be read from an `Unverified`, but as what is merely said, to find out who could vouch for them; its
//! header can, since the header names the key (TERMS-23). One algorithm family is accepted, whatever the header asks
//! for, and critical extensions are refused.

use crate::b64;
use crate::json::{self, Json, Limits};
use crate::key::{Jwk, SigningKey, VerifyingKey};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a JWS is not acceptable. Holds no input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadJws {
    /// Longer than the caller allows.
    #[error("jws is too long")]
    TooLong,
    /// Not three canonical base64url segments over a strict JSON header.
    #[error("not a compact jws")]
    Form,
    /// An algorithm other than EdDSA over Ed25519.
    #[error("jws algorithm is not accepted")]
    Algorithm,
    /// The header marks an extension as critical.
    #[error("jws header names a critical extension")]
    Critical,
    /// The signature does not verify.
    #[error("jws signature does not verify")]
    Signature,
    /// The claims are not the object expected.
    #[error("jws claims have the wrong shape")]
    Claims,
    /// Whoever holds the key did not sign. Only signing meets this.
    #[error("whoever holds the key did not sign")]
    Unsigned,
}

/// A parsed JWS nobody has vouched for yet.
pub struct Unverified {
    compact: String,
    header: Json,
    payload: Vec<u8>,
    signature: Vec<u8>,
    signed: usize,
}

impl Unverified {
    /// Parses a compact JWS of at most `longest` bytes.
    ///
    /// # Errors
    /// When it is too long, malformed, or its header asks for something not accepted.
    pub fn parse(compact: &str, longest: usize) -> Result<Self, BadJws> {
        if compact.len() > longest {
            return Err(BadJws::TooLong);
        }
        let mut parts = compact.splitn(4, '.');
        let (Some(head), Some(body), Some(tail), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(BadJws::Form);
        };
        let decode = |part: &str| b64::decode(part).map_err(|_| BadJws::Form);
        let limits = Limits { bytes: longest, depth: 16 };
        let header = Json::parse(&decode(head)?, limits).map_err(|_| BadJws::Form)?;
        if header.get("crit").is_some() || header.get("b64").is_some() {
            return Err(BadJws::Critical);
        }
        match header.get("alg").and_then(Json::as_str) {
            Some("EdDSA" | "Ed25519") => {}
            Some(_) => return Err(BadJws::Algorithm),
            None => return Err(BadJws::Form),
        }
        let signed = head.len() + 1 + body.len();
        Ok(Self { compact: compact.into(), header, payload: decode(body)?, signature: decode(tail)?, signed })
    }

    /// The `alg` of the header: `EdDSA` or `Ed25519`, two names of one algorithm.
    pub fn alg(&self) -> &str {
        self.text("alg").unwrap_or_default()
    }

    /// The `typ` of the header.
    pub fn typ(&self) -> Option<&str> {
        self.text("typ")
    }

    /// The `kid` of the header.
    pub fn kid(&self) -> Option<&str> {
        self.text("kid")
    }

    /// A member of the header, where it is text.
    pub fn text(&self, member: &str) -> Option<&str> {
        self.header.get(member).and_then(Json::as_str)
    }

    /// What it says, though nobody has vouched for it: to find whose key would, and for nothing else.
    ///
    /// # Errors
    /// When the claims do not have that shape.
    pub fn said<T: DeserializeOwned>(&self) -> Result<T, BadJws> {
        json::strict(&self.payload, Limits::default()).map_err(|_| BadJws::Claims)
    }

    /// Whether the header has a member of this name, whatever its value.
    pub fn has(&self, member: &str) -> bool {
        self.header.get(member).is_some()
    }

    /// The key of the header's `jwk`, required members only.
    ///
    /// # Errors
    /// When there is none, or it is not an acceptable Ed25519 key.
    pub fn jwk(&self) -> Result<VerifyingKey, BadJws> {
        let jwk = self.header.get("jwk").ok_or(BadJws::Form)?;
        let jwk: Jwk = json::typed(jwk).map_err(|_| BadJws::Form)?;
        jwk.key().map_err(|_| BadJws::Form)
    }

    /// Verifies the signature under `key`.
    ///
    /// # Errors
    /// When it does not verify.
    pub fn verify(self, key: &VerifyingKey) -> Result<Verified, BadJws> {
        let signed = self.compact.as_bytes().get(..self.signed).ok_or(BadJws::Form)?;
        key.verify(signed, &self.signature).map_err(|_| BadJws::Signature)?;
        Ok(Verified { compact: self.compact, payload: self.payload, key: key.clone() })
    }
}

/// A JWS whose signature verified under `key`.
#[derive(Clone)]
pub struct Verified {
    compact: String,
    payload: Vec<u8>,
    key: VerifyingKey,
}

impl Verified {
    /// The compact form exactly as received (TERMS-38, TERMS-39).
    pub fn compact(&self) -> &str {
        &self.compact
    }

    /// The key the signature verified under.
    pub fn key(&self) -> &VerifyingKey {
        &self.key
    }

    /// The claims as a strict JSON tree.
    ///
    /// # Errors
    /// When they are not strict JSON.
    pub fn json(&self) -> Result<Json, BadJws> {
        Json::parse(&self.payload, Limits::default()).map_err(|_| BadJws::Claims)
    }

    /// The claims as a typed object; duplicate members are refused, unknown ones ignored.
    ///
    /// # Errors
    /// When they do not have that shape.
    pub fn claims<T: DeserializeOwned>(&self) -> Result<T, BadJws> {
        json::strict(&self.payload, Limits::default()).map_err(|_| BadJws::Claims)
    }
}

/// How the header names the signing key.
pub enum KeyName<'a> {
    /// `kid`, for keys published at a `jwks_uri`.
    Kid(&'a str),
    /// `jwk`, for an agent that nobody has heard of.
    Jwk,
}

/// The name our own signatures give the algorithm (O-29).
pub const ALG: &str = "EdDSA";

/// Signs `claims` as a compact JWS of this `typ`.
///
/// # Errors
/// When the claims cannot be serialised, or whoever holds the key does not sign.
pub fn sign<T: Serialize>(
    key: &SigningKey,
    typ: &str,
    name: &KeyName<'_>,
    claims: &T,
) -> Result<String, BadJws> {
    #[derive(Serialize)]
    struct Header<'a> {
        alg: &'static str,
        typ: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        kid: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        jwk: Option<Jwk>,
    }
    let (kid, jwk) = match name {
        KeyName::Kid(kid) => (Some(*kid), None),
        KeyName::Jwk => (None, Some(key.verifying().jwk())),
    };
    sign_under(key, &Header { alg: ALG, typ, kid, jwk }, claims)
}

/// Signs `claims` under a header the caller writes, `alg` and `typ` included.
///
/// # Errors
/// When header or claims cannot be serialised, or whoever holds the key does not sign.
pub fn sign_under<T: Serialize>(
    key: &SigningKey,
    header: &impl Serialize,
    claims: &T,
) -> Result<String, BadJws> {
    let head = serde_json::to_vec(header).map_err(|_| BadJws::Claims)?;
    let body = serde_json::to_vec(claims).map_err(|_| BadJws::Claims)?;
    let mut compact = format!("{}.{}", b64::encode(head), b64::encode(body));
    let signature = key.sign(compact.as_bytes()).map_err(|_| BadJws::Unsigned)?;
    compact.push('.');
    compact.push_str(&b64::encode(signature));
    Ok(compact)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed() -> (SigningKey, String) {
        let key = SigningKey::from_seed(&[3; 32]).unwrap();
        let jws = sign(&key, "x+jws", &KeyName::Jwk, &serde_json::json!({"a": 1})).unwrap();
        (key, jws)
    }

    #[test]
    fn what_was_signed_reads_back() {
        let (key, jws) = signed();
        let parsed = Unverified::parse(&jws, 4096).unwrap();
        assert_eq!(parsed.typ(), Some("x+jws"));
        assert_eq!(&parsed.jwk().unwrap(), key.verifying());
        let verified = parsed.verify(key.verifying()).unwrap();
        assert_eq!(verified.claims::<serde_json::Value>().unwrap(), serde_json::json!({"a": 1}));
        assert_eq!(verified.compact(), jws);
    }

    // TERMS-24
    #[test]
    fn another_key_does_not_verify_it() {
        let (_, jws) = signed();
        let other = SigningKey::from_seed(&[4; 32]).unwrap();
        let fault = Unverified::parse(&jws, 4096).unwrap().verify(other.verifying()).err();
        assert_eq!(fault, Some(BadJws::Signature));
    }

    #[test]
    fn odd_forms_and_algorithms_are_refused() {
        let header = |json: &str| format!("{}.e30.AA", b64::encode(json));
        for (jws, fault) in [
            ("a.b".to_owned(), BadJws::Form),
            ("....".to_owned(), BadJws::Form),
            (header("{\"alg\":\"none\"}"), BadJws::Algorithm),
            (header("{\"alg\":\"HS256\"}"), BadJws::Algorithm),
            (header("{\"alg\":\"EdDSA\",\"crit\":[]}"), BadJws::Critical),
            (header("{\"alg\":\"EdDSA\",\"alg\":\"EdDSA\"}"), BadJws::Form),
            (".".repeat(5000), BadJws::TooLong),
        ] {
            assert_eq!(Unverified::parse(&jws, 4096).err(), Some(fault), "{jws:.40}");
        }
    }
}
