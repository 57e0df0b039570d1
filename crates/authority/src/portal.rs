//! Her page: where it is, what is asked of every request to it, and its routes (D-26).
//!
//! It has a host name of its own, so nothing a browser keeps for it is ever sent to the API, and no page of another
//! origin can act in it. Nothing here runs in her browser: pages are text, a style sheet and forms.

mod act;
mod agents;
mod arguments;
mod card;
mod changes;
mod fresh;
mod home;
mod page;
mod record;
mod servers;
mod sign_in;
mod things;
mod waiting;

use crate::{Authority, SetUp, draw};
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use page::Page;
use sayso_owner::ledger::Author;
use sayso_owner::session::LINK_SECONDS;
use sayso_owner::store::{Digest, Unavailable};
use sayso_protocol::{OwnerName, b64, sig};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use url::Host;

const CSP: &str = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; \
                   frame-ancestors 'none'; object-src 'none'";

/// On every answer. `same-origin` and not `no-referrer`: browsers then name our own origin when a form of ours is sent.
const HEADERS: [(HeaderName, &str); 7] = [
    (CONTENT_SECURITY_POLICY, CSP),
    (CACHE_CONTROL, "no-store"),
    (REFERRER_POLICY, "same-origin"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Where her page is.
#[derive(Clone)]
pub struct Portal {
    origin: String,
    host: String,
    /// The path everything is under: empty, or one that is hard to guess.
    base: String,
    secure: bool,
}

/// The path is among what keeps other servers of the same name apart, so it is not printed.
impl fmt::Debug for Portal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Portal").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// A link that opens one session of hers. Has no `Debug`.
#[derive(Serialize)]
pub struct SignInLink {
    /// The link.
    pub url: String,
    /// Seconds it is good for.
    pub expires_in: i64,
}

impl Portal {
    /// A portal at this origin: https under a name, or plain http under `localhost`. There cookies are sent to every
    /// port of the name, so the pages are under a path made of `place`, which no other server is told.
    ///
    /// # Errors
    /// When it is another origin, or none.
    pub fn at(url: &str, place: &[u8; 16]) -> Result<Self, SetUp> {
        let parsed = url::Url::parse(url).map_err(|_| SetUp::PortalUrl)?;
        let secure = match (parsed.scheme(), parsed.host()) {
            ("https", Some(Host::Domain(_))) => true,
            ("http", Some(Host::Domain(name))) if name == "localhost" || name.ends_with(".localhost") => {
                false
            }
            _ => return Err(SetUp::PortalUrl),
        };
        if parsed.origin().ascii_serialization() != url {
            return Err(SetUp::PortalUrl);
        }
        let host = sig::authority_of(&parsed).ok_or(SetUp::PortalUrl)?;
        let base = if secure { String::new() } else { format!("/s/{}", b64::encode(place)) };
        Ok(Self { origin: url.to_owned(), host, base, secure })
    }

    /// Whether a host has its name, whatever the port: cookies do not tell ports apart.
    pub(crate) fn shares_name(&self, host: &str) -> bool {
        name_of(host).eq_ignore_ascii_case(name_of(&self.host))
    }

    /// Whether a request is for it.
    pub(crate) fn is_asked(&self, request: &Request) -> bool {
        let ours = |host: &str| host.eq_ignore_ascii_case(&self.host);
        let mut lines = request.headers().get_all(HOST).iter();
        let (Some(line), None) = (lines.next(), lines.next()) else { return false };
        let target = request.uri().authority().is_none_or(|target| ours(target.as_str()));
        target && line.to_str().is_ok_and(ours)
    }

    /// The cookie's name; browsers hold one of the first name to be ours alone.
    fn cookie_name(&self) -> &'static str {
        if self.secure { "__Host-sayso" } else { "sayso" }
    }

    /// Lax and not Strict: the file that posts a link is of no site, and the page it leads to needs the cookie. A form
    /// of another site comes without it either way.
    fn cookie(&self, value: &str, more: &str) -> Option<HeaderValue> {
        let (name, base, secure) =
            (self.cookie_name(), &self.base, if self.secure { "; Secure" } else { "" });
        let line = format!("{name}={value}; Path={base}/; HttpOnly; SameSite=Lax{secure}{more}");
        HeaderValue::from_str(&line).ok()
    }

    /// What is left of a path among her pages.
    fn within<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(&self.base).filter(|rest| rest.starts_with('/'))
    }

    fn is_ours(&self, origin: &HeaderValue) -> bool {
        origin.as_bytes() == self.origin.as_bytes()
    }
}

