//! A compact JWS, as received; and a header line with a payload, signed here so that what lies behind the signature is
//! read as well: receipts and grants. One changed letter verifies nothing (TERMS-36, CORE-65).

use sayso_protocol::json::Limits;
use sayso_protocol::jws::Unverified;
use sayso_protocol::payload::receipt::{self, Receipt};
use sayso_protocol::payload::rpt::{self, Rpt};
use sayso_protocol::{Json, S256, SigningKey, b64, canon};
use serde_json::Value;

use super::framed;

/// The `kid` under which the receipt's key is published here.
pub const KID: &str = "k1";

/// The body.
pub fn check(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        received(text);
    }
    let (header, payload) = framed::first_line(bytes);
    let key = key();
    let compact = signed(header.as_bytes(), payload, &key);
    let Ok(jws) = Unverified::parse(&compact, receipt::LONGEST) else { return };
    accepted(&jws, header);
    let verified = jws.verify(key.verifying()).expect("what we signed verifies");
    assert_eq!(verified.compact(), compact);
    if let Ok(claims) = verified.json() {
        assert_eq!(Json::parse(payload, Limits::default()).as_ref(), Ok(&claims));
    }
    altered(&compact, &key);
    if let Ok(read) = Receipt::read(&compact, &[(KID.to_owned(), key.verifying().clone())]) {
        assert_eq!(read.agreement, canon::s256_bytes(read.agreement_jws.as_bytes()));
        let again = read.sign(&key).expect("what was read can be written");
        assert_eq!(Receipt::read(&again, &[(key.kid(), key.verifying().clone())]), Ok(read));
    }
    if let Ok((grant, verified)) = Rpt::read(&compact, key.verifying()) {
        assert_eq!(verified.compact(), compact);
        same_grant(&grant, payload);
        let again = grant.sign(&key).expect("what was read can be written");
        assert!(Rpt::read(&again, key.verifying()).is_ok_and(|(again, _)| again == grant));
    }
}

/// The key that signs here.
pub(crate) fn key() -> SigningKey {
    SigningKey::from_seed(&[3; 32]).expect("a fixed key")
}

/// The compact form of these bytes, whatever they are, under a good signature.
pub(crate) fn signed(header: &[u8], payload: &[u8], key: &SigningKey) -> String {
    let signed = format!("{}.{}", b64::encode(header), b64::encode(payload));
    let signature = b64::encode(key.sign(signed.as_bytes()).expect("a key that is here signs"));
    format!("{signed}.{signature}")
}

/// Text as it comes.
fn received(text: &str) {
    let Ok(jws) = Unverified::parse(text, rpt::LONGEST) else { return };
    let header =
        text.split('.').next().and_then(|part| b64::decode(part).ok()).expect("a header in base64url");
    accepted(&jws, std::str::from_utf8(&header).expect("a header in UTF-8"));
    if let Ok(key) = jws.jwk()
        && let Ok(verified) = jws.verify(&key)
    {
        assert_eq!(verified.compact(), text);
    }
}

/// A laxer reader of the header finds the same algorithm and the same names.
fn accepted(jws: &Unverified, header: &str) {
    let Ok(lax) = serde_json::from_str::<Value>(header) else { return };
    assert!(matches!(lax["alg"].as_str(), Some("EdDSA" | "Ed25519")));
    assert!(lax.get("crit").is_none() && lax.get("b64").is_none());
    assert_eq!(lax["typ"].as_str(), jws.typ());
    assert_eq!(lax["kid"].as_str(), jws.kid());
    if let Ok(key) = jws.jwk() {
        assert_eq!(lax["jwk"]["x"].as_str(), Some(b64::encode(key.as_bytes()).as_str()));
    }
}

/// Another letter anywhere is another text or no JWS.
fn altered(compact: &str, key: &SigningKey) {
    let at = compact.bytes().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
    let mut bytes = compact.as_bytes().to_vec();
    let length = bytes.len().max(1);
    if let Some(byte) = bytes.get_mut(at % length) {
        *byte = if *byte == b'A' { b'B' } else { b'A' };
    }
    let text = String::from_utf8(bytes).expect("ASCII");
    let parsed = Unverified::parse(&text, receipt::LONGEST);
    assert!(parsed.is_err() || parsed.is_ok_and(|jws| jws.verify(key.verifying()).is_err()));
}

/// A laxer reader of the claims finds the same grant.
fn same_grant(grant: &Rpt, payload: &[u8]) {
    let Ok(lax) = serde_json::from_slice::<Value>(payload) else { return };
    assert_eq!(lax["exp"].as_i64(), Some(grant.exp.0));
    assert_eq!(lax["aud"].as_str(), Some(grant.aud.as_str()));
    assert_eq!(lax["contract"].as_str(), Some(grant.contract.as_str()));
    assert_eq!(lax["single_use"].as_bool().unwrap_or_default(), grant.single_use);
    let digest = grant.operation.as_ref().map(|operation| S256::as_str(&operation.params_s256));
    assert_eq!(lax["operation"]["params_s256"].as_str(), digest);
}
