//! The two copies of a document: written alike, refused when they differ.

use super::*;
use crate::payload::metadata::{KeySet, ToolSurface};
use proptest::prelude::*;
use serde_json::json;

const NOW: Timestamp = Timestamp(1_790_000_000);
const RESOURCE: &str = "https://gw.example.test/mcp";

fn key() -> SigningKey {
    SigningKey::from_seed(&[9; 32]).unwrap()
}

fn keys() -> Vec<(String, VerifyingKey)> {
    KeySet::of([key().verifying()]).keys()
}

fn sample() -> ResourceMetadata {
    ResourceMetadata {
        resource: RESOURCE.into(),
        authorization_servers: vec!["https://as.example.test".into()],
        jwks_uri: "https://gw.example.test/jwks".into(),
        scopes_supported: vec!["trades:execute".parse().unwrap()],
        bearer_methods_supported: vec!["header".into()],
        resource_signing_alg_values_supported: vec!["EdDSA".into()],
        tool_surfaces: vec![ToolSurface {
            tool: "execute_trade".parse().unwrap(),
            resource_scopes: vec!["trades:execute".parse().unwrap()],
            consequence: Some("irreversible".into()),
        }],
        owner_resources_endpoint: "https://gw.example.test/owner-resources".into(),
    }
}

fn verify(document: &Value) -> Result<ResourceMetadata, BadDocument> {
    read(&serde_json::to_vec(document).unwrap(), RESOURCE)?.verify(&keys(), NOW)
}

// FED-07, FED-04
#[test]
fn a_signed_document_reads_back() {
    let document = document(&sample(), &key(), Timestamp(1)).unwrap();
    let parsed = read(&serde_json::to_vec(&document).unwrap(), RESOURCE).unwrap();
    assert!(parsed.is_signed());
    assert_eq!(parsed.jwks_uri(), Some("https://gw.example.test/jwks"));
    assert_eq!(parsed.verify(&keys(), NOW).unwrap(), sample());
    assert_eq!(verify(&document), Ok(sample()));
}

// BASE-09, CORE-31
#[test]
fn the_resource_is_compared_byte_for_byte() {
    for (asked, told, same) in [
        (RESOURCE, json!(RESOURCE), true),
        ("https://gw.example.test", json!("https://gw.example.test"), true),
        (RESOURCE, json!("https://gw.example.test/mcp/"), false),
        (RESOURCE, json!("https://gw.example.test"), false),
        (RESOURCE, json!("https://gw.example.test/mcp2"), false),
        (RESOURCE, json!("http://gw.example.test/mcp"), false),
        (RESOURCE, json!("https://gw.example.test:443/mcp"), false),
        (RESOURCE, json!("https://GW.example.test/mcp"), false),
        (RESOURCE, json!("https://gw.example.test/mcp#x"), false),
        (RESOURCE, json!("https://gw.example.test/mcp?x"), false),
        (RESOURCE, json!([RESOURCE]), false),
        (RESOURCE, json!(null), false),
        ("https://gw.example.test", json!("https://gw.example.test/"), false),
    ] {
        let body = serde_json::to_vec(&json!({ "resource": told })).unwrap();
        assert_eq!(read(&body, asked).is_ok(), same, "{told}");
    }
}

// FED-07
#[test]
fn what_only_one_copy_says_is_believed_from_neither() {
    let honest = document(&sample(), &key(), Timestamp(1)).unwrap();
    let altered = |name: &str, value: Value| {
        let mut document = honest.clone();
        document[name] = value;
        document
    };
    let evil = json!(["https://evil.example.test"]);
    assert_eq!(verify(&altered("authorization_servers", evil)), Err(BadDocument::Disagreement));
    assert_eq!(verify(&altered("x_extra", json!(1))), Err(BadDocument::Disagreement));
    let mut stripped = honest.clone();
    stripped.as_object_mut().unwrap().remove("tool_surfaces");
    assert_eq!(verify(&stripped), Err(BadDocument::Disagreement));
    let mut unsigned = honest.clone();
    unsigned.as_object_mut().unwrap().remove("signed_metadata");
    assert_eq!(verify(&unsigned), Err(BadDocument::Unsigned));
    assert_eq!(verify(&altered("signed_metadata", json!(7))), Err(BadDocument::Form));
    assert_eq!(verify(&altered("signed_metadata", json!("a.b.c"))), Err(BadDocument::Signature));
}

