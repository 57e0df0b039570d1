//! When two readings of one text say the same, and what every typed form must keep when it is written and read again.
//! Doubles are compared with a little room where `serde_json` read one side: it does not round correctly.

use std::fmt::Debug;

use sayso_protocol::Json;
use sayso_protocol::json::{Limits, Number, strict};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Whether our value and that of `serde_json` are the same.
pub(crate) fn value(ours: &Json, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Json::Null, Value::Null) => true,
        (Json::Bool(ours), Value::Bool(theirs)) => ours == theirs,
        (Json::String(ours), Value::String(theirs)) => ours == theirs,
        (Json::Number(ours), Value::Number(theirs)) => number(ours, theirs),
        (Json::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| value(ours, theirs))
        }
        (Json::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().all(|(name, ours)| theirs.get(name).is_some_and(|theirs| value(ours, theirs)))
        }
        _ => false,
    }
}

fn number(ours: &Number, theirs: &serde_json::Number) -> bool {
    if theirs.is_i64() || theirs.is_u64() {
        return ours.as_i64() == theirs.as_i64() && ours.as_u64() == theirs.as_u64();
    }
    let (Some(ours), Some(theirs)) = (ours.as_f64(), theirs.as_f64()) else { return false };
    (ours - theirs).abs() <= ours.abs() * 4.0 * f64::EPSILON + 1e-322
}

/// Whether two of our values are the same but for the order of members and the spelling of numbers.
pub(crate) fn meaning(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => one.as_f64() == other.as_f64(),
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| meaning(one, other))
        }
        (Json::Object(members), Json::Object(others)) => {
            let found = |name: &str, value: &Json| other.get(name).is_some_and(|other| meaning(value, other));
            members.len() == others.len() && members.iter().all(|(name, value)| found(name, value))
        }
        _ => one == other,
    }
}

/// Reads `bytes` strictly as a `T`; one that is read is the same after being written and read again.
pub(crate) fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) -> Option<T> {
    let read: T = strict(bytes, Limits::default()).ok()?;
    let written = serde_json::to_vec(&read).expect("what was read can be written");
    let again: T = strict(&written, Limits::default()).expect("what was written can be read");
    assert_eq!(read, again);
    Some(read)
}
