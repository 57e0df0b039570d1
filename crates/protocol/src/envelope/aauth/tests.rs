//! Both encodings of one resource say the same, and neither can be passed off as the other.

use super::*;
use crate::payload::metadata::KeySet;
use serde_json::json;

const NOW: Timestamp = Timestamp(1_790_000_000);
const RESOURCE: &str = "https://gw.example.test/mcp";

fn key() -> SigningKey {
    SigningKey::from_seed(&[9; 32]).unwrap()
}

fn sample() -> ResourceMetadata {
    let surface = |tool: &str, scope: &str| ToolSurface {
        tool: tool.parse().unwrap(),
        resource_scopes: vec![scope.parse().unwrap()],
        consequence: None,
    };
    ResourceMetadata {
        resource: RESOURCE.into(),
        authorization_servers: vec!["https://as.example.test".into()],
        jwks_uri: "https://gw.example.test/jwks".into(),
        scopes_supported: vec!["positions:read".parse().unwrap(), "trades:execute".parse().unwrap()],
        bearer_methods_supported: vec!["header".into()],
        resource_signing_alg_values_supported: vec!["EdDSA".into()],
        tool_surfaces: vec![
            ToolSurface {
                consequence: Some("irreversible".into()),
                ..surface("execute_trade", "trades:execute")
            },
            surface("get_positions", "positions:read"),
        ],
        owner_resources_endpoint: "https://gw.example.test/owner-resources".into(),
    }
}

fn verify(document: &Value) -> Result<ResourceMetadata, BadDocument> {
    let keys = KeySet::of([key().verifying()]).keys();
    metadata(&read(&serde_json::to_vec(document).unwrap(), RESOURCE)?.trust(&keys, NOW)?)
}

/// The document with its plain members changed and signed anew, as a server of another mind would write it.
fn resigned(change: impl Fn(&mut Value)) -> Value {
    let mut plain = document(&sample(), &key(), NOW).unwrap();
    plain.as_object_mut().unwrap().remove("signed_metadata");
    change(&mut plain);
    rfc9728::with_signed_copy(plain, TYP, RESOURCE, &key(), NOW).unwrap()
}

// AAUTH-19, MCP-02
#[test]
fn both_encodings_say_the_same() {
    let document = document(&sample(), &key(), NOW).unwrap();
    assert_eq!(verify(&document), Ok(sample()));
    let mut names: Vec<&str> = document.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    let wanted = [
        "access_mode",
        "access_servers",
        "jwks_uri",
        "owner_resources_endpoint",
        "r3_vocabularies",
        "resource",
        "signed_metadata",
    ];
    assert_eq!(names, wanted);
    assert_eq!(document["access_mode"], "four-party");
    let vocabulary = &document["r3_vocabularies"][0];
    assert_eq!(vocabulary["format"], "mcp");
    assert_eq!(
        vocabulary["operations"][1],
        json!({"tool": "get_positions", "resource_scopes": ["positions:read"]})
    );
    assert!(vocabulary["digest"].as_str().unwrap().starts_with("s256:"));
}

// AAUTH-19
#[test]
fn one_encoding_cannot_be_passed_off_as_the_other() {
    let ours = document(&sample(), &key(), NOW).unwrap();
    let keys = KeySet::of([key().verifying()]).keys();
    let as_the_other = rfc9728::read(&serde_json::to_vec(&ours).unwrap(), RESOURCE).unwrap();
    assert_eq!(as_the_other.trust(&keys, NOW).err(), Some(BadDocument::Signature));
    let theirs = rfc9728::document(&sample(), &key(), NOW).unwrap();
    assert_eq!(verify(&theirs), Err(BadDocument::Signature));
}

// AAUTH-19
#[test]
fn what_contradicts_itself_is_not_read() {
    type Change = fn(&mut Value);
    let cases: [(Change, Result<(), BadDocument>); 7] = [
        (|_| {}, Ok(())),
        (|it| it["access_mode"] = json!("two-party"), Err(BadDocument::Form)),
        (|it| it["access_servers"] = json!("https://as.example.test"), Err(BadDocument::Form)),
        (|it| it["r3_vocabularies"] = json!({}), Err(BadDocument::Form)),
        (
            |it| it["r3_vocabularies"][0]["operations"][0]["tool"] = json!("other"),
            Err(BadDocument::Disagreement),
        ),
        (|it| it["r3_vocabularies"][0]["operations"][0]["more"] = json!(1), Err(BadDocument::Disagreement)),
        (|it| it["r3_vocabularies"][0]["digest"] = json!("s256:?"), Err(BadDocument::Form)),
    ];
    for (number, (change, outcome)) in cases.into_iter().enumerate() {
        assert_eq!(verify(&resigned(change)).map(|_| ()), outcome, "case {number}");
    }
}

// AAUTH-19
#[test]
fn a_vocabulary_of_another_format_names_no_tool() {
    let other = resigned(|it| {
        it["r3_vocabularies"][0] = json!({ "format": "openapi", "operations": { "paths": 1 } })
    });
    assert_eq!(verify(&other).unwrap().tool_surfaces, []);
}
