//! The port through which everything is decided and recorded: one intent, one transaction, one winner.
//!
//! A method here reads what its decision turns on, decides, and writes the outcome with its ledger rows durably
//! before it answers (D-37). Two callers of one intent get one `Won`; the suite races every intent with 32 callers
//! and against the intents that touch the same row. Every method takes the owner, or finds her in the artifact.

mod establishment;
mod rounds;
mod sign_in;
#[cfg(feature = "suite")]
pub mod suite;

pub use establishment::Establishment;
pub use rounds::{MOST_ROUNDS, Rounds};
pub use sign_in::SignIn;

use crate::connection::{Connection, Ended, Relinked};
use crate::decision::Ruling;
use crate::ledger::{Author, Record, Row};
use crate::likeness::Speaker;
use crate::negotiation::{Ask, Commitment, Negotiation};
use crate::registry::{Registered, ResourceServer};
use crate::step::{Facts, Step};
use crate::unit::{Owner, TermsEdit, Unfit, Unit};
use async_trait::async_trait;
use sayso_protocol::payload::metadata::OwnedResource;
use sayso_protocol::payload::negotiation::TokenReply;
use sayso_protocol::payload::protection::{AccessReport, ConsumeReply, LiveGrant};
use sayso_protocol::payload::terms::Terms;
use sayso_protocol::ticket::Attempt;
use sayso_protocol::{
    ClientId, Handle, NegotiationId, OwnerName, ResourceId, S256, TemplateId, Timestamp, UnitId,
};
use sayso_protocol::{Jwk, Thumbprint};

/// The store could not be asked or could not answer; nothing is known to have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the store is unavailable")]
pub struct Unavailable;

/// SHA-256 of a secret artifact: a ticket, a token, a PAT, a signature. The artifact itself is never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of an artifact's text.
    pub fn of(artifact: &str) -> Self {
        Self(sayso_protocol::canon::sha256(artifact.as_bytes()))
    }
}

/// What is known about a ticket before it is presented for good; reading it spends nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Peek {
    /// Whose resource.
    pub owner: OwnerName,
    /// When a poll is due; earlier ones are held until then.
    pub due: Timestamp,
    /// The key of the agreement, from commit on.
    pub cnf: Option<Jwk>,
}

/// A step to run inside the transaction. It may run more than once; only one run takes effect.
pub type StepFn = Box<dyn Fn(&Negotiation, &Facts) -> Step + Send + Sync>;

/// How a presentation of a ticket ended. Holds a reply, so it has no `Debug`.
pub enum Advanced {
    /// This caller spent the ticket, or was told why it makes no sense here.
    Won(TokenReply),
    /// The ticket is unknown, spent or expired.
    Lost,
    /// The owner, or the authority, has too many uncommitted negotiations (D-23).
    Full,
}

/// A request that waits for the owner.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// The negotiation.
    pub family: NegotiationId,
    /// The resource.
    pub resource: ResourceId,
    /// The resource server.
    pub client_id: ClientId,
    /// Why she is asked.
    pub ask: Ask,
    /// What the agent committed to.
    pub commitment: Commitment,
    /// When the question lapses.
    pub deadline: Timestamp,
    /// The agent's connection, also when it has been ended.
    pub connection: Option<Connection>,
}

/// What introspection finds by a token's digest (D-20).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Live, and so is its connection, at a resource server that is active. The handle goes no further than the authority,
    /// which alone can make a name of it (D-7).
    Live(Box<LiveGrant>, Handle),
    /// Known here, and dead: `connection_revoked`, `revoked`, `already_consumed` or `expired`, in that precedence.
    Dead(sayso_protocol::payload::protection::Inactive),
    /// No such token of this owner at this resource server.
    Unknown,
}

/// An enrolled device key of an owner (D-25).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceKey {
    /// Whose.
    pub owner: OwnerName,
    /// The public key.
    pub jwk: Jwk,
    /// Its thumbprint.
    pub thumbprint: Thumbprint,
    /// For people.
    pub label: String,
}

/// How an edit of policy ended.
pub type Saved<T> = Result<T, Unsaved>;

/// Why an edit of policy was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsaved {
    /// It is not a unit that can stand.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// There is no such unit.
    #[error("there is no such unit")]
    Unknown,
}

