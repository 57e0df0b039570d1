//! A tool that no unit governs is refused until she has looked at it; here she puts it into the unit it would have had at
//! first (D-29).
//!
//! What it says of itself is shown whole, in the server's words; the form says that she has seen exactly this, and one
//! made before a change fits nothing.

use super::Shared;
use super::act::{Act, SignedIn};
use super::changes::{Differs, differing, named_by, text};
use super::page::Page;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::LOCATION;
use sayso_owner::first;
use sayso_owner::registry::Registered;
use sayso_owner::store::Unavailable;
use sayso_protocol::message::Class;
use sayso_protocol::{b64, canon};

/// What there is to see of one, and what a yes makes of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fresh {
    pub(super) members: Vec<Differs>,
    pub(super) asks: &'static str,
    /// Server and resource in letters a form keeps as they are.
    pub(super) named: [String; 2],
    /// The digest of all that is published of it now.
    pub(super) seen: String,
    pub(super) token: String,
}

impl Fresh {
    pub(super) fn of(registered: &Registered, by: &SignedIn) -> Self {
        let resource = &registered.resource;
        let named = [registered.client_id.as_str(), resource.id.as_str()].map(b64::encode);
        let seen = seen(registered);
        Self {
            members: differing(None, resource.surface.as_ref()),
            asks: match first::class(resource) {
                Class::Read => "It says that it only reads: you will be asked each time an agent wants to.",
                Class::Act => {
                    "It may do anything: you will be asked about every single call, with its arguments."
                }
            },
            token: by.token(&act(&named, &seen)),
            named,
            seen,
        }
    }
}

/// What the form would do, as its token is made for.
fn act<'a>([server, resource]: &'a [String; 2], seen: &'a str) -> [&'a str; 4] {
    ["govern", server, resource, seen]
}

fn seen(registered: &Registered) -> String {
    let published = serde_json::to_value(&registered.resource).unwrap_or_default();
    b64::encode(canon::sha256(text(&published).as_bytes()))
}

/// She puts a tool under a unit of its own.
pub(super) async fn govern(State(authority): Shared, by: Act) -> Result<Response, Page> {
    let named = [by.member("server")?.to_owned(), by.member("resource")?.to_owned()];
    let shown = by.member("seen")?;
    by.prove(&act(&named, shown))?;
    let (server, resource) = named_by(&named)?;
    let (owner, author) = (&by.by.session.owner, by.by.session.author());
    let now = || authority.store.registered(owner, &server, &resource);
    let as_shown = |entry: &Registered| seen(entry) == shown;
    let entry = now().await?.filter(|entry| entry.unit.is_none() && as_shown(entry));
    let entry = entry.ok_or_else(|| Page::answered(StatusCode::CONFLICT))?;
    let unit = first::unit_of(&entry.resource).map_err(|_| Unavailable)?;
    let made = authority.make_first(owner, &unit, &author).await?;
    let made = made.map_err(|_| Page::answered(StatusCode::CONFLICT))?;
    // It governs what the tool was at that moment, which may be another than she was shown.
    if !now().await?.is_some_and(|entry| as_shown(&entry)) {
        let _ = authority.store.delete_unit(owner, &made.id, &author, authority.now()).await?;
        return Err(Page::answered(StatusCode::CONFLICT));
    }
    tracing::info!(resource = %resource, unit = %made.id, "tool.governed");
    let base = authority.portal.as_ref().map_or("", |portal| portal.base.as_str());
    Ok((StatusCode::SEE_OTHER, [(LOCATION, format!("{base}/#things"))]).into_response())
}
