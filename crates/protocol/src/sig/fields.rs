//! The structured fields of a signed request: `Signature-Input`, `Signature` and `Content-Digest` (RFC 8941, 9530).
//!
//! Grammar is checked by `sfv`; what is signed or compared is then taken from the received text itself, and base64
//! has one spelling. Everything is bounded before it is parsed.

use super::{Body, Facts, MINIMUM, SigFault};
use crate::b64;
use crate::canon::sha256;
use crate::id::Timestamp;
use http::HeaderMap;
use sfv::{BareItem, Dictionary, InnerList, ListEntry, Parameters, Parser, Version};

const MOST_LABELS: usize = 4;
const MOST_COMPONENTS: usize = 32;
const MOST_BYTES: usize = 8 * 1024;

/// One label that could qualify: well formed, Ed25519, dated, covering the minimum.
pub(super) struct Candidate {
    pub(super) covered: Vec<String>,
    /// The value of `@signature-params` exactly as received (CORE-60).
    pub(super) params: String,
    pub(super) created: Timestamp,
    pub(super) expires: Option<Timestamp>,
    pub(super) keyid: Option<String>,
    pub(super) signature: Vec<u8>,
}

/// A dictionary together with the received text of each member's value.
pub(super) struct Field<'a> {
    pub(super) parsed: Dictionary,
    pub(super) texts: Vec<(&'a str, &'a str)>,
}

impl<'a> Field<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, SigFault> {
        // RFC 8941 has no display strings, whose quoting would differ from that of strings below.
        let parser = Parser::new(text).with_version(Version::Rfc8941);
        let parsed: Dictionary = parser.parse().map_err(|_| SigFault::Malformed)?;
        let texts: Vec<_> = split(text).collect();
        // INVARIANT: both readings see the same members, and no label or algorithm occurs twice.
        let same = texts.len() == parsed.len() && texts.iter().all(|(key, _)| parsed.contains_key(*key));
        if same { Ok(Self { parsed, texts }) } else { Err(SigFault::Malformed) }
    }

    /// The bytes of a member, strictly decoded; `None` when there is no such member.
    pub(super) fn bytes(&self, key: &str) -> Option<Result<Vec<u8>, SigFault>> {
        let (_, text) = self.texts.iter().find(|(name, _)| *name == key)?;
        let inside = text.strip_prefix(':').and_then(|rest| rest.split_once(':'));
        Some(
            inside
                .ok_or(SigFault::Malformed)
                .and_then(|(base64, _)| b64::decode_standard(base64).map_err(|_| SigFault::Malformed)),
        )
    }
}

/// Splits a well-formed dictionary at the commas outside its strings, into keys and the text of their values.
fn split(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let (mut quoted, mut escaped) = (false, false);
    let members = text.split(move |letter| {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            _ => {}
        }
        letter == ',' && !quoted
    });
    let members = members.map(|member| member.trim_matches([' ', '\t']));
    // Only a field without members has an empty one: the grammar refuses stray commas.
    members.filter(|member| !member.is_empty()).map(|member| {
        let key = member.split(['=', ';']).next().unwrap_or_default();
        let rest = member.strip_prefix(key).unwrap_or_default();
        (key, rest.strip_prefix('=').unwrap_or_default())
    })
}

/// The labels that could qualify.
pub(super) fn candidates(headers: &HeaderMap) -> Result<Vec<Candidate>, SigFault> {
    let inputs = combined(headers, "signature-input")?;
    let signatures = combined(headers, "signature")?;
    let (inputs, signatures) = (Field::read(&inputs)?, Field::read(&signatures)?);
    if inputs.texts.len() > MOST_LABELS || signatures.texts.len() > MOST_LABELS {
        return Err(SigFault::TooLarge);
    }
    let mut found = Vec::new();
    let mut fault = None;
    for (label, text) in &inputs.texts {
        let Some(signature) = signatures.bytes(label) else { continue };
        match signature.and_then(|signature| Candidate::read(inputs.parsed.get(*label), text, signature)) {
            Ok(candidate) => found.push(candidate),
            Err(why) => fault = fault.or(Some(why)),
        }
    }
    if found.is_empty() { Err(fault.unwrap_or(SigFault::Missing)) } else { Ok(found) }
}

