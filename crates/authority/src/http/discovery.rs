//! What anybody may read about the authority: its metadata, its keys, whether it lives.
//!
//! The metadata is one document at three addresses (O-2) and lists exactly what is served (CORE-01..05).

use super::Shared;
use super::answer::{Fault, json};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};
use sayso_protocol::payload::assertion;
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::introduction;
use sayso_protocol::payload::metadata::{AuthorityMetadata, KeySet, PROFILES};
use sayso_protocol::payload::negotiation::{CLIENT_CREDENTIALS, UMA_TICKET};
use serde_json::json;

/// How long public documents may be kept.
const SHORTLY: HeaderValue = HeaderValue::from_static("public, max-age=60");

pub(super) async fn metadata(State(authority): Shared) -> Response {
    let issuer = authority.issuer();
    let at = |path: &str| format!("{issuer}{path}");
    let identity = authority.asks_identity().then(|| assertion::FORMAT.to_owned());
    let formats = Edition::ALL.iter().map(|edition| edition.claim_format().to_owned()).chain(identity);
    kept(json(
        StatusCode::OK,
        &AuthorityMetadata {
            issuer: issuer.to_owned(),
            token_endpoint: at("/token"),
            jwks_uri: at("/jwks"),
            permission_endpoint: at("/perm"),
            introspection_endpoint: at("/introspect"),
            consume_endpoint: at("/consume"),
            terms_endpoint: authority.house.terms_endpoint.clone(),
            owner_endpoint: at("/owner"),
            grant_types_supported: vec![UMA_TICKET.into(), CLIENT_CREDENTIALS.into()],
            claim_token_formats_supported: formats.collect(),
            uma_profiles_supported: PROFILES.map(str::to_owned).into(),
            sayso_audit_endpoint: Some(at("/audit/access")),
            sayso_registration_endpoint: Some(at(introduction::PATH)),
        },
    ))
}

pub(super) async fn keys(State(authority): Shared) -> Response {
    let issuer = &authority.house.issuer;
    let published = [issuer.grants.verifying(), issuer.receipts.verifying(), authority.request_key()];
    kept(json(StatusCode::OK, &KeySet::of(published)))
}

/// Alive means that the store answers: without it every other answer is a refusal.
pub(super) async fn health(State(authority): Shared) -> Response {
    match authority.store.owners().await {
        Ok(_) => json(StatusCode::OK, &json!({ "status": "ok" })),
        Err(fault) => Fault::from(fault).into_response(),
    }
}

pub(super) fn kept(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, SHORTLY);
    response
}
