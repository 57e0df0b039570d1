//! Inputs that hold more than one part: header lines, an empty line, then a body.
//! Lines that no HTTP library would hand over are left out; nothing else is repaired.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The text before the first line break, and what follows it.
pub(crate) fn first_line(bytes: &[u8]) -> (&str, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (line, rest) = bytes.split_at(end);
    (std::str::from_utf8(line).unwrap_or_default(), rest.strip_prefix(b"\n").unwrap_or_default())
}

/// Headers and body.
pub(crate) fn message(bytes: &[u8]) -> (HeaderMap, &[u8]) {
    let mut headers = HeaderMap::new();
    let mut rest = bytes;
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        rest = after.strip_prefix(b"\n").unwrap_or_default();
        if line.is_empty() {
            return (headers, rest);
        }
        if let Some((name, value)) = header(line) {
            headers.append(name, value);
        }
    }
}

fn header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = line.split_at(colon);
    let value = value.strip_prefix(b": ").or_else(|| value.strip_prefix(b":"))?;
    Some((HeaderName::from_bytes(name).ok()?, HeaderValue::from_bytes(value).ok()?))
}
