//! Set-up's word for a server that is about to introduce itself.
//!
//! It names one key, one origin and one resource, is good once and for a while, and admits nobody: only the signed
//! introduction it waits for does (D-22).

use super::column::Word;
use super::fault::Fault;
use super::servers;
use super::writer::{Outcome, Worked};
use rusqlite::{Connection, OptionalExtension as _, named_params};
use sayso_owner::registry::{Newcomer, PRE_APPROVAL_LIFE, PreApproval, Standing};
use sayso_protocol::{OwnerName, Thumbprint, Timestamp};

/// Notes it, in the place of what was said before about this key or this origin; where that server stands now.
pub(super) fn note(
    db: &Connection,
    owner: &OwnerName,
    approval: &PreApproval,
    now: Timestamp,
) -> Worked<Option<Standing>> {
    let (client_id, key) = (approval.client_id.as_str(), approval.key.as_str());
    db.prepare_cached(
        "DELETE FROM pre_approvals WHERE expires <= ?4 OR owner = ?1 AND (client_id = ?2 OR key = ?3)",
    )?
    .execute((owner.as_str(), client_id, key, now.0))?;
    db.prepare_cached(
        "INSERT INTO pre_approvals (owner, client_id, resource_uri, key, expires)
         VALUES (:owner, :client_id, :resource_uri, :key, :expires)",
    )?
    .execute(named_params! {
        ":owner": owner.as_str(),
        ":client_id": client_id,
        ":resource_uri": approval.resource_uri,
        ":key": key,
        ":expires": now.plus(PRE_APPROVAL_LIFE).0,
    })?;
    let here = servers::standing(db, owner, &approval.client_id)?;
    Ok(Outcome::Kept(if here.is_some() { here } else { of_key(db, owner, &approval.key)? }))
}

fn of_key(db: &Connection, owner: &OwnerName, key: &Thumbprint) -> Result<Option<Standing>, Fault> {
    let found = db
        .prepare_cached("SELECT status FROM resource_servers WHERE owner = ?1 AND pinned_key = ?2 LIMIT 1")?
        .query_row((owner.as_str(), key.as_str()), |row| row.get::<_, Word<_>>(0))
        .optional()?;
    Ok(found.map(|word| word.0))
}

/// Whether this introduction is the one set-up spoke of; it is so once.
pub(super) fn spend(
    db: &Connection,
    owner: &OwnerName,
    newcomer: &Newcomer,
    now: Timestamp,
) -> Result<bool, Fault> {
    let spent = db
        .prepare_cached(
            "DELETE FROM pre_approvals
             WHERE owner = ?1 AND client_id = ?2 AND resource_uri = ?3 AND key = ?4 AND expires > ?5",
        )?
        .execute((
            owner.as_str(),
            newcomer.client_id.as_str(),
            &newcomer.resource_uri,
            newcomer.key.as_str(),
            now.0,
        ))?;
    Ok(spent == 1)
}

/// Whether the operator named a resource: its introduction is expected, or set-up answers for its server.
pub(super) fn is_for(db: &Connection, resource_uri: &str, now: Timestamp) -> Result<bool, Fault> {
    let named = db
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM pre_approvals WHERE resource_uri = ?1 AND expires > ?2)
                 OR EXISTS (SELECT 1 FROM resource_servers WHERE resource_uri = ?1 AND introduced_by = 'setup')",
        )?
        .query_row((resource_uri, now.0), |row| row.get(0))?;
    Ok(named)
}
