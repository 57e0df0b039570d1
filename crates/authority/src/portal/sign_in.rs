//! Getting in and out: a link shows a page, and the page's form redeems it, once (D-26).
//!
//! Looking at a link spends nothing, so a preview or a prefetch does not. The session's secret is drawn here and never
//! taken from a request; redemption is a row of her record and an event.

use super::Shared;
use super::act::{Act, LETTERS, SignedIn};
use super::page::{HOW_TO_OPEN, Page, show};
use crate::http::received::{Received, Takes};
use crate::{Authority, draw};
use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::{LOCATION, SET_COOKIE};
use sayso_owner::store::Digest;
use sayso_protocol::b64;

const TAKES: Takes = Takes::form(1024);

#[derive(Template)]
#[template(path = "sign_in.html")]
struct Offer<'a> {
    base: Option<&'a str>,
    link: &'a str,
}

/// The page a link shows.
pub(super) async fn offer(
    State(authority): Shared,
    link: Result<Path<String>, PathRejection>,
) -> Result<Response, Page> {
    let link = link.ok().map(|Path(link)| link).filter(|link| is_link(link)).ok_or_else(spent)?;
    let base = authority.portal.as_ref().map(|portal| portal.base.as_str());
    Ok(show(&Offer { base, link: &link }))
}

/// Redeems a link.
pub(super) async fn redeem(State(authority): Shared, request: Request) -> Result<Response, Page> {
    let former = SignedIn::of(&authority, request.headers()).await?;
    let form = Received::read(request, TAKES).await?.form()?;
    let link = form.get("link").filter(|link| is_link(link)).ok_or_else(spent)?;
    let (secret, name) = (b64::encode(draw::<32>()?), b64::encode(draw::<9>()?));
    let opened =
        authority.store.redeem_link(Digest::of(link), Digest::of(&secret), &name, authority.now()).await?;
    let session = opened.ok_or_else(spent)?;
    if let Some(former) = former {
        authority.store.end_session(former.digest()).await?;
    }
    tracing::info!(owner = %session.owner, session = %session.name, "owner.signed_in");
    home(&authority, &secret, "")
}

/// Ends the session.
pub(super) async fn end(State(authority): Shared, act: Act) -> Result<Response, Page> {
    act.prove(&["sign out"])?;
    authority.store.end_session(act.by.digest()).await?;
    tracing::info!(session = %act.by.session.name, "owner.signed_out");
    let page = Page::new(StatusCode::OK, "You are signed out", HOW_TO_OPEN);
    let mut response = page.into_response();
    let gone = authority.portal.as_ref().and_then(|portal| portal.cookie("", "; Max-Age=0"));
    if let Some(gone) = gone {
        response.headers_mut().insert(SET_COOKIE, gone);
    }
    Ok(response)
}

fn is_link(link: &str) -> bool {
    link.len() == LETTERS && link.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

fn spent() -> Page {
    Page::new(
        StatusCode::FORBIDDEN,
        "This link opens nothing",
        "It was used already, is older than five minutes, or is not whole. Make another: sayso owner open.",
    )
}

/// On to her page, with the cookie.
fn home(authority: &Authority, secret: &str, more: &str) -> Result<Response, Page> {
    let portal = authority.portal.as_ref().ok_or_else(Page::unread)?;
    let cookie = portal.cookie(secret, more).ok_or_else(Page::unread)?;
    let to = format!("{}/", portal.base);
    Ok(([(LOCATION, to)], [(SET_COOKIE, cookie)], StatusCode::SEE_OTHER).into_response())
}
