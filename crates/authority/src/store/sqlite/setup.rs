//! Set-up: owners, their device keys, and resource servers the deployment vouches for.
//!
//! Everything here is said again at every start and takes effect once; what she withdrew, set-up does not restore.

use super::column::{Body, Id, Word, body, word};
use super::fault::Fault;
use super::record;
use super::servers;
use super::writer::{Outcome, Worked};
use rusqlite::{Connection, OptionalExtension as _, named_params};
use sayso_owner::ledger::{Author, Kind, Record};
use sayso_owner::registry::{IntroducedBy, Newcomer, ResourceServer, Standing};
use sayso_owner::store::DeviceKey;
use sayso_owner::unit::Owner;
use sayso_protocol::{ClientId, OwnerName, Thumbprint, Timestamp};
use serde_json::json;

/// Makes the owner known, once.
pub(super) fn settle_owner(db: &Connection, owner: &Owner) -> Worked<()> {
    db.prepare_cached("INSERT INTO owners (name, namespace) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING")?
        .execute((owner.name.as_str(), &owner.namespace))?;
    Ok(Outcome::Kept(()))
}

/// Every owner.
pub(super) fn owners(db: &Connection) -> Result<Vec<Owner>, Fault> {
    let mut statement = db.prepare_cached("SELECT name, namespace FROM owners ORDER BY rowid")?;
    let rows = statement
        .query_map([], |row| Ok(Owner { name: row.get::<_, Id<_>>(0)?.0, namespace: row.get(1)? }))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// One owner.
pub(super) fn owner(db: &Connection, name: &OwnerName) -> Result<Option<Owner>, Fault> {
    let namespace = db
        .prepare_cached("SELECT namespace FROM owners WHERE name = ?1")?
        .query_row([name.as_str()], |row| row.get(0))
        .optional()?;
    Ok(namespace.map(|namespace| Owner { name: name.clone(), namespace }))
}

/// Enrols a device key, once: a thumbprint belongs to the owner it was first enrolled for.
pub(super) fn enrol(db: &Connection, key: &DeviceKey, author: &Author, now: Timestamp) -> Worked<()> {
    db.prepare_cached(
        "INSERT INTO owner_keys (thumbprint, owner, jwk, label, author, enrolled)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (thumbprint) DO NOTHING",
    )?
    .execute((
        key.thumbprint.as_str(),
        key.owner.as_str(),
        body(&key.jwk)?,
        &key.label,
        body(author)?,
        now.0,
    ))?;
    Ok(Outcome::Kept(()))
}

/// The enrolled key of this thumbprint.
pub(super) fn device(db: &Connection, thumbprint: &Thumbprint) -> Result<Option<DeviceKey>, Fault> {
    let found = db
        .prepare_cached("SELECT owner, jwk, label FROM owner_keys WHERE thumbprint = ?1")?
        .query_row([thumbprint.as_str()], |row| {
            Ok(DeviceKey {
                owner: row.get::<_, Id<_>>(0)?.0,
                jwk: row.get::<_, Body<_>>(1)?.0,
                thumbprint: thumbprint.clone(),
                label: row.get(2)?,
            })
        })
        .optional()?;
    Ok(found)
}

/// Makes a resource server known, moves it, or leaves it as it is (D-22).
pub(super) fn settle_server(db: &Connection, server: &ResourceServer, now: Timestamp) -> Worked<()> {
    let owner = server.owner.as_ref().ok_or(Fault::Shape)?;
    settle(db, owner, server, now)?;
    Ok(Outcome::Kept(()))
}

/// The same for one that introduced itself and was expected. A stranger that waits at the address it moves to was a
/// question about that address, which is settled; it was never let in, so nothing is tied to it.
pub(super) fn admit(
    db: &Connection,
    owner: &OwnerName,
    newcomer: &Newcomer,
    now: Timestamp,
) -> Result<(), Fault> {
    let server = ResourceServer {
        owner: Some(owner.clone()),
        client_id: newcomer.client_id.clone(),
        name: newcomer.name.clone(),
        resource_uri: newcomer.resource_uri.clone(),
        status: Standing::Active,
        auth_method: "signature".into(),
        registered_at: now,
        pinned_key: Some(newcomer.key.clone()),
        introduced_by: IntroducedBy::Setup,
    };
    if known_by_key(db, owner, &server)?.is_some_and(|former| former != server.client_id) {
        db.prepare_cached(
            "DELETE FROM resource_servers WHERE owner = ?1 AND client_id = ?2 AND status = 'pending'
               AND withdrawals = 0 AND pinned_key IS NULL",
        )?
        .execute((owner.as_str(), server.client_id.as_str()))?;
    }
    settle(db, owner, &server, now)
}

fn settle(db: &Connection, owner: &OwnerName, server: &ResourceServer, now: Timestamp) -> Result<(), Fault> {
    if let Some(standing) = servers::standing(db, owner, &server.client_id)? {
        confirm(db, owner, server, standing, now)?;
    } else if let Some(former) = known_by_key(db, owner, server)? {
        relocate(db, owner, &former, server, now)?;
    } else {
        insert(db, owner, server)?;
        vouched(db, owner, server, now, &json!({ "resource_server": server.client_id }))?;
    }
    Ok(())
}

fn insert(db: &Connection, owner: &OwnerName, server: &ResourceServer) -> Result<(), Fault> {
    db.prepare_cached(
        "INSERT INTO resource_servers (owner, client_id, name, resource_uri, status, auth_method,
                                       registered_at, pinned_key, author, introduced_by)
         VALUES (:owner, :client_id, :name, :resource_uri, :status, :auth_method, :registered_at, :key, :author, :by)",
    )?
    .execute(named_params! {
        ":owner": owner.as_str(),
        ":client_id": server.client_id.as_str(),
        ":name": server.name,
        ":resource_uri": server.resource_uri,
        ":status": word(&Standing::Active)?,
        ":auth_method": server.auth_method,
        ":registered_at": server.registered_at.0,
        ":key": server.pinned_key.as_ref().map(Thumbprint::as_str),
        ":author": body(&Author::Setup)?,
        ":by": word(&IntroducedBy::Setup)?,
    })?;
    Ok(())
}

