//! Canonical JSON against the vectors in `vectors/canon`, and its one law: canonical bytes are their own form.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::json::JsonErrorKind;

const DOUBLES: &str = include_str!("../../../../vectors/canon/doubles.json");
const DOCUMENTS: &str = include_str!("../../../../vectors/canon/documents.json");
const REFUSED: &str = include_str!("../../../../vectors/canon/refused.json");

fn vectors(text: &str) -> Vec<Value> {
    serde_json::from_str::<Value>(text).unwrap()["vectors"].as_array().unwrap().clone()
}

fn parse(text: &str) -> Result<Json, JsonError> {
    Json::parse(text.as_bytes(), Limits { bytes: usize::MAX, depth: 128 })
}

// BASE-13, RFC 8785 appendix B
#[test]
fn doubles_are_written_as_ecmascript_writes_them() {
    for vector in vectors(DOUBLES) {
        let bits = u64::from_str_radix(vector["input"]["double"].as_str().unwrap(), 16).unwrap();
        assert_eq!(ecmascript(f64::from_bits(bits)), vector["expect"]["text"], "{}", vector["name"]);
    }
}

// BASE-13, CORE-27, CORE-80, D-4
#[test]
fn documents_have_one_form_and_one_digest() {
    for vector in vectors(DOCUMENTS) {
        let value = parse(vector["input"]["text"].as_str().unwrap()).unwrap();
        let canonical = String::from_utf8(to_bytes(&value).unwrap()).unwrap();
        assert_eq!(canonical, vector["expect"]["text"], "{}", vector["name"]);
        assert_eq!(s256(&value).unwrap().as_str(), vector["expect"]["s256"], "{}", vector["name"]);
        assert_eq!(s256_of(&value).unwrap().as_str(), vector["expect"]["s256"], "{}", vector["name"]);
    }
}

// D-4
#[test]
fn what_has_no_canonical_form_is_refused() {
    for vector in vectors(REFUSED) {
        let outcome =
            parse(vector["input"]["text"].as_str().unwrap()).map_err(CanonError::from).and_then(|v| s256(&v));
        let reason = match outcome.unwrap_err() {
            CanonError::UnsafeInteger => "unsafe-integer",
            CanonError::TooManyDigits => "too-many-digits",
            CanonError::NotFinite => "not-finite",
            CanonError::Underflow => "underflow",
            CanonError::TooDeep => "too-deep",
            CanonError::Text(JsonError { kind: JsonErrorKind::DuplicateMember, .. }) => "duplicate-member",
            CanonError::Text(JsonError { kind: JsonErrorKind::LoneSurrogate, .. }) => "lone-surrogate",
            other => panic!("{}: {other}", vector["name"]),
        };
        assert_eq!(reason, vector["expect"]["refused"], "{}", vector["name"]);
    }
}

#[test]
fn a_name_put_in_twice_is_refused() {
    let twice =
        Json::Object(vec![("a".into(), Json::Null), ("b".into(), Json::Null), ("a".into(), Json::Null)]);
    assert_eq!(to_bytes(&twice), Err(CanonError::DuplicateMember));
}

// register 1.1: strings and octets are hashed as transmitted
#[test]
fn bytes_are_hashed_as_they_are() {
    assert_eq!(s256_bytes(b"{}"), s256(&parse("{ }").unwrap()).unwrap());
    assert_ne!(s256_bytes(b"{ }"), s256_bytes(b"{}"));
    assert_eq!(s256_bytes(b"").as_str(), "s256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
}

#[test]
fn digests_are_parsed_strictly() {
    let good = s256_bytes(b"x");
    assert_eq!(good.to_string().parse::<S256>(), Ok(good.clone()));
    assert_eq!(serde_json::from_str::<S256>(&serde_json::to_string(&good).unwrap()).unwrap(), good);
    let digest = &good.as_str()[5..];
    let stray = format!("s256:{}_", &digest[..42]);
    for bad in [
        digest,
        &format!("S256:{digest}"),
        &format!("{good}="),
        &format!(" {good}"),
        "s256:",
        "s256:AAAA",
        &stray,
    ] {
        assert_eq!(bad.parse::<S256>(), Err(NotS256), "{bad}");
    }
}

fn json() -> impl Strategy<Value = Json> {
    let number = prop_oneof![
        any::<f64>().prop_map(|value| format!("{value:e}")),
        any::<i64>().prop_map(|value| value.to_string()),
        r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?",
    ];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<String>().prop_map(Json::String),
        number.prop_map(|text| parse(&text).unwrap_or(Json::Null)),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            proptest::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Json::Object(members.into_iter().rev().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn canonical_bytes_are_their_own_form(value in json()) {
        if let Ok(bytes) = to_bytes(&value) {
            let again = Json::parse(&bytes, Limits::default()).unwrap();
            prop_assert_eq!(to_bytes(&again), Ok(bytes));
            prop_assert_eq!(s256_of(&value), s256(&value));
        }
    }

    // What is taken for canonical without computing it is what computing it gives.
    #[test]
    fn a_short_text_is_known_at_sight(text in r"-?(0|[1-9][0-9]{0,16})\.0{0,7}[0-9]{1,17}([eE]-?[0-9])?") {
        if is_canonical(&text) {
            prop_assert_eq!(ecmascript(text.parse().unwrap()), text);
        }
    }
}

#[test]
fn a_text_with_anything_superfluous_is_computed() {
    for known in
        ["0.5", "-0.5", "1.25", "123456789012.345", "0.000001", "0.00000123456789012345", "99999999999999.9"]
    {
        assert!(is_canonical(known), "{known}");
    }
    for unsure in
        ["0.0", "-0.0", "1.50", "1", "1e3", "1.5e3", "0.0000001", "1234567890123456.5", "0.1234567890123456"]
    {
        assert!(!is_canonical(unsure), "{unsure}");
    }
}
