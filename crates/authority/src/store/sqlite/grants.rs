//! Grants: issued, found, spent, reported.
//!
//! A grant lives while its connection is active under the epoch it was issued in, it is neither killed nor spent, and
//! its time runs (D-20, D-21). Spending is one conditional update; finding writes nothing (FED-43).

use super::column::{Body, Id, Word, body};
use super::connections;
use super::fault::Fault;
use super::record;
use super::writer::{Outcome, Worked};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params};
use sayso_owner::connection::Status;
use sayso_owner::issue::Grant;
use sayso_owner::ledger::{Author, Kind, Record};
use sayso_owner::store::{Digest, Found};
use sayso_protocol::payload::protection::{AccessReport, ConsumeReply, Inactive, LiveGrant, NOT_SINGLE_USE};
use sayso_protocol::payload::rpt::{Rpt, SCHEME};
use sayso_protocol::{ClientId, Handle, NegotiationId, OwnerName, ResourceId, Timestamp};
use serde_json::json;

/// Records a grant and its receipt.
pub(super) fn insert(db: &Connection, grant: &Grant, epoch: i64) -> Result<(), Fault> {
    let permission = grant.rpt.permissions.first().ok_or(Fault::Shape)?;
    db.prepare_cached(
        "INSERT INTO grants (token_sha256, owner, client_id, family, unit, resource, handle, epoch, kid,
                             issued, exp, single_use, claims, likeness, approved_at, bind, store_epoch)
         VALUES (:token, :owner, :client_id, :family, :unit, :resource, :handle, :epoch, :kid,
                 :issued, :exp, :single_use, :claims, :likeness, :approved, :bind, :store_epoch)",
    )?
    .execute(named_params! {
        ":token": grant.token_sha256,
        ":owner": grant.rpt.owner.as_str(),
        ":client_id": grant.rpt.aud.as_str(),
        ":family": grant.family.as_str(),
        ":unit": grant.unit.as_str(),
        ":resource": permission.resource_id.as_str(),
        ":handle": grant.handle.as_str(),
        ":epoch": grant.epoch,
        ":kid": grant.kid,
        ":issued": grant.rpt.iat.0,
        ":exp": grant.rpt.exp.0,
        ":single_use": grant.rpt.single_use,
        ":claims": body(&grant.rpt)?,
        ":likeness": grant.likeness.as_str(),
        ":approved": grant.approved.map(|at| at.0),
        ":bind": grant.bind,
        ":store_epoch": epoch,
    })?;
    db.prepare_cached(
        "INSERT INTO receipts (family, owner, handle, issued, receipt) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute((
        grant.family.as_str(),
        grant.rpt.owner.as_str(),
        grant.handle.as_str(),
        grant.rpt.iat.0,
        &grant.receipt,
    ))?;
    Ok(())
}

/// A grant as it stands, read in one statement.
pub(super) struct Standing {
    pub(super) rpt: Rpt,
    family: NegotiationId,
    bind: bool,
    pub(super) dead: Option<Inactive>,
    attempt: Option<String>,
    unheard: bool,
}

impl Standing {
    /// The grant as an enforcement point may know it: the handle stays here (FED-49).
    pub(super) fn described(self) -> LiveGrant {
        let Standing { rpt, family, bind, .. } = self;
        LiveGrant {
            iss: rpt.iss,
            aud: rpt.aud,
            owner: rpt.owner,
            iat: rpt.iat,
            exp: rpt.exp,
            token_type: SCHEME.into(),
            cnf: rpt.cnf,
            permissions: rpt.permissions,
            contract: rpt.contract,
            family,
            sub: None,
            client_id: None,
            consequence: rpt.consequence,
            single_use: rpt.single_use,
            operation: rpt.operation,
            bind,
            continuation: None,
        }
    }
}

