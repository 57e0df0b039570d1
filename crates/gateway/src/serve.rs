//! The router: every request to the resource of exactly its path, or to what is published.
//!
//! Paths are compared as they were sent, but for a fragment, which the HTTP library drops. Nothing is decoded, merged or
//! stripped, so every other spelling of a resource is not found.

use crate::config::Gateway;
use crate::upstream::Route;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use http::Response;
use sayso_enforce::Head;
use sayso_enforce::carry::Source;
use sayso_listen::Peer;
use std::sync::Arc;
use tokio::net::TcpListener;

/// The gateway as a service: for a listener of one's own, or for tests.
pub fn router(gateway: Gateway) -> Router {
    Router::new().fallback(dispatch).with_state(gateway)
}

async fn dispatch(State(Gateway(gateway)): State<Gateway>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    // Without a listener of ours nothing is known of it.
    let source = parts.extensions.get::<Peer>().map(|peer| Source::from(peer.0)).unwrap_or_default();
    let head = Head { method: parts.method, target: parts.uri, headers: parts.headers };
    match gateway.site(head.path()) {
        Some(site) => {
            let (carrier, route) = (Arc::clone(&site.carrier), Route(site.upstream.clone()));
            carrier.pass(route, &gateway.bodies, source, head, body).await.map(Body::new)
        }
        None => gateway.server.published.answer(&head).await.map(Body::from),
    }
}

/// Serves until `shutdown`, then lets what is under way end.
pub async fn serve(listener: TcpListener, gateway: Gateway, shutdown: impl Future<Output = ()> + Send) {
    sayso_listen::listen(vec![listener], router(gateway), shutdown).await;
}
