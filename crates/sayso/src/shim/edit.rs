//! Members taken out of a message and put into it, in its own text: every other byte stays as its author wrote it.
//!
//! The text must have passed the strict parser. A member whose name is written with escapes is not found by its text and
//! is reported as such, never left where it is.

use sayso_protocol::json::locate;

/// A member that is there and cannot be taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Escaped;

/// The text without the member at this path of names.
pub(super) fn without(text: &[u8], path: &[&str]) -> Result<Vec<u8>, Escaped> {
    let (Some(value), Some(name)) = (locate(text, path), path.last()) else { return Ok(text.to_vec()) };
    let before = text.get(..value.start).unwrap_or_default().trim_ascii_end();
    let before = before.strip_suffix(b":").ok_or(Escaped)?.trim_ascii_end();
    let before = before.strip_suffix(format!("\"{name}\"").as_bytes()).ok_or(Escaped)?.trim_ascii_end();
    let mut after = text.get(value.end..).unwrap_or_default();
    let mut kept = match before.strip_suffix(b",") {
        Some(before) => before.to_vec(),
        None => {
            let rest = after.trim_ascii_start();
            after = rest.strip_prefix(b",").unwrap_or(rest);
            before.to_vec()
        }
    };
    kept.extend_from_slice(after);
    Ok(kept)
}

/// The text with a member more at the end of the object at this path; none by its name may be there.
pub(super) fn with(text: &[u8], path: &[&str], name: &str, value: &[u8]) -> Option<Vec<u8>> {
    let object = locate(text, path)?;
    let end = object.end.checked_sub(1)?;
    let inside = text.get(object.start.checked_add(1)?..end)?;
    let mut made = text.get(..end)?.to_vec();
    if !inside.trim_ascii().is_empty() {
        made.push(b',');
    }
    made.extend_from_slice(format!("\"{name}\":").as_bytes());
    made.extend_from_slice(value);
    made.extend_from_slice(text.get(end..)?);
    Some(made)
}

/// JSON text on one line. Outside strings a line end is blank space, and inside one it cannot stand.
pub(super) fn one_line(text: &[u8]) -> Vec<u8> {
    text.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, path: &[&str]) -> String {
        String::from_utf8(without(text.as_bytes(), path).unwrap()).unwrap()
    }

    #[test]
    fn a_member_goes_and_the_rest_stays_to_the_byte() {
        let text = r#"{"params" : { "a": 1.0 , "task" : {"x":[1,2]} , "é":"\u00e9" }}"#;
        assert_eq!(cut(text, &["params", "task"]), r#"{"params" : { "a": 1.0  , "é":"\u00e9" }}"#);
        assert_eq!(cut(text, &["params", "a"]), r#"{"params" : { "task" : {"x":[1,2]} , "é":"\u00e9" }}"#);
        assert_eq!(cut(r#"{"a":{"b":1}}"#, &["a", "b"]), r#"{"a":{}}"#);
        assert_eq!(cut(text, &["params", "none"]), text);
        assert_eq!(without(br#"{"a":{"\u0062":1}}"#, &["a", "b"]), Err(Escaped));
    }

    #[test]
    fn a_member_comes_last() {
        let put = |text: &str| {
            let made = with(text.as_bytes(), &["p"], "n", b"[1]");
            made.map(|made| String::from_utf8(made).unwrap())
        };
        assert_eq!(put(r#"{"p":{ }}"#).unwrap(), r#"{"p":{ "n":[1]}}"#);
        assert_eq!(put(r#"{"p":{"a":1}}"#).unwrap(), r#"{"p":{"a":1,"n":[1]}}"#);
        assert_eq!(put(r#"{"q":1}"#), None);
    }
}
