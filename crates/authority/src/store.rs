//! The stores behind the owner's `Store` port.
//!
//! SQLite is the one there is: a single file beside the authority. What a store owes is written at the port and
//! tested by its suite; nothing here decides anything.

pub mod sqlite;

pub use sqlite::{OpenError, SqliteStore};
