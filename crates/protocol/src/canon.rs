//! The one canonical JSON (RFC 8785, BASE-13) and the one digest form, `s256:`; the only file that hashes.
//! It keeps D-4: what the canonical form cannot say is refused, never repaired, and canonical bytes are
//! themselves canonical input. It does not parse; `json` does.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::b64;
use crate::json::{Json, JsonError, Limits, MAX_DIGITS, Number};

/// Containers inside one another that a canonical document may have.
pub const MAX_DEPTH: usize = 64;

/// The largest integer every double-based reader agrees on, 2^53 - 1 (RFC 7493 section 2.2).
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Why a value has no canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CanonError {
    /// An integer whose magnitude is above 2^53 - 1, in whatever notation it is written.
    #[error("integer beyond 2^53 - 1")]
    UnsafeInteger,
    /// More than 17 significant digits.
    #[error("more than 17 significant digits")]
    TooManyDigits,
    /// A magnitude no double reaches.
    #[error("number too large")]
    NotFinite,
    /// A non-zero number that would become zero.
    #[error("number too small")]
    Underflow,
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested too deep")]
    TooDeep,
    /// An object built with one name twice.
    #[error("duplicate member")]
    DuplicateMember,
    /// A value that cannot be written as JSON at all.
    #[error("not writable as json")]
    Unwritable,
    /// A value that does not survive the strict parser.
    #[error(transparent)]
    Text(#[from] JsonError),
}

/// Bytes that most arguments of a call take.
const ROOM: usize = 1024;

/// The canonical bytes of a value.
pub fn to_bytes(value: &Json) -> Result<Vec<u8>, CanonError> {
    let mut out = String::with_capacity(ROOM);
    write_value(&mut out, value, MAX_DEPTH)?;
    Ok(out.into_bytes())
}

/// SHA-256.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    let mut out = [0; 32];
    for (to, from) in out.iter_mut().zip(digest.as_ref()) {
        *to = *from;
    }
    out
}

/// The digest of a value's canonical bytes.
pub fn s256(value: &Json) -> Result<S256, CanonError> {
    Ok(s256_bytes(&to_bytes(value)?))
}

/// The digest of bytes as they are, such as the compact form of an agreement.
#[must_use]
pub fn s256_bytes(bytes: &[u8]) -> S256 {
    S256(format!("{PREFIX}{}", b64::encode(sha256(bytes))))
}

/// The digest of one of our own types, over the canonical form of its JSON.
pub fn s256_of<T: Serialize + ?Sized>(value: &T) -> Result<S256, CanonError> {
    let text = serde_json::to_vec(value).map_err(|_| CanonError::Unwritable)?;
    s256(&Json::parse(&text, Limits { bytes: usize::MAX, depth: MAX_DEPTH })?)
}

const PREFIX: &str = "s256:";

/// `s256:` and the base64url SHA-256 of something.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct S256(String);

/// The text is not `s256:` and the unpadded base64url of 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an s256 digest")]
pub struct NotS256;

impl S256 {
    /// The text form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for S256 {
    type Err = NotS256;

    fn from_str(text: &str) -> Result<Self, NotS256> {
        let digest = text.strip_prefix(PREFIX).and_then(|encoded| b64::decode(encoded).ok());
        if digest.is_some_and(|digest| digest.len() == 32) { Ok(S256(text.to_owned())) } else { Err(NotS256) }
    }
}

impl fmt::Display for S256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for S256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for S256 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for S256 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// `room` is how many containers may still be opened.
fn write_value(out: &mut String, value: &Json, room: usize) -> Result<(), CanonError> {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(true) => out.push_str("true"),
        Json::Bool(false) => out.push_str("false"),
        Json::Number(number) => out.push_str(&number_text(number)?),
        Json::String(text) => write_string(out, text),
        Json::Array(elements) => {
            let room = room.checked_sub(1).ok_or(CanonError::TooDeep)?;
            let mut separator = '[';
            for element in elements {
                out.push(separator);
                separator = ',';
                write_value(out, element, room)?;
            }
            out.push_str(if elements.is_empty() { "[]" } else { "]" });
        }
        Json::Object(members) => write_object(out, members, room.checked_sub(1).ok_or(CanonError::TooDeep)?)?,
    }
    Ok(())
}

