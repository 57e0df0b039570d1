//! The check over HTTP: `/check` and the original target, with the original method, headers and body.
//!
//! 200 lets the request through; everything else is the answer for whoever sent it. On the same listener is what the
//! resource server publishes, for a gateway to route there unasked. Headers to be removed are named in the one header
//! that Envoy reads them from; a gateway that does not has to remove them by its own configuration.

use crate::authorizer::ExtAuthz;
use crate::decision::{Decision, Denial};
use crate::passed;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::{HeaderName, HeaderValue, Response, Uri};
use sayso_enforce::{Head, reading};
use sayso_protocol::payload::refusal::{Code, Refusal};
use tokio::net::TcpListener;

/// What a check's path has ahead of the original one.
pub const CHECK: &str = "/check";

/// Where Envoy is told which headers an allowed request loses.
const REMOVED: HeaderName = HeaderName::from_static("x-envoy-auth-headers-to-remove");

/// The HTTP door as a service: for a listener of one's own, or for tests.
pub fn router(authorizer: ExtAuthz) -> Router {
    Router::new().fallback(dispatch).with_state(authorizer)
}

/// Serves until `shutdown`, then lets what is under way end.
pub async fn serve(listener: TcpListener, authorizer: ExtAuthz, shutdown: impl Future<Output = ()> + Send) {
    sayso_listen::listen(vec![listener], router(authorizer), shutdown).await;
}

async fn dispatch(State(authorizer): State<ExtAuthz>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let head = |target| Head { method: parts.method, target, headers: parts.headers };
    match asked_about(&parts.uri) {
        Some(target) => check(&authorizer, head(target), body).await.map(Body::from),
        None => authorizer.published().answer(&head(parts.uri)).await.map(Body::from),
    }
}

/// The original target, if this is a check.
fn asked_about(uri: &Uri) -> Option<Uri> {
    let whole = uri.path_and_query().filter(|_| uri.authority().is_none())?;
    passed::target(whole.as_str().strip_prefix(CHECK)?.as_bytes())
}

async fn check(authorizer: &ExtAuthz, head: Head, body: Body) -> Response<Bytes> {
    let joined = |(name, value): (&HeaderName, &HeaderValue)| {
        passed::may_be_joined(name.as_str().as_bytes(), value.as_bytes())
    };
    let previewed = match head.headers.iter().any(joined) {
        true => Err(authorizer.refuse(&passed::joined())),
        false => authorizer.preview(&head),
    };
    let engine = match previewed {
        Ok(engine) => engine,
        Err(denial) => {
            reading::drain(body, &head.headers).await;
            return denial.into_response();
        }
    };
    let Ok((body, _place)) = authorizer.0.bodies.read(body, &head.headers).await else {
        let text = "too many large requests are under way; send it again, signed afresh";
        return authorizer.refuse(&Refusal::new(Code::TemporarilyUnavailable, text)).into_response();
    };
    match authorizer.decide(&engine, head, body).await {
        Decision::Allow(removed) => allow(&removed),
        Decision::Deny(denial) => denial.into_response(),
    }
}

fn allow(removed: &[HeaderName]) -> Response<Bytes> {
    let names: Vec<&str> = removed.iter().map(HeaderName::as_str).collect();
    let Ok(names) = HeaderValue::from_str(&names.join(",")) else {
        let text = "the headers of this request cannot be removed";
        return Denial::of(&Refusal::new(Code::TemporarilyUnavailable, text)).into_response();
    };
    let mut response = Response::new(Bytes::new());
    response.headers_mut().insert(REMOVED, names);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
