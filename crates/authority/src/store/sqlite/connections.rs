//! Connections, and their endings.
//!
//! Ending one bumps its epoch, which is what kills its grants: there is no second write that could be missing
//! (CORE-103). Re-admission keeps the epoch and revives nothing (CORE-105).

use super::column::{Id, Word, body, word};
use super::fault::Fault;
use super::negotiations::answer;
use super::record;
use super::writer::{Outcome, Worked};
use rusqlite::{Connection as Db, OptionalExtension as _, Row, named_params};
use sayso_owner::connection::{Connection, Ended, Relinked};
use sayso_owner::ledger::{Author, Kind, Record};
use sayso_owner::negotiation::{Ending, State};
use sayso_protocol::{Handle, NegotiationId, OwnerName, Timestamp};
use serde_json::json;

/// What `read` reads, in its order, of a table called `c`.
pub(super) const COLUMNS: &str =
    "c.handle, c.identity, c.status, c.epoch, c.first_seen, c.last_access, c.revocations";

/// Reads a connection from `COLUMNS`, which start at `at`; `None` where the join found none.
pub(super) fn read(row: &Row<'_>, at: usize) -> Result<Option<Connection>, rusqlite::Error> {
    let Some(handle) = row.get::<_, Option<Id<Handle>>>(at)? else { return Ok(None) };
    Ok(Some(Connection {
        handle: handle.0,
        identity: row.get::<_, Word<_>>(at + 1)?.0,
        status: row.get::<_, Word<_>>(at + 2)?.0,
        epoch: row.get(at + 3)?,
        first_seen: Timestamp(row.get(at + 4)?),
        last_access: row.get::<_, Option<i64>>(at + 5)?.map(Timestamp),
        revocations: row.get(at + 6)?,
    }))
}

/// One connection.
pub(super) fn connection(db: &Db, owner: &OwnerName, handle: &Handle) -> Result<Option<Connection>, Fault> {
    let found = db
        .prepare_cached(&format!("SELECT {COLUMNS} FROM connections c WHERE c.owner = ?1 AND c.handle = ?2"))?
        .query_row((owner.as_str(), handle.as_str()), |row| read(row, 0))
        .optional()?;
    Ok(found.flatten())
}

/// Her connections, oldest first.
pub(super) fn connections(db: &Db, owner: &OwnerName) -> Result<Vec<Connection>, Fault> {
    let mut statement = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM connections c WHERE c.owner = ?1 ORDER BY c.rowid"
    ))?;
    let rows = statement.query_map([owner.as_str()], |row| read(row, 0))?;
    let read: Result<Vec<Option<Connection>>, _> = rows.collect();
    Ok(read?.into_iter().flatten().collect())
}

/// Admits an agent, for the first time or again.
pub(super) fn admit(db: &Db, owner: &OwnerName, admitted: &Connection, author: &Author) -> Result<(), Fault> {
    db.prepare_cached(
        "INSERT INTO connections (owner, handle, identity, status, epoch, first_seen, revocations, author)
         VALUES (:owner, :handle, :identity, :status, :epoch, :first_seen, :revocations, :author)
         ON CONFLICT (owner, handle) DO UPDATE SET status = excluded.status, author = excluded.author",
    )?
    .execute(named_params! {
        ":owner": owner.as_str(),
        ":handle": admitted.handle.as_str(),
        ":identity": word(&admitted.identity)?,
        ":status": word(&admitted.status)?,
        ":epoch": admitted.epoch,
        ":first_seen": admitted.first_seen.0,
        ":revocations": admitted.revocations,
        ":author": body(author)?,
    })?;
    Ok(())
}

/// Notes a protected call.
pub(super) fn accessed(db: &Db, owner: &OwnerName, handle: &Handle, now: Timestamp) -> Result<(), Fault> {
    db.prepare_cached("UPDATE connections SET last_access = ?3 WHERE owner = ?1 AND handle = ?2")?
        .execute((owner.as_str(), handle.as_str(), now.0))?;
    Ok(())
}

