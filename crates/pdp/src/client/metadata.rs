//! What a policy engine publishes about itself, read strictly: it is used only if it is its own (AuthZEN section 9).
//! Signed metadata and everything else in it is passed over; how long it is kept is the answer's word, within bounds.

use std::time::Duration;

use http::HeaderMap;
use sayso_fetch::FetchError;
use sayso_protocol::Json;
use sayso_protocol::json::Limits;

use super::knowledge::{Endpoint, Endpoints};
use super::settings::Identified;

/// Bytes of a metadata document.
pub(super) const MAX_METADATA: usize = 64 << 10;
/// How long it is kept when nothing is said.
const USUAL: Duration = Duration::from_secs(3600);
/// And at most, and at least: it is not asked for with every message.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
const SHORTEST: Duration = Duration::from_secs(1);
/// How long it is believed that there is none.
pub(super) const NONE: Duration = Duration::from_secs(300);

/// Why a policy engine's endpoints are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoMetadata {
    /// No answer, or none in time.
    #[error("the policy engine's metadata cannot be had: {0}")]
    Unreachable(FetchError),
    /// A status that says neither what the metadata is nor that there is none.
    #[error("the policy engine's metadata cannot be had: status {0}")]
    Status(u16),
    /// Not JSON by its media type and its bytes.
    #[error("the policy engine's metadata is no JSON document; check the address in `pdp`")]
    NotJson,
    /// Another engine's.
    #[error(
        "the metadata names another `policy_decision_point`; set `pdp` to the identifier it names, byte for byte, if that is the one you mean"
    )]
    Identifier,
    /// No endpoint to ask for a decision.
    #[error("the metadata names no `access_evaluation_endpoint`; this policy engine cannot be asked")]
    NoEvaluation,
    /// An endpoint that may not be asked.
    #[error("the metadata's `{0}` is not an https URL")]
    Endpoint(&'static str),
}

impl NoMetadata {
    /// Whether asking again may help, and what was known before is still believed.
    #[must_use]
    pub fn passes(self) -> bool {
        matches!(self, NoMetadata::Unreachable(_) | NoMetadata::Status(_))
    }
}

/// The endpoints that a metadata document names.
pub(super) fn read(engine: &Identified, headers: &HeaderMap, body: &[u8]) -> Result<Endpoints, NoMetadata> {
    let limits = Limits { bytes: MAX_METADATA, ..Limits::default() };
    let document =
        Json::parse(body, limits).ok().filter(|_| super::ask::media_type(headers).is_some_and(is_json));
    let document = document.ok_or(NoMetadata::NotJson)?;
    let text = |name: &str| document.get(name).and_then(Json::as_str);
    if text("policy_decision_point") != Some(&engine.identifier) {
        return Err(NoMetadata::Identifier);
    }
    let endpoint = |name: &'static str| match document.get(name) {
        None => Ok(None),
        Some(value) => named(engine, value).map(Some).ok_or(NoMetadata::Endpoint(name)),
    };
    Ok(Endpoints {
        evaluation: endpoint("access_evaluation_endpoint")?.ok_or(NoMetadata::NoEvaluation)?,
        evaluations: endpoint("access_evaluations_endpoint")?,
        guessed: false,
    })
}

fn named(engine: &Identified, value: &Json) -> Option<Endpoint> {
    engine.named(value.as_str()?).ok()
}

fn is_json(media_type: &str) -> bool {
    media_type.split(';').next().is_some_and(|it| it.trim().eq_ignore_ascii_case("application/json"))
}

/// How long an answer may be kept.
pub(super) fn lifetime(headers: &HeaderMap) -> Duration {
    sayso_fetch::freshness(headers).unwrap_or(USUAL).clamp(SHORTEST, LONGEST)
}
