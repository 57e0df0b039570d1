//! Assertions that hold, and each neighbour that does not.

use super::*;
use crate::SigningKey;
use crate::jws::sign_under;
use serde_json::json;

const NOW: Timestamp = Timestamp(1_800_000_000);
const PROVIDER: &str = "https://idp.example/t1";
const AUTHORITY: &str = "https://as.example";

fn key() -> SigningKey {
    SigningKey::from_seed(&[7; 32]).unwrap()
}

fn keys() -> IssuerKeys {
    let jwk = serde_json::to_value(key().verifying().jwk()).unwrap();
    IssuerKeys::read(json!({ "keys": [jwk] }).to_string().as_bytes()).unwrap()
}

fn written(header: Value, claims: Value) -> String {
    let mut head = json!({ "alg": "EdDSA", "typ": TYP });
    let mut body = json!({
        "iss": PROVIDER, "sub": "u-1", "email": "kim@people.example", "aud": AUTHORITY, "client_id": "c-1", "jti": "j",
        "iat": NOW, "exp": NOW.plus(300), "resource": "https://gw.example/mcp", "scope": "a b", "cnf": { "jkt": "k" },
    });
    for (base, over) in [(&mut head, header), (&mut body, claims)] {
        for (name, value) in over.as_object().unwrap() {
            base[name] = value.clone();
        }
        base.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    }
    sign_under(&key(), &head, &body).unwrap()
}

fn judged(header: Value, claims: Value) -> Result<Asserted, BadAssertion> {
    let scopes = ["a".parse().unwrap()];
    let asked = Asked { authority: AUTHORITY, server: "https://gw.example", scopes: &scopes, subject: "sub" };
    Said::read(&written(header, claims))?.vouched(&keys(), &asked, NOW)
}

// CORE-35, CORE-36
#[test]
fn an_assertion_says_whom_an_agent_acts_for() {
    let asserted = judged(json!({}), json!({})).unwrap();
    assert_eq!((asserted.issuer.as_str(), asserted.subject.as_str()), (PROVIDER, "u-1"));
    assert!(asserted.is_about(&Thumbprint::from_text("k"), "anybody"));
    assert!(!asserted.is_about(&Thumbprint::from_text("l"), "c-1"), "the key counts where there is one");
    let by_name = judged(json!({}), json!({ "cnf": null, "client_id": "jkt:k" })).unwrap();
    assert!(by_name.is_about(&Thumbprint::from_text("k"), "jkt:k"));
    assert!(!by_name.is_about(&Thumbprint::from_text("k"), "bot@ps.example"));
    for unsaid in ["resource", "scope"] {
        assert!(judged(json!({}), json!({ unsaid: null })).is_ok());
    }
}

// CORE-36
#[test]
fn each_neighbour_is_refused_for_its_own_reason() {
    let claim = |name: &str, value: Value| judged(json!({}), json!({ name: value })).unwrap_err();
    assert_eq!(judged(json!({ "typ": "JWT" }), json!({})).unwrap_err(), BadAssertion::Type);
    assert_eq!(judged(json!({ "typ": "aa-agent+jwt" }), json!({})).unwrap_err(), BadAssertion::Type);
    assert_eq!(judged(json!({ "kid": "another" }), json!({})).unwrap_err(), BadAssertion::Unpublished);
    assert_eq!(
        judged(json!({ "alg": "RS256" }), json!({})).unwrap_err(),
        BadAssertion::Jws(BadJws::Algorithm)
    );
    for aud in
        [json!("https://as.example/"), json!("https://other.example"), json!([]), json!([AUTHORITY, "x"])]
    {
        assert_eq!(claim("aud", aud.clone()), BadAssertion::Audience, "{aud}");
    }
    for late in [NOW, NOW.plus(-1), NOW.plus(MAX_LIFE + 1)] {
        assert_eq!(claim("exp", json!(late)), BadAssertion::Time);
    }
    assert_eq!(claim("iat", json!(NOW.plus(61))), BadAssertion::Time);
    assert_eq!(claim("nbf", json!(NOW.plus(61))), BadAssertion::Time);
    assert_eq!(claim("resource", json!("https://elsewhere.example/mcp")), BadAssertion::Reach);
    assert_eq!(claim("scope", json!("b")), BadAssertion::Reach);
    assert_eq!(claim("scope", json!("ab")), BadAssertion::Reach);
    assert_eq!(claim("cnf", Value::Null), BadAssertion::Unbound);
    assert_eq!(claim("cnf", json!({ "jwk": {} })), BadAssertion::Claims);
    for needed in ["iss", "sub", "jti", "exp", "iat", "client_id", "aud"] {
        assert_eq!(claim(needed, Value::Null), BadAssertion::Claims, "{needed}");
    }
    let altered = written(json!({}), json!({})).replace('.', "..");
    assert!(Said::read(&altered).is_err() && Said::read(&"a".repeat(MAX_ASSERTION + 1)).is_err());
    let mut forged = written(json!({}), json!({}));
    forged.replace_range(forged.len() - 8.., "AAAAAAAA");
    let asked = Asked { authority: AUTHORITY, server: "https://gw.example", scopes: &[], subject: "sub" };
    assert!(Said::read(&forged).is_ok_and(|said| said.vouched(&keys(), &asked, NOW).is_err()));
}

#[test]
fn the_claim_that_names_the_person_is_the_one_configured() {
    let asked = |subject| Asked { authority: AUTHORITY, server: "https://gw.example", scopes: &[], subject };
    let by =
        |subject| Said::read(&written(json!({}), json!({}))).unwrap().vouched(&keys(), &asked(subject), NOW);
    assert_eq!(by("email").unwrap().subject, "kim@people.example");
    assert_eq!(by("absent").unwrap_err(), BadAssertion::Claims);
}

#[test]
fn providers_are_https_urls_in_their_plain_form() {
    for good in ["https://idp.example", PROVIDER] {
        assert!(is_provider(good), "{good}");
    }
    for bad in [
        "http://idp.example",
        "https://idp.example/",
        "https://idp.example/t1/",
        "https://idp.example/?a",
        "x",
    ] {
        assert!(!is_provider(bad), "{bad}");
    }
}
