//! Every kind of altered agreement is a breach; narrower ones are not.

use super::*;
use crate::payload::terms::Terms;
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
