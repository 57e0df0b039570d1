//! The gateway, before a server on a socket.

use super::authority::Stub;
use super::told::Told;
use super::vectors::{self, Vector};
use super::{Host, async_trait};
use axum::Router;
use axum::body::Body;
use sayso_gateway::{Gateway, GatewayConfig, ResourceConfig, router};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tower::ServiceExt;

pub(crate) struct Proxy;

/// A server that answers anything, and how often it did.
pub(crate) fn canary() -> (Router, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let answer = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { r#"{"jsonrpc":"2.0","id":1,"result":{}}"# }
    };
    (Router::new().fallback(answer), count)
}

#[async_trait]
impl Host for Proxy {
    fn name(&self) -> &'static str {
        "proxy"
    }

    fn sees(&self, _vector: &Vector) -> bool {
        true
    }

    async fn judge(&self, vector: &Vector, authority: Arc<Stub>) -> Told {
        let (server, count) = canary();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, server).await });
        let resource =
            ResourceConfig { resource: vectors::resource(vector, authority), upstream: upstream.into() };
        let config = GatewayConfig {
            public_url: vectors::PUBLIC.into(),
            hosts: Vec::new(),
            key: vectors::key(),
            readers: vec![vectors::reader()],
            resources: vec![resource],
            body_limit: 1 << 20,
        };
        let gateway = router(Gateway::new(config, vectors::clock()).unwrap());
        let response = gateway.oneshot(vector.request::<Body>()).await.unwrap();
        let told = Told::over_http(response, || count.load(Ordering::SeqCst)).await;
        serving.abort();
        told
    }
}
