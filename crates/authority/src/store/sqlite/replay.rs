//! Seen signatures, and forgetting what nothing can refer to any more.

use super::writer::{Outcome, Worked};
use rusqlite::Connection;
use sayso_owner::store::Digest;
use sayso_protocol::Timestamp;

/// What is over is kept this long, so that a clock that steps back revives nothing (D-39).
const LAG: i64 = 24 * 3600;

/// Rows of a table dropped in one transaction, so that pruning never holds up the writer for long.
const CHUNK: &str = "1000";

/// Remembers a signature; false when it is remembered already.
pub(super) fn remember(db: &Connection, signature: Digest, until: Timestamp) -> Worked<bool> {
    let inserted = db
        .prepare_cached("INSERT INTO replay (signature, until) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute((signature.0, until.0))?;
    Ok(Outcome::Kept(inserted == 1))
}

/// Drops a chunk of what ended a day ago; how many rows went.
pub(super) fn prune(db: &Connection, now: Timestamp) -> Worked<usize> {
    let horizon = now.plus(-LAG).0;
    let ends = [
        ("negotiations", "family", "keep_until"),
        ("grants", "token_sha256", "exp"),
        ("pats", "digest", "expires"),
        ("replay", "signature", "until"),
        ("sign_in_links", "digest", "expires"),
        ("sessions", "digest", "expires"),
    ];
    let mut gone = 0;
    for (table, key, end) in ends {
        gone += db
            .prepare_cached(&format!(
                "DELETE FROM {table} WHERE {key} IN
                 (SELECT {key} FROM {table} WHERE {end} <= ?1 LIMIT {CHUNK})"
            ))?
            .execute([horizon])?;
    }
    Ok(Outcome::Kept(gone))
}
