//! POST /token: a step of a negotiation, or a resource server's token.
//!
//! Forms are read strictly before anything is looked up; no answer may be kept (BASE-08).

use super::Shared;
use super::answer::{Fault, json};
use super::received::{Received, Takes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use sayso_protocol::payload::negotiation::{
    MAX_FORM, ProtectionRequest, TicketRequest, TokenError, TokenReply, TokenRequest, UMA_PROTECTION,
};
use serde_json::json;
use std::sync::Arc;

use crate::Authority;

const TAKES: Takes = Takes::form(MAX_FORM);

pub(super) async fn token(State(authority): Shared, request: Request) -> Result<Response, Fault> {
    let received = Received::read(request, TAKES).await?;
    match TokenRequest::read(&received.body).map_err(unreadable)? {
        TokenRequest::Ticket(request) => ticket(&authority, &request, &received).await,
        TokenRequest::Protection(request) => protection(&authority, &request, &received).await,
    }
}

async fn ticket(
    authority: &Arc<Authority>,
    request: &TicketRequest,
    received: &Received,
) -> Result<Response, Fault> {
    Ok(match authority.present(request, received).await? {
        TokenReply::Refused { error, description } => Fault::token(error, description).into_response(),
        reply => json(StatusCode::from_u16(reply.status()).unwrap_or(StatusCode::FORBIDDEN), &reply.body()),
    })
}

async fn protection(
    authority: &Arc<Authority>,
    request: &ProtectionRequest,
    received: &Received,
) -> Result<Response, Fault> {
    let granted = authority.protection_token(request, received).await;
    let granted = granted.map_err(|denied| Fault::token(denied.error, denied.description))?;
    let body = json!({
        "access_token": granted.token,
        "token_type": "Bearer",
        "expires_in": granted.expires_in,
        "scope": UMA_PROTECTION,
    });
    Ok(json(StatusCode::OK, &body))
}

fn unreadable(error: TokenError) -> Fault {
    let description = match error {
        TokenError::UnsupportedGrantType => "use a grant type that grant_types_supported lists",
        _ => "send grant_type and the members it needs as a form, each once",
    };
    Fault::token(error, description)
}