/// Changes to a unit; what is `None` stays. Resources never change by an edit (OWN-20).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Edit {
    /// A new answer to whether she is asked.
    pub ask_me: Option<bool>,
    /// A new answer to whether its tools may ask follow-up questions (D-11).
    pub bind: Option<bool>,
    /// Changes to its terms, laid over what they are when the edit takes effect.
    pub terms: TermsEdit,
}

/// The port. Every method is one intent.
#[async_trait]
pub trait Store: SignIn + Establishment + Rounds + Send + Sync + 'static {
    /// The store's epoch: artifacts of another epoch are dead (D-38).
    fn epoch(&self) -> i64;

    // --- set-up -------------------------------------------------------------------------------------------

    /// Makes the owner known, once; later calls change nothing.
    async fn settle_owner(&self, owner: &Owner) -> Result<(), Unavailable>;
    /// Enrols a device key for her, once: a thumbprint stays with the owner it was first enrolled for.
    async fn enrol(&self, key: &DeviceKey, author: &Author, now: Timestamp) -> Result<(), Unavailable>;
    /// The enrolled key of this thumbprint.
    async fn device(&self, thumbprint: &Thumbprint) -> Result<Option<DeviceKey>, Unavailable>;
    /// Makes a resource server known as configuration names it, recorded as set-up (D-22). A known one with the same pinned
    /// key under another client id is moved: its registry goes with it; its tickets, grants and PATs end. One known
    /// under this client id takes over name, address and key; a new key ends its PATs. One that waits for her is
    /// approved by set-up, unless she ever revoked it: a withdrawal is hers to undo (FED-37).
    async fn settle_resource_server(
        &self,
        server: &ResourceServer,
        now: Timestamp,
    ) -> Result<(), Unavailable>;
    /// The authority's owners.
    async fn owners(&self) -> Result<Vec<Owner>, Unavailable>;

    // --- registry -----------------------------------------------------------------------------------------

    /// Replaces what she has at one resource server by what it publishes (FED-16). An entry that is gone ends its
    /// live grants, and is under its unit again should it come back.
    async fn pull(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        listing: &[OwnedResource],
        now: Timestamp,
    ) -> Result<(), Unavailable>;
    /// One registered resource of hers at one server.
    async fn registered(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        resource: &ResourceId,
    ) -> Result<Option<Registered>, Unavailable>;
    /// Everything registered.
    async fn resources(&self, owner: &OwnerName) -> Result<Vec<Registered>, Unavailable>;

    /// She has seen what a governed tool is now: the suspension of exactly this definition ends, with a row; so does the
    /// mark of one that is only in other words. `None` when it is not that, not governed, or what she last saw (D-30).
    async fn accept(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        resource: &ResourceId,
        definition: &S256,
        author: &Author,
        now: Timestamp,
    ) -> Result<Option<()>, Unavailable>;

    // --- policy -------------------------------------------------------------------------------------------

    /// Creates a unit, with version 1 of its terms or the next number never used (O-37). It governs its resources at
    /// the servers that publish them now, not at one that publishes the same id later.
    async fn create_unit(
        &self,
        owner: &OwnerName,
        unit: &Unit,
        issuer: &str,
        author: &Author,
        now: Timestamp,
    ) -> Result<Saved<Unit>, Unavailable>;
    /// Edits a unit: always a new version (OWN-21).
    async fn edit_unit(
        &self,
        owner: &OwnerName,
        unit: &UnitId,
        edit: &Edit,
        issuer: &str,
        author: &Author,
        now: Timestamp,
    ) -> Result<Saved<Unit>, Unavailable>;
    /// Deletes a unit: its resources are ungoverned, its live grants end, its published terms stay. Returns the
    /// resources.
    async fn delete_unit(
        &self,
        owner: &OwnerName,
        unit: &UnitId,
        author: &Author,
        now: Timestamp,
    ) -> Result<Saved<Vec<ResourceId>>, Unavailable>;
    /// Her units.
    async fn units(&self, owner: &OwnerName) -> Result<Vec<Unit>, Unavailable>;
    /// One published version of terms, whoever's.
    async fn terms(&self, template: &TemplateId) -> Result<Option<Terms>, Unavailable>;
    /// The current terms of every unit of every owner: the roster.
    async fn roster(&self) -> Result<Vec<TemplateId>, Unavailable>;

    // --- the negotiation ----------------------------------------------------------------------------------

    /// Looks at a ticket without spending it.
    async fn peek(&self, ticket: Digest, now: Timestamp) -> Result<Option<Peek>, Unavailable>;
    /// First presentation of a sealed ticket: the insert of its negotiation decides who came first.
    async fn open(
        &self,
        attempt: &Attempt,
        next: Digest,
        speaker: Option<&Speaker>,
        step: StepFn,
        now: Timestamp,
    ) -> Result<Advanced, Unavailable>;
    /// Presentation of a rotated ticket: spent, stepped and rotated in one transaction.
    async fn advance(
        &self,
        ticket: Digest,
        next: Digest,
        speaker: Option<&Speaker>,
        step: StepFn,
        now: Timestamp,
    ) -> Result<Advanced, Unavailable>;
    /// What waits for her.
    async fn pending(&self, owner: &OwnerName, now: Timestamp) -> Result<Vec<Waiting>, Unavailable>;
    /// How many requests wait, for all owners together; for whoever watches over the authority.
    async fn waiting(&self, now: Timestamp) -> Result<i64, Unavailable>;
    /// Her answer; `None` when the request does not wait for her (again), or is no longer the one she was shown.
    async fn decide(
        &self,
        owner: &OwnerName,
        family: &NegotiationId,
        ruling: &Ruling,
        author: &Author,
        now: Timestamp,
    ) -> Result<Option<()>, Unavailable>;

    // --- grants -------------------------------------------------------------------------------------------

    /// Finds a grant by its token's digest for one owner and resource server.
    async fn introspect(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        token: Digest,
        now: Timestamp,
    ) -> Result<Found, Unavailable>;
    /// Spends a single-use grant, with its `touched` row (D-27). `attempt` names the caller's try (D-14): the same
    /// attempt is answered as before, another one lost.
    async fn consume(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        token: Digest,
        attempt: &str,
        now: Timestamp,
    ) -> Result<ConsumeReply, Unavailable>;
    /// Records an allowed call of a grant of this owner and resource server, also when the grant has died since; false
    /// when there is no such grant. A spent grant has its row already and gets another only for a `summary`.
    async fn report(
        &self,
        owner: &OwnerName,
        client_id: &ClientId,
        report: &AccessReport,
        now: Timestamp,
    ) -> Result<bool, Unavailable>;

    // --- connections and record ---------------------------------------------------------------------------

    /// Her connections.
    async fn connections(&self, owner: &OwnerName) -> Result<Vec<Connection>, Unavailable>;
    /// Ends a connection, its live grants, unclaimed approvals and waiting requests in one step; `None` when she
    /// has no such connection. One that has ended is left as it is, and the counts are zero.
    async fn revoke(
        &self,
        owner: &OwnerName,
        handle: &Handle,
        author: &Author,
        now: Timestamp,
    ) -> Result<Option<Ended>, Unavailable>;
    /// Her hand puts the agent of key `to` in the place of that of key `from`, which ends: in one step, with its rows.
    /// That both keys want it is the caller's to have proven.
    async fn relink(
        &self,
        owner: &OwnerName,
        from: &Handle,
        to: &Handle,
        author: &Author,
        now: Timestamp,
    ) -> Result<Relinked, Unavailable>;
    /// Rows after `after`, oldest first, at most `limit`, of one agent where `handle` says so.
    async fn ledger(
        &self,
        owner: &OwnerName,
        handle: Option<&Handle>,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Row>, Unavailable>;
    /// The place of her last row; 0 when there is none.
    async fn last_row(&self, owner: &OwnerName) -> Result<i64, Unavailable>;
    /// Appends a row that belongs to no other intent.
    async fn append(&self, owner: &OwnerName, record: &Record, now: Timestamp) -> Result<(), Unavailable>;

    // --- replay -------------------------------------------------------------------------------------------

    /// Remembers a signature until `until`; false when it is already remembered (D-9).
    async fn remember(
        &self,
        signature: Digest,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<bool, Unavailable>;
    /// Drops what nothing can refer to any more: 24 h after expiry (D-39).
    async fn prune(&self, now: Timestamp) -> Result<(), Unavailable>;
}