/// Ends a connection. One that has ended already is not ended again: nothing changes and the counts are zero.
pub(super) fn revoke(
    db: &Db,
    owner: &OwnerName,
    handle: &Handle,
    author: &Author,
    now: Timestamp,
) -> Worked<Option<Ended>> {
    match end(db, owner, handle, author, None, now)? {
        Some(ended) => Ok(Outcome::Kept(Some(ended))),
        None => {
            let known = connection(db, owner, handle)?;
            Ok(Outcome::Undone(known.map(|_| Ended { rpts_deactivated: 0, connections_revoked: 0 })))
        }
    }
}

/// Puts the agent of one key in the place of another's, which ends. The new connection has no grants yet and starts an
/// epoch of its own; how long and how well the agent is known goes with it (CORE-104).
pub(super) fn relink(
    db: &Db,
    owner: &OwnerName,
    (from, to): (&Handle, &Handle),
    author: &Author,
    now: Timestamp,
) -> Worked<Relinked> {
    let Some(old) = connection(db, owner, from)? else { return Ok(Outcome::Undone(Relinked::Unknown)) };
    if connection(db, owner, to)?.is_some() {
        return Ok(Outcome::Undone(Relinked::Taken));
    }
    let Some(ended) = end(db, owner, from, author, Some(to), now)? else {
        return Ok(Outcome::Undone(Relinked::Over));
    };
    let new = Connection { handle: to.clone(), epoch: 0, last_access: None, ..old };
    admit(db, owner, &new, author)?;
    let entry = json!({ "relinked_from": from });
    let record = Record {
        kind: Kind::Connected,
        family: None,
        handle: Some(to.clone()),
        author: author.clone(),
        entry,
    };
    record::append(db, owner, &record, now)?;
    Ok(Outcome::Kept(Relinked::Done(ended)))
}

/// Ends a connection with everything that lives by it; none where there is none that stands.
fn end(
    db: &Db,
    owner: &OwnerName,
    handle: &Handle,
    author: &Author,
    successor: Option<&Handle>,
    now: Timestamp,
) -> Result<Option<Ended>, Fault> {
    let former: Option<i64> = db
        .prepare_cached(
            "UPDATE connections SET status = 'revoked', epoch = epoch + 1, revocations = revocations + 1,
               author = ?3 WHERE owner = ?1 AND handle = ?2 AND status = 'active' RETURNING epoch - 1",
        )?
        .query_row((owner.as_str(), handle.as_str(), body(author)?), |row| row.get(0))
        .optional()?;
    let Some(former) = former else { return Ok(None) };
    let ended = Ended { rpts_deactivated: live(db, owner, handle, former, now)?, connections_revoked: 1 };
    let closed = close(db, owner, handle)?;
    let mut entry = json!({
        "rpts_deactivated": ended.rpts_deactivated,
        "connections_revoked": ended.connections_revoked,
        "requests_closed": closed,
    });
    if let (Some(successor), Some(entry)) = (successor, entry.as_object_mut()) {
        entry.insert("relinked_to".into(), json!(successor));
    }
    let record = Record {
        kind: Kind::Revoked,
        family: None,
        handle: Some(handle.clone()),
        author: author.clone(),
        entry,
    };
    record::append(db, owner, &record, now)?;
    Ok(Some(ended))
}

/// Grants that lived under this epoch until now.
fn live(db: &Db, owner: &OwnerName, handle: &Handle, epoch: i64, now: Timestamp) -> Result<i64, Fault> {
    let live = db
        .prepare_cached(
            "SELECT count(*) FROM grants WHERE owner = ?1 AND handle = ?2 AND exp > ?4 AND epoch = ?3
               AND killed_at IS NULL AND consumed_at IS NULL",
        )?
        .query_row((owner.as_str(), handle.as_str(), epoch, now.0), |row| row.get(0))?;
    Ok(live)
}

/// Closes what the agent waits for and what it has not claimed; how many.
fn close(db: &Db, owner: &OwnerName, handle: &Handle) -> Result<usize, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT family, status FROM negotiations
         WHERE owner = ?1 AND handle = ?2 AND status IN ('awaiting_owner', 'approved')",
    )?;
    let open = statement
        .query_map((owner.as_str(), handle.as_str()), |row| {
            Ok((row.get::<_, Id<NegotiationId>>(0)?.0, row.get::<_, String>(1)?))
        })?
        .collect::<Result<Vec<_>, _>>()?;
    for (family, status) in &open {
        answer(db, family, status, &State::Closed { ending: Ending::Revoked })?;
    }
    Ok(open.len())
}
