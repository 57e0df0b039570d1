//! Resource servers as intents of the store, and what an introduction does (FED-20..37).
//!
//! Who may wait is counted in the transaction that writes the row; a row that waits keeps what it said first, so that
//! she answers what she was shown.

use super::column::{Word, body, word};
use super::fault::Fault;
use super::writer::{Outcome, Worked};
use super::{SqliteStore, record, servers, setup, vouched};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, named_params};
use sayso_owner::ledger::{Author, Kind, Record};
use sayso_owner::registry::{
    COOL_DOWN, Introduced, IntroducedBy, LONGEST_COOL_DOWN, MOST_OF_SOURCE, MOST_PENDING, Newcomer, Pat,
    PreApproval, ResourceServer, Standing,
};
use sayso_owner::store::{Digest, Establishment, Unavailable};
use sayso_protocol::{ClientId, OwnerName, Timestamp};
use serde_json::json;

#[async_trait]
impl Establishment for SqliteStore {
    async fn resource_servers(&self, owner: &OwnerName) -> Result<Vec<ResourceServer>, Unavailable> {
        self.readers.read("resource_servers", |db| servers::of_owner(db, owner))
    }

    async fn resource_server(&self, client_id: &ClientId) -> Result<Vec<ResourceServer>, Unavailable> {
        self.readers.read("resource_server", |db| servers::of_client(db, client_id))
    }

    async fn standing(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
    ) -> Result<Option<Standing>, Unavailable> {
        self.readers.read("standing", |db| servers::standing(db, owner, client_id))
    }

    async fn pre_approve(
        &self,
        owner: &OwnerName,
        approval: &PreApproval,
        now: Timestamp,
    ) -> Result<Option<Standing>, Unavailable> {
        let (owner, approval) = (owner.clone(), approval.clone());
        self.writer.write("pre_approve", move |db| vouched::note(db, &owner, &approval, now)).await
    }

    async fn is_vouched_for(&self, resource_uri: &str, now: Timestamp) -> Result<bool, Unavailable> {
        self.readers.read("is_vouched_for", |db| vouched::is_for(db, resource_uri, now))
    }

    async fn introduce(
        &self,
        owner: &OwnerName,
        newcomer: &Newcomer,
        now: Timestamp,
    ) -> Result<Introduced, Unavailable> {
        let (owner, newcomer) = (owner.clone(), newcomer.clone());
        self.writer.write("introduce", move |db| introduce(db, &owner, &newcomer, now)).await
    }

    async fn judge_resource_server(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        standing: Standing,
        author: &Author,
        now: Timestamp,
    ) -> Result<Option<()>, Unavailable> {
        let (owner, client_id, author) = (owner.clone(), client_id.clone(), author.clone());
        let work = move |db: &_| servers::judge(db, &owner, &client_id, standing, &author, now);
        self.writer.write("judge_resource_server", work).await
    }

    async fn grant_pat(
        &self,
        pat: Digest,
        owner: &OwnerName,
        client_id: &ClientId,
        expires: Timestamp,
    ) -> Result<(), Unavailable> {
        let (owner, client_id, epoch) = (owner.clone(), client_id.clone(), self.epoch);
        let work = move |db: &_| servers::grant_pat(db, pat, &owner, &client_id, expires, epoch);
        self.writer.write("grant_pat", work).await
    }

    async fn pat(&self, pat: Digest, now: Timestamp) -> Result<Option<Pat>, Unavailable> {
        self.readers.read("pat", |db| servers::pat(db, pat, now, self.epoch))
    }
}

