//! Requests as they arrive, read strictly and within bounds. What is wrong with one entry is that entry's matter.

use super::{MAX_ENTRIES, MAX_REQUEST};
use axum::body::{Body, to_bytes};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Request, StatusCode};
use sayso_coaz::authzen::{Evaluation, NotARequest, Semantic};
use sayso_protocol::Json;
use sayso_protocol::json::{JsonError, Limits};
use std::time::Duration;
use tokio::time::timeout;

/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(10);
/// Containers inside one another.
const DEPTH: usize = 32;

/// Why a request cannot be answered at all.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    #[error("the body is application/json")]
    MediaType,
    #[error("the body is sent as it is, without a content coding")]
    Coding,
    #[error("the body has at most {MAX_REQUEST} bytes")]
    TooLarge,
    #[error("the body did not arrive in time")]
    Slow,
    #[error("the body broke off")]
    Broken,
    #[error("the body is not strict JSON: {0}")]
    NotJson(JsonError),
    #[error("the body is not an object")]
    NotAnObject,
    #[error("{0}")]
    Part(NotARequest),
    #[error("evaluations is not a list")]
    NotAList,
    #[error("evaluations has at most {MAX_ENTRIES} entries")]
    TooMany,
    #[error("options is not an object")]
    Options,
    #[error("evaluations_semantic is not one of execute_all, deny_on_first_deny and permit_on_first_permit")]
    Semantic,
}

impl Unread {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Unread::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Unread::Coding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Unread::Slow => StatusCode::REQUEST_TIMEOUT,
            // AuthZEN has this status for everything that is no request.
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

/// What the second API is asked for.
pub(super) enum Asked {
    /// Without entries it is the first API (AuthZEN section 7.1).
    One(Box<Evaluation>),
    /// Each entry, or what is wrong with it.
    Several(Vec<Result<Evaluation, Unread>>, Semantic),
}

/// The body of a request.
pub(super) async fn body(request: Request<Body>) -> Result<Json, Unread> {
    if !is_json(request.headers()) {
        return Err(Unread::MediaType);
    }
    if request.headers().contains_key(CONTENT_ENCODING) {
        return Err(Unread::Coding);
    }
    let reading = timeout(BODY_TIME, to_bytes(request.into_body(), MAX_REQUEST));
    let bytes = match reading.await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(fault)) if is_too_large(&fault) => return Err(Unread::TooLarge),
        Ok(Err(_)) => return Err(Unread::Broken),
        Err(_) => return Err(Unread::Slow),
    };
    let body = Json::parse(&bytes, Limits { bytes: MAX_REQUEST, depth: DEPTH }).map_err(Unread::NotJson)?;
    if body.as_object().is_none() { Err(Unread::NotAnObject) } else { Ok(body) }
}

fn is_too_large(fault: &axum::Error) -> bool {
    let mut fault: &dyn std::error::Error = fault;
    while let Some(inner) = fault.source() {
        fault = inner;
    }
    fault.is::<http_body_util::LengthLimitError>()
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return false };
    let essence = line.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// A request of the first API.
pub(super) fn single(body: &Json) -> Result<Evaluation, Unread> {
    Evaluation::read(body).map_err(Unread::Part)
}

impl Asked {
    pub(super) fn read(body: &Json) -> Result<Self, Unread> {
        let entries = match body.get("evaluations") {
            None => &[],
            Some(entries) => entries.as_array().ok_or(Unread::NotAList)?,
        };
        let semantic = semantic(body)?;
        if entries.is_empty() {
            return single(body).map(|one| Asked::One(Box::new(one)));
        }
        if entries.len() > MAX_ENTRIES {
            return Err(Unread::TooMany);
        }
        for part in ["subject", "action", "resource", "context"] {
            if body.get(part).is_some_and(|part| part.as_object().is_none()) {
                return Err(Unread::Part(NotARequest(part)));
            }
        }
        let entry = |entry| single(&filled(entry, body));
        Ok(Asked::Several(entries.iter().map(entry).collect(), semantic))
    }
}

fn semantic(body: &Json) -> Result<Semantic, Unread> {
    let Some(options) = body.get("options") else { return Ok(Semantic::default()) };
    options.as_object().ok_or(Unread::Options)?;
    match options.get("evaluations_semantic") {
        None => Ok(Semantic::default()),
        Some(name) => name.as_str().and_then(Semantic::named).ok_or(Unread::Semantic),
    }
}

/// An entry with what it leaves out, in whole parts: one that it has is its own, and nothing is put together of two
/// (AuthZEN section 7.1.1).
fn filled(entry: &Json, top: &Json) -> Json {
    let Some(members) = entry.as_object() else { return entry.clone() };
    let own = |name: &str| members.iter().find(|(member, _)| member == name).map(|(_, part)| part);
    let parts = ["subject", "action", "resource", "context"].into_iter();
    let parts =
        parts.filter_map(|name| Some((name.to_owned(), own(name).or_else(|| top.get(name))?.clone())));
    Json::Object(parts.collect())
}
