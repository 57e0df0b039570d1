//! Pages that say one thing: what went wrong, and what to do.
//!
//! Title and sentence are ours alone, so a page about what somebody sent shows nothing of it. They are drawn last, by
//! whoever knows where the portal is.

use crate::http::answer::Fault;
use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use sayso_owner::store::Unavailable;
use std::borrow::Cow;

/// How she gets in.
pub(super) const HOW_TO_OPEN: &str = "On the machine where sayso runs, type: sayso owner open. It opens your page with \
                                      a link that is good once, for five minutes.";

/// A page of one sentence.
#[derive(Debug, Clone)]
pub(super) struct Page {
    status: StatusCode,
    title: &'static str,
    text: Cow<'static, str>,
}

#[derive(Template)]
#[template(path = "message.html")]
struct Message<'a> {
    base: Option<&'a str>,
    title: &'a str,
    text: &'a str,
}

impl Page {
    pub(super) fn new(status: StatusCode, title: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self { status, title, text: text.into() }
    }

    /// The request is of another origin.
    pub(super) fn foreign() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "That came from elsewhere",
            "Another page asked for this, and only your own page may. Nothing was changed.",
        )
    }

    /// Nobody is signed in.
    pub(super) fn signed_out() -> Self {
        Self::new(StatusCode::FORBIDDEN, "You are not signed in", HOW_TO_OPEN)
    }

    /// A form that is not one of ours.
    pub(super) fn unread() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "That form could not be read", "Nothing was changed.")
    }

    /// What waited does not wait any more.
    pub(super) fn answered(status: StatusCode) -> Self {
        Self::new(
            status,
            "This request was answered",
            "It does not wait for you any more: it was answered, here or elsewhere, its time ran out, or the agent \
             changed it. Your answer was not taken.",
        )
    }

    /// Draws the page; `base` is where hers are, for those that are among them.
    pub(super) fn render(&self, base: Option<&str>, under: Response) -> Response {
        let drawn = show(&Message { base, title: self.title, text: &self.text });
        let mut response = (self.status, drawn).into_response();
        for (name, value) in under.headers() {
            if name != CONTENT_TYPE {
                response.headers_mut().append(name.clone(), value.clone());
            }
        }
        response
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Unavailable> for Page {
    fn from(_: Unavailable) -> Self {
        let text = "The store is unavailable. Nothing was changed; try again.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "Not now", text)
    }
}

impl From<Fault> for Page {
    fn from(fault: Fault) -> Self {
        Self { status: fault.status(), ..Self::unread() }
    }
}

/// A template as an answer.
pub(super) fn show(page: &impl Template) -> Response {
    match page.render() {
        Ok(html) => Html(html).into_response(),
        // INVARIANT: a template fails only where it writes something that cannot be shown, and all here is text.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
