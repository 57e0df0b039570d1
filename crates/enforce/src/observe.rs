//! What is told of a decision: one event in the log, and one call of whoever counts.
//!
//! Names and reasons come from closed lists and identifiers from the registry, so nothing a stranger wrote is told, but
//! for a trace id, which is thirty-two hexadecimal digits or nothing. What the numbers are kept in is the binary's.

use crate::bearer::INVALID_TOKEN;
use crate::verdict::Verdict;
use http::HeaderMap;
use sayso_protocol::payload::refusal::Refusal;
use sayso_protocol::{NegotiationId, ToolName};
use std::time::Duration;

/// How a request ended here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was given a permit.
    Allowed,
    /// It was answered with a ticket.
    Challenged,
    /// It was refused.
    Denied,
}

impl Outcome {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Allowed => "allowed",
            Outcome::Challenged => "challenged",
            Outcome::Denied => "denied",
        }
    }
}

/// Whoever counts decisions.
pub trait Observer: Send + Sync {
    /// A request was decided. `reason` is a word of ours: how a permit lets pass, or the `error` of a refusal.
    fn decided(&self, outcome: Outcome, reason: &'static str, took: Duration);

    /// A policy decision point was asked about a request. `decision` is `permit`, `deny` or `fault`.
    fn consulted(&self, _decision: &'static str, _took: Duration) {}

    /// A mapping was used whose author somebody should know of; told once for each mapping, and in the log too. `notice` is
    /// a word of `sayso_coaz::Notice`.
    fn warned(&self, _notice: &'static str) {}
}

/// What is known of a request when its verdict is told.
pub(crate) struct Known<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) tool: Option<&'a ToolName>,
    pub(crate) family: Option<&'a NegotiationId>,
}

/// The reason of a fault that has no name on the wire.
const MALFORMED: &str = "malformed";
/// The reason of a 401 to whoever showed no token.
const NO_TOKEN: &str = "no_token";

/// Writes the event of a verdict and says how it is counted. What is open to everybody is counted and not written.
pub(crate) fn tell<S>(verdict: &Verdict<S>, known: &Known<'_>) -> (Outcome, &'static str) {
    let family = known.family.map(NegotiationId::as_str);
    let tool = known.tool.map(ToolName::as_str);
    match verdict {
        Verdict::Permit(permit) => {
            if permit.is_granted() {
                tracing::info!(family, tool, trace_id = trace_id(known.headers), "access.allowed");
            }
            (Outcome::Allowed, permit.passage())
        }
        Verdict::Challenge(_) => {
            tracing::info!(family, tool, trace_id = trace_id(known.headers), "challenge.issued");
            (Outcome::Challenged, "insufficient_authorization")
        }
        Verdict::Refuse(refusal) => denied(refusal.code.as_str(), known),
        Verdict::Fault(fault) => denied(fault.error.unwrap_or(MALFORMED), known),
        Verdict::Policy(refusal) => denied(refusal.category, known),
        Verdict::Bearer(challenge) => denied(if challenge.shown { INVALID_TOKEN } else { NO_TOKEN }, known),
    }
}

/// The same for a refusal made before there is a verdict.
pub(crate) fn turned_away(refusal: &Refusal, headers: &HeaderMap) -> (Outcome, &'static str) {
    denied(refusal.code.as_str(), &Known { headers, tool: None, family: None })
}

fn denied(error: &'static str, known: &Known<'_>) -> (Outcome, &'static str) {
    let family = known.family.map(NegotiationId::as_str);
    let tool = known.tool.map(ToolName::as_str);
    tracing::info!(family, tool, trace_id = trace_id(known.headers), error, "access.denied");
    (Outcome::Denied, error)
}

/// The trace a request says it belongs to, where it says so once and well formed (W3C Trace Context).
fn trace_id(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all("traceparent").iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let mut parts = line.to_str().ok()?.splitn(5, '-');
    let version = parts.next().filter(|part| is_hex(part, 2) && *part != "ff")?;
    let trace = parts.next().filter(|part| is_hex(part, 32) && !is_zero(part))?;
    let parent = parts.next().is_some_and(|part| is_hex(part, 16) && !is_zero(part));
    let flags = parts.next().is_some_and(|part| is_hex(part, 2));
    // A later version may say more behind what this one knows.
    let ends = version != "00" || parts.next().is_none();
    (parent && flags && ends).then_some(trace)
}

fn is_hex(part: &str, length: usize) -> bool {
    part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_zero(part: &str) -> bool {
    part.bytes().all(|byte| byte == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traced(lines: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("traceparent", line.parse().unwrap());
        }
        trace_id(&headers).map(str::to_owned)
    }

    #[test]
    fn a_trace_is_named_only_where_it_is_well_formed() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let good = format!("00-{trace}-b7ad6b7169203331-01");
        assert_eq!(traced(&[&good]).as_deref(), Some(trace));
        assert_eq!(
            traced(&[&format!("01-{trace}-b7ad6b7169203331-01-more-to-come")]).as_deref(),
            Some(trace)
        );
        for odd in [
            String::new(),
            trace.to_owned(),
            format!("{good}-more"),
            format!("ff-{trace}-b7ad6b7169203331-01"),
            format!("00-{}-b7ad6b7169203331-01", trace.to_uppercase()),
            format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{trace}-b7ad6b7169203331"),
            format!("00-{trace}x-b7ad6b7169203331-01"),
        ] {
            assert_eq!(traced(&[&odd]), None, "{odd}");
        }
        assert_eq!(traced(&[]), None);
        assert_eq!(traced(&[&good, &good]), None);
    }
}
