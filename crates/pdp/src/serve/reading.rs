//! Requests as they arrive, read strictly and within bounds. What is wrong with one entry is that entry's matter.

use super::room::{Held, Room};
use super::{MAX_ENTRIES, MAX_REQUEST};
use axum::body::Body;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Request, StatusCode};
use sayso_coaz::authzen::{Action, Entity, Evaluation, NotARequest, Object, Semantic};
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
    #[error("too many large requests are under way; ask again in a moment")]
    NoRoom,
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
            // Not 503, by which those who ask take us to be down: of these requests there are too many, and no others.
            Unread::NoRoom => StatusCode::TOO_MANY_REQUESTS,
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
    /// Each entry is its own matter.
    Several(Box<Entries>, Semantic),
}

/// The body of a request.
pub(super) async fn body(room: &Room, request: Request<Body>) -> Result<Held, Unread> {
    if !is_json(request.headers()) {
        return Err(Unread::MediaType);
    }
    if request.headers().contains_key(CONTENT_ENCODING) {
        return Err(Unread::Coding);
    }
    timeout(BODY_TIME, room.body(request.into_body())).await.unwrap_or(Err(Unread::Slow))
}

/// A body as what it says.
pub(super) fn read(held: &Held) -> Result<Json, Unread> {
    let limits = Limits { bytes: MAX_REQUEST, depth: DEPTH };
    let body = Json::parse(&held.bytes, limits).map_err(Unread::NotJson)?;
    if body.as_object().is_none() { Err(Unread::NotAnObject) } else { Ok(body) }
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
    pub(super) fn read(body: Json) -> Result<Self, Unread> {
        let entries = match body.get("evaluations") {
            None => &[],
            Some(entries) => entries.as_array().ok_or(Unread::NotAList)?,
        };
        let semantic = semantic(&body)?;
        if entries.is_empty() {
            return single(&body).map(|one| Asked::One(Box::new(one)));
        }
        if entries.len() > MAX_ENTRIES {
            return Err(Unread::TooMany);
        }
        for part in ["subject", "action", "resource", "context"] {
            if body.get(part).is_some_and(|part| part.as_object().is_none()) {
                return Err(Unread::Part(NotARequest(part)));
            }
        }
        Ok(Asked::Several(Box::new(Entries::of(body)), semantic))
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

/// The entries of a request, each made when it is its turn. What stands at the top is there once, whoever takes it.
pub(super) struct Entries {
    body: Json,
    subject: Option<Entity>,
    action: Option<Action>,
    resource: Option<Entity>,
    context: Option<Object>,
}

impl Entries {
    fn of(mut body: Json) -> Self {
        let context = taken(&mut body, "context");
        Self {
            subject: body.get("subject").and_then(Entity::read),
            action: body.get("action").and_then(Action::read),
            resource: body.get("resource").and_then(Entity::read),
            context: context.and_then(Object::of),
            body,
        }
    }

    /// Each of them, or what is wrong with it.
    pub(super) fn each(&self) -> impl Iterator<Item = Result<Evaluation, Unread>> {
        let entries = self.body.get("evaluations").and_then(Json::as_array).unwrap_or_default();
        entries.iter().map(|entry| self.filled(entry).map_err(Unread::Part))
    }

    /// An entry with what it leaves out, in whole parts: one that it has is its own, and nothing is put together of two
    /// (AuthZEN section 7.1.1).
    fn filled(&self, entry: &Json) -> Result<Evaluation, NotARequest> {
        if entry.as_object().is_none() {
            return Err(NotARequest("the request"));
        }
        let entity = |name, whole: &Option<Entity>| match entry.get(name) {
            Some(own) => Entity::read(own).ok_or(NotARequest(name)),
            None => whole.clone().ok_or(NotARequest(name)),
        };
        let action = match entry.get("action") {
            Some(own) => Action::read(own),
            None => self.action.clone(),
        };
        Ok(Evaluation {
            subject: entity("subject", &self.subject)?,
            action: action.ok_or(NotARequest("action"))?,
            resource: entity("resource", &self.resource)?,
            context: match entry.get("context") {
                Some(own) => Some(Object::of(own.clone()).ok_or(NotARequest("context"))?),
                None => self.context.clone(),
            },
        })
    }
}

/// A member, taken out of an object.
fn taken(object: &mut Json, name: &str) -> Option<Json> {
    let Json::Object(members) = object else { return None };
    let at = members.iter().position(|(member, _)| member == name)?;
    Some(members.swap_remove(at).1)
}
