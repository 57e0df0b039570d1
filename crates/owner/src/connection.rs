//! Connections: an agent the owner let in, under the name its key or credential gives it.
//!
//! Ending one bumps its epoch, and a grant lives only while its epoch is the connection's (D-21): re-admission
//! revives nothing.

use sayso_protocol::{Handle, Timestamp};
use serde::{Deserialize, Serialize};

/// Whether a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It stands.
    Active,
    /// The owner ended it.
    Revoked,
}

/// How the agent is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Identity {
    /// By a bare key.
    #[default]
    Pseudonymous,
    /// By an issuer's credential.
    Identified,
}

/// One connection of one owner (CORE-102).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Its name.
    pub handle: Handle,
    /// How the agent is known.
    pub identity: Identity,
    /// Whether it stands.
    pub status: Status,
    /// Bumped by every ending.
    pub epoch: i64,
    /// First contact.
    pub first_seen: Timestamp,
    /// The last protected call.
    pub last_access: Option<Timestamp>,
    /// How often it was ended; survives re-admission (CORE-104).
    pub revocations: i64,
}

impl Connection {
    /// Whether it stands.
    pub fn is_active(&self) -> bool {
        self.status == Status::Active
    }
}

/// What putting one key in another's place did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relinked {
    /// The new one stands as the old one did, which has ended with its grants.
    Done(Ended),
    /// She has no connection of the old handle.
    Unknown,
    /// It has ended: what she ended nobody carries on.
    Over,
    /// The new handle has a connection of its own, perhaps one she ended.
    Taken,
}

/// What ending a connection did (OWN-11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Live grants that died with it.
    pub rpts_deactivated: i64,
    /// Connections ended.
    pub connections_revoked: i64,
}
