//! What can go wrong inside the store, as the log names it.
//!
//! The caller learns only that the store is unavailable; the log gets a code, never SQL parameters or row contents.

use rusqlite::ErrorCode;

/// A job or a read that failed; its effects are undone.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The database refused or failed.
    #[error("the database failed")]
    Database(#[from] rusqlite::Error),
    /// A value that cannot be written.
    #[error("a value has no column form")]
    Shape,
    /// A job panicked.
    #[error("a job panicked")]
    Panic,
    /// The transaction ended under its jobs.
    #[error("the transaction is gone")]
    Gone,
}

impl Fault {
    /// Records the fault and makes of it what a caller is told.
    pub(super) fn unavailable(&self, op: &'static str) -> sayso_owner::store::Unavailable {
        tracing::error!(op, fault = %self, code = ?self.code(), "store.failed");
        sayso_owner::store::Unavailable
    }

    fn code(&self) -> Option<ErrorCode> {
        match self {
            Fault::Database(error) => error.sqlite_error_code(),
            Fault::Shape | Fault::Panic | Fault::Gone => None,
        }
    }
}
