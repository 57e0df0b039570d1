//! A tool that is not what she last saw is suspended until she has looked (D-30).
//!
//! Every member that differs is shown, then and now, in the server's words; the form says that she has seen exactly this
//! definition, and one made before another change fits nothing.

use super::Shared;
use super::act::{Act, SignedIn};
use super::page::Page;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::LOCATION;
use sayso_owner::registry::Registered;
use sayso_owner::unit::Unit;
use sayso_protocol::{ClientId, Json, ResourceId, S256, b64, canon};
use serde_json::Value;

/// What changed of one tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Change {
    pub(super) unit: String,
    /// Whether it is suspended; otherwise it says the same in other words.
    pub(super) suspended: bool,
    pub(super) members: Vec<Differs>,
    /// Server and resource in letters a form keeps as they are.
    pub(super) named: [String; 2],
    /// The digest of what the tool is now.
    pub(super) definition: String,
    pub(super) token: String,
}

/// A member, then and now, as canonical text; empty where there is none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Differs {
    pub(super) name: String,
    pub(super) then: String,
    pub(super) now: String,
}

impl Change {
    pub(super) fn of(registered: &Registered, unit: &Unit, by: &SignedIn) -> Self {
        let resource = &registered.resource;
        let named = [registered.client_id.as_str(), resource.id.as_str()].map(b64::encode);
        let definition = resource.definition.as_ref().map(ToString::to_string).unwrap_or_default();
        Self {
            unit: unit.name.clone(),
            suspended: registered.changed,
            members: differing(registered.accepted.as_ref(), resource.surface.as_ref()),
            token: by.token(&act(&named, &definition)),
            named,
            definition,
        }
    }
}

/// What the form would do, as its token is made for.
fn act<'a>([server, resource]: &'a [String; 2], definition: &'a str) -> [&'a str; 4] {
    ["seen", server, resource, definition]
}

pub(super) fn differing(then: Option<&Value>, now: Option<&Value>) -> Vec<Differs> {
    let members = |of: Option<&Value>| of.and_then(Value::as_object).cloned().unwrap_or_default();
    let (then, now) = (members(then), members(now));
    let mut names: Vec<&String> = then.keys().chain(now.keys()).collect();
    names.sort();
    names.dedup();
    let pairs = names.into_iter().map(|name| Differs {
        name: name.clone(),
        then: then.get(name).map(text).unwrap_or_default(),
        now: now.get(name).map(text).unwrap_or_default(),
    });
    pairs.filter(|member| member.then != member.now).collect()
}

pub(super) fn text(value: &Value) -> String {
    let bytes = canon::to_bytes(&Json::from(value.clone())).ok();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| value.to_string())
}

/// The server and resource that a form names.
pub(super) fn named_by([server, resource]: &[String; 2]) -> Result<(ClientId, ResourceId), Page> {
    let plain = |text: &String| b64::decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let server = plain(server).and_then(|id| ClientId::parse(id).ok()).ok_or_else(Page::unread)?;
    let resource = plain(resource).and_then(|id| ResourceId::parse(id).ok()).ok_or_else(Page::unread)?;
    Ok((server, resource))
}

/// She has seen what a tool is now.
pub(super) async fn accept(State(authority): Shared, by: Act) -> Result<Response, Page> {
    let named = [by.member("server")?.to_owned(), by.member("resource")?.to_owned()];
    let definition = by.member("definition")?;
    by.prove(&act(&named, definition))?;
    let (server, resource) = named_by(&named)?;
    let definition = definition.parse::<S256>().map_err(|_| Page::unread())?;
    let session = &by.by.session;
    let accepted = authority
        .store
        .accept(&session.owner, &server, &resource, &definition, &session.author(), authority.now())
        .await?;
    accepted.ok_or_else(|| Page::answered(StatusCode::CONFLICT))?;
    tracing::info!(resource = %resource, "tool.accepted");
    let base = authority.portal.as_ref().map_or("", |portal| portal.base.as_str());
    Ok((StatusCode::SEE_OTHER, [(LOCATION, format!("{base}/#things"))]).into_response())
}