fn write_object(out: &mut String, members: &[(String, Json)], room: usize) -> Result<(), CanonError> {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by(|(a, _), (b, _)| by_code_units(a, b));
    let mut previous = None;
    for (name, value) in sorted {
        if previous == Some(name) {
            return Err(CanonError::DuplicateMember);
        }
        out.push(if previous.is_none() { '{' } else { ',' });
        previous = Some(name);
        write_string(out, name);
        out.push(':');
        write_value(out, value, room)?;
    }
    out.push_str(if previous.is_none() { "{}" } else { "}" });
    Ok(())
}

/// UTF-16 code units, not code points: U+FB33 comes after U+1F600, whose first unit is U+D83D.
fn by_code_units(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

/// A JSON string with no escape that is not required (RFC 8785 section 3.2.2.2).
pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    if text.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\')) {
        write_escaped(out, text);
    } else {
        out.push_str(text);
    }
    out.push('"');
}

fn write_escaped(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => out.push(character),
        }
    }
}

pub(crate) fn number_text(number: &Number) -> Result<Cow<'_, str>, CanonError> {
    if number.is_integer_text() {
        let magnitude = number.text().trim_start_matches('-').parse::<u64>();
        return match magnitude {
            Ok(0) => Ok("0".into()),
            Ok(1..=MAX_INTEGER) => Ok(number.text().into()),
            _ => Err(CanonError::UnsafeInteger),
        };
    }
    if is_canonical(number.text()) {
        return Ok(number.text().into());
    }
    let digits = number.significant_digits();
    if digits > MAX_DIGITS {
        return Err(CanonError::TooManyDigits);
    }
    let value = number.as_f64().ok_or(CanonError::NotFinite)?;
    if value == 0.0 && digits > 0 {
        return Err(CanonError::Underflow);
    }
    let text = ecmascript(value);
    // An integer in disguise: its canonical form would be one that is refused when it is read again.
    let integer = !text.contains(['.', 'e']);
    if integer && text.trim_start_matches('-').parse::<u64>().map_or(true, |value| value > MAX_INTEGER) {
        return Err(CanonError::UnsafeInteger);
    }
    Ok(text.into())
}

/// Digits of which no two texts are one double, so that the text of a double can be told without computing it.
const SURE_DIGITS: usize = 15;

/// Whether a text with a fraction is certainly its own canonical form: few enough digits, none of them superfluous, and
/// a magnitude that is written without an exponent. False says nothing.
fn is_canonical(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let Some((whole, fraction)) = unsigned.split_once('.') else { return false };
    let zeros = fraction.bytes().take_while(|digit| *digit == b'0').count();
    let plain = fraction.bytes().all(|digit| digit.is_ascii_digit()) && !fraction.ends_with('0');
    let digits = if whole == "0" { fraction.len().saturating_sub(zeros) } else { unsigned.len() - 1 };
    plain && digits <= SURE_DIGITS && (whole != "0" || zeros <= 5)
}

/// A finite double as ECMAScript writes it (ECMA-262 Number::toString, radix 10).
fn ecmascript(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // The shortest digits that read back; of as many digits, those nearest the value, the even ones at a tie.
    let shortest = format!("{:e}", value.abs());
    let fraction = shortest.split('e').next().unwrap_or_default().len().saturating_sub(2);
    let nearest = format!("{:.fraction$e}", value.abs());
    let scientific = if nearest.parse() == Ok(value.abs()) { nearest } else { shortest };
    let (significand, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = significand.replace('.', "");
    let point = exponent.parse::<i32>().unwrap_or_default().saturating_add(1);
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", lay_out(&digits, point))
}

/// Places the decimal point `point` digits from the left of `digits`.
fn lay_out(digits: &str, point: i32) -> String {
    let zeros = |count: usize| "0".repeat(count);
    match usize::try_from(point) {
        Ok(point @ 1..=21) if point >= digits.len() => format!("{digits}{}", zeros(point - digits.len())),
        Ok(point @ 1..=21) => {
            let (whole, fraction) = digits.split_at_checked(point).unwrap_or((digits, ""));
            format!("{whole}.{fraction}")
        }
        _ if (-5..=0).contains(&point) => {
            format!("0.{}{digits}", zeros(usize::try_from(point.unsigned_abs()).unwrap_or_default()))
        }
        _ => {
            let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, ""));
            let dot = if rest.is_empty() { "" } else { "." };
            format!("{first}{dot}{rest}e{:+}", point.saturating_sub(1))
        }
    }
}
