//! What is SQLite's own about the store: the file, its triggers, other processes on it, jobs that fail or are
//! abandoned, and how fast it goes.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use rusqlite::Connection;
use sayso_authority::store::{OpenError, SqliteStore};
use sayso_owner::ledger::{Author, Kind, Record};
use sayso_owner::step::Step;
use sayso_owner::store::suite::wait;
use sayso_owner::store::{Advanced, Digest, StepFn, Store, Unavailable};
use sayso_owner::unit::Owner;
use sayso_protocol::payload::negotiation::TokenReply;
use sayso_protocol::ticket::Attempt;
use sayso_protocol::{OwnerName, Timestamp};
use std::future::Future as _;
use std::path::PathBuf;
use std::pin::pin;
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

const NOW: Timestamp = Timestamp(1_790_000_000);

struct House {
    folder: tempfile::TempDir,
    store: SqliteStore,
    alice: OwnerName,
}

fn house() -> House {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("sayso.db")).unwrap();
    let alice: OwnerName = "alice".parse().unwrap();
    wait(store.settle_owner(&Owner { name: alice.clone(), namespace: "ns".into() })).unwrap();
    House { folder, store, alice }
}

impl House {
    fn path(&self) -> PathBuf {
        self.folder.path().join("sayso.db")
    }

    fn raw(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }

    fn append(&self, owner: &OwnerName) -> Result<(), Unavailable> {
        wait(self.store.append(owner, &row(), NOW))
    }

    fn rows(&self) -> usize {
        wait(self.store.ledger(&self.alice, None, 0, i64::MAX)).unwrap().len()
    }
}

fn row() -> Record {
    let entry = serde_json::json!({ "because": "test" });
    Record { kind: Kind::Refused, family: None, handle: None, author: Author::Policy, entry }
}

#[cfg(unix)]
#[test]
fn the_files_are_their_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let house = house();
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for companion in ["sayso.db", "sayso.db-wal", "sayso.db-shm"] {
        assert_eq!(mode(house.folder.path().join(companion)), 0o600, "{companion}");
    }
    let path = house.path();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    SqliteStore::open(&path).unwrap();
    assert_eq!(mode(path), 0o600);
    let nowhere = house.folder.path().join("nowhere").join("sayso.db");
    assert!(matches!(SqliteStore::open(&nowhere), Err(OpenError::File(_))));
    assert!(!house.folder.path().join("nowhere").exists());
}

// TERMS-12
#[test]
fn the_record_and_the_terms_cannot_be_rewritten() {
    let house = house();
    house.append(&house.alice).unwrap();
    house.append(&house.alice).unwrap();
    let raw = house.raw();
    raw.execute_batch(
        "INSERT INTO terms (template_id, owner, unit, version, body, author, published)
         VALUES ('ns/u/v1', 'alice', 'u', 1, '{}', '{}', 1)",
    )
    .unwrap();
    for forbidden in [
        "UPDATE ledger SET entry = '{}' WHERE seq = 1",
        "UPDATE ledger SET seq = 9 WHERE seq = 2",
        "DELETE FROM ledger WHERE seq = 2",
        "DELETE FROM ledger",
        "INSERT OR REPLACE INTO ledger (owner, seq, ts, kind, author, entry)
         VALUES ('alice', 1, 1, 'refused', '\"policy\"', '{}')",
        "INSERT INTO ledger (owner, seq, ts, kind, author, entry)
         VALUES ('alice', 9, 1, 'refused', '\"policy\"', '{}')",
        "UPDATE terms SET body = '[]'",
        "DELETE FROM terms",
        "INSERT OR REPLACE INTO terms (template_id, owner, unit, version, body, author, published)
         VALUES ('ns/u/v1', 'alice', 'u', 1, '[]', '{}', 1)",
        "INSERT OR REPLACE INTO terms (template_id, owner, unit, version, body, author, published)
         VALUES ('ns/other/v1', 'alice', 'u', 1, '[]', '{}', 1)",
    ] {
        let error = raw.execute_batch(forbidden).unwrap_err().to_string();
        assert!(error.contains("the record") || error.contains("published terms"), "{forbidden}: {error}");
    }
    assert_eq!(house.rows(), 2);
}

#[test]
fn a_file_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str, script: &str| {
        let path = folder.path().join(name);
        Connection::open(&path).unwrap().execute_batch(script).unwrap();
        let before = std::fs::read(&path).unwrap();
        let error = SqliteStore::open(&path).err().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), before);
        error
    };
    assert!(matches!(open("foreign", "CREATE TABLE theirs (x)"), OpenError::Foreign));
    assert!(matches!(open("named", "PRAGMA application_id = 7"), OpenError::Foreign));
    let newer = open("newer", "PRAGMA application_id = 1935767923; PRAGMA user_version = 2");
    assert!(matches!(newer, OpenError::Newer { found: 2, known: 1 }), "{newer}");
    std::fs::write(folder.path().join("noise"), vec![7_u8; 8192]).unwrap();
    assert!(matches!(SqliteStore::open(&folder.path().join("noise")), Err(OpenError::Database(_))));
}

