//! The listener that shows the numbers: loopback, its own port, GET and nothing else.
//!
//! Its host is checked and no page of any origin is served (D-16). It holds no credential and takes none, so it listens
//! nowhere but on this machine.

use super::Metrics;
use crate::roles::Address;
use crate::settings::Settings;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::json;
use std::sync::Arc;
use tokio::net::TcpListener;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A bound listener, and the URL to look at.
pub(crate) struct Listening {
    listener: TcpListener,
    hosts: Arc<[String]>,
    /// Its origin.
    pub(crate) url: String,
}

impl Listening {
    /// Binds `metrics.listen`.
    pub(crate) async fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let (listener, url) = Address::read(settings, "metrics")?.bind("metrics").await?;
        let at = listener.local_addr()?;
        Ok(Self { listener, url, hosts: [at.to_string(), format!("localhost:{}", at.port())].into() })
    }
}

/// Shows the numbers until `shutdown`.
pub(crate) async fn serve(metrics: Metrics, listening: Listening, shutdown: impl Future<Output = ()> + Send) {
    sayso_listen::listen(vec![listening.listener], router(metrics, listening.hosts), shutdown).await;
}

fn router(metrics: Metrics, hosts: Arc<[String]>) -> Router {
    Router::new()
        .route("/", get(show))
        .route("/metrics", get(show))
        .route("/health", get(health))
        .fallback(async || refused(StatusCode::NOT_FOUND, "not_found", "the numbers are at /metrics"))
        .method_not_allowed_fallback(async || {
            refused(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this address takes GET")
        })
        .layer(middleware::from_fn_with_state(hosts, guard))
        .with_state(Arc::new(metrics))
}

async fn show(State(metrics): State<Arc<Metrics>>) -> Response {
    ([(CONTENT_TYPE, OPEN_METRICS)], metrics.text().await).into_response()
}

async fn health() -> Response {
    let body = json!({ "status": "ok" }).to_string();
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

async fn guard(State(hosts): State<Arc<[String]>>, request: Request, next: Next) -> Response {
    let mut response = if !is_ours(request.headers(), &hosts) {
        let what = "this listener does not serve that host; use the address of the ready line";
        refused(StatusCode::MISDIRECTED_REQUEST, "misdirected_request", what)
    } else if request.headers().contains_key(ORIGIN) {
        refused(StatusCode::FORBIDDEN, "invalid_origin", "no page is served here")
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn is_ours(headers: &HeaderMap, hosts: &[String]) -> bool {
    let mut lines = headers.get_all(HOST).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return false };
    line.to_str().is_ok_and(|host| hosts.iter().any(|known| known.eq_ignore_ascii_case(host)))
}

fn refused(status: StatusCode, error: &str, description: &str) -> Response {
    let body = json!({ "error": error, "error_description": description }).to_string();
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}
