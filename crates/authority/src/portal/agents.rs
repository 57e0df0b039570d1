//! The agents she let in, and ending one: its grants, unclaimed approvals and questions end in the same step.

use super::Shared;
use super::act::{Act, SignedIn};
use super::page::Page;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::LOCATION;
use sayso_owner::connection::Connection;
use sayso_protocol::{Handle, b64};
use std::cmp::Reverse;

/// Agents shown on her page.
pub(super) const SHOWN: usize = 100;

/// One agent.
pub(super) struct Agent {
    pub(super) handle: String,
    pub(super) active: bool,
    pub(super) since: String,
    pub(super) last: String,
    pub(super) ended: i64,
    /// Its handle in letters a form keeps as they are.
    pub(super) named: String,
    /// For the form that ends it.
    pub(super) end: String,
}

/// Those that stand first, then by their last call.
pub(super) fn list(mut connections: Vec<Connection>, by: &SignedIn) -> Vec<Agent> {
    connections.sort_by_key(|one| Reverse((one.is_active(), one.last_access, one.first_seen)));
    connections.iter().take(SHOWN).map(|one| agent(one, by)).collect()
}

fn agent(connection: &Connection, by: &SignedIn) -> Agent {
    let named = b64::encode(connection.handle.as_str());
    Agent {
        handle: connection.handle.to_string(),
        active: connection.is_active(),
        since: connection.first_seen.utc(),
        last: connection.last_access.map_or_else(|| "never".into(), |at| at.utc()),
        ended: connection.revocations,
        end: by.token(&["end", &named]),
        named,
    }
}

/// Ends one.
pub(super) async fn end(State(authority): Shared, act: Act) -> Result<Response, Page> {
    let named = act.member("agent")?;
    act.prove(&["end", named])?;
    let handle = b64::decode(named).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let handle = handle.and_then(|handle| Handle::parse(handle).ok()).ok_or_else(Page::unread)?;
    let session = &act.by.session;
    let ended = authority.store.revoke(&session.owner, &handle, &session.author(), authority.now()).await?;
    let ended = ended.ok_or_else(|| Page::answered(StatusCode::NOT_FOUND))?;
    tracing::info!(rpts = ended.rpts_deactivated, "connection.revoked");
    let base = authority.portal.as_ref().map_or("", |portal| portal.base.as_str());
    Ok((StatusCode::SEE_OTHER, [(LOCATION, format!("{base}/#agents"))]).into_response())
}
