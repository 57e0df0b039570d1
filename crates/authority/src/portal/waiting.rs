//! One request on a page of its own, and her answer.
//!
//! A form answers the agreement it was shown with: what changed meanwhile, or was answered, takes no answer (OWN-08).

use super::Shared;
use super::act::{Act, SignedIn};
use super::card::{self, Card};
use super::page::{Page, show as drawn};
use crate::asked;
use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::LOCATION;
use sayso_owner::decision::{Answer, Ruling};
use sayso_protocol::{NegotiationId, S256};

#[derive(Template)]
#[template(path = "waiting.html")]
struct One<'a> {
    base: Option<&'a str>,
    card: Card,
}

/// Shows one request.
pub(super) async fn show(
    State(authority): Shared,
    family: Result<Path<String>, PathRejection>,
    by: SignedIn,
) -> Result<Response, Page> {
    let unknown = || Page::answered(StatusCode::NOT_FOUND);
    let family = named(family).ok_or_else(unknown)?;
    let found = asked::find(&authority, &by.session.owner, &family).await?.ok_or_else(unknown)?;
    let units = authority.store.units(&by.session.owner).await?;
    let base = authority.portal.as_ref().map(|portal| portal.base.as_str());
    Ok(drawn(&One { base, card: Card::of(&found, &units, &by) }))
}

/// Takes her answer.
pub(super) async fn decide(
    State(authority): Shared,
    family: Result<Path<String>, PathRejection>,
    act: Act,
) -> Result<Response, Page> {
    let family = named(family).ok_or_else(Page::unread)?;
    let (word, agreement) = (act.member("answer")?, act.member("agreement")?);
    act.prove(&card::act(word, family.as_str(), agreement))?;
    let answer = match word {
        "approved" => Answer::Approved,
        "denied" => Answer::Denied,
        _ => return Err(Page::unread()),
    };
    let ruling = Ruling { answer, shown: Some(agreement.parse::<S256>().map_err(|_| Page::unread())?) };
    let session = &act.by.session;
    let decided = asked::answer(&authority, &session.owner, &family, &ruling, &session.author()).await?;
    decided.ok_or_else(|| Page::answered(StatusCode::CONFLICT))?;
    let base = authority.portal.as_ref().map_or("", |portal| portal.base.as_str());
    Ok((StatusCode::SEE_OTHER, [(LOCATION, format!("{base}/"))]).into_response())
}

fn named(family: Result<Path<String>, PathRejection>) -> Option<NegotiationId> {
    family.ok().and_then(|Path(id)| NegotiationId::parse(id).ok())
}
