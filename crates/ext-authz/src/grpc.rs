//! The check over gRPC: `envoy.service.auth.v3.Authorization/Check`, and nothing else.
//!
//! One message in, one message out, each in its frame; a stream of them, or one compressed, is not read. What a gateway
//! sends is bounded in bytes and time, and all together in memory, like every body here. An answer always says both
//! whether and what: never is it left empty, which some gateways take for a yes.

mod frame;
pub mod message;
mod read;

use crate::authorizer::ExtAuthz;
use crate::decision::{Decision, Denial};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use bytes::Bytes;
use frame::{Fault, Status};
use http::{Method, Response, StatusCode};
use message::{CheckRequest, CheckResponse};
use prost::Message as _;
use sayso_enforce::Body as Passed;
use tokio::net::TcpListener;

/// The one method served, as a path.
pub const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";

/// The gRPC door as a service: for a listener of one's own, or for tests.
pub fn router(authorizer: ExtAuthz) -> Router {
    Router::new().fallback(dispatch).with_state(authorizer)
}

/// Serves over HTTP/2 until `shutdown`, then lets what is under way end.
pub async fn serve(listener: TcpListener, authorizer: ExtAuthz, shutdown: impl Future<Output = ()> + Send) {
    sayso_listen::listen_http2(vec![listener], router(authorizer), shutdown).await;
}

async fn dispatch(State(authorizer): State<ExtAuthz>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let kind = parts.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !["application/grpc", "application/grpc+proto"].contains(&kind) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return response;
    }
    if parts.method != Method::POST || parts.uri.path() != CHECK {
        return Fault(Status::Unimplemented, "this service answers Authorization/Check alone").answer();
    }
    let Ok((body, _place)) = authorizer.0.messages.read(body, &parts.headers).await else {
        return Fault(Status::Exhausted, "too many large requests are under way").answer();
    };
    match open(body) {
        Ok(request) => frame::answer(authorizer.answer(request).await.encode_to_vec()),
        Err(fault) => fault.answer(),
    }
}

fn open(body: Passed) -> Result<CheckRequest, Fault> {
    let Passed::Whole(body) = body else {
        return Err(Fault(Status::Exhausted, "the message is too large, or did not arrive whole"));
    };
    let message = frame::open(body)?;
    CheckRequest::decode(message).map_err(|_| Fault(Status::Invalid, "this is no CheckRequest"))
}

impl ExtAuthz {
    /// Decides about a check as a gateway sends it over gRPC, and says so in the words it reads.
    pub async fn answer(&self, request: CheckRequest) -> CheckResponse {
        let decision = match read::read(request) {
            Ok(incoming) => self.check(incoming).await,
            Err(refusal) => Decision::Deny(self.refuse(&refusal)),
        };
        match decision {
            Decision::Allow(removed) => CheckResponse::allow(removed.iter().map(ToString::to_string)),
            Decision::Deny(denial) => deny(denial),
        }
    }

    /// The same about the bytes of one message; `None` when they are none.
    pub async fn answer_bytes(&self, message: Bytes) -> Option<CheckResponse> {
        let request = CheckRequest::decode(message).ok()?;
        Some(self.answer(request).await)
    }
}

fn deny(denial: Denial) -> CheckResponse {
    let (parts, body) = denial.into_response().into_parts();
    let status = match parts.status {
        StatusCode::UNAUTHORIZED => Status::Unauthenticated,
        StatusCode::SERVICE_UNAVAILABLE => Status::Unavailable,
        _ => Status::Denied,
    };
    // INVARIANT: what is answered here is JSON under headers of ours, so all of it is text.
    let lines = parts.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default()));
    CheckResponse::deny(status, parts.status, lines, String::from_utf8_lossy(&body).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use message::Told;
    use sayso_protocol::message::MessageFault;
    use sayso_protocol::payload::refusal::{Code, Refusal};

    // MCP-09, CORE-16, CORE-23, D-3
    #[test]
    fn every_refusal_and_every_fault_is_a_whole_no() {
        let refusals = Code::ALL.map(|code| Denial::of(&Refusal::new(code, "what to do")));
        let faults = [200, 403, 404].map(|status| Denial::fault(&MessageFault::not_served(status, None)));
        for denial in refusals.into_iter().chain(faults) {
            let expected = i32::from(denial.status().as_u16());
            let answer = deny(denial);
            let code = answer.status.unwrap().code;
            let Some(Told::Denied(denied)) = answer.told else { panic!("not denied") };
            let status = denied.status.unwrap().code;
            assert_eq!(status, expected);
            assert!(code != 0 && status >= 400, "{code} {status}");
            assert_eq!((code == 16, code == 14), (status == 401, status == 503));
            let header = |name: &[u8]| {
                denied.headers.iter().filter_map(|it| it.header.as_ref()).find(|line| line.key == name)
            };
            assert_eq!(header(b"content-type").unwrap().value, "application/json");
            assert_eq!(header(b"retry-after").is_some(), status == 503);
            let body: serde_json::Value = serde_json::from_str(&denied.body).unwrap();
            assert!(body.get("error").is_some() && body.get("result").is_none());
        }
    }
}
