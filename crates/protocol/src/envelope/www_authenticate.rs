//! A challenge in a 401's `WWW-Authenticate` header, scheme `UMA` (CORE-14, CORE-15, CORE-25).
//! It keeps one reading: the whole RFC 9110 grammar is parsed, bounded, and exactly one challenge of the scheme is
//! taken, whatever other schemes, quoted text or parameter names stand around it.
//! Whether the challenge is corroborated by the resource is the agent's to find out.

mod grammar;
#[cfg(test)]
mod tests;

use crate::b64;
use crate::id::{Realm, Scope};
use crate::json::{self, Limits};
use crate::payload::challenge::{BadChallenge, Challenge, ChallengeObject, ERROR};
use crate::payload::remediation::Remediation;
use grammar::{Parsed, quote};
use http::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};

/// The authentication scheme of a challenge.
pub const SCHEME: &str = "UMA";

/// Longest header read, all lines together, in bytes.
pub const MAX_BYTES: usize = 128 * 1024;

/// Largest remediation read from a header.
const REMEDIATION: Limits = Limits { bytes: 64 * 1024, depth: 16 };

/// The header value of a challenge.
///
/// # Errors
/// When a part cannot stand in a header, e.g. a ticket with a control character.
pub fn encode(challenge: &Challenge) -> Result<HeaderValue, BadChallenge> {
    let remediation = serde_json::to_vec(&challenge.remediation).map_err(|_| BadChallenge::Malformed)?;
    let parameters = [
        ("realm", challenge.realm.as_str()),
        ("error", ERROR),
        ("as_uri", &challenge.as_uri),
        ("ticket", &challenge.ticket),
        ("resource_metadata", &challenge.resource_metadata),
        ("scope", &Scope::join(&challenge.scopes)),
        ("authorization_remediation", &b64::encode(remediation)),
    ];
    let mut text = SCHEME.to_owned();
    for (index, (name, value)) in parameters.iter().enumerate() {
        text.push_str(if index == 0 { " " } else { ", " });
        text.push_str(name);
        text.push('=');
        quote(&mut text, value);
    }
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| BadChallenge::Malformed)
}

/// The challenge of a response, or none when no challenge has this scheme.
///
/// # Errors
/// When the header is malformed, holds several such challenges, or the one it holds is incomplete or contradicts
/// itself.
pub fn decode(headers: &HeaderMap) -> Result<Option<ChallengeObject>, BadChallenge> {
    let lines: Vec<&[u8]> = headers.get_all(WWW_AUTHENTICATE).iter().map(HeaderValue::as_bytes).collect();
    if lines.iter().map(|line| line.len().saturating_add(2)).sum::<usize>() > MAX_BYTES {
        return Err(BadChallenge::Malformed);
    }
    let joined = lines.join(&b", "[..]);
    let mut found =
        grammar::challenges(&joined)?.into_iter().filter(|one| one.scheme.eq_ignore_ascii_case(SCHEME));
    match (found.next(), found.next()) {
        (None, _) => Ok(None),
        (Some(one), None) => object(one)?.check().map(Some),
        (Some(_), Some(_)) => Err(BadChallenge::Several),
    }
}

fn object(mut parsed: Parsed) -> Result<ChallengeObject, BadChallenge> {
    let remediation = parsed.take("authorization_remediation")?.map(|text| remediation(&text)).transpose()?;
    Ok(ChallengeObject {
        error: parsed.take("error")?.ok_or(BadChallenge::Incomplete)?,
        realm: parsed.take("realm")?.map(Realm::parse).transpose().map_err(|_| BadChallenge::Malformed)?,
        as_uri: parsed.take("as_uri")?.ok_or(BadChallenge::Incomplete)?,
        ticket: parsed.take("ticket")?.ok_or(BadChallenge::Incomplete)?,
        resource_metadata: parsed.take("resource_metadata")?,
        scope: parsed.take("scope")?,
        authorization_remediation: remediation,
    })
}

fn remediation(text: &str) -> Result<Remediation, BadChallenge> {
    let bytes = b64::decode(text).map_err(|_| BadChallenge::Malformed)?;
    json::strict(&bytes, REMEDIATION).map_err(|_| BadChallenge::Malformed)
}
