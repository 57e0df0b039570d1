//! What she has at each resource server, as that server publishes it.
//!
//! A pull replaces one owner's entries at one server and touches no other (FED-16); what is gone ends its grants in the
//! same step, and stays under its unit in case it comes back.

use super::column::{Body, Id, body};
use super::fault::Fault;
use super::record;
use super::rounds;
use super::writer::{Outcome, Worked};
use rusqlite::{Connection, OptionalExtension as _, Row};
use sayso_owner::ledger::{Author, Kind, Record};
use sayso_owner::registry::Registered;
use sayso_protocol::payload::metadata::OwnedResource;
use sayso_protocol::{ClientId, OwnerName, ResourceId, S256, Timestamp};
use serde_json::json;
use std::collections::BTreeSet;

const COLUMNS: &str = "SELECT r.client_id, r.body, g.unit, g.seen FROM resources r
    LEFT JOIN governed g ON g.owner = r.owner AND g.client_id = r.client_id AND g.resource = r.resource";

/// Replaces the entries of one owner at one server.
pub(super) fn pull(
    db: &Connection,
    owner: &OwnerName,
    client_id: &ClientId,
    listing: &[OwnedResource],
    now: Timestamp,
) -> Worked<()> {
    let listed: BTreeSet<&str> = listing.iter().map(|entry| entry.id.as_str()).collect();
    for gone in known(db, owner, client_id)?.iter().filter(|id| !listed.contains(id.as_str())) {
        remove(db, owner, client_id, gone, now)?;
    }
    for entry in listing {
        db.prepare_cached(
            "INSERT INTO resources (owner, client_id, resource, body, pulled) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET body = excluded.body, pulled = excluded.pulled",
        )?
        .execute((owner.as_str(), client_id.as_str(), entry.id.as_str(), body(entry)?, now.0))?;
    }
    Ok(Outcome::Kept(()))
}

fn known(db: &Connection, owner: &OwnerName, client_id: &ClientId) -> Result<Vec<String>, Fault> {
    let mut statement =
        db.prepare_cached("SELECT resource FROM resources WHERE owner = ?1 AND client_id = ?2")?;
    let rows = statement.query_map((owner.as_str(), client_id.as_str()), |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn remove(
    db: &Connection,
    owner: &OwnerName,
    client_id: &ClientId,
    resource: &str,
    now: Timestamp,
) -> Result<(), Fault> {
    db.prepare_cached("DELETE FROM resources WHERE owner = ?1 AND client_id = ?2 AND resource = ?3")?
        .execute((owner.as_str(), client_id.as_str(), resource))?;
    db.prepare_cached(
        "UPDATE grants SET killed_at = ?4 WHERE owner = ?1 AND client_id = ?2 AND resource = ?3
           AND exp > ?4 AND killed_at IS NULL AND consumed_at IS NULL",
    )?
    .execute((owner.as_str(), client_id.as_str(), resource, now.0))?;
    rounds::end_at(db, owner, client_id, Some(resource))
}

/// One entry, with the unit that governs it.
pub(super) fn registered(
    db: &Connection,
    owner: &OwnerName,
    client_id: &ClientId,
    resource: &ResourceId,
) -> Result<Option<Registered>, Fault> {
    let found = db
        .prepare_cached(&format!("{COLUMNS} WHERE r.owner = ?1 AND r.client_id = ?2 AND r.resource = ?3"))?
        .query_row((owner.as_str(), client_id.as_str(), resource.as_str()), entry)
        .optional()?;
    Ok(found)
}

/// Everything she has.
pub(super) fn resources(db: &Connection, owner: &OwnerName) -> Result<Vec<Registered>, Fault> {
    let mut statement =
        db.prepare_cached(&format!("{COLUMNS} WHERE r.owner = ?1 ORDER BY r.client_id, r.resource"))?;
    let rows = statement.query_map([owner.as_str()], entry)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn entry(row: &Row<'_>) -> Result<Registered, rusqlite::Error> {
    let resource: OwnedResource = row.get::<_, Body<_>>(1)?.0;
    let seen: Option<OwnedResource> = row.get::<_, Option<Body<_>>>(3)?.map(|body| body.0);
    let changed = seen.as_ref().is_some_and(|seen| seen.definition != resource.definition);
    Ok(Registered {
        client_id: row.get::<_, Id<_>>(0)?.0,
        unit: row.get::<_, Option<Id<_>>>(2)?.map(|id| id.0),
        accepted: seen.and_then(|seen| seen.surface).filter(|seen| Some(seen) != resource.surface.as_ref()),
        changed,
        resource,
    })
}

/// She has seen what a governed tool is now.
pub(super) fn accept(
    db: &Connection,
    owner: &OwnerName,
    client_id: &ClientId,
    resource: &ResourceId,
    definition: &S256,
    author: &Author,
    now: Timestamp,
) -> Worked<Option<()>> {
    let accepted = db
        .prepare_cached(
            "UPDATE governed SET seen = r.body FROM resources r
             WHERE governed.owner = ?1 AND governed.client_id = ?2 AND governed.resource = ?3
               AND r.owner = ?1 AND r.client_id = ?2 AND r.resource = ?3
               AND json_extract(r.body, '$.definition') = ?4
               AND governed.seen IS NOT r.body",
        )?
        .execute((owner.as_str(), client_id.as_str(), resource.as_str(), definition.as_str()))?;
    if accepted == 0 {
        return Ok(Outcome::Undone(None));
    }
    let entry = json!({ "resource_id": resource, "client_id": client_id, "definition": definition });
    let row = Record { kind: Kind::Approved, family: None, handle: None, author: author.clone(), entry };
    record::append(db, owner, &row, now)?;
    Ok(Outcome::Kept(Some(())))
}