#[test]
fn many_may_open_a_new_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sayso.db");
    let epochs: Vec<i64> = thread::scope(|scope| {
        let open = || scope.spawn(|| SqliteStore::open(&path).unwrap().epoch());
        let opening: Vec<_> = (0..16).map(|_| open()).collect();
        opening.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(epochs, [1; 16]);
}

#[test]
fn a_sleeping_writer_elsewhere_is_waited_for() {
    let house = house();
    let (raw, snapshot) = (house.raw(), house.raw());
    snapshot.execute_batch("BEGIN; SELECT count(*) FROM ledger").unwrap();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..32).map(|_| scope.spawn(|| house.append(&house.alice))).collect();
        thread::sleep(Duration::from_millis(700));
        assert!(waiting.iter().all(|waiting| !waiting.is_finished()), "nothing is told before it is kept");
        assert_eq!(house.rows(), 0, "reads do not wait");
        raw.execute_batch("COMMIT").unwrap();
        for waiting in waiting {
            assert_eq!(waiting.join().unwrap(), Ok(()));
        }
    });
    assert_eq!(house.rows(), 32);
}

#[test]
fn a_job_that_fails_is_undone_alone() {
    let house = house();
    let nobody: OwnerName = "nobody".parse().unwrap();
    let owners: Vec<_> = (0..60).map(|caller| if caller % 3 == 0 { &nobody } else { &house.alice }).collect();
    let answers: Vec<_> = thread::scope(|scope| {
        let writing: Vec<_> = owners.iter().map(|owner| scope.spawn(|| house.append(owner))).collect();
        writing.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 40);
    assert_eq!(house.rows(), 40);
}

#[test]
fn a_panic_in_a_step_spends_nothing() {
    let house = house();
    let broken: StepFn = Box::new(|_, _| panic!("a defect"));
    let opened = wait(house.store.open(&attempt("f-1"), Digest::of("t-1"), None, broken, NOW));
    assert_eq!(opened.err(), Some(Unavailable));
    let opened = wait(house.store.open(&attempt("f-1"), Digest::of("t-1"), None, idle("t-1"), NOW));
    assert!(matches!(opened, Ok(Advanced::Won(_))));
}

#[test]
fn an_abandoned_call_leaves_nothing() {
    let house = house();
    let raw = house.raw();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    {
        let record = row();
        let mut call = pin!(house.store.append(&house.alice, &record, NOW));
        let mut context = Context::from_waker(Waker::noop());
        assert!(call.as_mut().poll(&mut context).is_pending());
    }
    raw.execute_batch("COMMIT").unwrap();
    house.append(&house.alice).unwrap();
    assert_eq!(house.rows(), 1);
}

fn attempt(family: &str) -> Attempt {
    Attempt {
        negotiation: family.parse().unwrap(),
        owner: "alice".parse().unwrap(),
        resource_server: "https://gw.example".parse().unwrap(),
        resource: "vault/x".parse().unwrap(),
        scopes: vec![],
        expires: NOW.plus(300),
    }
}

/// A step that only rotates the ticket.
fn idle(ticket: &str) -> StepFn {
    let ticket = ticket.to_owned();
    Box::new(move |negotiation, _| Step {
        state: negotiation.state.clone(),
        rotates: true,
        due: NOW,
        reply: TokenReply::Submitted { ticket: ticket.clone(), interval: 1 },
        records: vec![],
        grant: None,
        untouched: false,
        supersedes: None,
    })
}

/// Run alone: `cargo test -p sayso-authority --test sqlite -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn advances_per_second() {
    let house = house();
    for callers in [1, 64] {
        let rounds = 20_000 / callers.max(10);
        let start = Instant::now();
        thread::scope(|scope| {
            for caller in 0..callers {
                let store = &house.store;
                scope.spawn(move || {
                    let ticket = |round| format!("{callers}-{caller}-{round}");
                    let first = ticket(0);
                    let family = attempt(&first);
                    wait(store.open(&family, Digest::of(&first), None, idle(&first), NOW)).unwrap();
                    for round in 1..rounds {
                        let (spent, next) = (Digest::of(&ticket(round - 1)), ticket(round));
                        let won = wait(store.advance(spent, Digest::of(&next), None, idle(&next), NOW));
                        assert!(matches!(won, Ok(Advanced::Won(_))));
                    }
                });
            }
        });
        let done = callers * rounds;
        let each = start.elapsed().as_secs_f64() / f64::from(done);
        println!("{callers} callers: {:.0} durable advances/s", 1.0 / each);
    }
}
