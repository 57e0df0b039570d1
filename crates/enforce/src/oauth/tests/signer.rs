//! Keys of every kind, made once, that sign whatever they are told to sign.

use std::sync::OnceLock;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RsaKeyPair,
};
use sayso_protocol::{SigningKey, b64};
use serde_json::{Value, json};

pub(super) enum Signer {
    Ed(SigningKey),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

static ED: OnceLock<Signer> = OnceLock::new();
static P256: OnceLock<Signer> = OnceLock::new();
static P384: OnceLock<Signer> = OnceLock::new();
static RSA: OnceLock<Signer> = OnceLock::new();

impl Signer {
    pub(super) fn ed() -> &'static Signer {
        ED.get_or_init(|| Signer::Ed(SigningKey::from_seed(&[0x11; 32]).unwrap()))
    }

    pub(super) fn p256() -> &'static Signer {
        P256.get_or_init(|| Signer::P256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap()))
    }

    pub(super) fn p384() -> &'static Signer {
        P384.get_or_init(|| Signer::P384(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap()))
    }

    pub(super) fn rsa() -> &'static Signer {
        RSA.get_or_init(|| Signer::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()))
    }

    /// Another key of the same kind as `ed`.
    pub(super) fn attacker() -> Signer {
        Signer::Ed(SigningKey::from_seed(&[0x33; 32]).unwrap())
    }

    pub(super) fn jwk(&self, kid: &str) -> Value {
        let mut jwk = match self {
            Signer::Ed(key) => serde_json::to_value(key.verifying().jwk()).unwrap(),
            Signer::P256(key) => point("P-256", key.public_key().as_ref()),
            Signer::P384(key) => point("P-384", key.public_key().as_ref()),
            Signer::Rsa(key) => {
                let public = key.public_key();
                let (n, e) = (public.modulus(), public.exponent());
                json!({"kty": "RSA", "n": b64::encode(n.big_endian_without_leading_zero()),
                    "e": b64::encode(e.big_endian_without_leading_zero())})
            }
        };
        jwk["kid"] = json!(kid);
        jwk
    }

    pub(super) fn sign(&self, alg: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        let padding: &dyn signature::RsaEncoding = match alg {
            "PS256" => &signature::RSA_PSS_SHA256,
            "PS384" => &signature::RSA_PSS_SHA384,
            "PS512" => &signature::RSA_PSS_SHA512,
            "RS384" => &signature::RSA_PKCS1_SHA384,
            "RS512" => &signature::RSA_PKCS1_SHA512,
            _ => &signature::RSA_PKCS1_SHA256,
        };
        match self {
            Signer::Ed(key) => key.sign(message).unwrap().to_vec(),
            Signer::P256(key) | Signer::P384(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
            Signer::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(padding, &random, message, &mut signature).unwrap();
                signature
            }
        }
    }

    pub(super) fn token(&self, alg: &str, header: &Value, claims: &Value) -> String {
        self.raw(alg, header.to_string().as_bytes(), claims.to_string().as_bytes())
    }

    /// A token of these very bytes.
    pub(super) fn raw(&self, alg: &str, header: &[u8], claims: &[u8]) -> String {
        let signed = format!("{}.{}", b64::encode(header), b64::encode(claims));
        let signature = b64::encode(self.sign(alg, signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

fn point(curve: &str, uncompressed: &[u8]) -> Value {
    let (x, y) = uncompressed[1..].split_at((uncompressed.len() - 1) / 2);
    json!({"kty": "EC", "crv": curve, "x": b64::encode(x), "y": b64::encode(y)})
}
