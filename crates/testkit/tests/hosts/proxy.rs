//! The gateway, before a server on a socket.

use super::authority::Stub;
use super::standing::{Behind, Keeping, Standing};
use super::told::Told;
use super::vectors::{self, Stage, Vector};
use super::{Host, async_trait};
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderMap, Request};
use sayso_enforce::Authority;
use sayso_gateway::{Gateway, GatewayConfig, ResourceConfig, router};
use sayso_protocol::payload::edition::Edition;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;
use tower::ServiceExt;

pub(crate) struct Proxy;

/// A server that answers anything, and what it got.
pub(crate) fn canary() -> (Router, Behind) {
    let behind = Behind::default();
    let noted = behind.clone();
    let answer = move |headers: HeaderMap, body: Bytes| {
        noted.note(headers);
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        // A subscription is acknowledged with what of it is heard.
        let heard = said["params"].get("notifications").map(|heard| json!({ "notifications": heard }));
        async move { json!({ "jsonrpc": "2.0", "id": 1, "result": heard.unwrap_or(json!({})) }).to_string() }
    };
    (Router::new().fallback(answer), behind)
}

#[async_trait]
impl Host for Proxy {
    fn name(&self) -> &'static str {
        "proxy"
    }

    fn sees(&self, _vector: &Vector) -> bool {
        true
    }

    async fn judge(&self, vector: &Vector, edition: Edition, authority: Arc<Stub>) -> Told {
        let host = open(&vector.stage(edition), authority).await;
        Told::over_http(host.respond(vector.request()).await, || host.reached()).await
    }
}

/// One, before a server of its own.
pub(crate) async fn open(stage: &Stage, authority: Arc<dyn Authority>) -> Standing {
    let (server, behind) = canary();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { drop(axum::serve(listener, server).await) });
    let resource =
        ResourceConfig { resource: vectors::resource(stage, authority), upstream: upstream.into() };
    let config = GatewayConfig {
        public_url: stage.public.into(),
        hosts: Vec::new(),
        key: vectors::key(),
        readers: vec![vectors::reader()],
        resources: vec![resource],
        body_limit: 1 << 20,
    };
    let gateway = router(Gateway::new(config, vectors::clock(stage)).unwrap());
    let sending = move |request: Request<Bytes>| {
        let gateway = gateway.clone();
        async move { gateway.oneshot(request.map(Body::from)).await.unwrap() }.boxed()
    };
    Standing { name: "proxy", sending: Box::new(sending), behind, _keeping: Some(Keeping(serving)) }
}