/// Why a grant is not live, in the precedence of D-20.
fn dead(row: &Row<'_>, now: Timestamp, epoch: i64) -> Result<Option<Inactive>, rusqlite::Error> {
    let connection: Status = row.get::<_, Word<_>>(2)?.0;
    let (granted, standing): (i64, i64) = (row.get(3)?, row.get(4)?);
    let (killed, consumed): (Option<i64>, Option<i64>) = (row.get(5)?, row.get(6)?);
    let (exp, written): (i64, i64) = (row.get(7)?, row.get(8)?);
    let trusted: bool = row.get(11)?;
    Ok(if connection != Status::Active {
        Some(Inactive::ConnectionRevoked)
    } else if granted != standing || killed.is_some() || written != epoch || !trusted {
        Some(Inactive::Revoked)
    } else if consumed.is_some() {
        Some(Inactive::AlreadyConsumed)
    } else if exp <= now.0 {
        Some(Inactive::Expired)
    } else {
        None
    })
}

pub(super) fn standing(
    db: &Connection,
    owner: &OwnerName,
    client_id: &ClientId,
    token: Digest,
    now: Timestamp,
    epoch: i64,
) -> Result<Option<Standing>, Fault> {
    let found = db
        .prepare_cached(
            "SELECT g.claims, g.family, c.status, g.epoch, c.epoch, g.killed_at, g.consumed_at, g.exp,
                    g.store_epoch, g.consume_attempt,
                    g.approved_at IS NOT NULL AND g.introspected_at IS NULL,
                    EXISTS (SELECT 1 FROM resource_servers s
                            WHERE s.owner = g.owner AND s.client_id = g.client_id AND s.status = 'active'),
                    g.bind
             FROM grants g JOIN connections c ON c.owner = g.owner AND c.handle = g.handle
             WHERE g.token_sha256 = ?1 AND g.owner = ?2 AND g.client_id = ?3",
        )?
        .query_row((token.0, owner.as_str(), client_id.as_str()), |row| {
            Ok(Standing {
                rpt: row.get::<_, Body<_>>(0)?.0,
                family: row.get::<_, Id<_>>(1)?.0,
                dead: dead(row, now, epoch)?,
                attempt: row.get(9)?,
                unheard: row.get(10)?,
                bind: row.get(12)?,
            })
        })
        .optional()?;
    Ok(found)
}

/// Finds a grant by its token's digest; says too whether it is one she approved that nobody asked about before.
pub(super) fn introspect(
    db: &Connection,
    owner: &OwnerName,
    client_id: &ClientId,
    token: Digest,
    now: Timestamp,
    epoch: i64,
) -> Result<(Found, bool), Fault> {
    Ok(match standing(db, owner, client_id, token, now, epoch)? {
        None => (Found::Unknown, false),
        Some(Standing { dead: Some(reason), .. }) => (Found::Dead(reason), false),
        Some(live) => {
            let unheard = live.unheard;
            let handle = live.rpt.sub.clone();
            (Found::Live(Box::new(live.described()), handle), unheard)
        }
    })
}

/// Notes that an enforcement point was told of a grant: from now on its agent has it.
pub(super) fn hear(db: &Connection, token: Digest, now: Timestamp) -> Worked<()> {
    db.prepare_cached(
        "UPDATE grants SET introspected_at = ?2 WHERE token_sha256 = ?1 AND introspected_at IS NULL",
    )?
    .execute((token.0, now.0))?;
    Ok(Outcome::Kept(()))
}

