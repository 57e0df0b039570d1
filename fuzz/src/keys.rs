//! Keys a peer publishes: key sets, one JWK, and the PEM of a key file. What is taken for a key is one, has one
//! spelling, and proves something (BASE-12, D-40).

use sayso_protocol::json::{Limits, strict};
use sayso_protocol::payload::metadata::KeySet;
use sayso_protocol::{Jwk, SigningKey, VerifyingKey};
use serde_json::Value;

/// The body.
pub fn check(bytes: &[u8]) {
    if let Ok(set) = strict::<KeySet>(bytes, Limits::default()) {
        let keys = set.keys();
        let lax = serde_json::from_slice::<Value>(bytes).unwrap_or_default();
        let objects =
            lax["keys"].as_array().map_or(0, |keys| keys.iter().filter(|key| key.is_object()).count());
        assert!(lax.is_null() || keys.len() <= objects.min(64), "more keys than are published");
        keys.iter().for_each(|(_, key)| usable(key));
        let again = KeySet::of(keys.iter().map(|(_, key)| key)).keys();
        assert!(again.iter().zip(&keys).all(|((_, again), (_, key))| again == key));
    }
    if let Ok(jwk) = strict::<Jwk>(bytes, Limits::default())
        && let Ok(key) = jwk.key()
    {
        usable(&key);
        assert_eq!(key.jwk(), jwk, "two spellings of one key");
    }
    if let Some(key) = bytes.first_chunk::<32>().and_then(|point| VerifyingKey::from_bytes(point).ok()) {
        usable(&key);
    }
    if let Ok(key) =
        std::str::from_utf8(bytes).map_err(drop).and_then(|pem| SigningKey::from_pem(pem).map_err(drop))
    {
        assert!(
            key.verifying().verify(b"", &key.sign(b"").expect("a key that is here signs")).is_ok(),
            "a key that does not fit itself"
        );
    }
}

/// No fixed signature verifies under it: not that of nothing, nor that of the neutral point.
fn usable(key: &VerifyingKey) {
    let mut neutral = [0; 64];
    assert!(key.verify(b"", &neutral).is_err(), "anybody can sign for this key");
    if let Some(first) = neutral.first_mut() {
        *first = 1;
    }
    assert!(key.verify(b"", &neutral).is_err(), "anybody can sign for this key");
    assert_eq!(VerifyingKey::from_bytes(key.as_bytes()).as_ref(), Ok(key));
    assert_eq!(key.jwk().key().as_ref(), Ok(key));
}
