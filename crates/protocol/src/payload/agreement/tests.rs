//! Every kind of altered agreement is a breach; narrower ones are not.

use super::*;
use crate::jws::{self, KeyName};
use crate::payload::terms::Terms;
use crate::{SigningKey, b64};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp(1_790_000_000);

fn key() -> SigningKey {
    SigningKey::from_seed(&[0x22; 32]).unwrap()
}

fn proffer(per_operation: bool) -> Proffer {
    Proffer {
        terms: Terms {
            template_id: "ns/trading/v1".parse().unwrap(),
            purpose: "one trade".into(),
            scope: vec!["trades:execute".parse().unwrap(), "trades:preview".parse().unwrap()],
            expires_in: 900,
            prohibited: vec!["marketing".into(), "model-training".into()],
            proffered_by: "https://as.example".into(),
            per_operation,
            enforced: [("marketing".to_owned(), "a mechanism".to_owned())].into(),
        },
        terms_uri: "https://as.example/terms/ns/trading/v1".into(),
        nonce: "n-1".into(),
        family: "f-1".parse().unwrap(),
        resource_id: "vault/execute_trade".parse().unwrap(),
    }
}

fn claims() -> Value {
    json!({
        "iss": "agent", "aud": "https://as.example", "iat": NOW.0, "template_id": "ns/trading/v1",
        "terms_uri": "https://as.example/terms/ns/trading/v1", "purpose": "one trade",
        "scope": ["trades:execute"], "expires_in": 900, "prohibited": ["model-training", "marketing"],
        "family": "f-1", "nonce": "n-1",
        "operation": {"tool": "execute_trade", "params": {"quantity": 10, "side": "buy", "symbol": "AAPL"}},
    })
}

fn token(claims: &Value) -> String {
    b64::encode(jws::sign(&key(), TYP, &KeyName::Jwk, claims).unwrap())
}

fn verdict(claims: &Value) -> Result<(), Breach> {
    let tool = "execute_trade".parse().unwrap();
    SignedAgreement::read(&token(claims))?.assents_to(&proffer(true), Some(&tool), NOW)
}

fn with(member: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[member] = value;
    claims
}

fn without(member: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(member);
    claims
}

// TERMS-08, TERMS-22, TERMS-25, TERMS-26, TERMS-27, TERMS-28, TERMS-29, TERMS-30
// What the terms say beyond the echo is agreed to by citing them.
#[test]
fn the_echo_and_anything_narrower_is_assent() {
    assert_eq!(verdict(&claims()), Ok(()));
    assert_eq!(verdict(&with("expires_in", json!(1))), Ok(()));
    assert_eq!(verdict(&with("prohibited", json!(["marketing", "model-training", "resale"]))), Ok(()));
    assert_eq!(verdict(&with("unheard_of", json!({"a": 1}))), Ok(()));
    let agreement = SignedAgreement::read(&token(&claims())).unwrap();
    assert_eq!(agreement.key(), key().verifying());
    assert_eq!(
        agreement.operation().unwrap().params_s256.to_string(),
        "s256:-aebGJDa5aXhae8pSrUgW2ofegRco3RpV4G3QS40wrU"
    );
}

// TERMS-20, TERMS-26, TERMS-27, TERMS-28, TERMS-29, TERMS-30, TERMS-33, TERMS-34
#[test]
fn every_alteration_is_a_breach() {
    let table = [
        (with("aud", json!("https://other.example")), Breach::Audience),
        (with("iat", json!(NOW.0 - 601)), Breach::IssuedAt),
        (with("iat", json!("now")), Breach::Claims),
        (with("nonce", json!("n-2")), Breach::Altered("nonce")),
        (with("family", json!("f-2")), Breach::Altered("family")),
        (with("template_id", json!("ns/trading/v2")), Breach::Altered("template_id")),
        (with("terms_uri", json!("https://as.example/terms/other")), Breach::Altered("terms_uri")),
        (with("purpose", json!("many trades")), Breach::Altered("purpose")),
        (with("expires_in", json!(0)), Breach::Expiry),
        (with("expires_in", json!(-1)), Breach::Expiry),
        (with("expires_in", json!(901)), Breach::Expiry),
        (with("expires_in", json!(900.0)), Breach::Claims),
        (without("expires_in"), Breach::Claims),
        (with("scope", json!(["trades:execute", "admin"])), Breach::Scope),
        (with("scope", json!([])), Breach::Scope),
        (with("prohibited", json!(["marketing"])), Breach::Prohibition),
        (without("operation"), Breach::Operation),
        (with("operation", json!({"tool": "execute_trade"})), Breach::Claims),
        (with("operation", json!({"tool": 1, "params": {}})), Breach::Claims),
        (with("operation", json!({"tool": "execute_trade", "params": []})), Breach::Claims),
        (with("operation", json!({"tool": "get_positions", "params": {}})), Breach::Operation),
        (with("reason", json!("x".repeat(513))), Breach::Reason),
        (with("mission", json!({"approver": "http://a.example", "s256": claims_digest()})), Breach::Mission),
    ];
    for (claims, breach) in table {
        assert_eq!(verdict(&claims), Err(breach), "{claims}");
    }
}

fn claims_digest() -> String {
    s256_bytes(b"mission").to_string()
}

