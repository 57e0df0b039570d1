//! What the bodies in `vectors/message` stand for, for tests of every crate that send them.
//!
//! A body is text, base64, or a recipe for one that is too long to write down.

#![expect(
    clippy::unwrap_used,
    reason = "only tests read vectors, and a vector that is not what it should be fails them"
)]

use base64::Engine as _;
use serde_json::Value;

/// The bytes a vector's body stands for.
pub fn body(input: &Value) -> Vec<u8> {
    if let Some(text) = input["body"].as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(encoded) = input["body_base64"].as_str() {
        return base64::engine::general_purpose::STANDARD.decode(encoded).unwrap();
    }
    let recipe = &input["body_repeat"];
    let part = |name: &str| recipe[name].as_str().unwrap();
    let count = usize::try_from(recipe["count"].as_u64().unwrap()).unwrap();
    let (open, close) = (part("unit").repeat(count), part("close").repeat(count));
    [part("prefix"), &open, part("middle"), &close, part("suffix")].concat().into_bytes()
}
