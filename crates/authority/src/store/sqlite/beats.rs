//! The beats of a negotiation: opened, advanced, decided; each spends what it was called with, or nothing.
//!
//! The insert of a negotiation, the update that takes its ticket and the update that leaves `awaiting_owner` each say
//! who came first (CORE-94, OWN-08). A step that makes no sense is undone whole, its ticket unspent.

use super::column::body;
use super::connections;
use super::fault::Fault;
use super::grants;
use super::negotiations::{COLUMNS, answer, facts, keep, negotiation};
use super::record;
use super::twins::supersede;
use super::writer::{Outcome, Worked};
use rusqlite::{Connection, OptionalExtension as _, named_params};
use sayso_owner::decision::{self, Ruling};
use sayso_owner::ledger::Author;
use sayso_owner::likeness::Speaker;
use sayso_owner::negotiation::{Negotiation, State};
use sayso_owner::store::{Advanced, Digest, StepFn};
use sayso_protocol::ticket::Attempt;
use sayso_protocol::{NegotiationId, OwnerName, Timestamp};

/// Uncommitted negotiations an owner may have, and all owners together (D-23).
const OF_OWNER: i64 = 2_000;
const IN_ALL: i64 = 20_000;

/// What a presentation brings along.
pub(super) struct Presentation {
    /// The ticket that comes next, should the step rotate.
    pub(super) next: Digest,
    /// Who speaks.
    pub(super) speaker: Option<Speaker>,
    /// The step.
    pub(super) step: StepFn,
    /// Now.
    pub(super) now: Timestamp,
    /// The store's epoch.
    pub(super) epoch: i64,
}

/// First presentation of a sealed ticket.
pub(super) fn open(db: &Connection, attempt: &Attempt, shown: &Presentation) -> Worked<Advanced> {
    if attempt.expires <= shown.now || !insert(db, attempt, shown)? {
        return Ok(Outcome::Undone(Advanced::Lost));
    }
    if full(db, &attempt.owner, shown.now)? {
        return Ok(Outcome::Undone(Advanced::Full));
    }
    let opened = Negotiation {
        id: attempt.negotiation.clone(),
        owner: attempt.owner.clone(),
        client_id: attempt.resource_server.clone(),
        resource: attempt.resource.clone(),
        scopes: attempt.scopes.clone(),
        state: State::Opened,
        opened: shown.now,
    };
    play(db, &opened, shown)
}

/// Inserts the negotiation; false when this ticket was presented before, or names an owner nobody knows.
fn insert(db: &Connection, attempt: &Attempt, shown: &Presentation) -> Result<bool, Fault> {
    let inserted = db
        .prepare_cached(
            "INSERT INTO negotiations (family, owner, client_id, resource, scopes, status, state,
                                       ticket_expires, due, opened, keep_until, store_epoch)
             SELECT :family, name, :client_id, :resource, :scopes, :status, :state,
                    :expires, :now, :now, :expires, :epoch
             FROM owners WHERE name = :owner ON CONFLICT (family) DO NOTHING",
        )?
        .execute(named_params! {
            ":family": attempt.negotiation.as_str(),
            ":client_id": attempt.resource_server.as_str(),
            ":resource": attempt.resource.as_str(),
            ":scopes": body(&attempt.scopes)?,
            ":status": State::Opened.word(),
            ":state": body(&State::Opened)?,
            ":expires": attempt.expires.0,
            ":now": shown.now.0,
            ":epoch": shown.epoch,
            ":owner": attempt.owner.as_str(),
        })?;
    Ok(inserted == 1)
}

/// Whether the one just inserted is one too many. Expired ones do not count.
fn full(db: &Connection, owner: &OwnerName, now: Timestamp) -> Result<bool, Fault> {
    let of_owner: i64 = db
        .prepare_cached(
            "SELECT count(*) FROM negotiations
             WHERE status IN ('opened', 'awaiting_agreement') AND owner = ?1 AND ticket_expires > ?2",
        )?
        .query_row((owner.as_str(), now.0), |row| row.get(0))?;
    if of_owner > OF_OWNER {
        return Ok(true);
    }
    let in_all: i64 = db
        .prepare_cached(
            "SELECT count(*) FROM negotiations
             WHERE status IN ('opened', 'awaiting_agreement') AND ticket_expires > ?1",
        )?
        .query_row([now.0], |row| row.get(0))?;
    Ok(in_all > IN_ALL)
}

/// Presentation of a rotated ticket.
pub(super) fn advance(db: &Connection, ticket: Digest, shown: &Presentation) -> Worked<Advanced> {
    let spent = db
        .prepare_cached(&format!(
            "UPDATE negotiations SET ticket = NULL
             WHERE ticket = ?1 AND ticket_expires > ?2 AND store_epoch = ?3 RETURNING {COLUMNS}"
        ))?
        .query_row((ticket.0, shown.now.0, shown.epoch), negotiation)
        .optional()?;
    match spent {
        Some(negotiation) => play(db, &negotiation, shown),
        None => Ok(Outcome::Undone(Advanced::Lost)),
    }
}

/// Runs the step and applies what it does.
fn play(db: &Connection, negotiation: &Negotiation, shown: &Presentation) -> Worked<Advanced> {
    let facts = facts(db, negotiation, shown.speaker.as_ref(), shown.now, shown.epoch)?;
    let step = (shown.step)(negotiation, &facts);
    if step.untouched {
        return Ok(Outcome::Undone(Advanced::Won(step.reply)));
    }
    if let Some(earlier) = &step.supersedes {
        supersede(db, &negotiation.owner, earlier, shown.now)?;
    }
    keep(db, &negotiation.id, &step, shown.next, shown.now)?;
    for row in &step.records {
        record::append(db, &negotiation.owner, row, shown.now)?;
    }
    if let Some(grant) = &step.grant {
        grants::insert(db, grant, shown.epoch)?;
    }
    Ok(Outcome::Kept(Advanced::Won(step.reply)))
}

/// Her answer to what waits for her.
pub(super) fn decide(
    db: &Connection,
    owner: &OwnerName,
    family: &NegotiationId,
    ruling: &Ruling,
    author: &Author,
    now: Timestamp,
    epoch: i64,
) -> Worked<Option<()>> {
    let waiting = db
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM negotiations
             WHERE family = ?1 AND owner = ?2 AND status = 'awaiting_owner' AND deadline > ?3 AND store_epoch = ?4"
        ))?
        .query_row((family.as_str(), owner.as_str(), now.0, epoch), negotiation)
        .optional()?;
    let Some(waiting) = waiting.filter(|waiting| ruling.is_about(waiting)) else {
        return Ok(Outcome::Undone(None));
    };
    let connection = match waiting.commitment() {
        Some(commitment) => connections::connection(db, owner, &commitment.handle)?,
        None => None,
    };
    let Some(decision) = decision::decide(&waiting, connection.as_ref(), ruling.answer, author, now) else {
        return Ok(Outcome::Undone(None));
    };
    if !answer(db, family, waiting.state.word(), &decision.state)? {
        return Ok(Outcome::Undone(None));
    }
    if let Some(admitted) = &decision.admits {
        connections::admit(db, owner, admitted, author)?;
    }
    for row in &decision.records {
        record::append(db, owner, row, now)?;
    }
    Ok(Outcome::Kept(Some(())))
}
