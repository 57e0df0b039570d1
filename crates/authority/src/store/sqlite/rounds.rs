//! Further rounds of a call that a grant was spent on (D-11): offered when its tool asks, looked at, taken once.
//!
//! A round lives while its grant would, had it not been spent, and while the unit it was granted under allows rounds over
//! the tool as she last saw it. Taking one is one conditional update.

use super::SqliteStore;
use super::column::{Body, Id};
use super::fault::Fault;
use super::grants::{Standing, standing, touched};
use super::writer::{Outcome, Worked};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, named_params};
use sayso_owner::ledger::{Author, Kind, Record};
use sayso_owner::store::{Digest, Found, MOST_ROUNDS, Rounds, Unavailable};
use sayso_protocol::payload::protection::{ConsumeReply, Continuation, Inactive, UNKNOWN_CONTINUATION};
use sayso_protocol::payload::rpt::Rpt;
use sayso_protocol::{ClientId, Handle, NegotiationId, OwnerName, ResourceId, S256, Timestamp, UnitId};
use serde_json::json;

/// What of a grant `g` carries rounds now.
const CARRIES: &str = "g.owner = :owner AND g.client_id = :client_id AND g.single_use = 1 AND g.bind = 1
     AND g.consumed_at IS NOT NULL AND g.killed_at IS NULL AND g.exp > :now AND g.store_epoch = :epoch
     AND EXISTS (SELECT 1 FROM connections c WHERE c.owner = g.owner AND c.handle = g.handle
                 AND c.status = 'active' AND c.epoch = g.epoch)
     AND EXISTS (SELECT 1 FROM resource_servers s
                 WHERE s.owner = g.owner AND s.client_id = g.client_id AND s.status = 'active')
     AND EXISTS (SELECT 1 FROM governed v
                 JOIN units u ON u.owner = v.owner AND u.unit = v.unit
                 JOIN resources r ON r.owner = v.owner AND r.client_id = v.client_id AND r.resource = v.resource
                 WHERE v.owner = g.owner AND v.client_id = g.client_id AND v.resource = g.resource
                   AND v.unit = g.unit AND json_extract(u.body, '$.bind') = 1
                   AND json_extract(r.body, '$.definition') IS json_extract(v.seen, '$.definition'))";

#[async_trait]
impl Rounds for SqliteStore {
    async fn round(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        token: Digest,
        state: &S256,
        now: Timestamp,
    ) -> Result<Found, Unavailable> {
        let of = self.of(owner, client_id, token, now);
        self.readers.read("round", |db| find(db, &of, state))
    }

    async fn offer(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        family: &NegotiationId,
        state: &S256,
        now: Timestamp,
    ) -> Result<bool, Unavailable> {
        let (owner, client_id, family) = (owner.clone(), client_id.clone(), family.clone());
        let (state, epoch) = (state.clone(), self.epoch);
        let work = move |db: &_| offer(db, &owner, &client_id, &family, &state, now, epoch);
        self.writer.write("offer", work).await
    }

    async fn resume(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        token: Digest,
        attempt: &str,
        round: &Continuation,
        now: Timestamp,
    ) -> Result<ConsumeReply, Unavailable> {
        let of = self.of(owner, client_id, token, now);
        let (attempt, round) = (attempt.to_owned(), round.clone());
        self.writer.write("resume", move |db| resume(db, &of, &attempt, &round)).await
    }
}

impl SqliteStore {
    fn of(&self, owner: &OwnerName, client_id: &ClientId, token: Digest, now: Timestamp) -> Of {
        Of { owner: owner.clone(), client_id: client_id.clone(), token, now, epoch: self.epoch }
    }
}

/// The grant that a round is of, as its resource server names it.
struct Of {
    owner: OwnerName,
    client_id: ClientId,
    token: Digest,
    now: Timestamp,
    epoch: i64,
}

impl Of {
    fn standing(&self, db: &Connection) -> Result<Option<Standing>, Fault> {
        standing(db, &self.owner, &self.client_id, self.token, self.now, self.epoch)
    }
}

/// A grant as it is to the round of its call that was offered under `state`.
fn find(db: &Connection, of: &Of, state: &S256) -> Result<Found, Fault> {
    let Some(found) = of.standing(db)? else { return Ok(Found::Unknown) };
    let handle = found.rpt.sub.clone();
    Ok(match &found.dead {
        None => Found::Live(Box::new(found.described()), handle),
        Some(Inactive::AlreadyConsumed) if waits(db, of, state)? => {
            let mut grant = found.described();
            grant.continuation = Some(state.clone());
            Found::Live(Box::new(grant), handle)
        }
        Some(reason) => Found::Dead(reason.clone()),
    })
}

fn waits(db: &Connection, of: &Of, state: &S256) -> Result<bool, Fault> {
    let waits = db
        .prepare_cached(&format!(
            "SELECT EXISTS (SELECT 1 FROM rounds d JOIN grants g ON g.token_sha256 = d.token_sha256
             WHERE d.token_sha256 = :token AND d.state = :state AND d.taken_at IS NULL AND {CARRIES})"
        ))?
        .query_row(
            named_params! {
                ":token": of.token.0,
                ":state": state.as_str(),
                ":owner": of.owner.as_str(),
                ":client_id": of.client_id.as_str(),
                ":now": of.now.0,
                ":epoch": of.epoch,
            },
            |row| row.get(0),
        )?;
    Ok(waits)
}