/// Spends a single-use grant, with its row.
pub(super) fn consume(
    db: &Connection,
    owner: &OwnerName,
    client_id: &ClientId,
    token: Digest,
    attempt: &str,
    now: Timestamp,
    epoch: i64,
) -> Worked<ConsumeReply> {
    let spent = db
        .prepare_cached(
            "UPDATE grants SET consumed_at = :now, consume_attempt = :attempt
             WHERE token_sha256 = :token AND owner = :owner AND client_id = :client_id AND single_use = 1
               AND consumed_at IS NULL AND killed_at IS NULL AND exp > :now AND store_epoch = :epoch
               AND EXISTS (SELECT 1 FROM connections c WHERE c.owner = grants.owner
                           AND c.handle = grants.handle AND c.status = 'active' AND c.epoch = grants.epoch)
             RETURNING family, handle, resource, claims",
        )?
        .query_row(
            named_params! {
                ":now": now.0,
                ":attempt": attempt,
                ":token": token.0,
                ":owner": owner.as_str(),
                ":client_id": client_id.as_str(),
                ":epoch": epoch,
            },
            |row| {
                Ok((
                    row.get::<_, Id<NegotiationId>>(0)?.0,
                    row.get::<_, Id<Handle>>(1)?.0,
                    row.get::<_, Id<ResourceId>>(2)?.0,
                    row.get::<_, Body<Rpt>>(3)?.0,
                ))
            },
        )
        .optional()?;
    let Some((family, handle, resource, rpt)) = spent else {
        let standing = standing(db, owner, client_id, token, now, epoch)?;
        return Ok(Outcome::Undone(lost(standing, attempt, now)));
    };
    let operation = rpt.operation.as_ref();
    let entry = json!({
        "resource_id": resource,
        "tool": operation.map(|operation| &operation.tool),
        "params_s256": operation.map(|operation| &operation.params_s256),
    });
    let by = Author::ResourceServer(client_id.to_string());
    touched(db, owner, &Record::new(Kind::Touched, &family, by, entry).naming(&handle), now)?;
    Ok(Outcome::Kept(ConsumeReply { consumed: true, error: None }))
}

/// Why this caller did not spend it now. The attempt that spent it hears so again, while the grant would still live.
fn lost(standing: Option<Standing>, attempt: &str, now: Timestamp) -> ConsumeReply {
    let error = match standing {
        None => Inactive::UnknownToken.as_str().to_owned(),
        Some(Standing { dead: Some(Inactive::AlreadyConsumed), attempt: Some(spender), rpt, .. })
            if spender == attempt && now < rpt.exp =>
        {
            return ConsumeReply { consumed: true, error: None };
        }
        Some(Standing { dead: Some(reason), .. }) => reason.as_str().to_owned(),
        Some(Standing { dead: None, .. }) => NOT_SINGLE_USE.to_owned(),
    };
    ConsumeReply { consumed: false, error: Some(error) }
}

pub(super) fn touched(
    db: &Connection,
    owner: &OwnerName,
    record: &Record,
    now: Timestamp,
) -> Result<(), Fault> {
    record::append(db, owner, record, now)?;
    match &record.handle {
        Some(handle) => connections::accessed(db, owner, handle, now),
        None => Ok(()),
    }
}

/// Records an allowed call; false when there is no such grant. A call that was allowed is recorded also when the grant
/// has died since. A spent grant's row was written when it was spent: its report adds one only when it has something
/// more to tell.
pub(super) fn report(
    db: &Connection,
    owner: &OwnerName,
    client_id: &ClientId,
    report: &AccessReport,
    now: Timestamp,
) -> Worked<bool> {
    let found = db
        .prepare_cached(
            "SELECT handle, resource, consumed_at IS NOT NULL FROM grants
             WHERE family = ?1 AND owner = ?2 AND client_id = ?3",
        )?
        .query_row((report.family.as_str(), owner.as_str(), client_id.as_str()), |row| {
            Ok((row.get::<_, Id<Handle>>(0)?.0, row.get::<_, Id<ResourceId>>(1)?.0, row.get::<_, bool>(2)?))
        })
        .optional()?;
    let Some((handle, resource, spent)) = found else { return Ok(Outcome::Undone(false)) };
    if spent && report.summary.is_none() {
        return Ok(Outcome::Undone(true));
    }
    let entry = json!({
        "resource_id": resource,
        "tool": report.tool,
        "params_s256": report.params_s256,
        "summary": report.summary,
    });
    let by = Author::ResourceServer(client_id.to_string());
    touched(db, owner, &Record::new(Kind::Touched, &report.family, by, entry).naming(&handle), now)?;
    Ok(Outcome::Kept(true))
}
