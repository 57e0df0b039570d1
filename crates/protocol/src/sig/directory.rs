//! The signature a key directory is served under, by each key in it: over the authority it was asked at, so that a copy
//! elsewhere is seen to be one (Web Bot Auth's directory draft, RFC 9421 section 2.4).
//!
//! It covers nothing that differs from request to request, so an operator can host it as a file with two header lines.

use super::SigFault;
use crate::b64;
use crate::id::Timestamp;
use crate::key::SigningKey;

/// What such a signature says it is for.
pub const DIRECTORY_TAG: &str = "http-message-signatures-directory";

/// `Signature-Input` and `Signature` of a directory at this authority, good from `created` to `expires`.
///
/// # Errors
/// When whoever holds a key does not sign, or the authority cannot stand in a signature base.
pub fn sign_directory(
    keys: &[SigningKey],
    authority: &str,
    created: Timestamp,
    expires: Timestamp,
) -> Result<(String, String), SigFault> {
    if authority.is_empty() || !authority.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(SigFault::Malformed);
    }
    let (mut inputs, mut signatures) = (vec![], vec![]);
    for (place, key) in keys.iter().enumerate() {
        let label = format!("sig{}", place.saturating_add(1));
        let params = format!(
            "(\"@authority\";req);created={created};expires={expires};keyid=\"{}\";alg=\"ed25519\";tag=\"{DIRECTORY_TAG}\"",
            key.kid()
        );
        let base = format!("\"@authority\";req: {authority}\n\"@signature-params\": {params}");
        let signature = key.sign(base.as_bytes()).map_err(|_| SigFault::Unsigned)?;
        inputs.push(format!("{label}={params}"));
        signatures.push(format!("{label}=:{}:", b64::encode_standard(signature)));
    }
    Ok((inputs.join(", "), signatures.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_signs_for_the_place_it_is_served_at() {
        let keys = [5, 6].map(|seed| SigningKey::from_seed(&[seed; 32]).unwrap());
        let (input, signature) = sign_directory(&keys, "op.example", Timestamp(1), Timestamp(9)).unwrap();
        let first = format!(
            "sig1=(\"@authority\";req);created=1;expires=9;keyid=\"{}\";alg=\"ed25519\";tag=\"{DIRECTORY_TAG}\"",
            keys[0].kid()
        );
        assert!(input.starts_with(&first), "{input}");
        assert!(input.contains(", sig2=(") && signature.contains(":, sig2=:"));
        let base = format!("\"@authority\";req: op.example\n\"@signature-params\": {}", &first[5..]);
        let sent = signature.split(':').nth(1).map(|text| b64::decode_standard(text).unwrap()).unwrap();
        assert!(keys[0].verifying().verify(base.as_bytes(), &sent).is_ok());
        for odd in ["", "op.example\n", "op example"] {
            assert!(sign_directory(&keys, odd, Timestamp(1), Timestamp(9)).is_err());
        }
    }
}
