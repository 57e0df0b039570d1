//! The store on one SQLite file.
//!
//! Writes are jobs of one writer thread, answered after a durable commit (D-37); reads see the last commit. Other
//! processes may use the same file: a write transaction begins as one and waits its turn.

mod beats;
mod column;
mod connections;
mod establishment;
mod fault;
mod grants;
mod negotiations;
mod open;
mod policy;
mod readers;
mod record;
mod registry;
mod replay;
mod rounds;
mod servers;
mod sessions;
mod setup;
mod tenant;
mod twins;
mod vouched;
mod writer;

pub use open::OpenError;

use crate::observe::Observed;
use async_trait::async_trait;
use beats::Presentation;
use readers::Readers;
use sayso_owner::connection::{Connection, Ended, Relinked};
use sayso_owner::decision::Ruling;
use sayso_owner::ledger::{Author, Record, Row};
use sayso_owner::likeness::Speaker;
use sayso_owner::registry::{Registered, ResourceServer};
use sayso_owner::store::{
    Advanced, DeviceKey, Digest, Edit, Found, Peek, Saved, StepFn, Store, Unavailable, Waiting,
};
use sayso_owner::unit::{Owner, Unit};
use sayso_protocol::payload::metadata::OwnedResource;
use sayso_protocol::payload::protection::{AccessReport, ConsumeReply};
use sayso_protocol::payload::terms::Terms;
use sayso_protocol::ticket::Attempt;
use sayso_protocol::{
    ClientId, Handle, NegotiationId, OwnerName, ResourceId, S256, TemplateId, Thumbprint, Timestamp, UnitId,
};
use std::path::Path;
use tenant::Tenant;
use writer::{Outcome, Writer};

/// A store on one file. Dropping it finishes what is queued.
pub struct SqliteStore {
    writer: Writer,
    readers: Readers,
    epoch: i64,
    _tenant: Option<Tenant>,
}

impl SqliteStore {
    /// Opens the file, creating it (0600) in an existing folder.
    ///
    /// # Errors
    /// When it cannot be created or read, is no store of ours, or was written by a newer program.
    pub fn open(path: &Path) -> Result<SqliteStore, OpenError> {
        let (db, epoch) = open::writer(path)?;
        let readers = Readers::open(path.to_path_buf())?;
        Ok(SqliteStore { writer: Writer::start(db)?, readers, epoch, _tenant: None })
    }

