//! One era's child, kept alive.
//!
//! It is started when it is first needed and again, after a growing pause, whenever it dies (D-31). Some servers decide
//! by their first message which era they speak, so each era has a child of its own.

use super::board::{Board, OnChange};
use super::child::Child;
use super::command::StdioCommand;
use super::hello::{Era, Hello, Unspoken, meet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// The first pause before a child is started again; each is twice the one before.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long a child lives before its death is taken for an accident.
const SETTLED: Duration = Duration::from_secs(60);
/// How long it is remembered that a child does not speak an era, if it said so itself.
const SAID: Duration = Duration::from_secs(600);
/// And if it only kept silent or ended: that may have been a bad start.
const UNSAID: Duration = Duration::from_secs(30);

/// A child one can talk to.
pub(super) struct Spoken {
    pub(super) board: Arc<Board>,
    pub(super) hello: Hello,
}

/// What came of waiting for a child.
#[derive(Clone)]
pub(super) enum Readiness {
    /// It is there.
    Up(Arc<Spoken>),
    /// It does not speak this era, but these revisions, if it said any.
    Foreign(Vec<String>),
    /// It is not there now.
    Away,
}

#[derive(Clone)]
enum State {
    Starting,
    Up(Arc<Spoken>),
    /// It could not be started or talked to; there will be another try.
    Down,
    Foreign {
        spoken: Vec<String>,
        until: Instant,
    },
}

/// How a child's life ended.
enum End {
    /// After we had met.
    Died,
    /// Before.
    Unmet,
    /// There is no use in another.
    Foreign(State),
}

/// The child of one era, and whoever keeps it alive.
pub(super) struct Lane {
    command: StdioCommand,
    era: Era,
    on_change: OnChange,
    keeper: Mutex<Option<Keeper>>,
}

struct Keeper {
    state: watch::Receiver<State>,
    task: JoinHandle<()>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Lane {
    pub(super) fn new(command: StdioCommand, era: Era, on_change: OnChange) -> Self {
        Self { command, era, on_change, keeper: Mutex::new(None) }
    }

    /// The child, started if it was not, waited for so long.
    pub(super) async fn ready(&self, wait: Duration) -> Readiness {
        let mut state = self.watched();
        let settled = state.wait_for(|state| !matches!(state, State::Starting));
        match timeout(wait, settled).await.map(|seen| seen.map(|state| state.clone())) {
            Ok(Ok(State::Up(spoken))) => Readiness::Up(spoken),
            Ok(Ok(State::Foreign { spoken, .. })) => Readiness::Foreign(spoken),
            _ => Readiness::Away,
        }
    }

    fn watched(&self) -> watch::Receiver<State> {
        let mut keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        // A runtime that ended took the task with it; that happens to nobody but tests.
        let stale = |keeper: &Keeper| {
            keeper.task.is_finished()
                && !matches!(&*keeper.state.borrow(), State::Foreign { until, .. } if *until > Instant::now())
        };
        if keeper.as_ref().is_none_or(stale) {
            let (sender, state) = watch::channel(State::Starting);
            let task =
                tokio::spawn(keep(self.command.clone(), self.era, Arc::clone(&self.on_change), sender));
            *keeper = Some(Keeper { state, task });
        }
        keeper.as_ref().map_or_else(|| watch::channel(State::Starting).1, |keeper| keeper.state.clone())
    }
}

/// Closes a board when whoever serves it ends, however it ends.
struct Serving(Arc<Board>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn keep(command: StdioCommand, era: Era, on_change: OnChange, state: watch::Sender<State>) {
    let mut pause = PAUSE;
    loop {
        let started = Instant::now();
        let end = match Child::start(&command).await {
            Ok(child) => live(child, era, &on_change, &state).await,
            Err(fault) => {
                tracing::warn!(upstream = command.name(), kind = ?fault.kind(), "upstream.not_started");
                End::Unmet
            }
        };
        // Who asks while one that was there is being replaced waits; who asks for one that never was does not.
        let next = match end {
            End::Died => State::Starting,
            End::Unmet => State::Down,
            End::Foreign(foreign) => {
                state.send_replace(foreign);
                return;
            }
        };
        state.send_replace(next);
        pause = if started.elapsed() > SETTLED { PAUSE } else { pause };
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// One child's life.
async fn live(mut child: Child, era: Era, on_change: &OnChange, state: &watch::Sender<State>) -> End {
    let board = Board::new(child.input.clone(), Arc::clone(on_change));
    let _serving = Serving(Arc::clone(&board));
    let mut meeting = Box::pin(meet(&board, era));
    let hello = loop {
        tokio::select! {
            met = &mut meeting => break met,
            line = child.output.recv() => match line {
                Some(line) => board.deliver(line),
                None => break Err(Unspoken::Silent),
            },
        }
    };
    drop(meeting);
    match hello {
        Ok(hello) => {
            tracing::info!(version = hello.version, "upstream.ready");
            child.confide();
            state.send_replace(State::Up(Arc::new(Spoken { board: Arc::clone(&board), hello })));
            while let Some(line) = child.output.recv().await {
                board.deliver(line);
            }
            End::Died
        }
        Err(Unspoken::Foreign(spoken)) => {
            End::Foreign(State::Foreign { spoken, until: Instant::now() + SAID })
        }
        // Some servers of the older era end when their first message is not the one they wait for.
        Err(Unspoken::Silent) if era == Era::Modern => {
            End::Foreign(State::Foreign { spoken: Vec::new(), until: Instant::now() + UNSAID })
        }
        Err(Unspoken::Silent) => End::Unmet,
    }
}
