//! Files of vectors, read with numbers as they are written.

use sayso_protocol::Json;
use sayso_protocol::json::Limits;

/// One file.
pub(crate) struct File(Json);

/// One vector.
pub(crate) struct Vector(pub(crate) Json);

/// Parses JSON as deep as it may be.
pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.as_bytes(), Limits { bytes: 4 << 20, depth: 128 }).unwrap()
}

/// Writes JSON.
pub(crate) fn text(value: &Json) -> String {
    serde_json::to_string(value).unwrap()
}

/// The file `vectors/coaz/{name}.json`.
pub(crate) fn file(name: &str) -> File {
    let path = format!("{}/../../vectors/coaz/{name}.json", env!("CARGO_MANIFEST_DIR"));
    File(json(&std::fs::read_to_string(path).unwrap()))
}

impl File {
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        self.0.get(name)
    }

    pub(crate) fn vectors(&self) -> Vec<Vector> {
        let vectors = self.0.get("vectors").and_then(Json::as_array).unwrap();
        assert!(!vectors.is_empty());
        vectors.iter().cloned().map(Vector).collect()
    }
}

impl Vector {
    pub(crate) fn name(&self) -> &str {
        self.text("name")
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Json::as_str).unwrap()
    }

    pub(crate) fn expect(&self) -> &Json {
        self.0.get("expect").unwrap()
    }
}

/// Whether two values are equal: members in any order, numbers exactly, `201` and `201.0` alike.
pub(crate) fn same(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Object(members), Json::Object(others)) => {
            members.len() == others.len()
                && members.iter().all(|(name, value)| other.get(name).is_some_and(|it| same(value, it)))
        }
        (Json::Array(ones), Json::Array(others)) => {
            ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| same(one, other))
        }
        (Json::Number(one), Json::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => one == other,
            _ => {
                one.as_u64() == other.as_u64() && one.as_f64() == other.as_f64()
                    || small(one.as_f64(), other.as_f64())
            }
        },
        _ => one == other,
    }
}

/// Doubles that no integer of 53 bits is beyond.
fn small(one: Option<f64>, other: Option<f64>) -> bool {
    one == other && one.is_some_and(|it| it.abs() < 9_007_199_254_740_992.0)
}
