//! The signature a key directory is served under, by each key in it: over the authority it was asked at, so that a copy
//! elsewhere is seen to be one (Web Bot Auth's directory draft, RFC 9421 section 2.4).
//!
//! It covers nothing that differs from request to request, so an operator can host it as a file with two header lines.

use super::fields::{Field, combined_within, seconds};
use super::{SKEW_SECONDS, SigFault};
use crate::b64;
use crate::id::Timestamp;
use crate::key::{SigningKey, VerifyingKey};
use http::HeaderMap;
use sfv::{BareItem, InnerList, ListEntry};

/// What such a signature says it is for.
pub const DIRECTORY_TAG: &str = "http-message-signatures-directory";

/// Most bytes of each of the two fields, and most signatures looked at.
const MOST_BYTES: usize = 32 * 1024;
const MOST_KEYS: usize = 64;

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

/// Whether the holder of `key` signed the directory that came with these headers, for this authority, and it counts now. Who
/// lists somebody else's key has no such signature to show.
pub fn is_signed_directory(headers: &HeaderMap, authority: &str, key: &VerifyingKey, now: Timestamp) -> bool {
    let field = |name| combined_within(headers, name, MOST_BYTES);
    let (Ok(inputs), Ok(signatures)) = (field("signature-input"), field("signature")) else { return false };
    let (Ok(inputs), Ok(signatures)) = (Field::read(&inputs), Field::read(&signatures)) else { return false };
    let mine = |(label, text): &(&str, &str)| {
        let Some(ListEntry::InnerList(list)) = inputs.parsed.get(*label) else { return false };
        let Some(Ok(signature)) = signatures.bytes(label) else { return false };
        let base = format!("\"@authority\";req: {authority}\n\"@signature-params\": {text}");
        counts(list, key, now) && key.verify(base.as_bytes(), &signature).is_ok()
    };
    inputs.texts.iter().take(MOST_KEYS).any(mine)
}

/// Whether a signature says that it is this key's, over the authority asked and nothing else, for a directory, and is in time.
fn counts(list: &InnerList, key: &VerifyingKey, now: Timestamp) -> bool {
    let text = |name: &str| list.params.get(name).and_then(|value| Some(value.as_string()?.as_str()));
    let authority_asked = |item: &sfv::Item| {
        let named = item.bare_item.as_string().is_some_and(|name| name.as_str() == "@authority");
        named && item.params.len() == 1 && item.params.get("req") == Some(&BareItem::Boolean(true))
    };
    let covers = matches!(&list.items[..], [only] if authority_asked(only));
    let created = seconds(&list.params, "created").ok().flatten();
    let expires = seconds(&list.params, "expires").ok().flatten();
    let begun = created.is_some_and(|created| created.since(now) <= SKEW_SECONDS);
    let lasts = expires.is_some_and(|expires| expires > now);
    covers
        && begun
        && lasts
        && text("tag") == Some(DIRECTORY_TAG)
        && text("keyid") == Some(key.thumbprint().as_str())
        && text("alg").is_none_or(|alg| alg == "ed25519")
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
        let odd_hosts = ["", "op.example\n", "op example"];
        for odd in odd_hosts {
            assert!(sign_directory(&keys, odd, Timestamp(1), Timestamp(9)).is_err());
        }
    }

    fn headers(input: &str, signature: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("signature-input", input.parse().unwrap());
        headers.insert("signature", signature.parse().unwrap());
        headers
    }

    #[test]
    fn a_directory_is_signed_by_those_who_signed_it() {
        let [one, two, three] = [5, 6, 7].map(|seed| SigningKey::from_seed(&[seed; 32]).unwrap());
        let both = [one.clone(), two.clone()];
        let (input, signature) = sign_directory(&both, "op.example", Timestamp(10), Timestamp(90)).unwrap();
        let signed = headers(&input, &signature);
        let by = |key: &SigningKey, authority: &str, now: i64| {
            is_signed_directory(&signed, authority, key.verifying(), Timestamp(now))
        };
        assert!(by(&one, "op.example", 50) && by(&two, "op.example", 50));
        assert!(!by(&three, "op.example", 50), "whoever did not sign");
        assert!(!by(&one, "copy.example", 50), "a copy elsewhere");
        assert!(!by(&one, "op.example", 90) && !by(&one, "op.example", -60), "out of time");
        for (from, to) in [
            (DIRECTORY_TAG, "web-bot-auth"),
            ("\"@authority\";req", "\"@authority\""),
            ("\"@authority\";req", "\"@authority\";req \"date\""),
            (";expires=90", ""),
            (";expires=90", ";expires=\"90\""),
            ("ed25519", "hmac-sha256"),
        ] {
            let altered = headers(&input.replace(from, to), &signature);
            assert!(!is_signed_directory(&altered, "op.example", one.verifying(), Timestamp(50)), "{to}");
        }
        let swapped = input.replace(&two.kid(), &one.kid());
        assert!(!is_signed_directory(
            &headers(&swapped, &signature),
            "op.example",
            two.verifying(),
            Timestamp(50)
        ));
        for (input, signature) in [("", ""), ("x", "y"), (&*input, ""), (&*"a=1, ".repeat(9000), &*signature)]
        {
            assert!(!is_signed_directory(
                &headers(input, signature),
                "op.example",
                one.verifying(),
                Timestamp(50)
            ));
        }
    }
}
