//! Keys that an issuer publishes, and what each may verify: a key fits an algorithm by its type, its curve, and what it
//! says of itself (RFC 8725 sections 3.1 and 3.2). A key that anybody could sign for is none.

use jsonwebtoken::DecodingKey;
use jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER;
use sayso_protocol::{Json, Jwk, VerifyingKey, b64};

/// A signature algorithm. There is none without a signature, and none with a shared secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    EdDsa,
    Es256,
    Es384,
    Ps256,
    Ps384,
    Ps512,
    Rs256,
    Rs384,
    Rs512,
}

use Algorithm::{EdDsa, Es256, Es384, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};

impl Algorithm {
    pub(super) const ALL: [Algorithm; 9] = [EdDsa, Es256, Es384, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512];
    /// Their names, in the same order.
    pub(super) const NAMES: [&str; 9] =
        ["EdDSA", "ES256", "ES384", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"];

    /// The one of this name; EdDSA, which is Ed25519 here, has a second one (RFC 9864).
    pub(super) fn named(name: &str) -> Option<Algorithm> {
        let found = Self::NAMES.iter().zip(Self::ALL).find(|(known, _)| **known == name);
        found.map(|(_, algorithm)| algorithm).or((name == "Ed25519").then_some(EdDsa))
    }

    /// As the library that verifies it knows it; Ed25519 is verified by our own, which refuses weak keys (D-40).
    fn library(self) -> Option<jsonwebtoken::Algorithm> {
        Some(match self {
            EdDsa => return None,
            Es256 => jsonwebtoken::Algorithm::ES256,
            Es384 => jsonwebtoken::Algorithm::ES384,
            Ps256 => jsonwebtoken::Algorithm::PS256,
            Ps384 => jsonwebtoken::Algorithm::PS384,
            Ps512 => jsonwebtoken::Algorithm::PS512,
            Rs256 => jsonwebtoken::Algorithm::RS256,
            Rs384 => jsonwebtoken::Algorithm::RS384,
            Rs512 => jsonwebtoken::Algorithm::RS512,
        })
    }
}

/// A key of an issuer.
pub(super) struct Key {
    kid: Option<String>,
    algorithm: Option<Algorithm>,
    material: Material,
}

enum Material {
    Ed25519(VerifyingKey),
    P256(DecodingKey),
    P384(DecodingKey),
    Rsa(DecodingKey),
}

/// Members of a key that is not public, or is a secret both sides share.
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

impl Key {
    /// The key of a JWK, if it is a public key that verifies signatures we know.
    pub(super) fn read(jwk: &Json) -> Option<Key> {
        if PRIVATE.iter().any(|name| jwk.get(name).is_some()) || !verifies(jwk) {
            return None;
        }
        let algorithm = match jwk.get("alg") {
            None => None,
            Some(name) => Some(Algorithm::named(name.as_str()?)?),
        };
        let kid = match jwk.get("kid") {
            None => None,
            Some(kid) => Some(kid.as_str()?.to_owned()),
        };
        Some(Key { kid, algorithm, material: Material::read(jwk)? })
    }

    pub(super) fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// Whether it may verify signatures of this algorithm.
    pub(super) fn fits(&self, algorithm: Algorithm) -> bool {
        let kind = match self.material {
            Material::Ed25519(_) => algorithm == EdDsa,
            Material::P256(_) => algorithm == Es256,
            Material::P384(_) => algorithm == Es384,
            Material::Rsa(_) => matches!(algorithm, Ps256 | Ps384 | Ps512 | Rs256 | Rs384 | Rs512),
        };
        kind && self.algorithm.is_none_or(|own| own == algorithm)
    }

    /// Whether it verifies this signature, by an algorithm it fits.
    pub(super) fn verifies(&self, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> bool {
        if !self.fits(algorithm) {
            return false;
        }
        let key = match &self.material {
            Material::Ed25519(key) => return key.verify(signed, signature).is_ok(),
            Material::P256(key) | Material::P384(key) | Material::Rsa(key) => key,
        };
        let Some(algorithm) = algorithm.library() else { return false };
        // The provider by name: the one for the whole process, were there two, would panic.
        let verifier = (DEFAULT_PROVIDER.verifier_factory)(&algorithm, key);
        verifier.is_ok_and(|verifier| verifier.verify(signed, &signature.to_vec()).is_ok())
    }
}

impl Material {
    fn read(jwk: &Json) -> Option<Material> {
        let text = |name: &str| jwk.get(name).and_then(Json::as_str);
        let bytes = |name: &str| b64::decode(text(name)?).ok();
        match (text("kty")?, text("crv")) {
            ("OKP", Some("Ed25519")) => {
                let jwk: Jwk = sayso_protocol::json::typed(jwk).ok()?;
                Some(Material::Ed25519(jwk.key().ok()?))
            }
            ("EC", Some(curve @ ("P-256" | "P-384"))) => {
                let length = if curve == "P-256" { 32 } else { 48 };
                let (x, y) = (bytes("x")?, bytes("y")?);
                if x.len() != length || y.len() != length {
                    return None;
                }
                let key = DecodingKey::from_ec_der(&[&[4], x.as_slice(), &y].concat());
                Some(if curve == "P-256" { Material::P256(key) } else { Material::P384(key) })
            }
            ("RSA", None) => {
                let (n, e) = (bytes("n")?, bytes("e")?);
                (is_modulus(&n) && is_exponent(&e))
                    .then(|| Material::Rsa(DecodingKey::from_rsa_raw_components(&n, &e)))
            }
            _ => None,
        }
    }
}

/// `use` and `key_ops`, where they are said, must say that it verifies.
fn verifies(jwk: &Json) -> bool {
    let used = jwk.get("use").is_none_or(|it| it.as_str() == Some("sig"));
    let operations = jwk.get("key_ops").is_none_or(|operations| {
        operations.as_array().is_some_and(|all| all.iter().any(|it| it.as_str() == Some("verify")))
    });
    used && operations
}

/// Between 2048 and 8192 bits, in the one spelling that has no zeros in front.
fn is_modulus(n: &[u8]) -> bool {
    let bits = n.first().map_or(0, |first| n.len() * 8 - first.leading_zeros() as usize);
    n.first() != Some(&0) && (2048..=8192).contains(&bits)
}

/// Odd and more than one: what an exponent of one verifies, anybody can sign.
fn is_exponent(e: &[u8]) -> bool {
    let odd = e.last().is_some_and(|last| last & 1 == 1);
    odd && e.len() <= 4 && e.first() != Some(&0) && e != [1]
}
