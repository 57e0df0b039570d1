//! Regular expressions written by a stranger, for `matches`: RE2 syntax in linear time, with everything bounded that
//! linear still multiplies.

use regex::RegexBuilder;

/// Bytes of a pattern.
const LONGEST: usize = 256;
/// Bytes a compiled pattern may take; what is counted out (`\w{900}`) grows with it.
const COMPILED: usize = 64 << 10;
/// Bytes of a text that is matched.
const SUBJECT: usize = 8 << 10;
/// Groups inside one another.
const NESTED: u32 = 16;

/// Steps that compiling the pattern and running it over the text may take.
pub(super) fn cost(subject: &str, pattern: &str) -> u64 {
    let subject = u64::try_from(subject.len()).unwrap_or(u64::MAX);
    let pattern = u64::try_from(pattern.len()).unwrap_or(u64::MAX);
    // The text is walked once for every place in the pattern in the worst case, sixteen places a step.
    (2000_u64).saturating_add(subject.saturating_mul(1 + pattern / 16))
}

/// Whether the pattern is found in the text, unless one of them is out of bounds or the pattern is malformed.
pub(super) fn is_match(subject: &str, pattern: &str) -> Option<bool> {
    if pattern.len() > LONGEST || subject.len() > SUBJECT {
        return None;
    }
    let regex = RegexBuilder::new(pattern)
        .size_limit(COMPILED)
        .dfa_size_limit(COMPILED)
        .nest_limit(NESTED)
        .build()
        .ok()?;
    Some(regex.is_match(subject))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_bounded() {
        assert_eq!(is_match("ann@x.test", r"^[a-z]+@x\.test$"), Some(true));
        assert_eq!(is_match("bob", "^a"), Some(false));
        for pattern in ["[", r"\w{900}", "(a{1000}){1000}", r"(\pL{50}){50}", &"a".repeat(257), "(?P<"] {
            assert_eq!(is_match("a", pattern), None, "{pattern}");
        }
        assert_eq!(is_match(&"a".repeat(9000), "a"), None);
    }
}
