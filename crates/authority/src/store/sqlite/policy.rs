//! Units and their terms.
//!
//! Every saving publishes a version whose number was never used for that unit (O-37) and is never changed afterwards
//! (TERMS-12). A unit that cannot stand leaves nothing behind.

use super::column::{Body, Id, body};
use super::fault::Fault;
use super::record;
use super::rounds;
use super::setup;
use super::writer::{Outcome, Worked};
use rusqlite::{Connection, OptionalExtension as _};
use sayso_owner::ledger::{Author, Kind, Record};
use sayso_owner::store::{Edit, Saved, Unsaved};
use sayso_owner::unit::{Unfit, Unit};
use sayso_protocol::payload::terms::Terms;
use sayso_protocol::{ClientId, OwnerName, ResourceId, TemplateId, Timestamp, UnitId};
use serde_json::json;

/// Creates a unit over registered resources that no unit governs.
pub(super) fn create(
    db: &Connection,
    owner: &OwnerName,
    unit: &Unit,
    issuer: &str,
    author: &Author,
    now: Timestamp,
) -> Worked<Saved<Unit>> {
    if let Err(unfit) = unit.check() {
        return Ok(Outcome::Undone(Err(unfit.into())));
    }
    let unit = Unit { version: next_version(db, owner, &unit.id)?, ..unit.clone() };
    let inserted = db
        .prepare_cached("INSERT INTO units (owner, unit, body) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
        .execute((owner.as_str(), unit.id.as_str(), body(&unit)?))?;
    if inserted == 0 {
        return Ok(Outcome::Undone(Err(Unfit::Taken(unit.id).into())));
    }
    for resource in &unit.resources {
        if let Err(unfit) = govern(db, owner, &unit.id, resource)? {
            return Ok(Outcome::Undone(Err(unfit.into())));
        }
    }
    publish(db, owner, &unit, issuer, author, now)?;
    if unit.bind {
        note_bind(db, owner, &unit, author, now)?;
    }
    Ok(Outcome::Kept(Ok(unit)))
}

/// Her record says when she let tools ask what she will not see, and when she no longer did (D-11).
fn note_bind(
    db: &Connection,
    owner: &OwnerName,
    unit: &Unit,
    author: &Author,
    now: Timestamp,
) -> Result<(), Fault> {
    let kind = if unit.bind { Kind::Approved } else { Kind::Revoked };
    let entry = json!({ "unit": unit.id, "bind": unit.bind });
    record::append(
        db,
        owner,
        &Record { kind, family: None, handle: None, author: author.clone(), entry },
        now,
    )
}

/// Puts a resource under a unit, at every server of hers that publishes it now. One that publishes the same id later
/// is not governed by what she decided about this one.
fn govern(
    db: &Connection,
    owner: &OwnerName,
    unit: &UnitId,
    resource: &ResourceId,
) -> Result<Result<(), Unfit>, Fault> {
    let mut statement =
        db.prepare_cached("SELECT client_id FROM resources WHERE owner = ?1 AND resource = ?2")?;
    let servers = statement
        .query_map((owner.as_str(), resource.as_str()), |row| row.get::<_, Id<ClientId>>(0))?
        .collect::<Result<Vec<_>, _>>()?;
    if servers.is_empty() {
        return Ok(Err(Unfit::Unregistered(resource.clone())));
    }
    for server in servers {
        let inserted = db
            .prepare_cached(
                "INSERT INTO governed (owner, client_id, resource, unit, seen)
                 SELECT owner, client_id, resource, ?4, body FROM resources
                 WHERE owner = ?1 AND client_id = ?2 AND resource = ?3 ON CONFLICT DO NOTHING",
            )?
            .execute((owner.as_str(), server.0.as_str(), resource.as_str(), unit.as_str()))?;
        if inserted == 0 {
            let governing = db
                .prepare_cached(
                    "SELECT unit FROM governed WHERE owner = ?1 AND client_id = ?2 AND resource = ?3",
                )?
                .query_row((owner.as_str(), server.0.as_str(), resource.as_str()), |row| {
                    row.get::<_, Id<UnitId>>(0)
                })?;
            return Ok(Err(Unfit::Governed(resource.clone(), governing.0)));
        }
    }
    Ok(Ok(()))
}

fn next_version(db: &Connection, owner: &OwnerName, unit: &UnitId) -> Result<i64, Fault> {
    let next = db
        .prepare_cached("SELECT COALESCE(MAX(version), 0) + 1 FROM terms WHERE owner = ?1 AND unit = ?2")?
        .query_row((owner.as_str(), unit.as_str()), |row| row.get(0))?;
    Ok(next)
}

fn publish(
    db: &Connection,
    owner: &OwnerName,
    unit: &Unit,
    issuer: &str,
    author: &Author,
    now: Timestamp,
) -> Result<(), Fault> {
    let owner = setup::owner(db, owner)?.ok_or(Fault::Shape)?;
    let terms = unit.published(&owner.namespace, issuer).map_err(|_| Fault::Shape)?;
    db.prepare_cached(
        "INSERT INTO terms (template_id, owner, unit, version, body, author, published)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute((
        terms.template_id.as_str(),
        owner.name.as_str(),
        unit.id.as_str(),
        unit.version,
        body(&terms)?,
        body(author)?,
        now.0,
    ))?;
    Ok(())
}

