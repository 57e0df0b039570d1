//! A signed request: `METHOD TARGET AUTHORITY SCHEME`, header lines, an empty line, a body.
//! Its fields are read and verified as they come; then it is signed for good, and no change to what is covered
//! verifies (CORE-55..64).

use http::header::{HeaderMap, HeaderName, HeaderValue};
use sayso_protocol::sig::{
    Body, BodyRule, Facts, MINIMUM, Profile, Proof, QueryRule, SKEW_SECONDS, SigFault, SignOptions,
    content_digest, read, sign,
};
use sayso_protocol::{SigningKey, Timestamp};

use super::framed;

/// The time of the vectors, and of every check.
pub const NOW: Timestamp = Timestamp(1_800_000_000);

/// The seed of the key that the vectors are signed with.
pub const SEED: [u8; 32] = [7; 32];

const PROFILES: [Profile; 4] = [
    Profile { body: BodyRule::RequireDigest, query: QueryRule::Cover },
    Profile { body: BodyRule::RequireDigest, query: QueryRule::AcceptInPath },
    Profile { body: BodyRule::AcceptUncovered, query: QueryRule::Cover },
    Profile { body: BodyRule::AcceptUncovered, query: QueryRule::AcceptInPath },
];

/// A request that owns what a change may touch.
#[derive(Clone)]
struct Sent {
    method: String,
    scheme: String,
    authority: String,
    path: String,
    query: Option<String>,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// The body.
pub fn check(bytes: &[u8]) {
    let sent = Sent::read(bytes);
    let key = SigningKey::from_seed(&SEED).expect("the vectors' key");
    for profile in PROFILES {
        for body in [Body::Whole(&sent.body), Body::Unavailable] {
            if let Ok(proof) = sent.verify(&key, &profile, body) {
                proven(&sent, &proof, profile, body);
            }
        }
    }
    if let Some(signed) = sent.signed(&key) {
        let pick = bytes
            .iter()
            .fold(0x811c_9dc5_usize, |hash, byte| (hash ^ usize::from(*byte)).wrapping_mul(0x0100_0193));
        for turn in 0..2 {
            unchanged(&signed, &key, pick.rotate_right(turn * 7));
        }
    }
}

/// What every proof stands for, whoever signed.
fn proven(sent: &Sent, proof: &Proof, profile: Profile, body: Body<'_>) {
    assert!(MINIMUM.iter().all(|name| proof.covers(name)), "a proof without the minimum");
    assert!(NOW.since(proof.created).abs() <= SKEW_SECONDS);
    assert!(proof.covers_body || profile.body == BodyRule::AcceptUncovered || body == Body::Whole(b""));
    assert!(sent.query.is_none() || proof.covers("@query") || profile.query == QueryRule::AcceptInPath);
    if proof.covers_body {
        let digests = sent.headers.get_all("content-digest").iter().filter_map(|line| line.to_str().ok());
        let digests = digests.collect::<Vec<_>>().join(", ");
        assert!(digests.contains(&content_digest(&sent.body)), "a covered digest of something else");
    }
}

impl Sent {
    fn read(bytes: &[u8]) -> Sent {
        let (line, rest) = framed::first_line(bytes);
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default().to_owned();
        let (method, target, authority, scheme) = (word(), word(), word(), word());
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
            None => (target, None),
        };
        let (headers, body) = framed::message(rest);
        Sent { method, scheme, authority, path, query, headers, body: body.to_vec() }
    }

    fn facts<'a>(&'a self, body: Body<'a>) -> Facts<'a> {
        Facts {
            method: &self.method,
            scheme: &self.scheme,
            authority: &self.authority,
            path: &self.path,
            query: self.query.as_deref(),
            headers: &self.headers,
            body,
        }
    }

    fn verify(&self, key: &SigningKey, profile: &Profile, body: Body<'_>) -> Result<Proof, SigFault> {
        read(&self.headers)?.verify(&self.facts(body), key.verifying(), profile, NOW)
    }

    /// The same request, signed by us; `None` when it holds what cannot be signed.
    fn signed(&self, key: &SigningKey) -> Option<Sent> {
        let nonce = self.headers.get("x-nonce").and_then(|nonce| nonce.to_str().ok());
        let mut signed = self.clone();
        for name in ["signature", "signature-input", "content-digest"] {
            signed.headers.remove(name);
        }
        let options = SignOptions { nonce, expires: Some(NOW.plus(30)), ..SignOptions::default() };
        let fields = sign(&signed.facts(Body::Whole(&signed.body)), key, NOW, &options).ok()?;
        fields.insert_into(&mut signed.headers);
        // Fields that no verifier reads, for their length, prove nothing about the ones it does.
        if signed.headers.get("signature-input").is_some_and(|field| field.len() > 8000) {
            return None;
        }
        let proof = signed.verify(key, &Profile::default(), Body::Whole(&signed.body));
        let covers_body = proof.map(|proof| proof.covers_body);
        assert_eq!(covers_body, Ok(!signed.body.is_empty()), "signed for good, and read otherwise");
        Some(signed)
    }
}

/// One covered thing changed, and no profile takes the signature for good.
fn unchanged(signed: &Sent, key: &SigningKey, pick: usize) {
    let mut other = signed.clone();
    let at = pick / 9;
    let changed = match pick % 9 {
        0 => replace(&mut other.method, at),
        1 => replace(&mut other.authority, at),
        2 => replace(&mut other.path, at),
        3 => other.query.as_mut().is_some_and(|query| replace(query, at)),
        4 => flip(&mut other.body, at),
        5 => replace_header(&mut other.headers, "authorization", at),
        6 => replace_header(&mut other.headers, "signature-input", at),
        7 => replace_header(&mut other.headers, "signature", at),
        _ => replace_header(&mut other.headers, "content-digest", at),
    };
    for profile in PROFILES.iter().filter(|_| changed) {
        assert!(other.verify(key, profile, Body::Whole(&other.body)).is_err(), "changed, and still verifies");
    }
}

/// Puts another letter in the place of one; false when there is none.
fn replace(text: &mut String, at: usize) -> bool {
    let mut bytes = std::mem::take(text).into_bytes();
    let length = bytes.len().max(1);
    let changed = bytes.get_mut(at % length).map(|byte| *byte = if *byte == b'A' { b'B' } else { b'A' });
    *text = String::from_utf8_lossy(&bytes).into_owned();
    changed.is_some()
}

fn flip(bytes: &mut [u8], at: usize) -> bool {
    let length = bytes.len().max(1);
    bytes.get_mut(at % length).map(|byte| *byte ^= 1).is_some()
}

fn replace_header(headers: &mut HeaderMap, name: &'static str, at: usize) -> bool {
    let name = HeaderName::from_static(name);
    let lines = headers.get_all(&name).iter().count();
    let Some(mut text) = headers.get(&name).and_then(|value| value.to_str().ok()).map(str::to_owned) else {
        return false;
    };
    let changed = lines == 1 && replace(&mut text, at);
    if let (true, Ok(value)) = (changed, HeaderValue::from_str(&text)) {
        headers.insert(name, value);
    }
    changed
}
