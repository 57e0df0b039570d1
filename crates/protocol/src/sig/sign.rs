//! Signing a request: label `sig1`, the minimum, and whatever the request has that must be covered (O-22, O-23).
//!
//! Pure: the time and the nonce are arguments. Sending the request, once and without redirects, is the caller's.

use super::base::{Request, signature_base};
use super::{Body, Facts, MINIMUM, SigFault, content_digest};
use crate::id::Timestamp;
use crate::key::SigningKey;
use http::{HeaderMap, HeaderValue};
use sfv::{DictSerializer, Integer, KeyRef, StringRef};

/// What to add to the usual signature.
#[derive(Debug, Clone, Copy, Default)]
pub struct SignOptions<'a> {
    /// Further components to cover, e.g. `content-type`. `signature-agent` is covered by itself when present.
    pub also_cover: &'a [&'a str],
    /// Fresh random text. Without it, equal requests of one second have equal signatures, and verifiers that
    /// keep a replay cache refuse all but the first.
    pub nonce: Option<&'a str>,
    /// When the signature stops being good, if before the usual minute.
    pub expires: Option<Timestamp>,
    /// What the signature is for, where a draft names it: `web-bot-auth` beside a `Signature-Agent`.
    pub tag: Option<&'a str>,
}

/// The fields that make a request signed.
#[derive(Debug, Clone)]
pub struct Signed {
    /// `Signature-Input`.
    pub signature_input: HeaderValue,
    /// `Signature`.
    pub signature: HeaderValue,
    /// `Content-Digest`, when there is a body.
    pub content_digest: Option<HeaderValue>,
}

impl Signed {
    /// Puts the fields on a request, in place of any it had from an earlier attempt.
    pub fn insert_into(self, headers: &mut HeaderMap) {
        headers.insert("signature-input", self.signature_input);
        headers.insert("signature", self.signature);
        if let Some(digest) = self.content_digest {
            headers.insert("content-digest", digest);
        }
    }
}

/// Signs a request as our verifier wants it: the minimum, the query if any, the digest of a body if any.
///
/// The digest is computed from `facts.body`; a `Content-Digest` already among the headers is not looked at.
///
/// # Errors
/// When the body is not at hand, something to be covered is absent, there twice, or cannot be written, or whoever holds
/// the key does not sign.
pub fn sign(
    facts: &Facts<'_>,
    key: &SigningKey,
    created: Timestamp,
    options: &SignOptions<'_>,
) -> Result<Signed, SigFault> {
    if facts.headers.get_all("authorization").iter().nth(1).is_some() {
        return Err(SigFault::RepeatedHeader("authorization"));
    }
    let digest = match facts.body {
        Body::Unavailable => return Err(SigFault::BodyUnavailable),
        Body::Whole([]) if !options.also_cover.contains(&"content-digest") => None,
        Body::Whole(body) => Some(content_digest(body)),
    };
    let covered = components(facts, digest.is_some(), options.also_cover);
    let params = params(&covered, &key.kid(), created, options)?;
    let request = Request { facts, content_digest: digest.as_deref(), query_in_path: false };
    let base = signature_base(&covered, &params, &request)?;
    let signature = key.sign(base.as_bytes()).map_err(|_| SigFault::Unsigned)?;
    let signature = crate::b64::encode_standard(signature);
    Ok(Signed {
        signature_input: written(&format!("sig1={params}"))?,
        signature: written(&format!("sig1=:{signature}:"))?,
        content_digest: digest.map(|digest| written(&digest)).transpose()?,
    })
}

fn components(facts: &Facts<'_>, body: bool, also: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = MINIMUM.iter().map(|name| (*name).to_owned()).collect();
    let query = facts.query.is_some().then_some("@query");
    let digest = body.then_some("content-digest");
    let agent = facts.headers.contains_key("signature-agent").then_some("signature-agent");
    for name in query.into_iter().chain(digest).chain(agent).chain(also.iter().copied()) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The text of `@signature-params`, without its label.
fn params(
    covered: &[String],
    keyid: &str,
    created: Timestamp,
    options: &SignOptions<'_>,
) -> Result<String, SigFault> {
    let mut field = DictSerializer::new();
    let mut list = field.inner_list(name("sig1")?);
    for component in covered {
        let _ = list.bare_item(text(component)?);
    }
    let mut written = list.finish().parameter(name("created")?, seconds(created)?);
    if let Some(expires) = options.expires {
        written = written.parameter(name("expires")?, seconds(expires)?);
    }
    written = written.parameter(name("keyid")?, text(keyid)?).parameter(name("alg")?, text("ed25519")?);
    for (parameter, value) in [("nonce", options.nonce), ("tag", options.tag)] {
        if let Some(value) = value {
            written = written.parameter(name(parameter)?, text(value)?);
        }
    }
    drop(written);
    let line = field.finish().ok_or(SigFault::Malformed)?;
    line.strip_prefix("sig1=").map(str::to_owned).ok_or(SigFault::Malformed)
}

fn name(text: &str) -> Result<&KeyRef, SigFault> {
    KeyRef::from_str(text).map_err(|_| SigFault::Malformed)
}

fn text(text: &str) -> Result<&StringRef, SigFault> {
    StringRef::from_str(text).map_err(|_| SigFault::Malformed)
}

fn seconds(at: Timestamp) -> Result<Integer, SigFault> {
    Integer::try_from(at.0).map_err(|_| SigFault::Malformed)
}

fn written(text: &str) -> Result<HeaderValue, SigFault> {
    HeaderValue::from_str(text).map_err(|_| SigFault::Malformed)
}
