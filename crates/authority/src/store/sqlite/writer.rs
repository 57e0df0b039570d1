//! The one writer: a thread that runs jobs in batches, each batch one durable transaction.
//!
//! A job is undone alone when it fails, and nobody is told anything before the commit (D-37). A batch that cannot be
//! committed has happened to nobody.

use super::fault::Fault;
use super::open::OpenError;
use crate::observe::Observed;
use rusqlite::Connection;
use sayso_owner::store::Unavailable;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

/// Jobs in one transaction.
const BATCH: usize = 64;
/// Jobs that may wait; past that, callers do.
const QUEUE: usize = 1024;

/// What a job did.
pub(super) enum Outcome<T> {
    /// Its writes stand, once committed.
    Kept(T),
    /// Its writes are taken back; the answer holds.
    Undone(T),
}

/// The result of a job.
pub(super) type Worked<T> = Result<Outcome<T>, Fault>;

pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
    pub(super) observed: Observed,
}

impl Writer {
    /// Starts the thread that owns `db`.
    pub(super) fn start(db: Connection) -> Result<Self, OpenError> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let thread =
            std::thread::Builder::new().name("sayso-store".into()).spawn(move || serve(&db, queue))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), observed: Observed::default() })
    }

    /// Runs `work` in a transaction and answers when it is durable. A caller that goes away before its turn leaves
    /// nothing behind.
    pub(super) async fn write<T, F>(&self, op: &'static str, work: F) -> Result<T, Unavailable>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Worked<T> + Send + 'static,
    {
        let began = Instant::now();
        let answer = self.ask(op, work).await;
        self.observed.stored(op, began.elapsed());
        answer
    }

    async fn ask<T, F>(&self, op: &'static str, work: F) -> Result<T, Unavailable>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Worked<T> + Send + 'static,
    {
        let (told, heard) = oneshot::channel();
        let task: Box<dyn Job> = Box::new(Task { op, work: Some(work), answer: None, told });
        let jobs = self.jobs.as_ref().ok_or(Unavailable)?;
        jobs.send(task).await.map_err(|_| Unavailable)?;
        heard.await.map_err(|_| Unavailable)?
    }

    /// Finishes what is queued and ends the thread.
    pub(super) fn drain(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A writer that died has already failed its callers.
            let _ended = thread.join();
        }
    }
}

trait Job: Send {
    /// Runs in a savepoint. An error means that the transaction itself cannot go on.
    fn run(&mut self, db: &Connection) -> Result<(), Fault>;
    /// Tells the caller.
    fn tell(self: Box<Self>, committed: bool);
}

struct Task<T, F> {
    op: &'static str,
    work: Option<F>,
    answer: Option<T>,
    told: oneshot::Sender<Result<T, Unavailable>>,
}

impl<T, F> Job for Task<T, F>
where
    T: Send + 'static,
    F: FnOnce(&Connection) -> Worked<T> + Send + 'static,
{
    fn run(&mut self, db: &Connection) -> Result<(), Fault> {
        let Some(work) = self.work.take().filter(|_| !self.told.is_closed()) else { return Ok(()) };
        execute(db, "SAVEPOINT job")?;
        let worked = catch_unwind(AssertUnwindSafe(|| work(db))).unwrap_or(Err(Fault::Panic));
        if db.is_autocommit() {
            return Err(Fault::Gone);
        }
        let (keeps, answer) = match worked {
            Ok(Outcome::Kept(answer)) => (true, Some(answer)),
            Ok(Outcome::Undone(answer)) => (false, Some(answer)),
            Err(fault) => {
                fault.unavailable(self.op);
                (false, None)
            }
        };
        self.answer = answer;
        if !keeps {
            execute(db, "ROLLBACK TO job")?;
        }
        execute(db, "RELEASE job")
    }

    fn tell(self: Box<Self>, committed: bool) {
        let answer = self.answer.filter(|_| committed).ok_or(Unavailable);
        // A caller that went away has nothing to be told.
        let _told = self.told.send(answer);
    }
}

fn serve(db: &Connection, mut queue: mpsc::Receiver<Box<dyn Job>>) {
    let mut batch = Vec::with_capacity(BATCH);
    while queue.blocking_recv_many(&mut batch, BATCH) > 0 {
        let ran = run(db, &mut batch);
        if let Err(fault) = &ran {
            fault.unavailable("commit");
            if !db.is_autocommit() {
                // A rollback that fails leaves the next BEGIN to fail: closed either way.
                let _undone = execute(db, "ROLLBACK");
            }
        }
        for job in batch.drain(..) {
            job.tell(ran.is_ok());
        }
    }
}

/// One transaction. It begins as a writer, so it never has to be upgraded under another process's feet.
fn run(db: &Connection, batch: &mut [Box<dyn Job>]) -> Result<(), Fault> {
    execute(db, "BEGIN IMMEDIATE")?;
    for job in batch {
        job.run(db)?;
    }
    execute(db, "COMMIT")
}

fn execute(db: &Connection, sql: &str) -> Result<(), Fault> {
    db.prepare_cached(sql)?.execute([])?;
    Ok(())
}
