//! What she has, at which resource servers, and whether she trusts those (OWN-15..17).
//!
//! A withdrawn server stays withdrawn: approving it again needs a new registration (FED-36, FED-37).

use super::super::Shared;
use super::super::answer::{Detail, json};
use super::Hers;
use crate::judged::judge;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use sayso_owner::registry::{Registered, Standing};
use sayso_owner::unit::Unit;
use sayso_protocol::{ClientId, ResourceId, S256, UnitId};
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct Entry<'a> {
    #[serde(flatten)]
    registered: &'a Registered,
    unit_name: Option<&'a str>,
    ask_me: Option<bool>,
    registered_by: &'static str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    client_id: ClientId,
    resource_id: ResourceId,
    definition: S256,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Approved,
    Revoked,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    client_id: ClientId,
    decision: Verdict,
}

pub(in super::super) async fn list(State(authority): Shared, hers: Hers) -> Result<Response, Detail> {
    let registered = authority.store.resources(&hers.owner).await?;
    let units = authority.store.units(&hers.owner).await?;
    let entries: Vec<Entry<'_>> = registered
        .iter()
        .map(|registered| {
            let unit = unit_named(&units, registered.unit.as_ref());
            Entry {
                registered,
                unit_name: unit.map(|unit| unit.name.as_str()),
                ask_me: unit.map(|unit| unit.ask_me),
                registered_by: "pull",
            }
        })
        .collect();
    Ok(json(StatusCode::OK, &entries))
}

fn unit_named<'a>(units: &'a [Unit], id: Option<&UnitId>) -> Option<&'a Unit> {
    units.iter().find(|unit| Some(&unit.id) == id)
}

pub(in super::super) async fn servers(State(authority): Shared, hers: Hers) -> Result<Response, Detail> {
    let servers = authority.store.resource_servers(&hers.owner).await?;
    Ok(json(StatusCode::OK, &servers))
}

pub(in super::super) async fn decide(State(authority): Shared, hers: Hers) -> Result<Response, Detail> {
    let Decision { client_id, decision } = hers.json()?;
    let standing = match decision {
        Verdict::Approved => Standing::Active,
        Verdict::Revoked => Standing::Revoked,
    };
    let judged = judge(&authority, &hers.owner, &client_id, standing, &hers.author).await?;
    let unknown = "no such resource server waits for this decision";
    judged.ok_or_else(|| Detail::unknown(unknown))?;
    let body = serde_json::json!({ "client_id": client_id, "status": standing });
    Ok(json(StatusCode::OK, &body))
}

/// She has looked at what a changed tool is now (D-30).
pub(in super::super) async fn accept(State(authority): Shared, hers: Hers) -> Result<Response, Detail> {
    let Seen { client_id, resource_id, definition } = hers.json()?;
    let accepted = authority
        .store
        .accept(&hers.owner, &client_id, &resource_id, &definition, &hers.author, authority.now())
        .await?;
    accepted.ok_or_else(|| Detail::unknown("no governed tool changed to that definition"))?;
    tracing::info!(resource = %resource_id, "tool.accepted");
    Ok(json(StatusCode::OK, &serde_json::json!({ "resource_id": resource_id, "definition": definition })))
}
