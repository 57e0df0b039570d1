//! What the owner has at each resource server, as that server publishes it, and where the server itself stands.
//!
//! The registry of one owner and resource server is replaced whole by a pull (FED-16); entries of another owner or
//! server are never touched by it.

use sayso_protocol::payload::metadata::OwnedResource;
use sayso_protocol::{ClientId, OwnerName, Thumbprint, Timestamp, UnitId};
use serde::{Deserialize, Serialize};

/// Where a resource server stands with one owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// She has not answered.
    Pending,
    /// It may act for her resources.
    Active,
    /// She withdrew it.
    Revoked,
}

/// How a resource server became known to an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IntroducedBy {
    /// The deployment vouched for it (D-22).
    Setup,
    /// It said so itself, by a signature of its origin's (FED-20). Its addresses are a stranger's words.
    Itself,
}

/// A resource server one owner knows (OWN-15). It holds no secret: there is none in any form (D-22).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceServer {
    /// Whose.
    #[serde(skip)]
    pub owner: Option<OwnerName>,
    /// Its client id: the origin.
    pub client_id: ClientId,
    /// For people.
    pub name: String,
    /// The resource it fronts.
    pub resource_uri: String,
    /// Where it stands.
    pub status: Standing,
    /// `signature`; the only one there is.
    pub auth_method: String,
    /// When it became known.
    pub registered_at: Timestamp,
    /// The key set-up vouched for, where it did; otherwise its keys are those at its `jwks_uri`.
    pub pinned_key: Option<Thumbprint>,
    /// How it became known.
    pub introduced_by: IntroducedBy,
}

/// A resource server that introduced itself, once every check of what its origin publishes was passed (FED-22..24).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newcomer {
    /// Its client id: the origin.
    pub client_id: ClientId,
    /// The resource it serves.
    pub resource_uri: String,
    /// What it calls itself; its own words.
    pub name: String,
    /// The published key that signed.
    pub key: Thumbprint,
    /// What its origin is counted under, so that one party cannot take every place on her list (D-22).
    pub source: String,
}

/// Set-up's word for a resource server that is about to introduce itself: exactly this key, at exactly this resource,
/// once, for [`PRE_APPROVAL_LIFE`] (D-22).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreApproval {
    /// Its client id: the origin.
    pub client_id: ClientId,
    /// The resource it will say it serves.
    pub resource_uri: String,
    /// The key it will sign with.
    pub key: Thumbprint,
}

/// How long, in seconds, set-up's word is good for an introduction.
pub const PRE_APPROVAL_LIFE: i64 = 600;

/// What became of an introduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Introduced {
    /// It waits for her, now or since before; what it said first stands.
    Pending,
    /// It is trusted: by her already, and nothing has changed, or by set-up, which said so before.
    Active,
    /// There is no such owner here, and there is none now (FED-29).
    NoOwner,
    /// Set-up vouched for another key of this origin's.
    AnotherKey,
    /// As many wait for her as may, in all or of this source.
    Full,
    /// She put it out more than once, and it asked her not long ago ([`COOL_DOWN`]).
    Early,
}

/// Most resource servers that wait for one owner.
pub const MOST_PENDING: usize = 32;
/// Most of them of one source.
pub const MOST_OF_SOURCE: usize = 8;
/// How long after it asked her, in seconds, one that she put out twice may ask again; with each time more it is twice as
/// long. The first time it may ask again at once (FED-36).
pub const COOL_DOWN: i64 = 24 * 3600;
/// The longest it gets.
pub const LONGEST_COOL_DOWN: i64 = 30 * 24 * 3600;

/// A registered resource with the unit that governs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    /// The resource server it is at.
    pub client_id: ClientId,
    /// The entry as published.
    #[serde(flatten)]
    pub resource: OwnedResource,
    /// The governing unit; without one every request is refused (POL-03).
    pub unit: Option<UnitId>,
    /// Whether it is governed and not as she last saw it: suspended until she has looked (D-30).
    #[serde(default)]
    pub changed: bool,
    /// What it said of itself when she last looked, where it says something else now. When it is not `changed`, that is
    /// a change of words alone, which is shown and suspends nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<serde_json::Value>,
}

/// A protection API token, as the store keeps it. The token itself is never stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pat {
    /// In whose name it acts (CORE-81).
    pub owner: OwnerName,
    /// Which resource server holds it.
    pub client_id: ClientId,
    /// Where that server stands, read with the token on every call (FED-53).
    pub standing: Standing,
}
