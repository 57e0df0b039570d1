//! Negotiations as rows: reading one, the facts a step needs, and keeping its next state.
//!
//! The facts are read in the transaction that applies the step, so what was true at commit is checked again at issue
//! (D-18).

use super::column::{Body, Id, body};
use super::connections;
use super::fault::Fault;
use super::policy;
use super::registry;
use super::servers;
use super::setup;
use super::twins;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params};
use sayso_owner::likeness::Speaker;
use sayso_owner::negotiation::{Negotiation, State};
use sayso_owner::step::{Facts, Step};
use sayso_owner::store::{Digest, Peek, Waiting};
use sayso_protocol::{NegotiationId, OwnerName, Timestamp};

/// What `negotiation` reads, in its order.
pub(super) const COLUMNS: &str = "family, owner, client_id, resource, scopes, state, opened";

/// Reads a negotiation from `COLUMNS`.
pub(super) fn negotiation(row: &Row<'_>) -> Result<Negotiation, rusqlite::Error> {
    Ok(Negotiation {
        id: row.get::<_, Id<_>>(0)?.0,
        owner: row.get::<_, Id<_>>(1)?.0,
        client_id: row.get::<_, Id<_>>(2)?.0,
        resource: row.get::<_, Id<_>>(3)?.0,
        scopes: row.get::<_, Body<_>>(4)?.0,
        state: row.get::<_, Body<_>>(5)?.0,
        opened: Timestamp(row.get(6)?),
    })
}

/// What is true now for this negotiation. Once an agent has committed, the connection is that agent's, whoever speaks.
pub(super) fn facts(
    db: &Connection,
    negotiation: &Negotiation,
    speaker: Option<&Speaker>,
    now: Timestamp,
    epoch: i64,
) -> Result<Facts, Fault> {
    let owner = &negotiation.owner;
    let registered = registry::registered(db, owner, &negotiation.client_id, &negotiation.resource)?;
    let unit = match registered.as_ref().and_then(|registered| registered.unit.as_ref()) {
        Some(unit) => policy::unit(db, owner, unit)?,
        None => None,
    };
    let handle =
        negotiation.commitment().map(|commitment| &commitment.handle).or(speaker.map(|it| &it.handle));
    let connection = match handle {
        Some(handle) => connections::connection(db, owner, handle)?,
        None => None,
    };
    Ok(Facts {
        owner: setup::owner(db, owner)?,
        standing: servers::standing(db, owner, &negotiation.client_id)?,
        registered,
        unit,
        connection,
        twin: match speaker {
            Some(speaker) => twins::find(db, negotiation, speaker, now, epoch)?,
            None => None,
        },
    })
}

/// Keeps what a step led to; the next ticket is `next` where the step rotates, and none where it does not.
pub(super) fn keep(
    db: &Connection,
    id: &NegotiationId,
    step: &Step,
    next: Digest,
    now: Timestamp,
) -> Result<(), Fault> {
    let state = &step.state;
    let deadline = match state {
        State::AwaitingOwner { deadline, .. } => Some(deadline.0),
        _ => None,
    };
    let commitment = match state {
        State::AwaitingOwner { commitment, .. } | State::Approved { commitment, .. } => Some(commitment),
        _ => None,
    };
    db.prepare_cached(
        "UPDATE negotiations SET status = :status, state = :state, ticket = :ticket,
           ticket_expires = :expires, due = :due, handle = :handle,
           likeness = :likeness, deadline = :deadline,
           keep_until = MAX(keep_until, :expires) WHERE family = :family",
    )?
    .execute(named_params! {
        ":status": state.word(),
        ":state": body(state)?,
        ":ticket": step.rotates.then_some(next.0),
        ":expires": state.ticket_expires(now).0,
        ":due": step.due.0,
        ":handle": commitment.map(|commitment| commitment.handle.as_str()),
        ":likeness": commitment.map(|commitment| commitment.likeness.as_str()),
        ":deadline": deadline,
        ":family": id.as_str(),
    })?;
    Ok(())
}

/// Moves a waiting negotiation by her decision or by an ending; false when it no longer waits in `from`.
pub(super) fn answer(db: &Connection, id: &NegotiationId, from: &str, state: &State) -> Result<bool, Fault> {
    let moved = db
        .prepare_cached(
            "UPDATE negotiations SET status = ?3, state = ?4, deadline = NULL
             WHERE family = ?1 AND status = ?2",
        )?
        .execute((id.as_str(), from, state.word(), body(state)?))?;
    Ok(moved == 1)
}

/// Looks at a ticket.
pub(super) fn peek(
    db: &Connection,
    ticket: Digest,
    now: Timestamp,
    epoch: i64,
) -> Result<Option<Peek>, Fault> {
    let found = db
        .prepare_cached(
            "SELECT owner, due, json_extract(state, '$.commitment.cnf'), client_id, scopes, status = 'opened',
               coalesce(json_extract(state, '$.asserted'), json_extract(state, '$.commitment.evidence.asserted'))
             FROM negotiations
             WHERE ticket = ?1 AND ticket_expires > ?2 AND store_epoch = ?3",
        )?
        .query_row((ticket.0, now.0, epoch), |row| {
            Ok(Peek {
                owner: row.get::<_, Id<_>>(0)?.0,
                due: Timestamp(row.get(1)?),
                cnf: row.get::<_, Option<Body<_>>>(2)?.map(|body| body.0),
                client_id: row.get::<_, Id<_>>(3)?.0,
                scopes: row.get::<_, Body<_>>(4)?.0,
                opened: row.get(5)?,
                asserted: row.get::<_, Option<Body<_>>>(6)?.map(|body| body.0),
            })
        })
        .optional()?;
    Ok(found)
}

/// What waits for her, oldest first.
pub(super) fn pending(
    db: &Connection,
    owner: &OwnerName,
    now: Timestamp,
    epoch: i64,
) -> Result<Vec<Waiting>, Fault> {
    let mut statement = db.prepare_cached(&format!(
        "SELECT n.family, n.resource, n.client_id, n.state, {} FROM negotiations n
         LEFT JOIN connections c ON c.owner = n.owner AND c.handle = n.handle
         WHERE n.owner = ?1 AND n.status = 'awaiting_owner' AND n.deadline > ?2 AND n.store_epoch = ?3
         ORDER BY n.rowid",
        connections::COLUMNS
    ))?;
    let rows = statement.query_map((owner.as_str(), now.0, epoch), waiting)?;
    let waiting: Result<Vec<Option<Waiting>>, _> = rows.collect();
    Ok(waiting?.into_iter().flatten().collect())
}

/// How many wait, for all owners together.
pub(super) fn count_waiting(db: &Connection, now: Timestamp, epoch: i64) -> Result<i64, Fault> {
    let count = db
        .prepare_cached(
            "SELECT count(*) FROM negotiations
             WHERE status = 'awaiting_owner' AND deadline > ?1 AND store_epoch = ?2",
        )?
        .query_row((now.0, epoch), |row| row.get(0))?;
    Ok(count)
}

fn waiting(row: &Row<'_>) -> Result<Option<Waiting>, rusqlite::Error> {
    let State::AwaitingOwner { commitment, ask, deadline } = row.get::<_, Body<State>>(3)?.0 else {
        return Ok(None);
    };
    Ok(Some(Waiting {
        family: row.get::<_, Id<_>>(0)?.0,
        resource: row.get::<_, Id<_>>(1)?.0,
        client_id: row.get::<_, Id<_>>(2)?.0,
        ask,
        commitment: *commitment,
        deadline,
        connection: connections::read(row, 4)?,
    }))
}
