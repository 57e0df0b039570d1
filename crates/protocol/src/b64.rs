//! Base64url without padding, the only text form of bytes in these drafts, decoded strictly.
//!
//! Non-canonical trailing bits, padding and foreign alphabets are refused, so one value has one spelling.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// The text was not canonical base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not canonical base64")]
pub struct NotBase64;

/// Base64url without padding.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes base64url without padding.
///
/// # Errors
/// When the text is padded, uses another alphabet or has stray trailing bits.
pub fn decode(text: impl AsRef<[u8]>) -> Result<Vec<u8>, NotBase64> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| NotBase64)
}

/// Padded standard base64, as RFC 9530 and the MCP header sentinel use it.
pub fn encode_standard(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// Decodes padded standard base64.
///
/// # Errors
/// When the text is not canonical padded base64.
pub fn decode_standard(text: impl AsRef<[u8]>) -> Result<Vec<u8>, NotBase64> {
    STANDARD.decode(text).map_err(|_| NotBase64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_one_spelling() {
        assert_eq!(decode("AA").unwrap(), [0]);
        for odd in ["AA==", "AB", "A", "A+", "A A"] {
            assert_eq!(decode(odd), Err(NotBase64), "{odd}");
        }
    }
}