/// Offers a round of a spent call.
fn offer(
    db: &Connection,
    owner: &OwnerName,
    client_id: &ClientId,
    family: &NegotiationId,
    state: &S256,
    now: Timestamp,
    epoch: i64,
) -> Worked<bool> {
    let offered = db
        .prepare_cached(&format!(
            "INSERT INTO rounds (token_sha256, state, offered_at)
             SELECT g.token_sha256, :state, :now FROM grants g WHERE g.family = :family AND {CARRIES}
               AND (SELECT count(*) FROM rounds d WHERE d.token_sha256 = g.token_sha256) < :most
             ON CONFLICT DO NOTHING"
        ))?
        .execute(named_params! {
            ":family": family.as_str(),
            ":state": state.as_str(),
            ":owner": owner.as_str(),
            ":client_id": client_id.as_str(),
            ":now": now.0,
            ":epoch": epoch,
            ":most": MOST_ROUNDS,
        })?;
    Ok(Outcome::Kept(offered == 1))
}

/// Takes a round, with its row.
fn resume(db: &Connection, of: &Of, attempt: &str, round: &Continuation) -> Worked<ConsumeReply> {
    let taken = db
        .prepare_cached(&format!(
            "UPDATE rounds SET taken_at = :now, attempt = :attempt
             WHERE token_sha256 = :token AND state = :state AND taken_at IS NULL
               AND EXISTS (SELECT 1 FROM grants g WHERE g.token_sha256 = rounds.token_sha256 AND {CARRIES}
                           AND json_extract(g.claims, '$.operation.tool') = :tool
                           AND json_extract(g.claims, '$.operation.params_s256') = :params)"
        ))?
        .execute(named_params! {
            ":now": of.now.0,
            ":attempt": attempt,
            ":token": of.token.0,
            ":state": round.state.as_str(),
            ":owner": of.owner.as_str(),
            ":client_id": of.client_id.as_str(),
            ":epoch": of.epoch,
            ":tool": round.operation.tool.as_str(),
            ":params": round.operation.params_s256.as_str(),
        })?;
    if taken == 0 {
        return Ok(Outcome::Undone(lost(db, of, attempt, round)?));
    }
    let Some(Call { family, handle, resource }) = call(db, of, round)? else {
        // Undone with what was just written.
        return Ok(Outcome::Undone(refused(UNKNOWN_CONTINUATION)));
    };
    let entry = json!({
        "resource_id": resource,
        "tool": round.operation.tool,
        "params_s256": round.operation.params_s256,
        "continuation": round.state,
        "answers_s256": round.answers,
    });
    let by = Author::ResourceServer(of.client_id.to_string());
    let row = Record::new(Kind::Touched, &family, by, entry).naming(&handle);
    touched(db, &of.owner, &row, of.now)?;
    Ok(Outcome::Kept(ConsumeReply { consumed: true, error: None }))
}

/// Whose call it is.
struct Call {
    family: NegotiationId,
    handle: Handle,
    resource: ResourceId,
}

/// The call of a grant, if the round is signed with the grant's key.
fn call(db: &Connection, of: &Of, round: &Continuation) -> Result<Option<Call>, Fault> {
    let (call, rpt) = db
        .prepare_cached("SELECT family, handle, resource, claims FROM grants WHERE token_sha256 = ?1")?
        .query_row([of.token.0], |row| {
            let call = Call {
                family: row.get::<_, Id<_>>(0)?.0,
                handle: row.get::<_, Id<_>>(1)?.0,
                resource: row.get::<_, Id<_>>(2)?.0,
            };
            Ok((call, row.get::<_, Body<Rpt>>(3)?.0))
        })?;
    let key = rpt.cnf.jwk.key().map_err(|_| Fault::Shape)?;
    Ok((key.thumbprint() == round.key).then_some(call))
}

fn refused(why: &str) -> ConsumeReply {
    ConsumeReply { consumed: false, error: Some(why.to_owned()) }
}

/// Ends the rounds of the spent grants of a unit, for good: what is allowed, or made, anew revives none.
pub(super) fn end_of_unit(db: &Connection, owner: &OwnerName, unit: &UnitId) -> Result<(), Fault> {
    db.prepare_cached("UPDATE grants SET bind = 0 WHERE owner = ?1 AND unit = ?2 AND bind = 1")?
        .execute((owner.as_str(), unit.as_str()))?;
    Ok(())
}

/// The same at a server, over one resource or all.
pub(super) fn end_at(
    db: &Connection,
    owner: &OwnerName,
    client_id: &ClientId,
    resource: Option<&str>,
) -> Result<(), Fault> {
    db.prepare_cached(
        "UPDATE grants SET bind = 0
         WHERE owner = ?1 AND client_id = ?2 AND (?3 IS NULL OR resource = ?3) AND bind = 1",
    )?
    .execute((owner.as_str(), client_id.as_str(), resource))?;
    Ok(())
}

/// Why this caller did not take it. The attempt that took it hears so again, while the grant would still live.
fn lost(db: &Connection, of: &Of, attempt: &str, round: &Continuation) -> Result<ConsumeReply, Fault> {
    let Some(found) = of.standing(db)? else { return Ok(refused(Inactive::UnknownToken.as_str())) };
    match &found.dead {
        Some(Inactive::AlreadyConsumed) if of.now < found.rpt.exp => {}
        Some(Inactive::AlreadyConsumed) => return Ok(refused(Inactive::Expired.as_str())),
        Some(reason) => return Ok(refused(reason.as_str())),
        None => return Ok(refused(UNKNOWN_CONTINUATION)),
    }
    let taker: Option<Option<String>> = db
        .prepare_cached("SELECT attempt FROM rounds WHERE token_sha256 = ?1 AND state = ?2")?
        .query_row((of.token.0, round.state.as_str()), |row| row.get(0))
        .optional()?;
    Ok(match taker.flatten() {
        Some(taker) if taker == attempt => ConsumeReply { consumed: true, error: None },
        Some(_) => refused(Inactive::AlreadyConsumed.as_str()),
        None => refused(UNKNOWN_CONTINUATION),
    })
}
