//! An agent that asks the same again takes its own earlier place (D-19).
//!
//! Found and superseded in the transaction that commits the repetition, so there is one question before her, and one
//! claimant of her answer.

use super::column::{Body, Id, body};
use super::fault::Fault;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params};
use sayso_owner::likeness::{Speaker, Stage, Twin};
use sayso_owner::negotiation::{Ending, Negotiation, State};
use sayso_protocol::payload::rpt::Rpt;
use sayso_protocol::{NegotiationId, OwnerName, Timestamp};

/// The earlier request this one repeats: one that waits or was approved, or a grant she approved that no enforcement
/// point was told of.
pub(super) fn find(
    db: &Connection,
    negotiation: &Negotiation,
    speaker: &Speaker,
    now: Timestamp,
    epoch: i64,
) -> Result<Option<Twin>, Fault> {
    let scopes = body(&negotiation.scopes)?;
    let alike = named_params! {
        ":owner": negotiation.owner.as_str(),
        ":client_id": negotiation.client_id.as_str(),
        ":resource": negotiation.resource.as_str(),
        ":scopes": scopes,
        ":handle": speaker.handle.as_str(),
        ":likeness": speaker.likeness.as_str(),
        ":now": now.0,
        ":epoch": epoch,
    };
    let open = db
        .prepare_cached(
            "SELECT family, state FROM negotiations
             WHERE owner = :owner AND handle = :handle AND likeness = :likeness AND client_id = :client_id
               AND resource = :resource AND scopes = :scopes AND store_epoch = :epoch
               AND (status = 'approved' OR (status = 'awaiting_owner' AND deadline > :now))
             ORDER BY rowid DESC LIMIT 1",
        )?
        .query_row(alike, open)
        .optional()?
        .flatten();
    if open.is_some() {
        return Ok(open);
    }
    let unheard = db
        .prepare_cached(
            "SELECT g.family, g.approved_at, g.epoch, g.claims FROM grants g JOIN negotiations n USING (family)
             WHERE g.owner = :owner AND g.handle = :handle AND g.likeness = :likeness
               AND g.client_id = :client_id AND g.resource = :resource AND n.scopes = :scopes
               AND g.store_epoch = :epoch AND g.exp > :now AND g.approved_at IS NOT NULL
               AND g.introspected_at IS NULL AND g.consumed_at IS NULL AND g.killed_at IS NULL
             ORDER BY g.approved_at DESC LIMIT 1",
        )?
        .query_row(alike, unheard)
        .optional()?;
    Ok(unheard)
}

fn open(row: &Row<'_>) -> Result<Option<Twin>, rusqlite::Error> {
    let stage = match row.get::<_, Body<State>>(1)?.0 {
        State::AwaitingOwner { ask, deadline, .. } => Stage::Waiting { ask, deadline },
        State::Approved { commitment, decided } => {
            Stage::Approved { at: decided.at, epoch: decided.epoch, definition: commitment.definition }
        }
        _ => return Ok(None),
    };
    Ok(Some(Twin { family: row.get::<_, Id<_>>(0)?.0, stage }))
}

fn unheard(row: &Row<'_>) -> Result<Twin, rusqlite::Error> {
    let rpt: Rpt = row.get::<_, Body<_>>(3)?.0;
    let definition = rpt.permissions.into_iter().next().and_then(|permission| permission.definition);
    let stage = Stage::Approved { at: Timestamp(row.get(1)?), epoch: row.get(2)?, definition };
    Ok(Twin { family: row.get::<_, Id<_>>(0)?.0, stage })
}

/// Ends the earlier request: its ticket is dead, and so is the grant nobody was told of.
pub(super) fn supersede(
    db: &Connection,
    owner: &OwnerName,
    earlier: &NegotiationId,
    now: Timestamp,
) -> Result<(), Fault> {
    let closed = State::Closed { ending: Ending::Superseded };
    db.prepare_cached(
        "UPDATE negotiations SET status = ?3, state = ?4, ticket = NULL, deadline = NULL
         WHERE family = ?1 AND owner = ?2 AND status IN ('awaiting_owner', 'approved')",
    )?
    .execute((earlier.as_str(), owner.as_str(), closed.word(), body(&closed)?))?;
    db.prepare_cached(
        "UPDATE grants SET killed_at = ?3 WHERE family = ?1 AND owner = ?2 AND killed_at IS NULL
           AND introspected_at IS NULL AND consumed_at IS NULL",
    )?
    .execute((earlier.as_str(), owner.as_str(), now.0))?;
    Ok(())
}
