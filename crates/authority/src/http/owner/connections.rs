//! The agents she let in, and ending one: its grants, unclaimed approvals and questions end in the same step.
//!
//! A handle may hold a slash, so the body names it; the older form names it in the path (OWN-10, OWN-11).

use super::super::Shared;
use super::super::answer::{Detail, json};
use super::{Hers, named};
use crate::Authority;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use sayso_owner::connection::{Connection, Identity, Status};
use sayso_owner::ledger::{Kind, Row};
use sayso_owner::store::Unavailable;
use sayso_protocol::{Handle, OwnerName, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const UNKNOWN: &str = "you have no connection of that handle";
/// Rows read from her record at once.
const PAGE: i64 = 500;

#[derive(Serialize)]
struct Entry<'a> {
    handle: &'a Handle,
    identity: Identity,
    label: Option<&'a str>,
    status: Status,
    first_seen: Timestamp,
    last_access: Option<Timestamp>,
    approved_units: Vec<&'a str>,
    revocations: i64,
    introduced_by: Option<&'a Handle>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    handle: Handle,
}

pub(in super::super) async fn list(State(authority): Shared, hers: Hers) -> Result<Response, Detail> {
    let connections = authority.store.connections(&hers.owner).await?;
    let approved = approved_units(&authority, &hers.owner).await?;
    let entries: Vec<Entry<'_>> = connections.iter().map(|one| entry(one, &approved)).collect();
    Ok(json(StatusCode::OK, &entries))
}

pub(in super::super) async fn revoke(State(authority): Shared, hers: Hers) -> Result<Response, Detail> {
    let Named { handle } = hers.json()?;
    end(&authority, &hers, &handle).await
}

pub(in super::super) async fn revoke_named(
    State(authority): Shared,
    handle: Result<Path<String>, PathRejection>,
    hers: Hers,
) -> Result<Response, Detail> {
    let handle = named(handle, |name| Handle::parse(name).ok(), UNKNOWN)?;
    end(&authority, &hers, &handle).await
}

async fn end(authority: &Authority, hers: &Hers, handle: &Handle) -> Result<Response, Detail> {
    let ended = authority.store.revoke(&hers.owner, handle, &hers.author, authority.now()).await?;
    let ended = ended.ok_or_else(|| Detail::unknown(UNKNOWN))?;
    tracing::info!(rpts = ended.rpts_deactivated, "connection.revoked");
    Ok(json(StatusCode::OK, &ended))
}

type Approved = BTreeMap<Handle, BTreeSet<String>>;

fn entry<'a>(connection: &'a Connection, approved: &'a Approved) -> Entry<'a> {
    let units = approved.get(&connection.handle).into_iter().flatten();
    Entry {
        handle: &connection.handle,
        identity: connection.identity,
        label: None,
        status: connection.status,
        first_seen: connection.first_seen,
        last_access: connection.last_access,
        approved_units: units.map(String::as_str).collect(),
        revocations: connection.revocations,
        introduced_by: None,
    }
}

/// The units at which she approved each agent, as her record tells it.
async fn approved_units(authority: &Authority, owner: &OwnerName) -> Result<Approved, Unavailable> {
    let mut approved = Approved::new();
    let mut after = 0;
    loop {
        let rows = authority.store.ledger(owner, None, after, PAGE).await?;
        for row in rows.iter().filter(|row| row.record.kind == Kind::Approved) {
            if let (Some(handle), Some(unit)) = (&row.record.handle, unit_of(row)) {
                approved.entry(handle.clone()).or_default().insert(unit.to_owned());
            }
        }
        match rows.last() {
            Some(last) if rows.len() >= usize::try_from(PAGE).unwrap_or(usize::MAX) => after = last.seq,
            _ => return Ok(approved),
        }
    }
}

/// The unit of a row's terms: `…/{unit}/v{n}`.
fn unit_of(row: &Row) -> Option<&str> {
    row.record.entry.get("terms_uri")?.as_str()?.rsplit('/').nth(1)
}
