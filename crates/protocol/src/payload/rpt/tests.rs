//! A grant is read under the authority's own key, and a claim of another type is not a claim that was left out.

use super::*;
use crate::b64;
use crate::key::VerifyingKey;
use serde_json::{Value, json};

fn key() -> SigningKey {
    SigningKey::from_seed(&[0x11; 32]).unwrap()
}

fn claims() -> Value {
    let jwk = SigningKey::from_seed(&[0x22; 32]).unwrap().verifying().jwk();
    json!({
        "iss": "https://as.example", "aud": "https://gw.example", "jti": "t-1", "iat": 1_790_000_000,
        "exp": 1_790_000_600, "sub": "jkt:a", "client_id": "jkt:a", "cnf": {"jwk": jwk},
        "permissions": [{"resource_id": "vault/x", "resource_scopes": ["x:read"], "exp": 1_790_000_600}],
        "owner": "alice", "contract": "s256:RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o",
    })
}

fn read(payload: &str, header: &Value, verifying: &VerifyingKey) -> Result<Rpt, BadJws> {
    let signed = format!("{}.{}", b64::encode(header.to_string()), b64::encode(payload));
    let compact = format!("{signed}.{}", b64::encode(key().sign(signed.as_bytes()).unwrap()));
    Rpt::read(&compact, verifying).map(|(rpt, _)| rpt)
}

fn of(payload: &str) -> Result<Rpt, BadJws> {
    read(payload, &json!({"alg": "EdDSA", "typ": TYP}), key().verifying())
}

// CORE-68
#[test]
fn a_grant_has_one_kind_and_one_signer() {
    let honest = claims().to_string();
    assert_eq!(of(&honest).unwrap().exp, Timestamp(1_790_000_600));
    let stranger = SigningKey::from_seed(&[0x33; 32]).unwrap();
    let header = json!({"alg": "EdDSA", "typ": TYP});
    assert_eq!(read(&honest, &header, stranger.verifying()), Err(BadJws::Signature));
    for typ in [json!("JWT"), json!("AT+JWT"), json!("application/at+jwt"), json!(null), json!(["at+jwt"])] {
        let header = json!({"alg": "EdDSA", "typ": typ});
        assert_eq!(read(&honest, &header, key().verifying()), Err(BadJws::Form), "{typ}");
    }
}

// CORE-68, CORE-71
#[test]
fn its_times_are_whole_numbers() {
    let spelled = |at: &str, text: &str| {
        let mut claims = claims();
        *claims.pointer_mut(at).unwrap() = json!("@");
        of(&claims.to_string().replacen("\"@\"", text, 1))
    };
    for at in ["/exp", "/iat", "/permissions/0/exp"] {
        assert!(spelled(at, "-5").is_ok(), "{at}");
        for text in [
            "\"1790000600\"",
            "\"soon\"",
            "[1790000600]",
            "true",
            "1790000600.0",
            "1.79e9",
            "1e400",
            "1e30",
            "18446744073709551615",
        ] {
            assert_eq!(spelled(at, text), Err(BadJws::Claims), "{at} {text}");
        }
    }
    assert_eq!(spelled("/exp", "null"), Err(BadJws::Claims));
    for member in ["exp", "iat"] {
        let mut without = claims();
        without.as_object_mut().unwrap().remove(member);
        assert_eq!(of(&without.to_string()), Err(BadJws::Claims), "{member}");
        let twice = claims().to_string().replacen('{', &format!("{{\"{member}\":\"1\","), 1);
        assert_eq!(of(&twice), Err(BadJws::Claims), "{member} twice");
    }
}

// CORE-72
#[test]
fn who_issued_it_for_whom_is_text() {
    for member in ["iss", "aud", "owner", "jti"] {
        for value in [json!(["https://as.example"]), json!(7), json!({}), json!(null)] {
            let mut claims = claims();
            claims[member] = value;
            assert_eq!(of(&claims.to_string()), Err(BadJws::Claims), "{member}");
        }
    }
}