    /// The same store, its every read and write timed.
    #[must_use]
    pub fn observed(mut self, observed: Observed) -> SqliteStore {
        self.writer.observed = observed.clone();
        self.readers.observed = observed;
        self
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // INVARIANT: the writer closes last, since only it can fold the log back into the file.
        self.readers.close();
        self.writer.drain();
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn epoch(&self) -> i64 {
        self.epoch
    }

    async fn settle_owner(&self, owner: &Owner) -> Result<(), Unavailable> {
        let owner = owner.clone();
        self.writer.write("settle_owner", move |db| setup::settle_owner(db, &owner)).await
    }

    async fn enrol(&self, key: &DeviceKey, author: &Author, now: Timestamp) -> Result<(), Unavailable> {
        let (key, author) = (key.clone(), author.clone());
        self.writer.write("enrol", move |db| setup::enrol(db, &key, &author, now)).await
    }

    async fn device(&self, thumbprint: &Thumbprint) -> Result<Option<DeviceKey>, Unavailable> {
        self.readers.read("device", |db| setup::device(db, thumbprint))
    }

    async fn settle_resource_server(
        &self,
        server: &ResourceServer,
        now: Timestamp,
    ) -> Result<(), Unavailable> {
        let server = server.clone();
        self.writer.write("settle_resource_server", move |db| setup::settle_server(db, &server, now)).await
    }

    async fn owners(&self) -> Result<Vec<Owner>, Unavailable> {
        self.readers.read("owners", setup::owners)
    }

    async fn pull(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        listing: &[OwnedResource],
        now: Timestamp,
    ) -> Result<(), Unavailable> {
        let (owner, client_id, listing) = (owner.clone(), client_id.clone(), listing.to_vec());
        self.writer.write("pull", move |db| registry::pull(db, &owner, &client_id, &listing, now)).await
    }

    async fn registered(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        resource: &ResourceId,
    ) -> Result<Option<Registered>, Unavailable> {
        self.readers.read("registered", |db| registry::registered(db, owner, client_id, resource))
    }

    async fn resources(&self, owner: &OwnerName) -> Result<Vec<Registered>, Unavailable> {
        self.readers.read("resources", |db| registry::resources(db, owner))
    }

    async fn accept(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        resource: &ResourceId,
        definition: &S256,
        author: &Author,
        now: Timestamp,
    ) -> Result<Option<()>, Unavailable> {
        let (owner, client_id, resource) = (owner.clone(), client_id.clone(), resource.clone());
        let (definition, author) = (definition.clone(), author.clone());
        let work =
            move |db: &_| registry::accept(db, &owner, &client_id, &resource, &definition, &author, now);
        self.writer.write("accept", work).await
    }

    async fn create_unit(
        &self,
        owner: &OwnerName,
        unit: &Unit,
        issuer: &str,
        author: &Author,
        now: Timestamp,
    ) -> Result<Saved<Unit>, Unavailable> {
        let (owner, unit, issuer, author) = (owner.clone(), unit.clone(), issuer.to_owned(), author.clone());
        self.writer
            .write("create_unit", move |db| policy::create(db, &owner, &unit, &issuer, &author, now))
            .await
    }

    async fn edit_unit(
        &self,
        owner: &OwnerName,
        unit: &UnitId,
        edit: &Edit,
        issuer: &str,
        author: &Author,
        now: Timestamp,
    ) -> Result<Saved<Unit>, Unavailable> {
        let (owner, unit, edit) = (owner.clone(), unit.clone(), edit.clone());
        let (issuer, author) = (issuer.to_owned(), author.clone());
        self.writer
            .write("edit_unit", move |db| policy::edit(db, &owner, &unit, &edit, &issuer, &author, now))
            .await
    }

    async fn delete_unit(
        &self,
        owner: &OwnerName,
        unit: &UnitId,
        author: &Author,
        now: Timestamp,
    ) -> Result<Saved<Vec<ResourceId>>, Unavailable> {
        let (owner, unit, author) = (owner.clone(), unit.clone(), author.clone());
        self.writer.write("delete_unit", move |db| policy::delete(db, &owner, &unit, &author, now)).await
    }

    async fn units(&self, owner: &OwnerName) -> Result<Vec<Unit>, Unavailable> {
        self.readers.read("units", |db| policy::units(db, owner))
    }

    async fn terms(&self, template: &TemplateId) -> Result<Option<Terms>, Unavailable> {
        self.readers.read("terms", |db| policy::terms(db, template))
    }

    async fn roster(&self) -> Result<Vec<TemplateId>, Unavailable> {
        self.readers.read("roster", policy::roster)
    }

    async fn peek(&self, ticket: Digest, now: Timestamp) -> Result<Option<Peek>, Unavailable> {
        self.readers.read("peek", |db| negotiations::peek(db, ticket, now, self.epoch))
    }

    async fn open(
        &self,
        attempt: &Attempt,
        next: Digest,
        speaker: Option<&Speaker>,
        step: StepFn,
        now: Timestamp,
    ) -> Result<Advanced, Unavailable> {
        let attempt = attempt.clone();
        let shown = Presentation { next, speaker: speaker.cloned(), step, now, epoch: self.epoch };
        self.writer.write("open", move |db| beats::open(db, &attempt, &shown)).await
    }

    async fn advance(
        &self,
        ticket: Digest,
        next: Digest,
        speaker: Option<&Speaker>,
        step: StepFn,
        now: Timestamp,
    ) -> Result<Advanced, Unavailable> {
        let shown = Presentation { next, speaker: speaker.cloned(), step, now, epoch: self.epoch };
        self.writer.write("advance", move |db| beats::advance(db, ticket, &shown)).await
    }

    async fn pending(&self, owner: &OwnerName, now: Timestamp) -> Result<Vec<Waiting>, Unavailable> {
        self.readers.read("pending", |db| negotiations::pending(db, owner, now, self.epoch))
    }

    async fn waiting(&self, now: Timestamp) -> Result<i64, Unavailable> {
        self.readers.read("waiting", |db| negotiations::count_waiting(db, now, self.epoch))
    }

    async fn decide(
        &self,
        owner: &OwnerName,
        family: &NegotiationId,
        ruling: &Ruling,
        author: &Author,
        now: Timestamp,
    ) -> Result<Option<()>, Unavailable> {
        let (owner, family, ruling) = (owner.clone(), family.clone(), ruling.clone());
        let (author, epoch) = (author.clone(), self.epoch);
        let work = move |db: &_| beats::decide(db, &owner, &family, &ruling, &author, now, epoch);
        self.writer.write("decide", work).await
    }

    async fn introspect(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        token: Digest,
        now: Timestamp,
    ) -> Result<Found, Unavailable> {
        let (found, unheard) = self
            .readers
            .read("introspect", |db| grants::introspect(db, owner, client_id, token, now, self.epoch))?;
        if unheard {
            // The first answer about a grant she approved is what "its reply was lost" turns on (D-19).
            self.writer.write("hear", move |db| grants::hear(db, token, now)).await?;
        }
        Ok(found)
    }

    async fn consume(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        token: Digest,
        attempt: &str,
        now: Timestamp,
    ) -> Result<ConsumeReply, Unavailable> {
        let (owner, client_id, attempt) = (owner.clone(), client_id.clone(), attempt.to_owned());
        let epoch = self.epoch;
        let work = move |db: &_| grants::consume(db, &owner, &client_id, token, &attempt, now, epoch);
        self.writer.write("consume", work).await
    }

    async fn report(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        report: &AccessReport,
        now: Timestamp,
    ) -> Result<bool, Unavailable> {
        let (owner, client_id, report) = (owner.clone(), client_id.clone(), report.clone());
        self.writer.write("report", move |db| grants::report(db, &owner, &client_id, &report, now)).await
    }

    async fn connections(&self, owner: &OwnerName) -> Result<Vec<Connection>, Unavailable> {
        self.readers.read("connections", |db| connections::connections(db, owner))
    }

    async fn revoke(
        &self,
        owner: &OwnerName,
        handle: &Handle,
        author: &Author,
        now: Timestamp,
    ) -> Result<Option<Ended>, Unavailable> {
        let (owner, handle, author) = (owner.clone(), handle.clone(), author.clone());
        self.writer.write("revoke", move |db| connections::revoke(db, &owner, &handle, &author, now)).await
    }

    async fn relink(
        &self,
        owner: &OwnerName,
        from: &Handle,
        to: &Handle,
        author: &Author,
        now: Timestamp,
    ) -> Result<Relinked, Unavailable> {
        let (owner, from, to, author) = (owner.clone(), from.clone(), to.clone(), author.clone());
        self.writer
            .write("relink", move |db| connections::relink(db, &owner, (&from, &to), &author, now))
            .await
    }

    async fn ledger(
        &self,
        owner: &OwnerName,
        handle: Option<&Handle>,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Row>, Unavailable> {
        self.readers.read("ledger", |db| record::page(db, owner, handle, after, limit))
    }

    async fn last_row(&self, owner: &OwnerName) -> Result<i64, Unavailable> {
        self.readers.read("last_row", |db| record::last(db, owner))
    }

    async fn append(&self, owner: &OwnerName, record: &Record, now: Timestamp) -> Result<(), Unavailable> {
        let (owner, record) = (owner.clone(), record.clone());
        let work = move |db: &_| record::append(db, &owner, &record, now).map(Outcome::Kept);
        self.writer.write("append", work).await
    }

    async fn remember(
        &self,
        signature: Digest,
        until: Timestamp,
        _now: Timestamp,
    ) -> Result<bool, Unavailable> {
        self.writer.write("remember", move |db| replay::remember(db, signature, until)).await
    }

    async fn prune(&self, now: Timestamp) -> Result<(), Unavailable> {
        while self.writer.write("prune", move |db| replay::prune(db, now)).await? > 0 {}
        Ok(())
    }
}
