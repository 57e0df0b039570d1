//! Numbers of JSON as Cedar has them: whole ones of 64 bits, and decimals of four places. Nothing is rounded.

/// The places of Cedar's `decimal`.
const PLACES: i64 = 4;
const UNIT: u64 = 10_000;

/// A number's text as a whole number, if it is one that 64 bits hold; `5.0` and `5e0` are 5.
pub(super) fn whole(text: &str) -> Option<i64> {
    scaled(text, 0)
}

/// A number's text as Cedar writes decimals, if four places hold all of it.
pub(super) fn decimal(text: &str) -> Option<String> {
    let scaled = scaled(text, PLACES)?;
    let (sign, all) = (if scaled < 0 { "-" } else { "" }, scaled.unsigned_abs());
    Some(format!("{sign}{}.{:04}", all / UNIT, all % UNIT))
}

/// The number times ten to the `places`, if that is whole and 64 bits hold it.
fn scaled(text: &str, places: i64) -> Option<i64> {
    let (significand, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (negative, significand) = match significand.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, significand),
    };
    let (whole, fraction) = significand.split_once('.').unwrap_or((significand, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    let exponent: i64 = exponent.parse().ok()?;
    let shift = exponent.checked_add(places)?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let kept = digits.trim_end_matches('0');
    let zeros = shift.checked_add(i64::try_from(digits.len() - kept.len()).ok()?)?;
    let zeros = usize::try_from(zeros).ok().filter(|zeros| kept.len() + zeros <= 19)?;
    let value: i128 = format!("{kept}{}", "0".repeat(zeros)).parse().ok()?;
    i64::try_from(if negative { -value } else { value }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_keep_their_value_or_are_none() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("0.000", 0),
            ("0e999999999999999999999", 0),
            ("5", 5),
            ("5.0", 5),
            ("-5e0", -5),
            ("1.5e1", 15),
            ("1200e-2", 12),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(whole(text), Some(value), "{text}");
        }
        for text in
            ["0.5", "1e-1", "9223372036854775808", "1e19", "1e999999999999999999999", "1e9223372036854775807"]
        {
            assert_eq!(whole(text), None, "{text}");
        }
    }

    #[test]
    fn decimals_have_four_places_or_are_none() {
        for (text, value) in [
            ("10000.5", "10000.5000"),
            ("-0.0001", "-0.0001"),
            ("1e-4", "0.0001"),
            ("20000", "20000.0000"),
            ("922337203685477.5807", "922337203685477.5807"),
            ("-922337203685477.5808", "-922337203685477.5808"),
        ] {
            assert_eq!(decimal(text).as_deref(), Some(value), "{text}");
        }
        for text in ["0.00001", "922337203685477.5808", "1e15", "0.1234567"] {
            assert_eq!(decimal(text), None, "{text}");
        }
    }
}
