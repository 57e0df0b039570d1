//! Reads: a small pool of read-only connections, used on the caller's thread.
//!
//! Every read sees the last commit, whichever process made it, and never waits for the writer. Each is one statement,
//! so no snapshot outlives a call.

use super::fault::Fault;
use super::open::{self, OpenError};
use crate::observe::Observed;
use rusqlite::Connection;
use sayso_owner::store::Unavailable;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Connections kept open when nobody reads.
const IDLE: usize = 8;

pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    pub(super) observed: Observed,
}

impl Readers {
    /// A pool over the file, with one connection to show that it can be read.
    pub(super) fn open(path: PathBuf) -> Result<Self, OpenError> {
        let first = open::reader(&path)?;
        Ok(Self { path, idle: Mutex::new(vec![first]), observed: Observed::default() })
    }

    /// Reads.
    pub(super) fn read<T>(
        &self,
        op: &'static str,
        read: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Unavailable> {
        let began = Instant::now();
        let answer = self.ask(op, read);
        self.observed.stored(op, began.elapsed());
        answer
    }

    fn ask<T>(
        &self,
        op: &'static str,
        read: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Unavailable> {
        let db = self.borrow().map_err(|fault| fault.unavailable(op))?;
        let answer = read(&db).map_err(|fault| fault.unavailable(op))?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE {
            idle.push(db);
        }
        Ok(answer)
    }

    /// Closes what is idle.
    pub(super) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn borrow(&self) -> Result<Connection, Fault> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| Ok(open::reader(&self.path)?), Ok)
    }
}