/// One unit.
pub(super) fn unit(db: &Connection, owner: &OwnerName, unit: &UnitId) -> Result<Option<Unit>, Fault> {
    let found = db
        .prepare_cached("SELECT body FROM units WHERE owner = ?1 AND unit = ?2")?
        .query_row((owner.as_str(), unit.as_str()), |row| row.get::<_, Body<_>>(0))
        .optional()?;
    Ok(found.map(|body| body.0))
}

/// Edits a unit: its next version.
pub(super) fn edit(
    db: &Connection,
    owner: &OwnerName,
    id: &UnitId,
    edit: &Edit,
    issuer: &str,
    author: &Author,
    now: Timestamp,
) -> Worked<Saved<Unit>> {
    let Some(mut unit) = unit(db, owner, id)? else {
        return Ok(Outcome::Undone(Err(Unsaved::Unknown)));
    };
    unit.ask_me = edit.ask_me.unwrap_or(unit.ask_me);
    let bound = unit.bind;
    unit.bind = edit.bind.unwrap_or(bound);
    edit.terms.apply(&mut unit.terms);
    if let Err(unfit) = unit.check() {
        return Ok(Outcome::Undone(Err(unfit.into())));
    }
    unit.version = next_version(db, owner, id)?;
    db.prepare_cached("UPDATE units SET body = ?3 WHERE owner = ?1 AND unit = ?2")?.execute((
        owner.as_str(),
        id.as_str(),
        body(&unit)?,
    ))?;
    publish(db, owner, &unit, issuer, author, now)?;
    if unit.bind != bound {
        rounds::end_of_unit(db, owner, id)?;
        note_bind(db, owner, &unit, author, now)?;
    }
    Ok(Outcome::Kept(Ok(unit)))
}

/// Deletes a unit and ends its live grants in the same step (D-18).
pub(super) fn delete(
    db: &Connection,
    owner: &OwnerName,
    id: &UnitId,
    author: &Author,
    now: Timestamp,
) -> Worked<Saved<Vec<ResourceId>>> {
    let Some(unit) = unit(db, owner, id)? else {
        return Ok(Outcome::Undone(Err(Unsaved::Unknown)));
    };
    let key = (owner.as_str(), id.as_str());
    db.prepare_cached("DELETE FROM governed WHERE owner = ?1 AND unit = ?2")?.execute(key)?;
    db.prepare_cached("DELETE FROM units WHERE owner = ?1 AND unit = ?2")?.execute(key)?;
    let ended = db
        .prepare_cached(
            "UPDATE grants SET killed_at = ?3
             WHERE owner = ?1 AND unit = ?2 AND exp > ?3 AND killed_at IS NULL AND consumed_at IS NULL",
        )?
        .execute((owner.as_str(), id.as_str(), now.0))?;
    rounds::end_of_unit(db, owner, id)?;
    let entry = json!({ "unit": id, "resources": unit.resources, "rpts_deactivated": ended });
    let record = Record { kind: Kind::Revoked, family: None, handle: None, author: author.clone(), entry };
    record::append(db, owner, &record, now)?;
    Ok(Outcome::Kept(Ok(unit.resources)))
}

/// Her units, oldest first.
pub(super) fn units(db: &Connection, owner: &OwnerName) -> Result<Vec<Unit>, Fault> {
    let mut statement = db.prepare_cached("SELECT body FROM units WHERE owner = ?1 ORDER BY rowid")?;
    let rows = statement.query_map([owner.as_str()], |row| Ok(row.get::<_, Body<_>>(0)?.0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A published version.
pub(super) fn terms(db: &Connection, template: &TemplateId) -> Result<Option<Terms>, Fault> {
    let found = db
        .prepare_cached("SELECT body FROM terms WHERE template_id = ?1")?
        .query_row([template.as_str()], |row| row.get::<_, Body<_>>(0))
        .optional()?;
    Ok(found.map(|body| body.0))
}

/// The newest version of every unit there is.
pub(super) fn roster(db: &Connection) -> Result<Vec<TemplateId>, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT t.template_id FROM units u JOIN terms t ON t.owner = u.owner AND t.unit = u.unit
           AND t.version = (SELECT MAX(version) FROM terms WHERE owner = u.owner AND unit = u.unit)
         ORDER BY u.rowid",
    )?;
    let rows = statement.query_map([], |row| Ok(row.get::<_, Id<_>>(0)?.0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
