//! The store suite against SQLite: every case on a file of its own.

#![expect(clippy::unwrap_used, reason = "a test whose file cannot be opened or read has failed")]

use sayso_authority::store::SqliteStore;
use sayso_owner::store::Store;
use sayso_owner::store::suite::Place;
use std::sync::Arc;

struct Folder(tempfile::TempDir);

impl Place for Folder {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&self.0.path().join("sayso.db")).unwrap())
    }

    fn contents(&self) -> Vec<u8> {
        let files = std::fs::read_dir(self.0.path()).unwrap();
        files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
    }
}

sayso_owner::store_suite!(Folder(tempfile::tempdir().unwrap()));
