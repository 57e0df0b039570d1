//! One child process: lines in, lines out, and its end.
//!
//! It has an environment of its own, a process group of its own, and three descriptors (D-31). Dropping it closes its
//! input, asks its group to end, and then ends it. What the lines say is not known here, so a session can own one.

use super::command::StdioCommand;
use super::lines::{Line, Lines};
use super::splice::LINE;
use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as blocking;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child as Process, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Lines that may wait to be written.
pub(super) const AHEAD: usize = 64;
/// Longest line of stderr that is logged.
const STDERR_LINE: usize = 4 << 10;
/// Lines of stderr logged in one [`STDERR_TIME`], at most; the others are counted.
const STDERR_LINES: u32 = 200;
const STDERR_TIME: Duration = Duration::from_secs(10);
/// How long a child may take to end when its input is closed, and again when it is asked to.
const PATIENCE: Duration = Duration::from_secs(1);

/// A running child.
pub(super) struct Child {
    /// Lines to write; each ends with a line feed.
    pub(super) input: mpsc::Sender<Bytes>,
    /// Lines it wrote. They end when it has ended.
    pub(super) output: mpsc::Receiver<Line>,
    confided: Arc<AtomicBool>,
    _stop: oneshot::Sender<()>,
}

impl Child {
    /// Starts the command.
    pub(super) async fn start(command: &StdioCommand) -> io::Result<Self> {
        let mut process = spawn(command).await?;
        let group = Group::of(&process);
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the child has no pipes"));
        };
        let (input, lines) = mpsc::channel(AHEAD);
        let (sender, output) = mpsc::channel(AHEAD);
        let (stop, stopped) = oneshot::channel();
        tracing::info!(upstream = command.name(), pid = process.id(), "upstream.started");
        tokio::spawn(write(stdin, lines));
        tokio::spawn(read(stdout, sender));
        let confided = Arc::default();
        tokio::spawn(tell(stderr, command.name().to_owned(), Arc::clone(&confided)));
        tokio::spawn(attend(process, group, stopped, command.name().to_owned()));
        Ok(Self { input, output, confided, _stop: stop })
    }

    /// From now on it is handed what agents say, and what it says of that is not for a log.
    pub(super) fn confide(&self) {
        self.confided.store(true, Ordering::Relaxed);
    }
}

/// A child's process group, killed when this is dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(process: &Process) -> Self {
        Self(process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // A group that is gone cannot be signalled, which is as well.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // INVARIANT: the child led the group, and its number is not given away between its end and this.
        self.signal(Signal::KILL);
    }
}

/// Waits for the end of a child, or brings it about; then nothing of its group is left.
async fn attend(mut process: Process, group: Group, stopped: oneshot::Receiver<()>, name: String) {
    tokio::select! {
        ended = process.wait() => {
            let code = ended.ok().and_then(|status| status.code());
            tracing::warn!(upstream = name, code, "upstream.ended");
            return;
        }
        _ = stopped => {}
    }
    if timeout(PATIENCE, process.wait()).await.is_ok() {
        return;
    }
    group.signal(Signal::TERM);
    if timeout(PATIENCE, process.wait()).await.is_ok() {
        return;
    }
    drop(group);
    // It was killed; what is left is to be told so.
    let _ = process.wait().await;
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<Bytes>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

async fn read(stdout: ChildStdout, sender: mpsc::Sender<Line>) {
    let mut lines = Lines::new(stdout, LINE);
    while let Some(line) = lines.next().await {
        if sender.send(line).await.is_err() {
            return;
        }
    }
}

/// Logs what the child says beside the protocol, as text: a terminal executes nothing of it (D-28). Once it is handed
/// what agents say, its lines may repeat that, so from then on they are only counted.
async fn tell(stderr: ChildStderr, name: String, confided: Arc<AtomicBool>) {
    let mut lines = Lines::new(stderr, STDERR_LINE);
    let mut since = tokio::time::Instant::now();
    let (mut told, mut untold) = (0_u32, 0_u32);
    while let Some(line) = lines.next().await {
        let (text, cut) = match line {
            Line::Whole(text) => (text, false),
            Line::Long(text, _) => (text, true),
        };
        if since.elapsed() > STDERR_TIME {
            count(&name, untold);
            (since, told, untold) = (tokio::time::Instant::now(), 0, 0);
        }
        if told < STDERR_LINES && !confided.load(Ordering::Relaxed) {
            told += 1;
            tracing::info!(upstream = name, cut, line = printable(&text), "upstream.stderr");
        } else {
            untold = untold.saturating_add(1);
        }
    }
    count(&name, untold);
}

fn count(name: &str, untold: u32) {
    if untold > 0 {
        tracing::info!(upstream = name, lines = untold, "upstream.stderr_untold");
    }
}

fn printable(text: &[u8]) -> String {
    let mut out = String::new();
    for character in String::from_utf8_lossy(text).chars() {
        match character {
            '"' | '\'' | '\\' => out.push(character),
            _ => out.extend(character.escape_debug()),
        }
    }
    out
}

struct Order {
    command: StdioCommand,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Process>>,
}

/// Starts a process from the one thread that starts them. Its death is what a parent-death signal is about, and the
/// threads of a runtime come and go.
async fn spawn(command: &StdioCommand) -> io::Result<Process> {
    static SPAWNER: OnceLock<blocking::Sender<Order>> = OnceLock::new();
    let gone = || io::Error::other("processes cannot be started");
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, orders) = blocking::channel::<Order>();
        // Without the thread every order fails, which is said where it is given.
        let _ = std::thread::Builder::new().name("upstreams".into()).spawn(move || obey(&orders));
        sender
    });
    let (reply, started) = oneshot::channel();
    let order = Order { command: command.clone(), runtime: Handle::current(), reply };
    spawner.send(order).map_err(|_| gone())?;
    started.await.map_err(|_| gone())?
}

fn obey(orders: &blocking::Receiver<Order>) {
    while let Ok(Order { command, runtime, reply }) = orders.recv() {
        let _entered = runtime.enter();
        // Whoever ordered it and is gone does not want it; dropping it kills it.
        let _ = reply.send(build(&command).spawn());
    }
}

fn build(command: &StdioCommand) -> Command {
    let (program, arguments) = command.words(std::process::id());
    let mut building = Command::new(program);
    building
        .args(arguments)
        .env_clear()
        .envs(command.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    building
}

#[cfg(test)]
mod tests {
    use super::*;

    // D-28
    #[test]
    fn what_a_child_says_is_text() {
        let said = "a \u{1b}[31mred\u{1b}[0m \u{202e}evil\u{200b} \"quoted\" C:\\x Zürich\t\u{9b}".as_bytes();
        let shown = printable(&[said, b"\xff"].concat());
        assert!(!shown.chars().any(|character| character.is_control()));
        assert!(!shown.contains(['\u{202e}', '\u{200b}']));
        assert!(shown.contains("\"quoted\" C:\\x Zürich\\t"), "{shown}");
    }
}
