//! Her record: rows appended inside the transaction that decided what they tell, gap-free per owner.

use super::column::{Body, Id, Word, body, word};
use super::fault::Fault;
use rusqlite::{Connection, Row as SqlRow, named_params};
use sayso_owner::ledger::{Record, Row};
use sayso_protocol::{Handle, OwnerName, Timestamp};

/// Appends a row.
pub(super) fn append(
    db: &Connection,
    owner: &OwnerName,
    record: &Record,
    now: Timestamp,
) -> Result<(), Fault> {
    db.prepare_cached(
        "INSERT INTO ledger (owner, seq, ts, kind, family, handle, author, entry)
         SELECT :owner, COALESCE(MAX(seq), 0) + 1, :ts, :kind, :family, :handle, :author, :entry
         FROM ledger WHERE owner = :owner",
    )?
    .execute(named_params! {
        ":owner": owner.as_str(),
        ":ts": now.0,
        ":kind": word(&record.kind)?,
        ":family": record.family.as_ref().map(AsRef::<str>::as_ref),
        ":handle": record.handle.as_ref().map(AsRef::<str>::as_ref),
        ":author": body(&record.author)?,
        ":entry": body(&record.entry)?,
    })?;
    Ok(())
}

/// Rows after `after`, oldest first.
pub(super) fn page(
    db: &Connection,
    owner: &OwnerName,
    handle: Option<&Handle>,
    after: i64,
    limit: i64,
) -> Result<Vec<Row>, Fault> {
    const COLUMNS: &str = "SELECT seq, ts, kind, family, handle, author, entry FROM ledger";
    let limit = limit.max(0);
    let rows = match handle {
        None => db
            .prepare_cached(&format!("{COLUMNS} WHERE owner = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"))?
            .query_map((owner.as_str(), after, limit), row)?
            .collect::<Result<_, _>>(),
        Some(handle) => db
            .prepare_cached(&format!(
                "{COLUMNS} WHERE owner = ?1 AND seq > ?2 AND handle = ?4 ORDER BY seq LIMIT ?3"
            ))?
            .query_map((owner.as_str(), after, limit, handle.as_str()), row)?
            .collect::<Result<_, _>>(),
    };
    Ok(rows?)
}

fn row(row: &SqlRow<'_>) -> Result<Row, rusqlite::Error> {
    Ok(Row {
        seq: row.get(0)?,
        ts: Timestamp(row.get(1)?),
        record: Record {
            kind: row.get::<_, Word<_>>(2)?.0,
            family: row.get::<_, Option<Id<_>>>(3)?.map(|id| id.0),
            handle: row.get::<_, Option<Id<_>>>(4)?.map(|id| id.0),
            author: row.get::<_, Body<_>>(5)?.0,
            entry: row.get::<_, Body<_>>(6)?.0,
        },
    })
}

/// The place of her last row.
pub(super) fn last(db: &Connection, owner: &OwnerName) -> Result<i64, Fault> {
    let last = db
        .prepare_cached("SELECT COALESCE(MAX(seq), 0) FROM ledger WHERE owner = ?1")?
        .query_row([owner.as_str()], |row| row.get(0))?;
    Ok(last)
}
