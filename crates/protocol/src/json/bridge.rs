//! From [`Json`] to serde: written by any serializer.
//! A number is written as i64, else u64, else as the double that says the same (D-4); one that no double can say
//! is an error, never rounded. Types of our own are read from it in `typed`.

use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::{Json, Number};

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Null => serializer.serialize_unit(),
            Json::Bool(value) => serializer.serialize_bool(*value),
            Json::Number(number) => number.serialize(serializer),
            Json::String(text) => serializer.serialize_str(text),
            Json::Array(elements) => {
                let mut sequence = serializer.serialize_seq(Some(elements.len()))?;
                for element in elements {
                    sequence.serialize_element(element)?;
                }
                sequence.end()
            }
            Json::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(value) = self.as_i64() {
            serializer.serialize_i64(value)
        } else if let Some(value) = self.as_u64() {
            serializer.serialize_u64(value)
        } else if let Some(value) = self.exact_f64() {
            serializer.serialize_f64(value)
        } else {
            Err(S::Error::custom("number cannot be written without rounding"))
        }
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Json::Null,
            serde_json::Value::Bool(value) => Json::Bool(value),
            serde_json::Value::Number(number) => Json::Number(Number(number.to_string().into())),
            serde_json::Value::String(text) => Json::String(text),
            serde_json::Value::Array(elements) => Json::Array(elements.into_iter().map(Json::from).collect()),
            serde_json::Value::Object(members) => {
                Json::Object(members.into_iter().map(|(name, value)| (name, Json::from(value))).collect())
            }
        }
    }
}
