//! Ed25519 keys, their JWK form and thumbprint; the only file that names the crypto crate for signatures.
//!
//! A public key that is small-order or not canonically encoded is refused at parse, whichever library verifies
//! later (D-40); a signing key never prints. Key storage is the caller's.

use crate::b64;
use crate::canon::sha256;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, ParsedPublicKey};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

mod signer;

pub use signer::{NotSigned, Signer};

/// A key that is not an acceptable Ed25519 key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// Not `kty` OKP with `crv` Ed25519, or `x` is not 32 base64url bytes.
    #[error("not an Ed25519 key")]
    Form,
    /// The point is of small order or not canonically encoded: signatures under it prove nothing.
    #[error("weak Ed25519 key")]
    Weak,
}

/// The signature does not verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("signature does not verify")]
pub struct BadSignature;

/// The required members of an Ed25519 JWK and nothing else, so that no foreign member travels into a grant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Jwk {
    crv: String,
    kty: String,
    x: String,
}

impl Jwk {
    /// The key this JWK names.
    ///
    /// # Errors
    /// When it is not Ed25519 or is weak.
    pub fn key(&self) -> Result<VerifyingKey, BadKey> {
        if self.kty != "OKP" || self.crv != "Ed25519" {
            return Err(BadKey::Form);
        }
        let bytes = b64::decode(&self.x).map_err(|_| BadKey::Form)?;
        VerifyingKey::from_bytes(&bytes.try_into().map_err(|_| BadKey::Form)?)
    }
}

/// An RFC 7638 SHA-256 thumbprint, base64url.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Thumbprint(String);

impl Thumbprint {
    /// Reads a thumbprint back from text that this program wrote; it is compared, never trusted.
    pub fn from_text(text: impl Into<String>) -> Thumbprint {
        Thumbprint(text.into())
    }

    /// The text of the thumbprint.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A public Ed25519 key, checked and parsed once.
#[derive(Clone)]
pub struct VerifyingKey {
    bytes: [u8; 32],
    parsed: Arc<ParsedPublicKey>,
}

impl VerifyingKey {
    /// Parses a public key.
    ///
    /// # Errors
    /// When the encoding is not canonical, the point has small order, or it is not on the curve.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, BadKey> {
        if !is_canonical(bytes) || SMALL_ORDER.contains(bytes) {
            return Err(BadKey::Weak);
        }
        let parsed = ParsedPublicKey::new(&ED25519, bytes).map_err(|_| BadKey::Form)?;
        Ok(Self { bytes: *bytes, parsed: Arc::new(parsed) })
    }

    /// Verifies `signature` over `message`.
    ///
    /// # Errors
    /// When it does not verify.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        self.parsed.verify_sig(message, signature).map_err(|_| BadSignature)
    }

    /// The raw 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// The JWK with the required members only.
    pub fn jwk(&self) -> Jwk {
        Jwk { crv: "Ed25519".into(), kty: "OKP".into(), x: b64::encode(self.bytes) }
    }

    /// The RFC 7638 thumbprint (BASE-12).
    pub fn thumbprint(&self) -> Thumbprint {
        let json = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, b64::encode(self.bytes));
        Thumbprint(b64::encode(sha256(json.as_bytes())))
    }
}

impl PartialEq for VerifyingKey {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}
impl Eq for VerifyingKey {}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({})", self.thumbprint())
    }
}

/// A private Ed25519 key, here or with somebody who signs for us. Has no `Debug`: it must not print.
#[derive(Clone)]
pub struct SigningKey {
    held: Held,
    public: VerifyingKey,
}

/// Where the private half is.
#[derive(Clone)]
enum Held {
    Here(Arc<Ed25519KeyPair>),
    Elsewhere(Arc<dyn Signer>),
}

const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
const PEM_HEAD: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_FOOT: &str = "-----END PRIVATE KEY-----";

impl SigningKey {
    /// The key of a 32-byte seed.
    ///
    /// # Errors
    /// When the derived public key is refused.
    pub fn from_seed(seed: &[u8; 32]) -> Result<Self, BadKey> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| BadKey::Form)?;
        let public: [u8; 32] = pair.public_key().as_ref().try_into().map_err(|_| BadKey::Form)?;
        Ok(Self { held: Held::Here(Arc::new(pair)), public: VerifyingKey::from_bytes(&public)? })
    }

    /// A key whose private half stays with `signer`: a hardware token, an agent process, the embedding program.
    ///
    /// # Errors
    /// When the public key it names is refused.
    pub fn elsewhere(signer: Arc<dyn Signer>) -> Result<Self, BadKey> {
        let public = VerifyingKey::from_bytes(&signer.public_key())?;
        Ok(Self { held: Held::Elsewhere(signer), public })
    }

    /// The PKCS#8 v1 PEM of a seed, the form `from_pem` reads and other tools load.
    pub fn seed_to_pem(seed: &[u8; 32]) -> String {
        let der = [&PKCS8_PREFIX[..], seed].concat();
        format!("{PEM_HEAD}\n{}\n{PEM_FOOT}\n", b64::encode_standard(der))
    }

    /// Reads an unencrypted PKCS#8 PEM, v1 or v2.
    ///
    /// # Errors
    /// When the text is not such a PEM or holds no Ed25519 key.
    pub fn from_pem(pem: &str) -> Result<Self, BadKey> {
        let body = pem
            .split_once(PEM_HEAD)
            .and_then(|(_, rest)| rest.split_once(PEM_FOOT))
            .map(|(body, _)| body.split_whitespace().collect::<String>())
            .ok_or(BadKey::Form)?;
        let der = b64::decode_standard(body).map_err(|_| BadKey::Form)?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| BadKey::Form)?;
        let public: [u8; 32] = pair.public_key().as_ref().try_into().map_err(|_| BadKey::Form)?;
        Ok(Self { held: Held::Here(Arc::new(pair)), public: VerifyingKey::from_bytes(&public)? })
    }

    /// Signs `message`; Ed25519 is deterministic, so with a key that is here this is a pure function.
    ///
    /// # Errors
    /// When the key is elsewhere and whoever holds it did not sign, or signed something else.
    pub fn sign(&self, message: &[u8]) -> Result<[u8; 64], NotSigned> {
        match &self.held {
            Held::Here(pair) => pair.sign(message).as_ref().try_into().map_err(|_| NotSigned),
            Held::Elsewhere(signer) => {
                let signature = signer.sign(message).ok_or(NotSigned)?;
                // What somebody else made is not sent before it holds: a wrong one could only be refused.
                self.public.verify(message, &signature).map_err(|_| NotSigned)?;
                Ok(signature)
            }
        }
    }

    /// The public half.
    pub fn verifying(&self) -> &VerifyingKey {
        &self.public
    }

    /// The key id we publish: the thumbprint (O-23).
    pub fn kid(&self) -> String {
        self.public.thumbprint().0
    }
}

