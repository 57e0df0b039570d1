//! The id of a JSON-RPC request, as its exact text.
//! It keeps D-4: what is sent back has the same type and the same digits, because it is
//! the same bytes. Fractions, exponents, null and structures are not ids in MCP.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::{Json, Limits};

/// A string or integer id, exactly as it was written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Box<str>);

/// The text is not a JSON string or integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a string or integer id")]
pub struct NotAnId;

impl RequestId {
    /// The JSON text, quotes and escapes included.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether both say the same, however a string is escaped: for matching an answer with what it answers.
    #[must_use]
    pub fn says_same(&self, other: &RequestId) -> bool {
        let read = |id: &RequestId| Json::parse(id.0.as_bytes(), Limits::default()).ok();
        self == other || read(self).is_some_and(|value| Some(value) == read(other))
    }
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        RequestId(number.to_string().into())
    }
}

impl FromStr for RequestId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        match Json::parse(text.as_bytes(), Limits::default()) {
            Ok(Json::String(_)) => Ok(RequestId(text.trim_ascii().into())),
            Ok(Json::Number(number)) if number.is_integer_text() => Ok(RequestId(number.text().into())),
            _ => Err(NotAnId),
        }
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}
