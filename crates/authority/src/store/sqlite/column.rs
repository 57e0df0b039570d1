//! Domain values in columns: identifiers as text, closed lists as their word, documents as JSON.
//!
//! A row that does not read back is a fault, never a guess; what it held is not repeated in the fault, since it may
//! be an argument value.

use super::fault::Fault;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use serde::Serialize;
use serde::de::value::{Error as WordError, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use std::str::FromStr;

/// An identifier.
pub(super) struct Id<T>(pub(super) T);

impl<T: FromStr> FromSql for Id<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map(Id).map_err(|_| FromSqlError::InvalidType)
    }
}

/// A member of a closed list.
pub(super) struct Word<T>(pub(super) T);

impl<T: DeserializeOwned> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word: StrDeserializer<'_, WordError> = value.as_str()?.into_deserializer();
        T::deserialize(word).map(Word).map_err(|_| FromSqlError::InvalidType)
    }
}

/// A document.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned> FromSql for Body<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Body).map_err(|_| FromSqlError::InvalidType)
    }
}

/// The text of a document.
pub(super) fn body<T: Serialize + ?Sized>(value: &T) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|_| Fault::Shape)
}

/// The word of a member of a closed list.
pub(super) fn word<T: Serialize>(value: &T) -> Result<String, Fault> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Ok(word),
        _ => Err(Fault::Shape),
    }
}
