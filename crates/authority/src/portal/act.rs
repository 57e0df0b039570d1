//! Who is signed in, and whether a form is hers: the session's cookie, its origin, and a token made for that very act.
//!
//! A token is made from the cookie, which no store holds and no page shows, and from what the form would do: one of
//! another session, another request or another answer fits nothing (D-26).

use super::page::Page;
use crate::Authority;
use crate::http::received::{Received, Takes};
use axum::extract::{FromRequest, FromRequestParts, Request};
use http::header::{COOKIE, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use sayso_owner::session::Session;
use sayso_owner::store::Digest;
use sayso_protocol::{b64, canon};
use std::collections::BTreeMap;
use std::sync::Arc;

const TAKES: Takes = Takes::form(8 * 1024);
/// Letters of a session's secret.
pub(super) const LETTERS: usize = 43;
/// Cookies of our name that are tried. Over plain http another server of this name can set more.
const TRIED: usize = 4;

/// A live session of hers. Holds its secret, so it has no `Debug`.
pub(super) struct SignedIn {
    pub(super) session: Session,
    secret: String,
}

impl SignedIn {
    /// The session a request's cookie names, if it lives.
    pub(super) async fn of(authority: &Authority, headers: &HeaderMap) -> Result<Option<Self>, Page> {
        let Some(portal) = &authority.portal else { return Ok(None) };
        for secret in offered(headers, portal.cookie_name()).take(TRIED) {
            if let Some(session) = authority.store.session(Digest::of(secret), authority.now()).await? {
                return Ok(Some(Self { session, secret: secret.to_owned() }));
            }
        }
        Ok(None)
    }

    /// The token of a form that would do `what`.
    pub(super) fn token(&self, what: &[&str]) -> String {
        let parts: String = what.iter().map(|part| format!("{}:{part}", part.len())).collect();
        let mut bytes = b"sayso portal form ".to_vec();
        bytes.extend_from_slice(self.secret.as_bytes());
        // Of fixed length, so that nobody can go on writing where it ends.
        bytes.extend_from_slice(&canon::sha256(parts.as_bytes()));
        b64::encode(canon::sha256(&bytes))
    }

    /// What the store knows the session by.
    pub(super) fn digest(&self) -> Digest {
        Digest::of(&self.secret)
    }
}

/// Values of the cookies of this name that could be ours.
fn offered<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines
        .flat_map(|line| line.split(';'))
        .filter_map(move |pair| pair.trim().split_once('=').filter(|(known, _)| *known == name))
        .map(|(_, value)| value)
        .filter(|value| value.len() == LETTERS)
}

impl FromRequestParts<Arc<Authority>> for SignedIn {
    type Rejection = Page;

    async fn from_request_parts(parts: &mut Parts, authority: &Arc<Authority>) -> Result<Self, Page> {
        Self::of(authority, &parts.headers).await?.ok_or_else(Page::signed_out)
    }
}

/// A form sent from one of her pages.
pub(super) struct Act {
    pub(super) by: SignedIn,
    form: BTreeMap<String, String>,
}

impl Act {
    /// A member of the form.
    pub(super) fn member(&self, name: &str) -> Result<&str, Page> {
        self.form.get(name).map(String::as_str).ok_or_else(Page::unread)
    }

    /// Refuses the form unless its token was made for doing `what` in this session.
    pub(super) fn prove(&self, what: &[&str]) -> Result<(), Page> {
        // By digest, so that how far two tokens are alike cannot be timed.
        if Digest::of(self.member("token")?) == Digest::of(&self.by.token(what)) {
            return Ok(());
        }
        Err(Page::new(
            StatusCode::FORBIDDEN,
            "That form is not for this",
            "It was made for another session or another request. Nothing was changed; go back to your page.",
        ))
    }
}

impl FromRequest<Arc<Authority>> for Act {
    type Rejection = Page;

    async fn from_request(request: Request, authority: &Arc<Authority>) -> Result<Self, Page> {
        // Browsers name the origin of every form they send, so one without is none of hers.
        let named = authority.portal.as_ref().zip(request.headers().get(ORIGIN));
        if !named.is_some_and(|(portal, origin)| portal.is_ours(origin)) {
            return Err(Page::foreign());
        }
        let by = SignedIn::of(authority, request.headers()).await?.ok_or_else(Page::signed_out)?;
        let received = Received::read(request, TAKES).await?;
        Ok(Self { by, form: received.form()? })
    }
}
