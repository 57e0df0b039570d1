//! Opening the file: its mode, its pragmas, its schema.
//!
//! Commits are durable before they are answered (D-37): WAL with full synchronisation. A file of a newer program, or
//! of another one, is not touched.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

/// Schema versions, oldest first; `user_version` counts those applied.
const MIGRATIONS: [&str; 1] = [include_str!("schema.sql")];
/// `application_id` of our files.
const OURS: i64 = 0x7361_7973;
/// Prepared statements kept per connection; there are fewer in the program.
const STATEMENTS: usize = 128;
/// How often a busy database is asked again, and how long between.
const PATIENCE: i32 = 10_000;
const PAUSE: Duration = Duration::from_micros(500);

/// The store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file, or the thread that writes to it, cannot be made.
    #[error("the store's file cannot be created or its mode set")]
    File(#[from] std::io::Error),
    /// The database refused.
    #[error("the store cannot be opened")]
    Database(#[from] rusqlite::Error),
    /// It was written by a newer program.
    #[error("the store has schema {found}, this program knows up to {known}; run the newer program")]
    Newer {
        /// The schema of the file.
        found: i64,
        /// The newest this program knows.
        known: i64,
    },
    /// A live process serves it under other public addresses.
    #[error(
        "another process serves this store as {served}; stop that one, or give this one the same public addresses"
    )]
    Elsewhere {
        /// The role and its address there.
        served: String,
    },
    /// It is a database of something else.
    #[error("the file is not a sayso store")]
    Foreign,
}

/// The connection that writes, on a file with our schema; and the store's epoch.
pub(super) fn writer(path: &Path) -> Result<(Connection, i64), OpenError> {
    private_file(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags)?;
    patient(&mut db)?;
    recognise(&db)?;
    in_wal(&db)?;
    db.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -8192;
         PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 67108864;",
    )?;
    migrate(&mut db)?;
    let epoch = db.query_row("SELECT value FROM meta WHERE name = 'epoch'", [], |row| row.get(0))?;
    Ok((db, epoch))
}

/// A connection that reads.
pub(super) fn reader(path: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags)?;
    patient(&mut db)?;
    Ok(db)
}

/// Short pauses, not a growing back-off: with a second process on the file, the gap between its batches is short and
/// a long sleeper would miss it again and again.
fn patient(db: &mut Connection) -> Result<(), rusqlite::Error> {
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    // One plan a statement: else it is planned again, at several times its cost, whenever other values are bound.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.busy_handler(Some(|asked: i32| {
        std::thread::sleep(PAUSE);
        asked < PATIENCE
    }))
}

/// The file exists and is its user's alone; SQLite gives its companions the same mode.
fn private_file(path: &Path) -> Result<(), std::io::Error> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
        let file = options.mode(0o600).open(path)?;
        if file.metadata()?.permissions().mode() & 0o777 != 0o600 {
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        }
    }
    #[cfg(not(unix))]
    options.open(path)?;
    Ok(())
}

fn number(db: &Connection, pragma: &str) -> Result<i64, rusqlite::Error> {
    db.pragma_query_value(None, pragma, |row| row.get(0))
}

fn recognise(db: &Connection) -> Result<(), OpenError> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let (application, version) = (number(db, "application_id")?, number(db, "user_version")?);
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != OURS && (application != 0 || version != 0 || tables != 0) {
        return Err(OpenError::Foreign);
    }
    if version > known {
        return Err(OpenError::Newer { found: version, known });
    }
    Ok(())
}

/// The busy handler is not asked about a change of journal mode, so a process that opens at the same moment is waited
/// for here.
fn in_wal(db: &Connection) -> Result<(), OpenError> {
    for _ in 0..PATIENCE {
        match db.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0)) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Err(error) if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) => {
                return Err(error.into());
            }
            _ => std::thread::sleep(PAUSE),
        }
    }
    Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into())
}

fn migrate(db: &mut Connection) -> Result<(), OpenError> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // INVARIANT: read again under the lock; another process may have migrated meanwhile.
    recognise(&transaction)?;
    let applied = number(&transaction, "user_version")?;
    for (version, script) in (1_i64..).zip(MIGRATIONS) {
        if version > applied {
            transaction.execute_batch(script)?;
            transaction.pragma_update(None, "user_version", version)?;
        }
    }
    transaction.pragma_update(None, "application_id", OURS)?;
    Ok(transaction.commit()?)
}