/// Takes an introduction.
fn introduce(db: &Connection, owner: &OwnerName, newcomer: &Newcomer, now: Timestamp) -> Worked<Introduced> {
    if setup::owner(db, owner)?.is_none() {
        return Ok(Outcome::Undone(Introduced::NoOwner));
    }
    let by = if vouched::spend(db, owner, newcomer, now)? {
        setup::admit(db, owner, newcomer, now)?;
        IntroducedBy::Setup
    } else {
        IntroducedBy::Itself
    };
    // What set-up did stands, whatever she has to say to the rest of it.
    let settled =
        |became| if by == IntroducedBy::Setup { Outcome::Kept(became) } else { Outcome::Undone(became) };
    let (standing, pinned) = known(db, owner, &newcomer.client_id)?;
    if pinned.is_some_and(|pinned| pinned != newcomer.key.as_str()) {
        return Ok(Outcome::Undone(Introduced::AnotherKey));
    }
    match standing {
        Some(Standing::Active) => return Ok(settled(Introduced::Active)),
        Some(Standing::Pending) => return Ok(settled(Introduced::Pending)),
        Some(Standing::Revoked) | None => {}
    }
    if is_full(db, owner, &newcomer.source)? {
        return Ok(Outcome::Undone(Introduced::Full));
    }
    let author = Author::ResourceServer(newcomer.client_id.to_string());
    if !wait(db, owner, newcomer, (&author, by), now)? {
        return Ok(Outcome::Undone(Introduced::Early));
    }
    let entry = json!({
        "asks": "resource_server",
        "resource_server": newcomer.client_id,
        "resource_uri": newcomer.resource_uri,
    });
    let row = Record { kind: Kind::Promised, family: None, handle: None, author, entry };
    record::append(db, owner, &row, now)?;
    Ok(Outcome::Kept(Introduced::Pending))
}

/// Where a server stands with her, and the key set-up vouched for.
fn known(
    db: &Connection,
    owner: &OwnerName,
    client_id: &ClientId,
) -> Result<(Option<Standing>, Option<String>), Fault> {
    let found = db
        .prepare_cached(
            "SELECT status, pinned_key FROM resource_servers WHERE owner = ?1 AND client_id = ?2",
        )?
        .query_row((owner.as_str(), client_id.as_str()), |row| {
            Ok((Some(row.get::<_, Word<_>>(0)?.0), row.get::<_, Option<String>>(1)?))
        })
        .optional()?;
    Ok(found.unwrap_or_default())
}

fn is_full(db: &Connection, owner: &OwnerName, source: &str) -> Result<bool, Fault> {
    let (all, alike): (i64, i64) = db
        .prepare_cached(
            "SELECT count(*), count(*) FILTER (WHERE source = ?2) FROM resource_servers
             WHERE owner = ?1 AND status = 'pending'",
        )?
        .query_row((owner.as_str(), source), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let reached = |count, most| usize::try_from(count).is_ok_and(|count| count >= most);
    Ok(reached(all, MOST_PENDING) || reached(alike, MOST_OF_SOURCE))
}

/// The row that waits: a new one, or one she revoked, with what it says now; false when that one may not ask yet.
fn wait(
    db: &Connection,
    owner: &OwnerName,
    newcomer: &Newcomer,
    (author, by): (&Author, IntroducedBy),
    now: Timestamp,
) -> Result<bool, Fault> {
    let waits = db
        .prepare_cached(
        "INSERT INTO resource_servers (owner, client_id, name, resource_uri, status, auth_method, registered_at,
                                       author, introduced_by, source)
         VALUES (:owner, :client_id, :name, :resource_uri, :status, 'signature', :now, :author, :by, :source)
         ON CONFLICT (owner, client_id) DO UPDATE SET name = excluded.name, resource_uri = excluded.resource_uri,
           status = excluded.status, registered_at = excluded.registered_at, author = excluded.author,
           introduced_by = excluded.introduced_by, source = excluded.source
         WHERE status = 'revoked' AND (withdrawals < 2
           OR registered_at + min(:longest, :cool_down << min(withdrawals - 2, 16)) <= :now)",
    )?
    .execute(named_params! {
        ":owner": owner.as_str(),
        ":client_id": newcomer.client_id.as_str(),
        ":name": newcomer.name,
        ":resource_uri": newcomer.resource_uri,
        ":status": word(&Standing::Pending)?,
        ":now": now.0,
        ":author": body(author)?,
        ":by": word(&by)?,
        ":source": newcomer.source,
        ":cool_down": COOL_DOWN,
        ":longest": LONGEST_COOL_DOWN,
    })?;
    Ok(waits == 1)
}
