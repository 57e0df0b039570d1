//! The wire forms of UMA for agents and of its MCP binding.
//!
//! Pure by rule: nothing here does I/O, waits, reads a clock or draws randomness; `now` and random bytes are
//! arguments. `payload` is what is said, the same in every binding; `envelope` is how a binding carries it.
//! Decisions (who may do what) live elsewhere: this crate only makes wrong bytes unrepresentable.

pub mod b64;
pub mod canon;
pub mod envelope;
pub mod id;
pub mod json;
pub mod jws;
pub mod key;
pub mod letters;
pub mod message;
pub mod method;
pub mod pairwise;
pub mod payload;
pub mod seal;
pub mod sig;
pub mod ticket;

pub use canon::S256;
pub use id::{
    ClientId, Handle, NegotiationId, OwnerName, Realm, ResourceId, Scope, TemplateId, Timestamp, ToolName,
    UnitId,
};
pub use json::Json;
pub use key::{Jwk, SigningKey, Thumbprint, VerifyingKey};