// FED-14
#[test]
fn the_signed_copy_is_this_resources_own() {
    let mut other = sample();
    other.resource = "https://gw.example.test/mcp/bob".into();
    let foreign = document(&other, &key(), Timestamp(1)).unwrap();
    let mut mixed = document(&sample(), &key(), Timestamp(1)).unwrap();
    mixed["signed_metadata"] = foreign["signed_metadata"].clone();
    assert_eq!(verify(&mixed), Err(BadDocument::AnotherResource));
    let stranger = SigningKey::from_seed(&[8; 32]).unwrap();
    let forged = document(&sample(), &stranger, Timestamp(1)).unwrap();
    assert_eq!(verify(&forged), Err(BadDocument::Signature));
    let mut kind = document(&sample(), &key(), Timestamp(1)).unwrap();
    let claims = json!({"iss": RESOURCE});
    kind["signed_metadata"] =
        jws::sign(&key(), "at+jwt", &KeyName::Kid(&key().kid()), &claims).unwrap().into();
    assert_eq!(verify(&kind), Err(BadDocument::Signature));
}

// FED-14: the signed copy need not say when it holds; where it does, that counts.
#[test]
fn a_signed_copy_is_good_for_its_time() {
    let timed = |name: &str, text: &str| {
        let mut document = document(&sample(), &key(), NOW).unwrap();
        let mut claims = document.clone();
        let members = claims.as_object_mut().unwrap();
        members.remove("signed_metadata");
        members.insert("iss".into(), RESOURCE.into());
        members.insert(name.into(), serde_json::from_str(text).unwrap());
        let kid = key().kid();
        document["signed_metadata"] = jws::sign(&key(), TYP, &KeyName::Kid(&kid), &claims).unwrap().into();
        verify(&document).map(|_| ())
    };
    for (name, text) in [
        ("exp", "1790000001"),
        ("exp", "4000000000"),
        ("nbf", "1790000000"),
        ("nbf", "1790000060"),
        ("nbf", "-5"),
        ("iat", "1790000004"),
    ] {
        assert_eq!(timed(name, text), Ok(()), "{name} {text}");
    }
    for text in ["1790000000", "1789999999", "0", "-1"] {
        assert_eq!(timed("exp", text), Err(BadDocument::Time), "exp {text}");
    }
    assert_eq!(timed("nbf", "1790000061"), Err(BadDocument::Time));
    for name in ["exp", "nbf", "iat"] {
        for text in ["\"1790000001\"", "null", "true", "[1790000001]", "1790000001.5", "1e300", "{}"] {
            assert_eq!(timed(name, text), Err(BadDocument::Time), "{name} {text}");
        }
    }
}

#[test]
fn a_signed_copy_cannot_be_passed_over() {
    let signed = serde_json::to_vec(&document(&sample(), &key(), Timestamp(1)).unwrap()).unwrap();
    let fault = read(&signed, RESOURCE).unwrap().accept_unsigned().err();
    assert_eq!(fault, Some(BadDocument::Unverified));
    let bare = br#"{"resource":"https://gw.example.test/mcp","authorization_servers":["https://as.example.test",7]}"#;
    let plain = read(bare, RESOURCE).unwrap().accept_unsigned().unwrap();
    assert_eq!(plain.authorization_servers(), ["https://as.example.test"]);
    assert_eq!(plain.metadata(), Err(BadDocument::Form));
}

#[test]
fn what_is_not_strict_json_is_no_document() {
    for body in ["", "[]", "nonsense", r#"{"resource":"a","resource":"https://gw.example.test/mcp"}"#] {
        assert_eq!(read(body.as_bytes(), RESOURCE).err(), Some(BadDocument::Form), "{body}");
    }
}

proptest! {
    #[test]
    fn every_document_round_trips(tools in prop::collection::vec("[a-zä_/]{1,20}", 0..5), scope in "[a-z:]{1,12}") {
        let mut sent = sample();
        sent.scopes_supported = vec![scope.parse().unwrap()];
        sent.tool_surfaces = tools
            .iter()
            .map(|tool| ToolSurface {
                tool: tool.parse().unwrap(),
                resource_scopes: vec![scope.parse().unwrap()],
                consequence: None,
            })
            .collect();
        let written = document(&sent, &key(), Timestamp(1)).unwrap();
        prop_assert_eq!(verify(&written), Ok(sent));
    }
}
