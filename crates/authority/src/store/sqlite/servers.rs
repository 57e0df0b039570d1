//! Resource servers and their protection API tokens.
//!
//! A revoked server is not made active again: it may wait again, and its tokens, the grants at it and what was under way
//! there end with it (FED-34, FED-37).

use super::column::{Id, Word, body, word};
use super::fault::Fault;
use super::record;
use super::rounds;
use super::setup::server;
use super::writer::{Outcome, Worked};
use rusqlite::{Connection, OptionalExtension as _, named_params};
use sayso_owner::ledger::{Author, Kind, Record};
use sayso_owner::negotiation::{Ending, State};
use sayso_owner::registry::{Pat, ResourceServer, Standing};
use sayso_owner::store::Digest;
use sayso_protocol::{ClientId, OwnerName, Timestamp};
use serde_json::json;

const COLUMNS: &str =
    "SELECT owner, client_id, name, resource_uri, status, auth_method, registered_at, pinned_key, introduced_by
                       FROM resource_servers";

/// Her resource servers.
pub(super) fn of_owner(db: &Connection, owner: &OwnerName) -> Result<Vec<ResourceServer>, Fault> {
    let mut statement = db.prepare_cached(&format!("{COLUMNS} WHERE owner = ?1 ORDER BY rowid"))?;
    let rows = statement.query_map([owner.as_str()], server)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// One resource server under every owner that knows it.
pub(super) fn of_client(db: &Connection, client_id: &ClientId) -> Result<Vec<ResourceServer>, Fault> {
    let mut statement = db.prepare_cached(&format!("{COLUMNS} WHERE client_id = ?1 ORDER BY rowid"))?;
    let rows = statement.query_map([client_id.as_str()], server)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Where it stands with her.
pub(super) fn standing(
    db: &Connection,
    owner: &OwnerName,
    client_id: &ClientId,
) -> Result<Option<Standing>, Fault> {
    let found = db
        .prepare_cached("SELECT status FROM resource_servers WHERE owner = ?1 AND client_id = ?2")?
        .query_row((owner.as_str(), client_id.as_str()), |row| row.get::<_, Word<_>>(0))
        .optional()?;
    Ok(found.map(|word| word.0))
}

/// Moves a server along pending → active → revoked or pending → revoked; false when there is no such move.
pub(super) fn place(
    db: &Connection,
    owner: &OwnerName,
    client_id: &ClientId,
    standing: Standing,
    author: &Author,
) -> Result<bool, Fault> {
    let moved = db
        .prepare_cached(
            "UPDATE resource_servers SET status = :to, author = :author, withdrawals = withdrawals + (:to = 'revoked')
             WHERE owner = :owner AND client_id = :client_id
               AND ((:to = 'active' AND status = 'pending')
                 OR (:to = 'revoked' AND status IN ('pending', 'active')))",
        )?
        .execute(named_params! {
            ":to": word(&standing)?,
            ":author": body(author)?,
            ":owner": owner.as_str(),
            ":client_id": client_id.as_str(),
        })?;
    Ok(moved == 1)
}

/// Her judgement, with its row; `None` when there is no such transition.
pub(super) fn judge(
    db: &Connection,
    owner: &OwnerName,
    client_id: &ClientId,
    standing: Standing,
    author: &Author,
    now: Timestamp,
) -> Worked<Option<()>> {
    if !place(db, owner, client_id, standing, author)? {
        return Ok(Outcome::Undone(None));
    }
    let mut entry = json!({ "resource_server": client_id });
    let kind = if standing == Standing::Revoked {
        let ended = end_artifacts(db, owner, client_id, now)?;
        if let Some(members) = entry.as_object_mut() {
            members.insert("rpts_deactivated".into(), json!(ended));
        }
        Kind::Revoked
    } else {
        Kind::Approved
    };
    let record = Record { kind, family: None, handle: None, author: author.clone(), entry };
    record::append(db, owner, &record, now)?;
    Ok(Outcome::Kept(Some(())))
}

/// Ends the PATs and the live grants at a server, and every negotiation that is still to end: an approval nobody claimed
/// must not become a grant when she lets the server in again. How many grants.
pub(super) fn end_artifacts(
    db: &Connection,
    owner: &OwnerName,
    client_id: &ClientId,
    now: Timestamp,
) -> Result<usize, Fault> {
    end_pats(db, owner, client_id)?;
    end_negotiations(db, owner, client_id)?;
    rounds::end_at(db, owner, client_id, None)?;
    let ended = db
        .prepare_cached(
            "UPDATE grants SET killed_at = ?3
             WHERE owner = ?1 AND client_id = ?2 AND exp > ?3 AND killed_at IS NULL AND consumed_at IS NULL",
        )?
        .execute((owner.as_str(), client_id.as_str(), now.0))?;
    Ok(ended)
}

/// Closes what is under way at a server. The tickets stay, so that whoever polls is told.
fn end_negotiations(db: &Connection, owner: &OwnerName, client_id: &ClientId) -> Result<(), Fault> {
    let closed = State::Closed { ending: Ending::Withdrawn };
    db.prepare_cached(
        "UPDATE negotiations SET status = ?3, state = ?4, deadline = NULL
         WHERE owner = ?1 AND client_id = ?2 AND status <> ?3",
    )?
    .execute((owner.as_str(), client_id.as_str(), closed.word(), body(&closed)?))?;
    Ok(())
}

/// Ends the PATs of a server.
pub(super) fn end_pats(db: &Connection, owner: &OwnerName, client_id: &ClientId) -> Result<(), Fault> {
    db.prepare_cached("DELETE FROM pats WHERE owner = ?1 AND client_id = ?2")?
        .execute((owner.as_str(), client_id.as_str()))?;
    Ok(())
}

/// Records a PAT. A server that is not active gets none: what is not here authenticates nobody.
pub(super) fn grant_pat(
    db: &Connection,
    pat: Digest,
    owner: &OwnerName,
    client_id: &ClientId,
    expires: Timestamp,
    epoch: i64,
) -> Worked<()> {
    db.prepare_cached(
        "INSERT INTO pats (digest, owner, client_id, expires, store_epoch)
         SELECT ?1, owner, client_id, ?4, ?5 FROM resource_servers
         WHERE owner = ?2 AND client_id = ?3 AND status = 'active'",
    )?
    .execute((pat.0, owner.as_str(), client_id.as_str(), expires.0, epoch))?;
    Ok(Outcome::Kept(()))
}

/// A PAT with where its server stands now.
pub(super) fn pat(db: &Connection, pat: Digest, now: Timestamp, epoch: i64) -> Result<Option<Pat>, Fault> {
    let found = db
        .prepare_cached(
            "SELECT p.owner, p.client_id, s.status FROM pats p
             JOIN resource_servers s ON s.owner = p.owner AND s.client_id = p.client_id
             WHERE p.digest = ?1 AND p.expires > ?2 AND p.store_epoch = ?3",
        )?
        .query_row((pat.0, now.0, epoch), |row| {
            Ok(Pat {
                owner: row.get::<_, Id<_>>(0)?.0,
                client_id: row.get::<_, Id<_>>(1)?.0,
                standing: row.get::<_, Word<_>>(2)?.0,
            })
        })
        .optional()?;
    Ok(found)
}
