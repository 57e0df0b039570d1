//! The one strict JSON parser and the value it yields: members in document order, numbers as their exact text.
//! It keeps D-4 and D-10: what two readers could read differently (duplicate members at any depth, lone
//! surrogates, a byte order mark, trailing bytes) is refused, and size, depth and count are bounded.
//! It repairs nothing, and it does not write JSON; canonical bytes are in `canon`.

mod bridge;
mod reader;
#[cfg(test)]
mod tests;
mod typed;

use std::fmt;
use std::ops::Range;

use serde::de::DeserializeOwned;

/// Nesting no limit can raise: reading and dropping a value recurse, so this is what keeps the stack small.
pub const MAX_DEPTH: usize = 128;

/// Values in one document no limit can raise: a value takes far more memory than the two bytes it can cost to
/// send, so the byte limit alone would not bound what a stranger can make us hold.
pub const MAX_VALUES: usize = 1 << 19;

/// Digits an IEEE 754 double can tell apart; a number with more cannot be bound without rounding it (D-4).
pub(crate) const MAX_DIGITS: usize = 17;

/// A JSON value exactly as it was written.
#[derive(Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, kept as text.
    Number(Number),
    /// A string, escapes decoded.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object: members in document order, names distinct when it was parsed.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses one document and nothing after it.
    pub fn parse(bytes: &[u8], limits: Limits) -> Result<Json, JsonError> {
        reader::document(bytes, limits)
    }

    /// The member of an object, if this is an object that has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.as_object()?.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The text of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Json::String(text) = self { Some(text) } else { None }
    }

    /// A boolean.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Json::Bool(value) = self { Some(*value) } else { None }
    }

    /// The members of an object, in document order.
    #[must_use]
    pub fn as_object(&self) -> Option<&[(String, Json)]> {
        if let Json::Object(members) = self { Some(members) } else { None }
    }

    /// The elements of an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Json]> {
        if let Json::Array(elements) = self { Some(elements) } else { None }
    }

    /// A number.
    #[must_use]
    pub fn as_number(&self) -> Option<&Number> {
        if let Json::Number(number) = self { Some(number) } else { None }
    }

    /// [`Number::as_i64`] of a number.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    /// [`Number::as_u64`] of a number.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    /// [`Number::as_f64`] of a number.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number()?.as_f64()
    }
}

/// Shape only: values may be tool arguments, which never reach a log.
impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(_) => f.write_str("bool"),
            Json::Number(_) => f.write_str("number"),
            Json::String(text) => write!(f, "string of {} bytes", text.len()),
            Json::Array(elements) => write!(f, "array of {}", elements.len()),
            Json::Object(members) => write!(f, "object of {}", members.len()),
        }
    }
}

/// A number as its exact text, which follows the grammar of RFC 8259 section 6.
#[derive(Clone, PartialEq, Eq)]
pub struct Number(Box<str>);

impl Number {
    /// The text as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether it is written as an integer: no fraction and no exponent.
    #[must_use]
    pub fn is_integer_text(&self) -> bool {
        !self.0.contains(['.', 'e', 'E'])
    }

    /// The value, if it is written as an integer that fits. `-0` is not one: only a double can carry it.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        if &*self.0 == "-0" { None } else { self.0.parse().ok() }
    }

    /// The value, if it is written as a non-negative integer that fits.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// The nearest double, if it is finite. This rounds; [`Number::exact_f64`] does not.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        self.0.parse().ok().filter(|value: &f64| value.is_finite())
    }

    /// The nearest double, unless the text says more than a double can hold: more than 17 significant digits,
    /// a magnitude beyond the largest double, or a non-zero value below the smallest.
    #[must_use]
    pub fn exact_f64(&self) -> Option<f64> {
        let value = self.as_f64()?;
        let digits = self.significant_digits();
        (digits <= MAX_DIGITS && (value != 0.0 || digits == 0)).then_some(value)
    }

    /// Digits of the significand after its leading zeros; zero, however written, has none.
    pub(crate) fn significant_digits(&self) -> usize {
        let significand = self.0.split(['e', 'E']).next().unwrap_or_default();
        significand.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0').count()
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("number")
    }
}

/// How much one document may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Length in bytes.
    pub bytes: usize,
    /// Containers inside one another; never more than [`MAX_DEPTH`].
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 4 << 20, depth: 64 }
    }
}

/// Why a document was refused, and where. It never quotes the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {at}")]
pub struct JsonError {
    /// What is wrong.
    pub kind: JsonErrorKind,
    /// Offset of the byte at which it was noticed.
    pub at: usize,
}

/// What is wrong with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonErrorKind {
    /// More bytes than the limit, or more than [`MAX_VALUES`] values.
    #[error("document too large")]
    TooLarge,
    /// Not UTF-8.
    #[error("not utf-8")]
    NotUtf8,
    /// A byte order mark.
    #[error("byte order mark")]
    ByteOrderMark,
    /// Nested deeper than the limit.
    #[error("nested too deep")]
    TooDeep,
    /// An object names a member twice.
    #[error("duplicate member")]
    DuplicateMember,
    /// An escape that is half of a surrogate pair.
    #[error("lone surrogate")]
    LoneSurrogate,
    /// A number outside the grammar.
    #[error("malformed number")]
    BadNumber,
    /// Anything else outside the grammar.
    #[error("syntax error")]
    Syntax,
    /// Something after the document.
    #[error("bytes after the document")]
    TrailingBytes,
    /// The document stops early.
    #[error("unexpected end")]
    UnexpectedEnd,
    /// Strict JSON, but not of the expected type.
    #[error("not of the expected shape")]
    Shape,
}

/// Parses a document strictly, then into a type of our own.
pub fn strict<T: DeserializeOwned>(bytes: &[u8], limits: Limits) -> Result<T, JsonError> {
    let value = Json::parse(bytes, limits)?;
    typed(&value).map_err(|fault| match serde_json::from_slice::<T>(bytes) {
        // Only its own reader knows where it stopped, and it takes more shapes than ours.
        Err(error) => JsonError { at: offset(bytes, error.line(), error.column()), ..fault },
        Ok(_) => fault,
    })
}

/// A parsed value as a type of our own. A type with members is read from an object, never from an array.
pub fn typed<T: DeserializeOwned>(value: &Json) -> Result<T, JsonError> {
    typed::read(value).ok_or(JsonError { kind: JsonErrorKind::Shape, at: 0 })
}

/// Where in `bytes` the value at this path of member names stands, from the first byte of its text to the last.
/// `bytes` must have been accepted by [`Json::parse`]; of other bytes the answer means nothing.
#[must_use]
pub fn locate(bytes: &[u8], path: &[&str]) -> Option<Range<usize>> {
    reader::locate(bytes, path)
}

fn offset(bytes: &[u8], line: usize, column: usize) -> usize {
    let before: usize =
        bytes.split_inclusive(|byte| *byte == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    before.saturating_add(column.saturating_sub(1)).min(bytes.len())
}
