//! The vectors in `vectors/credential`, and what they cannot say.

use super::*;
use crate::key::SigningKey;
use crate::payload::agreement::{self, AgreementClaims, Breach, Presented, Showing, SignedAgreement};
use crate::{b64, jws::sign_under};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp(1_790_000_000);
const US: &str = "https://as.example";

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../../../vectors/credential/credentials.json")).unwrap()
}

fn issuer() -> SigningKey {
    SigningKey::from_seed(&[0x31; 32]).unwrap()
}

fn agent() -> SigningKey {
    SigningKey::from_seed(&[0x22; 32]).unwrap()
}

/// The document with the public keys filled in.
fn filled(value: &Value) -> Value {
    let x = |key: &SigningKey| b64::encode(key.verifying().as_bytes());
    let text = value.to_string().replace("$issuer", &x(&issuer())).replace("$agent", &x(&agent()));
    serde_json::from_str(&text).unwrap()
}

fn patched(base: &Value, patch: &Value) -> Value {
    let mut patched = base.clone();
    for (name, value) in patch.as_object().into_iter().flatten() {
        match value {
            Value::Null => drop(patched.as_object_mut().unwrap().remove(name)),
            other => patched[name] = other.clone(),
        }
    }
    patched
}

fn keys(set: &Value) -> IssuerKeys {
    IssuerKeys::read(filled(&json!({ "keys": set })).to_string().as_bytes()).unwrap()
}

fn issued(header: &Value, claims: &Value, signer: &SigningKey) -> String {
    let all = vectors();
    let (header, claims) = (patched(&all["header"], header), patched(&all["claims"], claims));
    sign_under(signer, &filled(&header), &filled(&claims)).unwrap()
}

// AAUTH-02, AAUTH-03, AAUTH-05, AAUTH-06, AAUTH-07, AAUTH-08, AAUTH-11, AAUTH-12, AAUTH-13, CORE-46, CORE-47, CORE-48,
// CORE-49
#[test]
fn every_vector_is_read_and_judged_as_it_says() {
    let all = vectors();
    for case in all["vectors"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let signer = if case["signer"] == "$agent" { agent() } else { issuer() };
        let shown = Shown::read(&issued(&case["header"], &case["claims"], &signer));
        assert_eq!(shown.is_ok(), case["reads"] == true, "{name}: {:?}", shown.err());
        let Ok(shown) = shown else { continue };
        assert_eq!(shown.confirmed(), agent().verifying(), "{name}");
        let keys = keys(case.get("keys").unwrap_or(&all["keys"]));
        let vouched = shown.vouched(&keys, US, NOW);
        assert_eq!(vouched.is_ok(), case["holds"] == true, "{name}: {:?}", vouched.err());
        let Ok(credential) = vouched else { continue };
        assert_eq!(credential.handle.as_str(), case["handle"].as_str().unwrap(), "{name}");
        assert_eq!(credential.parent.as_ref().map(Handle::as_str), case["parent"].as_str(), "{name}");
    }
}

// CORE-48: the key is no part of the name.
#[test]
fn another_session_key_is_the_same_agent() {
    let other = SigningKey::from_seed(&[0x23; 32]).unwrap();
    let mut jwk = serde_json::to_value(other.verifying().jwk()).unwrap();
    jwk["alg"] = "Ed25519".into();
    let [first, second] = [json!({}), json!({ "cnf": { "jwk": jwk } })]
        .map(|claims| Shown::read(&issued(&json!({}), &claims, &issuer())).unwrap());
    assert_ne!(first.confirmed(), second.confirmed());
    assert_eq!(first.handle(), second.handle());
}

#[test]
fn what_is_no_credential_is_not_read() {
    let good = issued(&json!({}), &json!({}), &issuer());
    for odd in
        ["", "a.b.c", &good[1..], &format!("{good}.x"), &format!("{good}{}", "A".repeat(MAX_CREDENTIAL))]
    {
        assert!(Shown::read(odd).is_err(), "{odd:.40}");
    }
    let header = b64::encode(vectors()["header"].to_string());
    for claims in ["[]", "{}", "{\"iss\":\"https://a.example\",\"iss\":\"https://b.example\"}"] {
        assert!(Shown::read(&format!("{header}.{}.AA", b64::encode(claims))).is_err(), "{claims}");
    }
}

