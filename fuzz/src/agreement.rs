//! A claim token, as received; and claims, signed here under the header of an agreement so that they are read too.
//! Both readings of the signed bytes agree, and what assents to the terms is no wider than they are (TERMS-22..35).

use sayso_protocol::payload::agreement::{
    Breach, IAT_SKEW, MAX_CLAIM_TOKEN, MAX_REASON, SignedAgreement, TYP, sign,
};
use sayso_protocol::payload::terms::{Proffer, Terms};
use sayso_protocol::{Timestamp, b64, canon};

use super::jws;

/// The time of every check.
pub const NOW: Timestamp = Timestamp(1_800_000_000);

/// The body.
pub fn check(bytes: &[u8]) {
    if let Ok(token) = std::str::from_utf8(bytes)
        && let Ok(agreement) = SignedAgreement::read(token)
    {
        consistent(&agreement);
    }
    let key = jws::key();
    let jwk = serde_json::to_string(&key.verifying().jwk()).expect("a key can be written");
    let header = format!(r#"{{"alg":"EdDSA","typ":"{TYP}","jwk":{jwk}}}"#);
    let token = b64::encode(jws::signed(header.as_bytes(), bytes, &key));
    match SignedAgreement::read(&token) {
        Ok(agreement) => {
            assert_eq!(agreement.key(), key.verifying());
            consistent(&agreement);
        }
        Err(breach) => {
            let of_the_claims = matches!(breach, Breach::Claims | Breach::Operation);
            assert!(of_the_claims || token.len() > MAX_CLAIM_TOKEN, "{breach}");
        }
    }
}

fn consistent(agreement: &SignedAgreement) {
    let claims = agreement.claims();
    assert_eq!(agreement.digest(), canon::s256_bytes(agreement.compact().as_bytes()));
    match (&claims.operation, agreement.operation()) {
        (None, None) => {}
        (Some(claimed), Some(bound)) => assert_eq!(claimed.tool, bound.tool, "two tools in one agreement"),
        _ => assert!(
            claims.operation.is_none() && agreement.operation().is_none(),
            "one reading has an operation"
        ),
    }
    let again = sign(&jws::key(), claims).expect("what was read can be written");
    if let Ok(again) = SignedAgreement::read(&again) {
        assert_eq!(again.claims().scope, claims.scope);
        assert_eq!(again.claims().nonce, claims.nonce);
    }
    let proffer = proffer();
    if agreement.assents_to(&proffer, None, NOW).is_ok() {
        let terms = &proffer.terms;
        assert!(!claims.scope.is_empty() && claims.scope.iter().all(|scope| terms.scope.contains(scope)));
        assert!(claims.expires_in > 0 && claims.expires_in <= terms.expires_in);
        assert!(terms.prohibited.iter().all(|promise| claims.prohibited.contains(promise)));
        assert!(agreement.operation().is_some(), "assent to one act without the act");
        assert!(NOW.since(claims.iat).abs() <= IAT_SKEW);
        assert!(
            claims.nonce == proffer.nonce
                && claims.family == proffer.family
                && claims.aud == terms.proffered_by
        );
        assert!(claims.reason.as_ref().is_none_or(|reason| reason.len() <= MAX_REASON));
    }
}

/// The terms that every agreement here is held against.
pub fn proffer() -> Proffer {
    Proffer {
        terms: Terms {
            template_id: "alice/trades/v1".parse().expect("an id"),
            purpose: "place one order".into(),
            scope: vec!["trades:execute".parse().expect("a scope"), "trades:read".parse().expect("a scope")],
            expires_in: 600,
            prohibited: vec!["resale".into()],
            proffered_by: "https://as.example".into(),
            per_operation: true,
            enforced: [("resale".to_owned(), "none".to_owned())].into(),
        },
        terms_uri: "https://as.example/terms/alice/trades/v1".into(),
        nonce: "n-1".into(),
        family: "neg-1".parse().expect("an id"),
        resource_id: "vault/execute_trade".parse().expect("an id"),
    }
}
