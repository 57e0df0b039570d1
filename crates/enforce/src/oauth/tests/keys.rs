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

/// Keys and signatures that others printed: RFC 7515 appendices A.2 and A.3, RFC 8037 appendix A.
#[test]
fn printed_signatures_verify() {
    const CLAIMS: &str =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    const MODULUS: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    const RS256: &str = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    let cases = [
        (
            json!({"kty": "RSA", "n": MODULUS, "e": "AQAB"}),
            Algorithm::Rs256,
            format!("eyJhbGciOiJSUzI1NiJ9.{CLAIMS}"),
            RS256,
        ),
        (
            json!({"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
                "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}),
            Algorithm::Es256,
            format!("eyJhbGciOiJFUzI1NiJ9.{CLAIMS}"),
            "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
        ),
        (
            json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}),
            Algorithm::EdDsa,
            "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc".to_owned(),
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
        ),
    ];
    for (jwk, algorithm, signed, signature) in cases {
        let key = read(&jwk).unwrap();
        let signature = b64::decode(signature).unwrap();
        assert!(key.verifies(algorithm, signed.as_bytes(), &signature), "{algorithm:?}");
        for other in Algorithm::ALL.into_iter().filter(|other| *other != algorithm) {
            assert!(!key.verifies(other, signed.as_bytes(), &signature), "{algorithm:?} as {other:?}");
        }
        assert!(!key.verifies(algorithm, &signed.as_bytes()[1..], &signature));
    }
}
