//! Who may ask: the host a request names, the page it comes from, the secret it shows. And its name in the log.

use super::{Served, reply};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{AUTHORIZATION, CACHE_CONTROL, HOST, ORIGIN, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use sayso_protocol::canon::sha256;
use std::sync::Arc;

/// What a request is called by whoever sent it.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// As much of that name is logged.
const SHOWN: usize = 64;
/// Letters of the shortest secret.
const SHORTEST: usize = 32;

/// What those who ask must show as a bearer token. Only its digest is kept.
pub struct Secret([u8; 32]);

/// A secret that is none.
#[derive(Debug, thiserror::Error)]
#[error("a secret has at least {SHORTEST} visible ASCII characters and nothing else")]
pub struct WeakSecret;

impl Secret {
    /// A secret of at least 32 visible ASCII characters.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn new(text: &str) -> Result<Self, WeakSecret> {
        let fits = text.len() >= SHORTEST && text.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(Self(sha256(text.as_bytes()))) } else { Err(WeakSecret) }
    }

    /// Digests are compared, so what a comparison takes tells nothing of the secret.
    fn is(&self, shown: &str) -> bool {
        sha256(shown.as_bytes()) == self.0
    }
}

/// Hosts, origins and what is on every answer.
pub(super) async fn guard(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let named = request.headers().get(REQUEST_ID).cloned();
    let mut response = if !is_ours(request.headers(), &served.hosts) {
        let text = "this decision point is not served under that host; use the URL it was started with";
        reply::refusal(StatusCode::MISDIRECTED_REQUEST, text)
    } else if request.headers().contains_key(ORIGIN) {
        reply::refusal(StatusCode::FORBIDDEN, "no page of any origin is served here")
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(named) = named {
        headers.insert(REQUEST_ID, named);
    }
    response
}

/// The secret, where there is one.
pub(super) async fn authenticate(
    State(served): State<Arc<Served>>,
    request: Request,
    next: Next,
) -> Response {
    let allowed = match &served.secret {
        None => true,
        Some(secret) => bearer(request.headers()).is_some_and(|shown| secret.is(shown)),
    };
    if allowed {
        return next.run(request).await;
    }
    let text = "show the secret of this decision point, as Authorization: Bearer";
    let mut response = reply::refusal(StatusCode::UNAUTHORIZED, text);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let (scheme, token) = line.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_matches(' '))
}

fn is_ours(headers: &HeaderMap, hosts: &[String]) -> bool {
    let mut lines = headers.get_all(HOST).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return false };
    line.to_str().is_ok_and(|host| hosts.iter().any(|known| known.eq_ignore_ascii_case(host)))
}

/// What the log calls a request: the beginning of its name, and of that what can be shown.
pub(super) fn request_id(headers: &HeaderMap) -> String {
    let named = headers.get(REQUEST_ID).and_then(|named| named.to_str().ok()).unwrap_or("-");
    named.chars().filter(char::is_ascii_graphic).take(SHOWN).collect()
}
