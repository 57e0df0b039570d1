//! The book on disk: one file, replaced whole, so that a reader sees the book before a trade or after it and never
//! between. Nothing is kept in memory, which lets several processes serve one vault; trades take turns on a lock
//! file. An answer is given only after the change would survive a loss of power.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::book::{Book, Order, Rejection, Transaction};

/// What Alice holds before any agent has traded.
const OPENING_BOOK: &str = include_str!("opening.json");

/// The file a [`Book`] is kept in.
pub(super) struct BookFile {
    dir: PathBuf,
    path: PathBuf,
}

impl BookFile {
    /// Finds the book in `dir`, or writes the opening one; a file that is not a book is an error, never replaced.
    pub(super) fn open(dir: &Path) -> anyhow::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir).context("creating the folder")?;
        let file = Self { dir: dir.to_owned(), path: dir.join("vault.json") };
        let _turn = file.take_turn()?;
        if !file.path.try_exists().context("looking for vault.json")? {
            file.replace(&serde_json::from_str(OPENING_BOOK).context("reading the opening positions")?)?;
        }
        file.read()?;
        Ok(file)
    }

    /// The book as the last completed trade left it.
    pub(super) fn read(&self) -> anyhow::Result<Book> {
        let bytes = std::fs::read(&self.path).context("reading vault.json")?;
        serde_json::from_slice(&bytes).context("vault.json is not a vault")
    }

    /// Executes one order durably. An error leaves it open whether the trade happened: the new book may be in place
    /// and only its durability unconfirmed.
    pub(super) fn execute(&self, order: Order, at: u64) -> anyhow::Result<Result<Transaction, Rejection>> {
        let _turn = self.take_turn()?;
        let mut book = self.read()?;
        let outcome = book.execute(order, at);
        if outcome.is_ok() {
            self.replace(&book)?;
        }
        Ok(outcome)
    }

    /// Waits for the lock that serialises trades; dropping the returned file gives it up.
    fn take_turn(&self) -> anyhow::Result<File> {
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.dir.join("vault.lock"))
            .context("opening vault.lock")?;
        lock.lock().context("locking vault.lock")?;
        Ok(lock)
    }

    // INVARIANT: the caller holds the lock, so nobody else writes the temporary file.
    fn replace(&self, book: &Book) -> anyhow::Result<()> {
        let next = self.dir.join("vault.json.next");
        match std::fs::remove_file(&next) {
            // A file left by a crash could have any mode or be a link; only one created here is known to be private.
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).context("clearing vault.json.next");
            }
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&next)?;
        file.write_all(&serde_json::to_vec(book)?)?;
        file.sync_all().context("writing vault.json.next")?;
        std::fs::rename(&next, &self.path).context("replacing vault.json")?;
        File::open(&self.dir).and_then(|dir| dir.sync_all()).context("recording the replaced vault.json")
    }
}

#[cfg(test)]
mod tests;
