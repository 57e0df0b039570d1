//! What the store costs: finding a grant, moving a negotiation, spending a grant, beside one bare statement on a file
//! opened the same way. Writes are measured to the moment they are durable.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot set itself up has failed")]

#[path = "../../../benches/beside.rs"]
mod beside;
#[path = "../../../benches/stage.rs"]
mod stage;

use beside::{Beside, Floor};
use futures::future::join_all;
use rusqlite::Connection;
use sayso_authority::store::SqliteStore;
use sayso_owner::step::Beat;
use sayso_owner::store::Digest;
use sayso_owner::store::suite::wait;
use sayso_protocol::payload::negotiation::TokenReply;
use stage::{NOW, READ, Stage, TRADE};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Jobs handed over at once: what the store commits together.
const AT_ONCE: u64 = 64;

struct Bench {
    stage: Stage,
    /// Copies are made here.
    raw: Connection,
    copied: u64,
}

impl Bench {
    /// Single-use grants nobody spent, by token: copies of one that was negotiated.
    fn unspent(&mut self, times: u64) -> Vec<String> {
        let original = wait(self.stage.grant(TRADE));
        let tokens: Vec<String> = (0..times).map(|n| format!("copy {}", self.copied + n)).collect();
        let transaction = self.raw.transaction().unwrap();
        for token in &tokens {
            let copy = "INSERT INTO grants (token_sha256, owner, client_id, family, unit, resource, handle, epoch, kid,
                                            issued, exp, single_use, claims, likeness, approved_at, store_epoch)
                        SELECT ?1, owner, client_id, ?2, unit, resource, handle, epoch, kid, issued, exp, single_use,
                               claims, likeness, approved_at, store_epoch FROM grants WHERE token_sha256 = ?3";
            let digests = (Digest::of(token).0, token, Digest::of(&original).0);
            transaction.prepare_cached(copy).unwrap().execute(digests).unwrap();
        }
        transaction.commit().unwrap();
        self.copied += times;
        tokens
    }

    fn spend(&self, tokens: &[String], at_once: u64) -> Duration {
        let Stage { store, alice, server, .. } = &self.stage;
        let began = Instant::now();
        for some in tokens.chunks(usize::try_from(at_once).unwrap()) {
            let spent = some.iter().map(|token| store.consume(alice, server, Digest::of(token), token, NOW));
            let replies = wait(join_all(spent));
            assert!(replies.iter().all(|reply| reply.as_ref().unwrap().consumed));
        }
        began.elapsed()
    }
}

/// A table of ours on a file opened as the store opens its own.
fn bare(path: &Path) -> Connection {
    let db = Connection::open(path).unwrap();
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE bare (digest BLOB PRIMARY KEY, claims TEXT NOT NULL, spent INTEGER NOT NULL) STRICT;",
    )
    .unwrap();
    for n in 0..1000 {
        let row = (Digest::of(&format!("bare {n}")).0, "x".repeat(900));
        db.execute("INSERT INTO bare VALUES (?1, ?2, 0)", row).unwrap();
    }
    db
}

/// One row by its key.
fn read(db: &Connection) -> impl FnMut(u64) -> Duration {
    move |times| {
        let key = Digest::of("bare 500").0;
        let began = Instant::now();
        for _ in 0..times {
            let mut statement = db.prepare_cached("SELECT claims FROM bare WHERE digest = ?1").unwrap();
            let claims: String = statement.query_row([black_box(key)], |row| row.get(0)).unwrap();
            black_box(claims);
        }
        began.elapsed()
    }
}

/// One row changed, so many of them to a commit.
fn write(db: &Connection, at_once: u64) -> impl FnMut(u64) -> Duration {
    move |times| {
        let began = Instant::now();
        for first in (0..times).step_by(usize::try_from(at_once).unwrap()) {
            db.execute_batch("BEGIN IMMEDIATE").unwrap();
            for n in first..times.min(first + at_once) {
                let key = Digest::of(&format!("bare {}", n % 1000)).0;
                let change = "UPDATE bare SET spent = spent + 1 WHERE digest = ?1";
                db.prepare_cached(change).unwrap().execute([key]).unwrap();
            }
            db.execute_batch("COMMIT").unwrap();
        }
        began.elapsed()
    }
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sayso.db");
    let stage = wait(Stage::set(Arc::new(SqliteStore::open(&path).unwrap())));
    let mut bench = Bench { stage, raw: Connection::open(&path).unwrap(), copied: 0 };
    let db = bare(&folder.path().join("bare.db"));
    let mut beside = Beside::new();

    let token = wait(bench.stage.grant(READ));
    bench.unspent(1000);
    beside.measure(
        "store/introspect",
        Floor { what: "one row read by its key", timed: read(&db) },
        |times| {
            let Stage { store, alice, server, .. } = &bench.stage;
            let began = Instant::now();
            for _ in 0..times {
                black_box(wait(store.introspect(alice, server, Digest::of(black_box(&token)), NOW)).unwrap());
            }
            began.elapsed()
        },
    );

    let (ticket, proffer) = wait(bench.stage.terms(TRADE));
    let beat = bench.stage.agree(&proffer);
    let TokenReply::Submitted { mut ticket, .. } = wait(bench.stage.advance(&ticket, beat)) else {
        panic!("it does not wait for her")
    };
    let commit = |at_once| Floor { what: "one row changed and committed", timed: write(&db, at_once) };
    beside.measure("store/advance, a poll that still waits", commit(1), |times| {
        let began = Instant::now();
        for _ in 0..times {
            match wait(bench.stage.advance(&ticket, Beat::Present)) {
                TokenReply::Submitted { ticket: next, .. } => ticket = next,
                _ => panic!("it does not wait any more"),
            }
        }
        began.elapsed()
    });
    beside.measure("store/consume", commit(1), |times| {
        let tokens = bench.unspent(times);
        bench.spend(&tokens, 1)
    });
    let together = Floor { what: "one row of 64 in a commit", timed: write(&db, AT_ONCE) };
    beside.measure("store/consume, 64 at once", together, |times| {
        let tokens = bench.unspent(times);
        bench.spend(&tokens, AT_ONCE)
    });
    beside.show();
}
