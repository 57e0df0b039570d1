//! External authorization: a gateway of others asks over HTTP or over gRPC, and only forwards on a yes.

use super::authority::Stub;
use super::standing::{Behind, Standing};
use super::told::Told;
use super::vectors::{self, Stage, Vector};
use super::{Host, async_trait};
use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use sayso_enforce::{Authority, ServerConfig};
use sayso_ext_authz::grpc::message::{
    Attributes, CheckRequest, HeaderList, HttpRequest, Line, Request as Asked, Told as Answer,
};
use sayso_ext_authz::{ExtAuthz, Outward, Whole, http_router};
use sayso_protocol::payload::edition::Edition;
use serde_json::Value;
use std::sync::Arc;
use tower::ServiceExt;

const WHOLE: HeaderName = HeaderName::from_static("x-envoy-auth-partial-body");
const REMOVED: HeaderName = HeaderName::from_static("x-envoy-auth-headers-to-remove");

/// How it is asked.
#[derive(Clone, Copy)]
pub(crate) enum Gateway {
    OverHttp,
    OverGrpc,
}

fn authorizer(stage: &Stage, authority: Arc<dyn Authority>) -> ExtAuthz {
    let config = ServerConfig {
        public_url: stage.public.into(),
        hosts: Vec::new(),
        key: vectors::key(),
        readers: vec![vectors::reader()],
        resources: vec![vectors::resource(stage, authority)],
        body_limit: 1 << 20,
    };
    ExtAuthz::new(config, Whole::ByFlag, Outward::default(), vectors::clock(stage), None).unwrap()
}

/// As a gateway that has the whole body says so.
fn marked(mut request: Request<Bytes>) -> Request<Bytes> {
    request.headers_mut().insert(WHOLE, HeaderValue::from_static("false"));
    request
}

async fn over_http(authorizer: ExtAuthz, request: Request<Bytes>) -> Response<Body> {
    let mut request = request.map(Body::from);
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    *request.uri_mut() = format!("{}{target}", sayso_ext_authz::CHECK).parse::<Uri>().unwrap();
    http_router(authorizer).oneshot(request).await.unwrap()
}

async fn over_grpc(authorizer: ExtAuthz, request: Request<Bytes>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| Line {
        key: text(name.as_str()),
        raw_value: Bytes::copy_from_slice(value.as_bytes()),
        value: Bytes::new(),
    };
    // A second one is a header like any other.
    let host = parts.headers.get("host").map(|host| Bytes::copy_from_slice(host.as_bytes()));
    let mut hosts = 0;
    let rest = parts.headers.iter().filter(|(name, _)| {
        hosts += usize::from(*name == "host");
        *name != "host" || hosts > 1
    });
    let message = HttpRequest {
        method: text(parts.method.as_str()),
        path: text(parts.uri.path_and_query().unwrap().as_str()),
        host: host.unwrap_or_default(),
        size: i64::try_from(body.len()).unwrap(),
        header_map: Some(HeaderList { headers: rest.map(line).collect() }),
        raw_body: body,
        ..HttpRequest::default()
    };
    let request = Some(Asked { http: Some(message) });
    let told = authorizer.answer(CheckRequest { attributes: Some(Attributes { request }) }).await.told;
    let (status, headers, body) = match told.unwrap() {
        Answer::Ok(allowed) => return allow(&allowed.headers_to_remove.join(",")),
        Answer::Denied(denied) => (denied.status.unwrap().code, denied.headers, denied.body),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(u16::try_from(status).unwrap()).unwrap();
    for line in headers.into_iter().filter_map(|line| line.header) {
        let name = http::HeaderName::from_bytes(&line.key).unwrap();
        response.headers_mut().append(name, http::HeaderValue::from_bytes(&line.value).unwrap());
    }
    response
}

/// A yes, in the form it has over HTTP.
fn allow(removed: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    response.headers_mut().insert(REMOVED, HeaderValue::from_str(removed).unwrap());
    response
}

/// What is left of a request's headers when the gateway did as it was told.
fn left(mut sent: HeaderMap, told: &HeaderMap) -> HeaderMap {
    for name in told[&REMOVED].to_str().unwrap().split(',') {
        sent.remove(name);
    }
    sent
}

/// One, asked by a gateway that does as it is told; what is allowed goes on, which the gateway sees to.
pub(crate) fn open(gateway: Gateway, stage: &Stage, authority: Arc<dyn Authority>) -> Standing {
    let (authorizer, behind) = (authorizer(stage, authority), Behind::default());
    let (name, noted) = (gateway.name(), behind.clone());
    let sending = move |request: Request<Bytes>| {
        let (authorizer, noted, sent) = (authorizer.clone(), noted.clone(), request.headers().clone());
        let is_check = !sayso_enforce::publish::is_reserved(request.uri().path());
        async move {
            let response = match gateway {
                // What is published is asked of the listener, and of no check.
                Gateway::OverHttp if !is_check => {
                    return http_router(authorizer).oneshot(request.map(Body::from)).await.unwrap();
                }
                Gateway::OverHttp => over_http(authorizer, marked(request)).await,
                Gateway::OverGrpc => over_grpc(authorizer, marked(request)).await,
            };
            if response.status().is_success() {
                noted.note(left(sent, response.headers()));
            }
            response
        }
        .boxed()
    };
    Standing { name, sending: Box::new(sending), behind, _keeping: None }
}

#[async_trait]
impl Host for Gateway {
    fn name(&self) -> &'static str {
        match self {
            Gateway::OverHttp => "checked over http",
            Gateway::OverGrpc => "checked over grpc",
        }
    }

    fn sees(&self, _vector: &Vector) -> bool {
        true
    }

    /// D-12: what a task is refused with is 403 here; a gateway must not take it for a fault of its own asking.
    fn wanted(&self, vector: &Vector) -> Value {
        let mut verdict = vector.verdict();
        if verdict["error"] == "task_not_served" {
            verdict["status"] = 403.into();
        }
        // Never a status that a gateway takes for a yes (D-3).
        if verdict["kind"] == "policy" {
            verdict["status"] = 403.into();
        }
        verdict
    }

    async fn judge(&self, vector: &Vector, edition: Edition, authority: Arc<Stub>) -> Told {
        let host = open(*self, &vector.stage(edition), authority);
        let response = host.respond(vector.request()).await;
        Told::over_http(response, || host.reached()).await
    }
}
