//! The protection API over HTTP: a bearer PAT in, the functions of `crate::protection` behind.
//!
//! The PAT and its server's standing are read from the store on every call (FED-35, FED-53); without a live one the
//! answer is 401 and says nothing else.

use super::Shared;
use super::answer::{Fault, json};
use super::received::{Received, Takes};
use crate::protection::{Admitted, Caller, ProtectionFault};
use crate::{Authority, draw};
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use sayso_owner::store::Digest;
use sayso_protocol::payload::operation::Operation;
use sayso_protocol::payload::protection::{AccessReport, Continuation, PermissionRequest};
use sayso_protocol::{S256, Thumbprint, b64};
use serde::Deserialize;
use std::collections::BTreeMap;

const JSON: Takes = Takes::json(64 * 1024);
const FORM: Takes = Takes::form(64 * 1024);
/// Longest name of a consume attempt, in bytes.
const MAX_ATTEMPT: usize = 128;

/// One permission request, or an array of them as stock UMA allows (O-5).
#[derive(Deserialize)]
#[serde(untagged)]
enum Permissions {
    One(PermissionRequest),
    Several(Vec<PermissionRequest>),
}

pub(super) async fn permission(State(authority): Shared, request: Request) -> Result<Response, Fault> {
    let admitted = admit(&authority, request.headers()).await?;
    let received = Received::read(request, JSON).await?;
    let requests = match received.json()? {
        Permissions::One(request) => vec![request],
        Permissions::Several(requests) => requests,
    };
    let reply = authority.permission(&admitted, &requests).await?;
    Ok(json(StatusCode::CREATED, &reply))
}

pub(super) async fn introspect(State(authority): Shared, request: Request) -> Result<Response, Fault> {
    let admitted = admit(&authority, request.headers()).await?;
    let mut form = Received::read(request, FORM).await?.form()?;
    let token = form.remove("token").ok_or_else(no_member)?;
    let answer = match round_state(&mut form)? {
        None => authority.introspect(&admitted, &token).await?,
        Some(state) => authority.introspect_round(&admitted, &token, &state).await?,
    };
    Ok(json(StatusCode::OK, &answer.to_json()))
}

pub(super) async fn consume(State(authority): Shared, request: Request) -> Result<Response, Fault> {
    let admitted = admit(&authority, request.headers()).await?;
    let mut form = Received::read(request, FORM).await?.form()?;
    let token = form.remove("token").ok_or_else(no_member)?;
    // An unnamed try is one of its own, so repeating it loses.
    let attempt = form.remove("attempt").map_or_else(|| draw::<16>().map(b64::encode), Ok)?;
    if attempt.is_empty() || attempt.len() > MAX_ATTEMPT {
        return Err(Fault::invalid(format!("attempt must have between 1 and {MAX_ATTEMPT} bytes")));
    }
    let reply = match round_state(&mut form)? {
        None => authority.consume(&admitted, &token, &attempt).await?,
        Some(state) => {
            let round = round(&mut form, state).ok_or_else(no_round)?;
            authority.resume(&admitted, &token, &attempt, &round).await?
        }
    };
    Ok(json(StatusCode::OK, &reply))
}

/// The state of the round that a question is about, if it is about one (D-11).
fn round_state(form: &mut BTreeMap<String, String>) -> Result<Option<S256>, Fault> {
    form.remove("continuation").map(|state| state.parse().map_err(|_| no_round())).transpose()
}

/// The rest of what a round is.
fn round(form: &mut BTreeMap<String, String>, state: S256) -> Option<Continuation> {
    let answers = form.remove("answers_s256").map(|answers| answers.parse()).transpose().ok()?;
    let tool = form.remove("tool")?.parse().ok()?;
    let operation = Operation { tool, params_s256: form.remove("params_s256")?.parse().ok()? };
    Some(Continuation { state, answers, operation, key: Thumbprint::from_text(form.remove("jkt")?) })
}

fn no_round() -> Fault {
    Fault::invalid(
        "a round is its continuation, tool, params_s256 and jkt, and answers_s256 where there are any",
    )
}

pub(super) async fn report(State(authority): Shared, request: Request) -> Result<Response, Fault> {
    let admitted = admit(&authority, request.headers()).await?;
    let report: AccessReport = Received::read(request, JSON).await?.json()?;
    authority.report(&admitted, &report).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The caller a PAT stands for, as it stands now.
async fn admit(authority: &Authority, headers: &HeaderMap) -> Result<Admitted, Fault> {
    let token = bearer(headers).ok_or_else(|| {
        Fault::no_token("send a protection API token as Authorization: Bearer; get one at the token endpoint")
    })?;
    let dead = || Fault::no_token("this protection API token is not live; get a new one");
    let pat = authority.store.pat(Digest::of(token), authority.now()).await?.ok_or_else(dead)?;
    let caller = Caller { owner: pat.owner, client_id: pat.client_id };
    Ok(Admitted::standing(caller, pat.standing)?)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let (scheme, token) = line.to_str().ok()?.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn no_member() -> Fault {
    Fault::invalid("send the token as the form member token")
}

impl From<ProtectionFault> for Fault {
    fn from(fault: ProtectionFault) -> Self {
        let description = fault.to_string();
        match fault {
            ProtectionFault::NotTrusted => {
                Fault::no_token("the owner does not trust this resource server; she can approve it again")
            }
            ProtectionFault::Permission(why) => {
                Fault::new(StatusCode::BAD_REQUEST, why.as_str(), description)
            }
            ProtectionFault::Several | ProtectionFault::Summary | ProtectionFault::NoRound => {
                Fault::invalid(description)
            }
            ProtectionFault::UnknownNegotiation => {
                Fault::new(StatusCode::NOT_FOUND, "unknown_negotiation", description)
            }
            ProtectionFault::Unavailable(fault) => fault.into(),
        }
    }
}