impl Authority {
    /// Makes a link that opens a session of hers once, by this author's doing; `None` where there is no portal.
    ///
    /// # Errors
    /// When the store could not keep it.
    pub async fn sign_in_link(
        &self,
        owner: &OwnerName,
        author: &Author,
    ) -> Result<Option<SignInLink>, Unavailable> {
        let Some(portal) = &self.portal else { return Ok(None) };
        let link = b64::encode(draw::<32>()?);
        let expires = self.now().plus(LINK_SECONDS);
        self.store.create_link(Digest::of(&link), owner, author, expires).await?;
        let url = format!("{}{}/sign-in/{link}", portal.origin, portal.base);
        Ok(Some(SignInLink { url, expires_in: LINK_SECONDS }))
    }
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

type Shared = State<Arc<Authority>>;
type Place = State<(Arc<Authority>, Portal)>;

/// The pages of `portal`.
pub(crate) fn router(authority: Arc<Authority>, portal: &Portal) -> Router {
    let at = |path: &str| format!("{}{path}", portal.base);
    let guarded = (authority.clone(), portal.clone());
    Router::new()
        .route(&at("/"), get(home::page))
        .route(&at("/style.css"), get(style))
        .route(&at("/sign-in/{link}"), get(sign_in::offer))
        .route(&at("/sign-in"), post(sign_in::redeem))
        .route(&at("/sign-out"), post(sign_in::end))
        .route(&at("/waiting/{family}"), get(waiting::show).post(waiting::decide))
        .route(&at("/agents/end"), post(agents::end))
        .route(&at("/things/seen"), post(changes::accept))
        .route(&at("/things/govern"), post(fresh::govern))
        .route(&at("/servers"), post(servers::decide))
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(guarded, guard))
        .with_state(authority)
}

/// Runs before every page and after every answer.
async fn guard(State((_, portal)): Place, request: Request, next: Next) -> Response {
    let within = portal.within(request.uri().path());
    let redeems = within == Some("/sign-in") && request.method() == Method::POST;
    let inside = within.is_some();
    let mut response = match admit(&portal, request.headers(), redeems) {
        Ok(()) => next.run(request).await,
        Err(page) => page.into_response(),
    };
    if let Some(page) = response.extensions_mut().remove::<Page>() {
        response = page.render(inside.then_some(portal.base.as_str()), response);
    }
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Pages of other origins are refused whatever they ask. The file that posts a link has no origin; the link is its proof.
fn admit(portal: &Portal, headers: &HeaderMap, redeems: bool) -> Result<(), Page> {
    let lines: Vec<&HeaderValue> = headers.get_all(ORIGIN).iter().collect();
    let admitted = match lines.as_slice() {
        [] => true,
        [line] => portal.is_ours(line) || (redeems && *line == "null"),
        _ => false,
    };
    if admitted { Ok(()) } else { Err(Page::foreign()) }
}

async fn style() -> Response {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("portal/pages/style.css")).into_response()
}

async fn nowhere(State(authority): Shared, request: Request) -> Page {
    let path = request.uri().path();
    let inside = authority.portal.as_ref().is_some_and(|portal| portal.within(path).is_some());
    match path {
        "/" => Page::new(StatusCode::NOT_FOUND, "Your page is elsewhere", page::HOW_TO_OPEN),
        _ if inside => Page::new(StatusCode::NOT_FOUND, "Nothing is here", "There is no such page."),
        _ => Page::new(
            StatusCode::MISDIRECTED_REQUEST,
            "Nothing is here",
            "Under this name there is the owner's page and nothing else; the authority's address is another.",
        ),
    }
}

async fn wrong_method() -> Page {
    Page::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "That cannot be done here",
        "This address does not take that method. Nothing was changed.",
    )
}

#[cfg(test)]
mod tests;
