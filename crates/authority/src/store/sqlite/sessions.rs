//! Links and sessions: who redeems a link is decided by the statement that spends it (D-26).
//!
//! A session's row of her record is written in the transaction that opens it.

use super::SqliteStore;
use super::column::{Body, Id, body};
use super::fault::Fault;
use super::record;
use super::writer::{Outcome, Worked};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, named_params};
use sayso_owner::ledger::Author;
use sayso_owner::session::Session;
use sayso_owner::store::{Digest, SignIn, Unavailable};
use sayso_protocol::{OwnerName, Timestamp};

#[async_trait]
impl SignIn for SqliteStore {
    async fn create_link(
        &self,
        link: Digest,
        owner: &OwnerName,
        author: &Author,
        expires: Timestamp,
    ) -> Result<(), Unavailable> {
        let (owner, author, epoch) = (owner.clone(), author.clone(), self.epoch);
        self.writer.write("create_link", move |db| create(db, link, &owner, &author, expires, epoch)).await
    }

    async fn redeem_link(
        &self,
        link: Digest,
        session: Digest,
        name: &str,
        now: Timestamp,
    ) -> Result<Option<Session>, Unavailable> {
        let (name, epoch) = (name.to_owned(), self.epoch);
        // Anybody may try links; those that are none do not keep the writer busy.
        if !self.readers.read("redeem_link", |db| is_known(db, link))? {
            return Ok(None);
        }
        self.writer.write("redeem_link", move |db| redeem(db, link, session, &name, now, epoch)).await
    }

    async fn session(&self, session: Digest, now: Timestamp) -> Result<Option<Session>, Unavailable> {
        let found = self.readers.read("session", |db| live(db, session, now, self.epoch))?;
        if found.as_ref().is_some_and(|session| session.is_worth_noting(now)) {
            self.writer.write("note_session", move |db| note(db, session, now)).await?;
        }
        Ok(found)
    }

    async fn end_session(&self, session: Digest) -> Result<(), Unavailable> {
        self.writer.write("end_session", move |db| end(db, session)).await
    }
}

fn create(
    db: &Connection,
    link: Digest,
    owner: &OwnerName,
    author: &Author,
    expires: Timestamp,
    epoch: i64,
) -> Worked<()> {
    db.prepare_cached(
        "INSERT INTO sign_in_links (digest, owner, author, expires, store_epoch) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute((link.0, owner.as_str(), body(author)?, expires.0, epoch))?;
    Ok(Outcome::Kept(()))
}

fn is_known(db: &Connection, link: Digest) -> Result<bool, Fault> {
    let known = db
        .prepare_cached("SELECT 1 FROM sign_in_links WHERE digest = ?1")?
        .query_row([link.0], |_| Ok(()))
        .optional()?;
    Ok(known.is_some())
}

fn redeem(
    db: &Connection,
    link: Digest,
    session: Digest,
    name: &str,
    now: Timestamp,
    epoch: i64,
) -> Worked<Option<Session>> {
    let spent = db
        .prepare_cached(
            "UPDATE sign_in_links SET redeemed_at = ?2
             WHERE digest = ?1 AND redeemed_at IS NULL AND expires > ?2 AND store_epoch = ?3
             RETURNING owner, author",
        )?
        .query_row((link.0, now.0, epoch), |row| {
            Ok((row.get::<_, Id<OwnerName>>(0)?.0, row.get::<_, Body<Author>>(1)?.0))
        })
        .optional()?;
    let Some((owner, link_by)) = spent else { return Ok(Outcome::Undone(None)) };
    let opened = Session::open(owner, name, link_by, now);
    db.prepare_cached(
        "INSERT INTO sessions (digest, owner, name, link_by, opened, seen, expires, store_epoch)
         VALUES (:digest, :owner, :name, :link_by, :opened, :seen, :expires, :epoch)",
    )?
    .execute(named_params! {
        ":digest": session.0,
        ":owner": opened.owner.as_str(),
        ":name": opened.name,
        ":link_by": body(&opened.link_by)?,
        ":opened": opened.opened.0,
        ":seen": opened.seen.0,
        ":expires": opened.expires.0,
        ":epoch": epoch,
    })?;
    record::append(db, &opened.owner, &opened.record(), now)?;
    Ok(Outcome::Kept(Some(opened)))
}

fn live(db: &Connection, session: Digest, now: Timestamp, epoch: i64) -> Result<Option<Session>, Fault> {
    let found = db
        .prepare_cached(
            "SELECT owner, name, link_by, opened, seen, expires FROM sessions
             WHERE digest = ?1 AND expires > ?2 AND store_epoch = ?3",
        )?
        .query_row((session.0, now.0, epoch), |row| {
            Ok(Session {
                owner: row.get::<_, Id<_>>(0)?.0,
                name: row.get(1)?,
                link_by: row.get::<_, Body<_>>(2)?.0,
                opened: Timestamp(row.get(3)?),
                seen: Timestamp(row.get(4)?),
                expires: Timestamp(row.get(5)?),
            })
        })
        .optional()?;
    Ok(found.filter(|session| session.is_live(now)))
}

/// Notes a use; one that comes late takes nothing back, and revives nothing.
fn note(db: &Connection, session: Digest, now: Timestamp) -> Worked<()> {
    db.prepare_cached("UPDATE sessions SET seen = MAX(seen, ?2) WHERE digest = ?1")?
        .execute((session.0, now.0))?;
    Ok(Outcome::Kept(()))
}

fn end(db: &Connection, session: Digest) -> Worked<()> {
    db.prepare_cached("DELETE FROM sessions WHERE digest = ?1")?.execute([session.0])?;
    Ok(Outcome::Kept(()))
}
