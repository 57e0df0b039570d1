//! The route table, and what holds for every request before its route is looked at.
//!
//! Only exact hosts are served and no other origin's pages (D-16); what is not in the table is answered 404 or 405 in
//! JSON. The owner's API takes her device key and nothing else; everything here answers errors with a sentence.

pub(crate) mod answer;
mod discovery;
mod introduction;
mod owner;
mod protection;
pub(crate) mod received;
mod terms;
mod token;

use crate::{Authority, portal, pull};
use answer::Fault;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post, put};
use http::header::{CACHE_CONTROL, HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use sayso_protocol::payload::introduction::PATH as INTRODUCTION;
use sayso_protocol::payload::metadata::AUTHORITY_PATHS;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tower::ServiceExt as _;

/// Seconds between two prunings of what nothing refers to any more.
const PRUNE: Duration = Duration::from_secs(3600);

type Shared = State<Arc<Authority>>;

/// What an authority serves: its API, and under another host name her page.
pub fn router(authority: Arc<Authority>) -> Router {
    let api = api(authority.clone());
    let Some(portal) = authority.portal.clone() else { return api };
    let pages = portal::router(authority, &portal);
    // Before any route is looked at, so that no path of one side is ever one of the other's.
    Router::new().fallback(move |request: Request| async move {
        let side = if portal.is_asked(&request) { pages } else { api };
        side.oneshot(request).await
    })
}

/// The routes of the API.
fn api(authority: Arc<Authority>) -> Router {
    let [uma, oauth, agents] = AUTHORITY_PATHS;
    Router::new()
        .route(uma, get(discovery::metadata))
        .route(oauth, get(discovery::metadata))
        .route(agents, get(discovery::metadata))
        .route("/jwks", get(discovery::keys))
        .route("/health", get(discovery::health))
        .route("/terms", get(terms::roster))
        .route("/terms/{*template_id}", get(terms::version))
        .route("/token", post(token::token))
        .route("/perm", post(protection::permission))
        .route("/introspect", post(protection::introspect))
        .route("/consume", post(protection::consume))
        .route("/audit/access", post(protection::report))
        .route(INTRODUCTION, post(introduction::register))
        .merge(owner_routes())
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(authority.clone(), guard))
        .with_state(authority)
}

fn owner_routes() -> Router<Arc<Authority>> {
    Router::new()
        .route("/owner/pending", get(owner::pending::list))
        .route("/owner/pending/{family}", get(owner::pending::show))
        .route("/owner/pending/{family}/decision", post(owner::pending::decide))
        .route("/owner/connections", get(owner::connections::list))
        .route("/owner/connections/revoke", post(owner::connections::revoke))
        .route("/owner/connections/relink", post(owner::relink::relink))
        .route("/owner/connections/{handle}/revoke", post(owner::connections::revoke_named))
        .route("/owner/resources", get(owner::resources::list))
        .route("/owner/resources/accept", post(owner::resources::accept))
        .route("/owner/resource-servers", get(owner::resources::servers))
        .route("/owner/resource-servers/decision", post(owner::resources::decide))
        .route("/owner/policies", get(owner::policies::list).post(owner::policies::create))
        .route("/owner/policies/{id}", put(owner::policies::edit).delete(owner::policies::delete))
        .route("/owner/ledger", get(owner::ledger::page))
        .route("/owner/events", get(owner::events::stream))
        .route("/owner/sign-in-links", post(owner::links::create))
}

/// Serves `authority` on every listener until `shutdown`; pulls and prunes meanwhile, and is ready before either (FED-18).
pub async fn serve(
    listeners: Vec<TcpListener>,
    authority: Arc<Authority>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) {
    let chores = {
        let authority = authority.clone();
        async move { tokio::join!(pull::keep_pulling(authority.clone()), keep_pruning(authority)) }
    };
    let closing = authority.closing.clone();
    let shutdown = async move {
        shutdown.await;
        closing.send_replace(true);
    };
    tokio::select! {
        () = sayso_listen::listen(listeners, router(authority), shutdown) => {}
        _ = chores => {}
    }
}

async fn keep_pruning(authority: Arc<Authority>) {
    loop {
        if authority.store.prune(authority.now()).await.is_err() {
            tracing::warn!("store.prune_failed");
        }
        tokio::time::sleep(PRUNE).await;
    }
}

/// Runs before every route and after every answer.
async fn guard(State(authority): Shared, request: Request, next: Next) -> Response {
    let for_owner = is_owner(request.uri());
    let mut response = match admit(&authority, request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(fault) => fault.render(for_owner),
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // BASE-08: what does not say otherwise is nobody's to keep.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn admit(authority: &Authority, uri: &Uri, headers: &HeaderMap) -> Result<(), Fault> {
    let served = |host: &str| authority.hosts.iter().any(|known| *known == host.to_ascii_lowercase());
    let mut lines = headers.get_all(HOST).iter();
    let host = match (lines.next(), lines.next()) {
        (Some(line), None) => line.to_str().ok(),
        _ => None,
    };
    // A target in absolute form names its own host, which must be ours as well.
    let target = uri.authority().is_none_or(|target| served(target.as_str()));
    if !(target && host.is_some_and(served)) {
        return Err(Fault::new(
            StatusCode::MISDIRECTED_REQUEST,
            "misdirected_request",
            "this listener does not serve that host; use the issuer's address",
        ));
    }
    let ours = |origin: &HeaderValue| origin.as_bytes() == authority.issuer().as_bytes();
    if headers.get_all(ORIGIN).iter().all(ours) {
        return Ok(());
    }
    Err(Fault::new(StatusCode::FORBIDDEN, "invalid_origin", "pages of other origins are not served here"))
}

fn is_owner(uri: &Uri) -> bool {
    uri.path() == "/owner" || uri.path().starts_with("/owner/")
}

async fn unknown(uri: Uri) -> Response {
    let fault = Fault::new(StatusCode::NOT_FOUND, "not_found", "nothing is served here; see the metadata");
    fault.render(is_owner(&uri))
}

async fn wrong_method(uri: Uri) -> Response {
    let description = "this address does not take that method; the Allow header lists those it takes";
    let fault = Fault::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", description);
    fault.render(is_owner(&uri)).into_response()
}