/// Whether the y coordinate is below the field prime 2^255 − 19.
fn is_canonical(bytes: &[u8; 32]) -> bool {
    let [low, middle @ .., high] = bytes;
    !(high & 0x7f == 0x7f && *low >= 0xed && middle.iter().all(|byte| *byte == 0xff))
}

/// Canonical encodings of the points whose order divides eight; both signs where the sign bit is free.
const SMALL_ORDER: [[u8; 32]; 10] = [
    with_edge([0; 32], 0x00, 0x00),
    with_edge([0; 32], 0x00, 0x80),
    with_edge([0; 32], 0x01, 0x00),
    with_edge([0; 32], 0x01, 0x80),
    with_edge([0xff; 32], 0xec, 0x7f),
    with_edge([0xff; 32], 0xec, 0xff),
    ORDER_8_A,
    with_sign(ORDER_8_A),
    ORDER_8_B,
    with_sign(ORDER_8_B),
];
const ORDER_8_A: [u8; 32] = [
    0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5,
    0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
];
const ORDER_8_B: [u8; 32] = [
    0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a,
    0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
];

const fn with_edge(mut bytes: [u8; 32], first: u8, last: u8) -> [u8; 32] {
    bytes[0] = first;
    bytes[31] = last;
    bytes
}

const fn with_sign(mut bytes: [u8; 32]) -> [u8; 32] {
    bytes[31] |= 0x80;
    bytes
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Every point of small order and every encoding of one beyond the field, for the readers of keys.
    pub(crate) fn unfit_points() -> Vec<[u8; 32]> {
        let beyond = (0xed..=0xff).flat_map(|low| [0x7f, 0xff].map(|high| with_edge([0xff; 32], low, high)));
        SMALL_ORDER.into_iter().chain(beyond).collect()
    }

    fn jwk(x: &str) -> Jwk {
        Jwk { crv: "Ed25519".into(), kty: "OKP".into(), x: x.into() }
    }

    // BASE-12, CORE-45
    #[test]
    fn the_thumbprint_of_rfc_8037_names_the_handle() {
        let key = jwk("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").key().unwrap();
        let handle = crate::id::Handle::pseudonymous(&key.thumbprint());
        assert_eq!(handle.as_str(), "jkt:kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    }

    #[test]
    fn small_order_and_non_canonical_keys_are_refused() {
        assert_eq!(unfit_points().len(), 48);
        for bytes in unfit_points() {
            assert_eq!(VerifyingKey::from_bytes(&bytes).unwrap_err(), BadKey::Weak);
            assert_eq!(jwk(&b64::encode(bytes)).key().unwrap_err(), BadKey::Weak);
        }
        assert_eq!(jwk("AAAA").key().unwrap_err(), BadKey::Form);
    }

    #[test]
    fn a_jwk_of_another_kind_or_length_is_no_key() {
        let good = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        assert!(jwk(good).key().is_ok());
        for x in
            [&b64::encode([9; 31]), &b64::encode([9; 33]), &format!("{good}="), &good.replace('_', "/"), ""]
        {
            assert_eq!(jwk(x).key().unwrap_err(), BadKey::Form, "{x}");
        }
        for (kty, crv) in [("OKP", "X25519"), ("EC", "Ed25519"), ("OKP", "ed25519"), ("okp", "Ed25519")] {
            let other = Jwk { kty: kty.into(), crv: crv.into(), ..jwk(good) };
            assert_eq!(other.key().unwrap_err(), BadKey::Form, "{kty} {crv}");
        }
    }

    #[test]
    fn a_pem_round_trips_and_signs() {
        let key = SigningKey::from_pem(&SigningKey::seed_to_pem(&[7; 32])).unwrap();
        let signature = key.sign(b"hello").unwrap();
        assert!(key.verifying().verify(b"hello", &signature).is_ok());
        assert_eq!(key.verifying().verify(b"hellO", &signature), Err(BadSignature));
        assert!(SigningKey::from_pem("nonsense").is_err());
    }
}
