//! Answers: JSON, and errors that say what to do next.
//!
//! Errors of the owner's API are `{"detail": …}` (OWN-04), all others OAuth's `{"error", "error_description"}`; none
//! repeats what was sent.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use sayso_owner::store::Unavailable;
use sayso_protocol::payload::negotiation::TokenError;
use serde::Serialize;
use serde_json::json;
use std::borrow::Cow;

/// A JSON answer.
pub(super) fn json<T: Serialize>(status: StatusCode, body: &T) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => (status, [(CONTENT_TYPE, "application/json")], bytes).into_response(),
        Err(_) => Fault::from(Unavailable).render(false),
    }
}

/// An error of any endpoint.
#[derive(Debug)]
pub(crate) struct Fault {
    status: StatusCode,
    error: Cow<'static, str>,
    description: Cow<'static, str>,
    header: Option<(HeaderName, &'static str)>,
}

impl Fault {
    pub(super) fn new(
        status: StatusCode,
        error: impl Into<Cow<'static, str>>,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { status, error: error.into(), description: description.into(), header: None }
    }

    /// Its status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// 400 `invalid_request`.
    pub(super) fn invalid(description: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", description)
    }

    /// An error of the token endpoint.
    pub(super) fn token(error: TokenError, description: impl Into<Cow<'static, str>>) -> Self {
        let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(status, error.as_str(), description).retried()
    }

    /// 429, to be tried again in a minute.
    pub(super) fn too_many(description: &'static str) -> Self {
        let fault = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", description);
        Self { header: Some((RETRY_AFTER, "60")), ..fault }
    }

    /// 401 for a call without a live protection token.
    pub(super) fn no_token(description: &'static str) -> Self {
        let fault = Self::new(StatusCode::UNAUTHORIZED, "invalid_token", description);
        Self { header: Some((WWW_AUTHENTICATE, "Bearer error=\"invalid_token\"")), ..fault }
    }

    fn retried(self) -> Self {
        let again = matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        Self { header: if again { Some((RETRY_AFTER, "5")) } else { self.header }, ..self }
    }

    /// The answer, in the owner API's form or OAuth's.
    pub(super) fn render(self, for_owner: bool) -> Response {
        let body = if for_owner {
            json!({ "detail": self.description })
        } else {
            json!({ "error": self.error, "error_description": self.description })
        };
        let mut response =
            (self.status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response();
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

impl From<Unavailable> for Fault {
    fn from(_: Unavailable) -> Self {
        let description = "the store is unavailable, nothing was changed; try again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable", description).retried()
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        self.render(false)
    }
}

/// An error of the owner's API.
#[derive(Debug)]
pub(crate) struct Detail(Fault);

impl Detail {
    /// An error with its sentence.
    pub(super) fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(Fault::new(status, "", detail))
    }

    /// 400.
    pub(super) fn invalid(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 404.
    pub(super) fn unknown(detail: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }
}

impl From<Fault> for Detail {
    fn from(fault: Fault) -> Self {
        Self(fault)
    }
}

impl From<Unavailable> for Detail {
    fn from(fault: Unavailable) -> Self {
        Self(fault.into())
    }
}

impl IntoResponse for Detail {
    fn into_response(self) -> Response {
        self.0.render(true)
    }
}