/// The lines of a field as one text (RFC 8941 section 4.2), bounded.
fn combined(headers: &HeaderMap, name: &'static str) -> Result<String, SigFault> {
    combined_within(headers, name, MOST_BYTES)
}

/// The same within as many bytes.
pub(super) fn combined_within(
    headers: &HeaderMap,
    name: &'static str,
    most: usize,
) -> Result<String, SigFault> {
    let lines = headers.get_all(name);
    if lines.iter().map(|line| line.len().saturating_add(2)).sum::<usize>() > most {
        return Err(SigFault::TooLarge);
    }
    let lines: Result<Vec<_>, _> = lines.iter().map(|line| line.to_str()).collect();
    match lines.map_err(|_| SigFault::Malformed)?.as_slice() {
        [] => Err(SigFault::Missing),
        lines => Ok(lines.join(", ")),
    }
}

impl Candidate {
    fn read(entry: Option<&ListEntry>, text: &str, signature: Vec<u8>) -> Result<Self, SigFault> {
        let Some(ListEntry::InnerList(list)) = entry else { return Err(SigFault::Malformed) };
        let covered = components(list)?;
        for name in MINIMUM {
            if !covered.iter().any(|covered| covered == name) {
                return Err(SigFault::UncoveredComponent(name));
            }
        }
        match list.params.get("alg") {
            None => {}
            Some(BareItem::String(alg)) if alg.as_str() == "ed25519" => {}
            Some(_) => return Err(SigFault::WrongAlgorithm),
        }
        let created = seconds(&list.params, "created").map_err(|_| SigFault::NoCreated)?;
        Ok(Self {
            covered,
            params: text.to_owned(),
            created: created.ok_or(SigFault::NoCreated)?,
            expires: seconds(&list.params, "expires")?,
            keyid: list.params.get("keyid").and_then(|id| Some(id.as_string()?.as_str().to_owned())),
            signature,
        })
    }

    pub(super) fn covers(&self, component: &str) -> bool {
        self.covered.iter().any(|name| name == component)
    }
}

/// The listed names: bare, since no component parameter is defined for this profile, and each once (BASE-10).
fn components(list: &InnerList) -> Result<Vec<String>, SigFault> {
    if list.items.len() > MOST_COMPONENTS {
        return Err(SigFault::TooLarge);
    }
    let mut names: Vec<String> = Vec::with_capacity(list.items.len());
    for item in &list.items {
        let name = item.bare_item.as_string().ok_or(SigFault::Malformed)?.as_str();
        if !item.params.is_empty() {
            return Err(SigFault::UnknownComponent);
        }
        if names.iter().any(|known| known == name) {
            return Err(SigFault::DuplicateComponent);
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

pub(super) fn seconds(params: &Parameters, name: &str) -> Result<Option<Timestamp>, SigFault> {
    match params.get(name) {
        None => Ok(None),
        Some(BareItem::Integer(at)) => Ok(Some(Timestamp(i64::from(*at)))),
        Some(_) => Err(SigFault::Malformed),
    }
}

/// The `Content-Digest` of a body, SHA-256 (RFC 9530).
pub fn content_digest(body: &[u8]) -> String {
    written(&sha256(body))
}

fn written(digest: &[u8; 32]) -> String {
    format!("sha-256=:{}:", b64::encode_standard(digest))
}

/// Recomputes the received digest from the received body (CORE-61, BASE-11).
pub(super) fn require_digest(facts: &Facts<'_>) -> Result<(), SigFault> {
    let Body::Whole(body) = facts.body else { return Err(SigFault::BodyUnavailable) };
    let text = combined(facts.headers, "content-digest")?;
    let digest = sha256(body);
    // Nearly always the one usual entry, which needs no reading.
    if text == written(&digest) {
        return Ok(());
    }
    let claimed = Field::read(&text)?.bytes("sha-256").ok_or(SigFault::DigestUnsupported)??;
    if claimed == digest { Ok(()) } else { Err(SigFault::DigestMismatch) }
}
