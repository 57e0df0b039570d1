//! POST /rs/register: a resource server introduces itself, and waits for the owner's answer (FED-20..27).
//!
//! Whatever check fails, the answer is the same, and nothing is kept (O-24).

use super::Shared;
use super::answer::{Fault, json};
use super::received::{Received, Takes};
use crate::introduction::{Refused, Taken};
use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use sayso_owner::store::Unavailable;
use sayso_protocol::payload::introduction::{Introduction, IntroductionReply, MAX_BYTES};
use sayso_protocol::payload::negotiation::TokenError;

const TAKES: Takes = Takes::json(MAX_BYTES);

const UNPROVEN: &str = "name an owner served here and a resource whose metadata, at its own origin, names it, this \
                        authority and a key set of that origin; sign the request (RFC 9421) afresh with one of those \
                        keys, covering @method, @authority, @path, an empty authorization and content-digest";
const BUSY: &str = "an introduction in the name of this resource failed within a minute, or too many came from its \
                    source; nothing was looked at, try again later";
const FULL: &str = "there is no place for it on this owner's list now: as many wait as may, or she has put it out more than \
                    once; try again later";
const WAITS: &str = "the introduction waits for the owner; no token is issued before she approves it";

pub(super) async fn register(State(authority): Shared, request: Request) -> Result<Response, Fault> {
    let received = Received::read(request, TAKES).await?;
    let said = Introduction::read(&received.body).map_err(|fault| Fault::invalid(fault.to_string()))?;
    // A task of its own: whoever introduces itself may leave in the middle, and what is looked at then counts all the same.
    let introduced = tokio::spawn(async move { authority.introduce(&said, &received).await });
    let Taken { client_id, active } = introduced.await.map_err(|_| Refused::Unavailable)??;
    let reply = if active {
        IntroductionReply { client_id, status: "active".into(), error: None, error_description: None }
    } else {
        IntroductionReply {
            client_id,
            status: "pending".into(),
            error: Some(TokenError::AuthorizationPending.as_str().into()),
            error_description: Some(WAITS.into()),
        }
    };
    Ok(json(if active { StatusCode::OK } else { StatusCode::ACCEPTED }, &reply))
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Unproven => Fault::token(TokenError::InvalidClient, UNPROVEN),
            Refused::Busy => Fault::too_many(BUSY),
            Refused::Full => Fault::too_many(FULL),
            Refused::Unavailable => Unavailable.into(),
        }
    }
}