// TERMS-22, TERMS-23, TERMS-24
#[test]
fn the_token_has_one_form_and_one_key() {
    let compact = jws::sign(&key(), TYP, &KeyName::Jwk, &claims()).unwrap();
    assert_eq!(SignedAgreement::read(&compact).err(), Some(Breach::Form), "not encoded");
    let kid_only = jws::sign(&key(), TYP, &KeyName::Kid("k"), &claims()).unwrap();
    assert_eq!(SignedAgreement::read(&b64::encode(kid_only)).err(), Some(Breach::Key));
    let other_typ = jws::sign(&key(), "JWT", &KeyName::Jwk, &claims()).unwrap();
    assert_eq!(SignedAgreement::read(&b64::encode(other_typ)).err(), Some(Breach::Form));
    let mut forged = compact.into_bytes();
    let last = forged.len() - 3;
    forged[last] = if forged[last] == b'A' { b'B' } else { b'A' };
    assert_eq!(SignedAgreement::read(&b64::encode(forged)).err(), Some(Breach::Signature));
    assert_eq!(SignedAgreement::read(&"A".repeat(MAX_CLAIM_TOKEN + 1)).err(), Some(Breach::Form));
}

/// The agreement over these very bytes, under the honest key.
fn raw(payload: &str) -> Result<(), Breach> {
    let header = json!({"alg": "EdDSA", "typ": TYP, "jwk": key().verifying().jwk()});
    let signed = format!("{}.{}", b64::encode(header.to_string()), b64::encode(payload));
    let signature = b64::encode(key().sign(signed.as_bytes()).unwrap());
    SignedAgreement::read(&b64::encode(format!("{signed}.{signature}")))?.assents_to(
        &proffer(true),
        Some(&"execute_trade".parse().unwrap()),
        NOW,
    )
}

/// The honest claims with this member written as it is here.
fn spelled(member: &str, text: &str) -> Result<(), Breach> {
    raw(&with(member, json!("@")).to_string().replacen("\"@\"", text, 1))
}

// TERMS-26, TERMS-27: a time is a whole number of seconds; anything else is not read as no time at all.
#[test]
fn times_are_whole_numbers() {
    let now = NOW.0.to_string();
    assert_eq!(spelled("iat", &now), Ok(()));
    let quoted = format!("\"{now}\"");
    let words = [&quoted, "\"soon\"", "null", "true", "[1790000000]", "{}"];
    let numbers =
        ["1790000000.0", "1790000000.5", "1.79e9", "1e400", "1e30", "99999999999999999999", "-1e400"];
    for text in words.into_iter().chain(numbers) {
        assert_eq!(spelled("iat", text), Err(Breach::Claims), "iat {text}");
        assert_eq!(spelled("expires_in", text), Err(Breach::Claims), "expires_in {text}");
    }
    for text in ["0", "-1", "-1790000000", "1790000000000", "9223372036854775807", "-9223372036854775808"] {
        assert_eq!(spelled("iat", text), Err(Breach::IssuedAt), "iat {text}");
        assert_eq!(spelled("expires_in", text), Err(Breach::Expiry), "expires_in {text}");
    }
    let mut twice = claims().to_string();
    twice.insert_str(1, &format!("\"iat\":{quoted},"));
    assert_eq!(raw(&twice), Err(Breach::Claims), "twice");
    assert_eq!(verdict(&without("iat")), Err(Breach::Claims));
}

// TERMS-26
#[test]
fn an_audience_is_one_string_and_compared_whole() {
    let ours = "https://as.example";
    for other in [
        "https://as.example.evil.test",
        "https://as.exampl",
        "https://as.example/",
        "https://as.example/token",
        "https://AS.example",
        "https://as.example:443",
        "http://as.example",
        "as.example",
        "https://as.example,https://evil.test",
        "https://as.example https://evil.test",
        " https://as.example",
        "*",
        "",
    ] {
        assert_eq!(verdict(&with("aud", json!(other))), Err(Breach::Audience), "{other}");
    }
    let shapes = [json!([ours]), json!([ours, "https://evil.test"]), json!([[ours]]), json!([]), json!(7)];
    for shape in shapes.into_iter().chain([json!({"aud": ours}), json!(null)]) {
        assert_eq!(verdict(&with("aud", shape.clone())), Err(Breach::Claims), "{shape}");
    }
    assert_eq!(verdict(&without("aud")), Err(Breach::Claims));
}

// TERMS-23, TERMS-24: under such a key one signature fits every text, so it binds nobody to anything.
#[test]
fn a_key_that_proves_nothing_signs_nothing() {
    let universal = [[1].as_slice(), &[0; 63]].concat();
    for x in crate::key::tests::unfit_points() {
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": b64::encode(x)});
        let header = json!({"alg": "EdDSA", "typ": TYP, "jwk": jwk}).to_string();
        for claims in [claims(), with("expires_in", json!(1))] {
            let signed = format!("{}.{}", b64::encode(&header), b64::encode(claims.to_string()));
            let token = b64::encode(format!("{signed}.{}", b64::encode(&universal)));
            assert_eq!(SignedAgreement::read(&token).err(), Some(Breach::Key), "{jwk}");
        }
    }
}
