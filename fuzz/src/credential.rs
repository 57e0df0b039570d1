//! An agent's credential: as received, and as a header line with a payload, signed here by an issuer whose only key it is.
//! The same bytes as an issuer's document, key set, client metadata and directory. Whatever is believed was signed, is in
//! time, for us, and named under its issuer (AAUTH-02..12).

use sayso_protocol::payload::assertion::{Asked, Said};
use sayso_protocol::payload::client::{ClientMetadata, client_address, directory_keys, directory_of};
use sayso_protocol::payload::credential::{IssuerKeys, Shown, is_issuer, keys_address};
use sayso_protocol::payload::metadata::KeySet;
use sayso_protocol::payload::relink::Relink;
use sayso_protocol::{Handle, Timestamp};

use super::{framed, jws};

/// The time of every check.
pub const NOW: Timestamp = Timestamp(1_800_000_000);
/// Who reads.
const US: &str = "https://as.example";

/// The body.
pub fn check(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(shown) = Shown::read(text) {
            assert!(shown.vouched(&IssuerKeys::default(), US, NOW).is_err(), "nobody vouched");
        }
        if let Ok(said) = Said::read(text) {
            let asked = Asked { authority: US, server: "https://gw.example", scopes: &[], subject: "sub" };
            assert!(said.vouched(&IssuerKeys::default(), &asked, NOW).is_err(), "nobody vouched");
        }
        if let Ok(url) = client_address(text) {
            assert!(url.scheme() == "https" && url.as_str() == text);
            let there = directory_of(&url, &url.origin().ascii_serialization());
            assert!(there.is_some_and(|there| there.starts_with("https://")));
        }
    }
    documents(bytes);
    let (header, payload) = framed::first_line(bytes);
    let key = jws::key();
    let compact = jws::signed(header.as_bytes(), payload, &key);
    let Ok(shown) = Shown::read(&compact) else { return };
    assert!(is_issuer(shown.issuer()));
    let (issuer, handle, expires) = (shown.issuer().to_owned(), shown.handle().clone(), shown.expires());
    let host = issuer.trim_start_matches("https://");
    assert!(handle.as_str().ends_with(&format!("@{host}")), "{handle} is not under {issuer}");
    // Without `kid` the only key is meant, whatever it is called.
    let mut set = serde_json::to_value(KeySet::of([key.verifying()])).expect("a set can be written");
    set["keys"][0].as_object_mut().expect("a key").remove("alg");
    if let Some(kid) = shown.kid() {
        set["keys"][0]["kid"] = kid.into();
    }
    if shown.algorithm() == "Ed25519" || header.contains("\"Ed25519\"") {
        set["keys"][0]["alg"] = "Ed25519".into();
    }
    let keys = IssuerKeys::read(set.to_string().as_bytes()).expect("a set");
    let other = IssuerKeys::read(br#"{"keys":[]}"#).expect("a set");
    let again = Shown::read(&compact).expect("it was read before");
    assert!(again.vouched(&other, US, NOW).is_err(), "a key nobody publishes");
    if let Ok(credential) = shown.vouched(&keys, US, NOW) {
        assert!(expires > NOW && credential.expires == expires);
        assert_eq!(credential.issuer, issuer);
        let named = Handle::identified(&credential.subject, &issuer);
        assert_eq!(named.as_ref(), Ok(&credential.handle));
        assert!(credential.parent != Some(handle), "its own parent");
    }
}

/// The same bytes as each of the documents that others publish about an agent.
fn documents(bytes: &[u8]) {
    if let Ok(address) = keys_address(US, bytes) {
        assert!(address.starts_with(US), "{address}");
    }
    if let Ok(keys) = IssuerKeys::read(bytes) {
        assert!(!keys.knows(Some("no key of anybody's has this name")) || bytes.len() > 30);
    }
    let address = "https://op.example/agent.json";
    if let Ok(read) = ClientMetadata::read(address, bytes) {
        assert_eq!(read.client_id, address);
    }
    if let Ok(keys) = directory_keys(bytes) {
        assert!(keys.len() <= 64);
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(statement) = serde_json::from_str::<Relink>(text)
        && let Ok(proven) = statement.verify(US, NOW)
    {
        assert_ne!(proven.from, proven.to);
    }
}
