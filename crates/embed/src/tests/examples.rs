//! The examples, driven: an honest call is answered, and one without a grant is not.

use super::cast::{HOST, NOW, clock, config, key};
use super::request::{Answer, Call};
use crate::Hers;
use async_trait::async_trait;
use axum::Router;
use http::Request;
use http_body_util::Full;
use sayso_enforce::{Authority, Unavailable};
use sayso_protocol::payload::protection::{
    AccessReport, ConsumeReply, Introspection, LiveGrant, PermissionFault, PermissionReply, PermissionRequest,
};
use sayso_protocol::payload::rpt::Permission;
use serde_json::json;
use std::sync::Arc;
use tower::ServiceExt;

#[path = "../../examples/guard_axum.rs"]
mod guard_axum;
#[cfg(feature = "rmcp")]
#[path = "../../examples/guard_rmcp.rs"]
mod guard_rmcp;

/// The authority of a note: one token may read it.
struct Notes;

#[async_trait]
impl Authority for Notes {
    async fn permission(
        &self,
        _request: &PermissionRequest,
    ) -> Result<Result<PermissionReply, PermissionFault>, Unavailable> {
        Ok(Ok("ticket".to_owned().into()))
    }

    async fn introspect(&self, token: &str) -> Result<Introspection, Unavailable> {
        if token != "reader" {
            return Ok(Introspection::Dead("unknown_token".to_owned().into()));
        }
        let may = Permission {
            resource_id: "notes/read_note".parse().unwrap(),
            resource_scopes: vec!["notes:read".parse().unwrap()],
            exp: None,
            iat: None,
            nbf: None,
            definition: None,
        };
        let grant = LiveGrant { permissions: vec![may], ..super::cast::grant("x", "x", 0x22) };
        Ok(Introspection::Live(Box::new(grant)))
    }

    async fn consume(&self, _token: &str, _attempt: &str) -> Result<ConsumeReply, Unavailable> {
        Err(Unavailable::Nonsense)
    }

    async fn report(&self, _report: &AccessReport) -> Result<(), Unavailable> {
        Ok(())
    }
}

fn hers() -> Hers {
    config(Arc::new(Notes)).hers
}

async fn send(app: &Router, call: &Call) -> Answer {
    let request: Request<Full<bytes::Bytes>> = call.request();
    let response = app.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
    Answer { status: parts.status, headers: parts.headers, body }
}

async fn drive(app: &Router) -> Answer {
    let call = Call::tool("read_note", "{}");
    let document = Call::bodiless(http::Method::GET).at("/.well-known/oauth-protected-resource/mcp");
    assert_eq!(send(app, &document).await.status, 200);
    assert_eq!(send(app, &call.clone().at("/mcp/")).await.status, 404);
    let honest = call.clone().shown("reader").signed_by(&key(0x22), NOW, HOST);
    let answer = send(app, &honest).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["result"]["content"][0]["text"]),
        (200, &json!("buy milk"))
    );
    send(app, &call).await
}

#[tokio::test]
async fn a_server_of_axum_is_guarded() {
    let app = guard_axum::guarded(super::cast::PUBLIC, key(0x44), hers(), clock()).unwrap();
    let refused = drive(&app).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["ticket"]), (401, &json!("ticket")));
}

#[cfg(feature = "rmcp")]
#[tokio::test]
async fn a_server_of_rmcp_is_guarded() {
    let site = guard_rmcp::site(super::cast::PUBLIC, key(0x44), hers(), clock()).unwrap();
    let refused = drive(&guard_rmcp::guarded(&site)).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["error"]["code"]), (200, &json!(-32001)));
}