// AAUTH-04
#[test]
fn keys_are_where_the_issuers_own_document_says() {
    let address = |document: Value| keys_address("https://ps.example", document.to_string().as_bytes()).ok();
    let there = "https://ps.example/jwks.json";
    assert_eq!(address(json!({ "issuer": "https://ps.example", "jwks_uri": there })).as_deref(), Some(there));
    assert_eq!(address(json!({ "jwks_uri": there })).as_deref(), Some(there));
    for odd in [
        "https://PS.example/jwks.json",
        "HTTPS:\\\\ps.example\\jwks.json",
        "https:ps.example/x/../jwks.json",
        " https://ps.exam\tple:443/jwks.json",
    ] {
        assert_eq!(address(json!({ "jwks_uri": odd })).as_deref(), Some(there), "{odd}");
    }
    for other in [
        json!({ "issuer": "https://ps.example/", "jwks_uri": there }),
        json!({ "issuer": "https://other.example", "jwks_uri": there }),
        json!({ "jwks_uri": "https://other.example/jwks.json" }),
        json!({ "jwks_uri": "http://ps.example/jwks.json" }),
        json!({ "jwks_uri": "https://u@ps.example/jwks.json" }),
        json!({ "jwks_uri": "https://:p@ps.example/jwks.json" }),
        json!({ "jwks_uri": "https://ps.example@other.example/jwks.json" }),
        json!({ "jwks_uri": "https://ps.example.:443/jwks.json" }),
        json!({ "issuer": "https://ps.example" }),
        json!([]),
    ] {
        assert_eq!(address(other.clone()), None, "{other}");
    }
    assert_eq!(
        IssuerKeys::document_of("https://ps.example"),
        "https://ps.example/.well-known/aauth-agent.json"
    );
    assert!(keys_address("https://ps.example/t", br#"{"jwks_uri":"https://ps.example/t/k"}"#).is_err());
}

#[test]
fn a_key_set_is_bounded() {
    let key = filled(&vectors()["keys"][0]);
    let set = |many| json!({ "keys": vec![&key; many] }).to_string();
    assert!(IssuerKeys::read(set(64).as_bytes()).is_ok());
    assert!(IssuerKeys::read(set(65).as_bytes()).is_err());
    assert!(IssuerKeys::read(b"{}").is_err() && IssuerKeys::read(b"[]").is_err());
    let known = keys(&vectors()["keys"]);
    assert!(known.knows(Some("k1")) && known.knows(None) && !known.knows(Some("k2")));
    assert!(!IssuerKeys::default().knows(None));
}

fn claims() -> AgreementClaims {
    serde_json::from_value(json!({
        "aud": US, "iat": NOW.0, "template_id": "ns/look/v1", "terms_uri": "https://as.example/terms/ns/look/v1",
        "purpose": "a look", "scope": ["look"], "expires_in": 60, "prohibited": [], "family": "f", "nonce": "n",
    }))
    .unwrap()
}

fn presented(credential: &str) -> Result<SignedAgreement, Breach> {
    let showing = Showing { credential: Some(credential), ..Showing::default() };
    let token = agreement::sign_as(&agent(), &showing, &claims()).unwrap();
    match Presented::read(&token)? {
        Presented::Bare(_) => panic!("it shows a credential"),
        Presented::Named(named) => {
            assert!(named.is_for(US, NOW) && !named.is_for("https://other.example", NOW));
            named.vouched(&keys(&vectors()["keys"]), US, NOW).map_err(|_| Breach::Credential)
        }
    }
}

// AAUTH-01, AAUTH-11, TERMS-23, TERMS-25, CORE-48
#[test]
fn an_agreement_in_a_credentials_name_has_its_handle_and_its_key() {
    let agreement = presented(&issued(&json!({}), &json!({}), &issuer())).unwrap();
    assert_eq!(agreement.handle().as_str(), "aauth:worker@ps.example");
    assert_eq!(agreement.key(), agent().verifying());
    assert_eq!(agreement.credential().unwrap().issuer, "https://ps.example");
    let old = issued(&json!({ "alg": "EdDSA" }), &json!({}), &issuer());
    assert!(presented(&old).is_err(), "its issuer's key has the newer name");
    let past = issued(&json!({}), &json!({ "exp": NOW.0 }), &issuer());
    assert_eq!(presented(&past).err(), Some(Breach::Credential));
}

// AAUTH-10, TERMS-23, TERMS-24
#[test]
fn the_agreements_header_decides_nothing_about_the_key() {
    let credential = issued(&json!({}), &json!({}), &issuer());
    let signed = |header: Value, signer: &SigningKey| {
        Presented::read(&b64::encode(sign_under(signer, &header, &claims()).unwrap())).err()
    };
    let header = |more: Value| {
        let base = json!({ "alg": "Ed25519", "typ": agreement::TYP, "agent_token": credential });
        patched(&base, &more)
    };
    assert_eq!(signed(header(json!({})), &agent()), None);
    assert_eq!(signed(header(json!({ "alg": "EdDSA" })), &agent()), Some(Breach::Credential));
    assert_eq!(signed(header(json!({ "alg": "none" })), &agent()), Some(Breach::Form));
    assert_eq!(signed(header(json!({})), &issuer()), Some(Breach::Signature), "by another key");
    let jwk = serde_json::to_value(agent().verifying().jwk()).unwrap();
    assert_eq!(signed(header(json!({ "jwk": jwk })), &agent()), Some(Breach::Key), "two keys");
    assert_eq!(signed(header(json!({ "agent_token": null })), &agent()), Some(Breach::Key), "none");
    assert_eq!(signed(header(json!({ "agent_token": 7 })), &agent()), Some(Breach::Credential));
    assert_eq!(signed(header(json!({ "agent_token": "a.b.c" })), &agent()), Some(Breach::Credential));
    let theirs = Showing { credential: Some(&credential), ..Showing::default() };
    assert!(agreement::sign_as(&issuer(), &theirs, &claims()).is_err(), "a credential for another key");
    let token = agreement::sign_as(&agent(), &theirs, &claims()).unwrap();
    assert_eq!(
        SignedAgreement::read(&token).err(),
        Some(Breach::Credential),
        "where only bare keys are read"
    );
}

// CORE-51, CORE-53
#[test]
fn a_description_is_signed_and_changes_neither_key_nor_handle() {
    let showing = Showing {
        client_id: Some("https://op.example/a.json"),
        directory: Some("https://op.example"),
        credential: None,
    };
    let plain = SignedAgreement::read(&agreement::sign(&agent(), &claims()).unwrap()).unwrap();
    let described =
        SignedAgreement::read(&agreement::sign_as(&agent(), &showing, &claims()).unwrap()).unwrap();
    assert_eq!((plain.handle(), plain.key()), (described.handle(), described.key()));
    assert_eq!(described.described().client_id.as_deref(), showing.client_id);
    assert_eq!(described.described().directory.as_deref(), showing.directory);
    assert_eq!(plain.described(), &agreement::Described::default());
}
