//! Which published keys are keys.

use super::super::keys::{Algorithm, Key};
use super::*;
use sayso_protocol::b64;
use sayso_protocol::json::Limits as JsonLimits;

fn read(jwk: &Value) -> Option<Key> {
    Key::read(&Json::parse(jwk.to_string().as_bytes(), JsonLimits::default()).unwrap())
}

#[test]
fn a_key_is_whole_in_one_spelling_and_strong_enough() {
    let (ed, p256, p384, rsa) =
        (Signer::ed().jwk("k"), Signer::p256().jwk("k"), Signer::p384().jwk("k"), Signer::rsa().jwk("k"));
    for jwk in [&ed, &p256, &p384, &rsa] {
        assert!(read(jwk).is_some(), "{jwk}");
    }
    let changed = |jwk: &Value, name: &str, value: Value| {
        let mut jwk = jwk.clone();
        jwk[name] = value;
        jwk
    };
    let n = b64::decode(rsa["n"].as_str().unwrap()).unwrap();
    let x = b64::decode(p256["x"].as_str().unwrap()).unwrap();
    let encoded = |bytes: &[u8]| json!(b64::encode(bytes));
    let bad = [
        changed(&rsa, "n", encoded(&n[..128])),
        changed(&rsa, "n", encoded(&n[..255])),
        changed(&rsa, "n", encoded(&[&[0], n.as_slice()].concat())),
        changed(&rsa, "n", encoded(&[0xff; 1025])),
        changed(&rsa, "n", json!("")),
        changed(&rsa, "n", json!(format!("{}=", rsa["n"].as_str().unwrap()))),
        changed(&rsa, "e", encoded(&[1])),
        changed(&rsa, "e", encoded(&[2])),
        changed(&rsa, "e", encoded(&[0, 1, 0, 1])),
        changed(&rsa, "e", encoded(&[0])),
        changed(&rsa, "e", encoded(&[1, 0, 0, 0, 1])),
        changed(&rsa, "e", json!("")),
        changed(&rsa, "crv", json!("P-256")),
        changed(&rsa, "kty", json!("rsa")),
        changed(&p256, "x", encoded(&x[1..])),
        changed(&p256, "x", encoded(&[&[0], x.as_slice()].concat())),
        changed(&p256, "y", json!(null)),
        changed(&p256, "crv", json!("P-384")),
        changed(&p256, "crv", json!("secp256k1")),
        changed(&p256, "crv", json!("P-521")),
        changed(&p384, "crv", json!("P-256")),
        changed(&ed, "crv", json!("Ed448")),
        changed(&ed, "x", encoded(&[0; 32])),
        changed(&ed, "x", encoded(&[9; 31])),
        changed(&ed, "kid", json!(5)),
        json!([]),
        json!("key"),
        json!({}),
    ];
    for jwk in bad {
        assert!(read(&jwk).is_none(), "{jwk}");
    }
}

// D-40: what is off the curve loads and verifies nothing.
#[test]
fn a_point_off_the_curve_verifies_nothing() {
    let mut jwk = Signer::p256().jwk("k");
    jwk["y"] = jwk["x"].clone();
    let signature = Signer::p256().sign("ES256", b"message");
    let own = read(&Signer::p256().jwk("k")).unwrap();
    assert!(own.verifies(Algorithm::Es256, b"message", &signature));
    assert!(!own.verifies(Algorithm::Es384, b"message", &signature));
    assert!(read(&jwk).is_none_or(|key| !key.verifies(Algorithm::Es256, b"message", &signature)));
}
