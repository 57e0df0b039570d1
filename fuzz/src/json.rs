//! The strict parser against `serde_json`: what it accepts is accepted there with equal values, and what it refuses
//! alone it refuses for a bound or a duplicate. Canonical bytes are canonical input (D-4).

use sayso_protocol::Json;
use sayso_protocol::canon;
use sayso_protocol::json::{JsonError, JsonErrorKind, Limits, locate, strict};
use serde_json::Value;

use super::same;

const LIMITS: Limits = Limits { bytes: 64 * 1024, depth: 64 };
const UNBOUNDED: Limits = Limits { bytes: usize::MAX, depth: 64 };

/// Members looked up by [`locate`]; each look-up reads the text from its start.
const LOOKED_UP: usize = 8;

/// The body.
pub fn check(bytes: &[u8]) {
    match Json::parse(bytes, LIMITS) {
        Err(fault) => refused(bytes, fault),
        Ok(value) => {
            accepted(bytes, &value);
            located(bytes, &value);
            canonical(&value);
        }
    }
}

fn refused(bytes: &[u8], fault: JsonError) {
    assert!(fault.at <= bytes.len(), "{fault}");
    let ours_alone = matches!(
        fault.kind,
        JsonErrorKind::DuplicateMember | JsonErrorKind::TooDeep | JsonErrorKind::TooLarge
    );
    assert!(ours_alone || serde_json::from_slice::<Value>(bytes).is_err(), "{fault}, and yet JSON");
}

fn accepted(bytes: &[u8], value: &Json) {
    let theirs = serde_json::from_slice::<Value>(bytes).map_err(|fault| fault.to_string());
    let typed = strict::<Value>(bytes, LIMITS).map_err(|fault| fault.to_string());
    for reading in [theirs, typed] {
        match reading {
            Ok(theirs) => assert!(same::value(value, &theirs), "two values from one text"),
            Err(fault) => assert!(has_huge_number(value), "accepted, and yet: {fault}"),
        }
    }
}

/// `serde_json` refuses numbers no double reaches, and some just below.
fn has_huge_number(value: &Json) -> bool {
    match value {
        Json::Number(number) => number.as_f64().is_none_or(|value| value.abs() > 1e308),
        Json::Array(elements) => elements.iter().any(has_huge_number),
        Json::Object(members) => members.iter().any(|(_, value)| has_huge_number(value)),
        _ => false,
    }
}

fn located(bytes: &[u8], value: &Json) {
    for (name, member) in value.as_object().unwrap_or_default().iter().take(LOOKED_UP) {
        assert_eq!(at(bytes, &[name]).as_ref(), Some(member));
        for (inner, member) in member.as_object().unwrap_or_default().iter().take(LOOKED_UP) {
            assert_eq!(at(bytes, &[name, inner]).as_ref(), Some(member));
        }
    }
    assert_eq!(at(bytes, &[]).as_ref(), Some(value));
}

fn at(bytes: &[u8], path: &[&str]) -> Option<Json> {
    Json::parse(bytes.get(locate(bytes, path)?)?, LIMITS).ok()
}

fn canonical(value: &Json) {
    let Ok(bytes) = canon::to_bytes(value) else { return };
    let again = Json::parse(&bytes, UNBOUNDED).expect("canonical bytes are JSON");
    assert!(same::meaning(value, &again), "the canonical form says something else");
    numbers(&again);
    assert_eq!(canon::to_bytes(&again).as_ref(), Ok(&bytes), "canonical bytes are not canonical");
    let digest = canon::s256_bytes(&bytes);
    assert_eq!(canon::s256(value).as_ref(), Ok(&digest));
    assert_eq!(canon::s256_of(value), Ok(digest), "serde writes something else");
}

/// Where ECMAScript writes no exponent, the standard library writes the same shortest digits. With at most 15 of them no
/// other digits are as short, so there is nothing to choose between.
fn numbers(canonical: &Json) {
    match canonical {
        Json::Number(number) => {
            let (text, value) = (number.text(), number.as_f64().expect("a canonical number is a double"));
            let plain = value == 0.0 || (1e-6..1e21).contains(&value.abs());
            assert_eq!(text.contains('e'), !plain, "{text}");
            if plain && text.bytes().filter(u8::is_ascii_digit).count() <= 15 {
                assert_eq!(text, value.to_string());
            }
        }
        Json::Array(elements) => elements.iter().for_each(numbers),
        Json::Object(members) => members.iter().for_each(|(_, value)| numbers(value)),
        _ => {}
    }
}
