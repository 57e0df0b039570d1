//! Resource servers that ask to act for her, and those she may withdraw: the origin first, since only that is proven
//! (D-22); what a server calls itself is its own word (D-28).
//!
//! A form is made for the server as it was shown: one that says something else since fits nothing.

use super::Shared;
use super::act::{Act, SignedIn};
use super::page::Page;
use crate::judged::judge;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::LOCATION;
use sayso_owner::registry::{ResourceServer, Standing};
use sayso_protocol::{ClientId, b64};

/// One that waits for her.
pub(super) struct Newcomer {
    pub(super) origin: String,
    pub(super) resource: String,
    pub(super) name: String,
    pub(super) since: String,
    pub(super) approve: Answer,
    pub(super) deny: Answer,
}

/// What a form of hers says of a server.
pub(super) struct Answer {
    /// Its client id in letters a form keeps as they are.
    pub(super) named: String,
    pub(super) token: String,
}

impl Answer {
    fn of(server: &ResourceServer, answer: &str, by: &SignedIn) -> Self {
        let named = b64::encode(server.client_id.as_str());
        let token = by.token(&act(&named, server, answer));
        Self { named, token }
    }

    /// For withdrawing one that is active.
    pub(super) fn withdrawing(server: &ResourceServer, by: &SignedIn) -> Option<Self> {
        (server.status == Standing::Active).then(|| Self::of(server, "revoked", by))
    }
}

/// What the form would do, as its token is made for.
fn act<'a>(named: &'a str, server: &'a ResourceServer, answer: &'a str) -> [&'a str; 5] {
    ["server", named, &server.resource_uri, &server.name, answer]
}

/// Those that wait, in the order in which they asked.
pub(super) fn waiting(servers: &[ResourceServer], by: &SignedIn) -> Vec<Newcomer> {
    let mut waiting: Vec<_> = servers.iter().filter(|one| one.status == Standing::Pending).collect();
    waiting.sort_by_key(|one| one.registered_at);
    let newcomer = |server: &&ResourceServer| Newcomer {
        origin: server.client_id.to_string(),
        resource: server.resource_uri.clone(),
        name: server.name.clone(),
        since: server.registered_at.utc(),
        approve: Answer::of(server, "approved", by),
        deny: Answer::of(server, "revoked", by),
    };
    waiting.iter().map(newcomer).collect()
}

/// Her answer to one.
pub(super) async fn decide(State(authority): Shared, act_of_hers: Act) -> Result<Response, Page> {
    let (named, answer) = (act_of_hers.member("server")?, act_of_hers.member("answer")?);
    let client_id = b64::decode(named).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let client_id = client_id.and_then(|id| ClientId::parse(id).ok()).ok_or_else(Page::unread)?;
    let (standing, back) = match answer {
        "approved" => (Standing::Active, "waiting"),
        "revoked" => (Standing::Revoked, "things"),
        _ => return Err(Page::unread()),
    };
    let session = &act_of_hers.by.session;
    let hers = authority.store.resource_servers(&session.owner).await?;
    let server = hers.into_iter().find(|server| server.client_id == client_id);
    let server = server.ok_or_else(|| Page::answered(StatusCode::NOT_FOUND))?;
    act_of_hers.prove(&act(named, &server, answer))?;
    let judged = judge(&authority, &session.owner, &client_id, standing, &session.author()).await?;
    judged.ok_or_else(|| Page::answered(StatusCode::CONFLICT))?;
    let base = authority.portal.as_ref().map_or("", |portal| portal.base.as_str());
    Ok((StatusCode::SEE_OTHER, [(LOCATION, format!("{base}/#{back}"))]).into_response())
}