/// A known server: what the deployment says about it is taken over; a new key ends the PATs drawn under the old one.
/// One that waited for her is vouched for now; what she revoked is hers to bring back, also when it has asked again
/// (FED-37).
fn confirm(
    db: &Connection,
    owner: &OwnerName,
    server: &ResourceServer,
    standing: Standing,
    now: Timestamp,
) -> Result<(), Fault> {
    let key = server.pinned_key.as_ref().map(Thumbprint::as_str);
    let changed = db
        .prepare_cached(
            "UPDATE resource_servers SET pinned_key = ?3
             WHERE owner = ?1 AND client_id = ?2 AND pinned_key IS NOT ?3",
        )?
        .execute((owner.as_str(), server.client_id.as_str(), key))?;
    if changed == 1 {
        servers::end_pats(db, owner, &server.client_id)?;
    }
    db.prepare_cached(
        "UPDATE resource_servers SET name = ?3, resource_uri = ?4, introduced_by = ?5
         WHERE owner = ?1 AND client_id = ?2",
    )?
    .execute((
        owner.as_str(),
        server.client_id.as_str(),
        &server.name,
        &server.resource_uri,
        word(&IntroducedBy::Setup)?,
    ))?;
    if standing == Standing::Pending && !was_withdrawn(db, owner, &server.client_id)? {
        servers::place(db, owner, &server.client_id, Standing::Active, &Author::Setup)?;
        vouched(db, owner, server, now, &json!({ "resource_server": server.client_id }))?;
    }
    Ok(())
}

fn was_withdrawn(db: &Connection, owner: &OwnerName, client_id: &ClientId) -> Result<bool, Fault> {
    let withdrawn = db
        .prepare_cached("SELECT withdrawals > 0 FROM resource_servers WHERE owner = ?1 AND client_id = ?2")?
        .query_row((owner.as_str(), client_id.as_str()), |row| row.get(0))?;
    Ok(withdrawn)
}

fn known_by_key(
    db: &Connection,
    owner: &OwnerName,
    server: &ResourceServer,
) -> Result<Option<ClientId>, Fault> {
    let Some(key) = &server.pinned_key else { return Ok(None) };
    let found = db
        .prepare_cached(
            "SELECT client_id FROM resource_servers WHERE owner = ?1 AND pinned_key = ?2 LIMIT 1",
        )?
        .query_row((owner.as_str(), key.as_str()), |row| row.get::<_, Id<_>>(0))
        .optional()?;
    Ok(found.map(|id| id.0))
}

/// The same server at another address: resources, units, connections and record stay; what was addressed to the old
/// one ends.
fn relocate(
    db: &Connection,
    owner: &OwnerName,
    former: &ClientId,
    server: &ResourceServer,
    now: Timestamp,
) -> Result<(), Fault> {
    servers::end_artifacts(db, owner, former, now)?;
    db.prepare_cached(
        "UPDATE resource_servers SET client_id = ?3, name = ?4, resource_uri = ?5, introduced_by = 'setup'
         WHERE owner = ?1 AND client_id = ?2",
    )?
    .execute((
        owner.as_str(),
        former.as_str(),
        server.client_id.as_str(),
        &server.name,
        &server.resource_uri,
    ))?;
    vouched(db, owner, server, now, &json!({ "resource_server": server.client_id, "moved_from": former }))
}

fn vouched(
    db: &Connection,
    owner: &OwnerName,
    server: &ResourceServer,
    now: Timestamp,
    entry: &serde_json::Value,
) -> Result<(), Fault> {
    let mut entry = entry.clone();
    if let Some(members) = entry.as_object_mut() {
        members.insert("resource_uri".into(), json!(server.resource_uri));
    }
    let record = Record { kind: Kind::Approved, family: None, handle: None, author: Author::Setup, entry };
    record::append(db, owner, &record, now)
}

/// Reads one resource server from the columns of `servers::COLUMNS`.
pub(super) fn server(row: &rusqlite::Row<'_>) -> Result<ResourceServer, rusqlite::Error> {
    Ok(ResourceServer {
        owner: Some(row.get::<_, Id<_>>(0)?.0),
        client_id: row.get::<_, Id<_>>(1)?.0,
        name: row.get(2)?,
        resource_uri: row.get(3)?,
        status: row.get::<_, Word<_>>(4)?.0,
        auth_method: row.get(5)?,
        registered_at: Timestamp(row.get(6)?),
        pinned_key: row.get::<_, Option<String>>(7)?.map(Thumbprint::from_text),
        introduced_by: row.get::<_, Word<_>>(8)?.0,
    })
}
