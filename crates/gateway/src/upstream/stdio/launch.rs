//! The moment between fork and exec of a stdio upstream, as a program of its own.
//!
//! It asks for death when its parent dies, marks every inherited descriptor but the three to be closed, and becomes the
//! command (D-31). What must be done in a forked child needs unsafe code there; in a fresh process it does not.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The first argument that means this.
pub(super) const WORD: &str = "--become-upstream";

/// Becomes the command, if that is what these arguments ask for; they include the program's own name. To be called first
/// thing in `main`. It returns `None` when it was not asked for, and a failure's exit code when it could not.
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != WORD {
        return None;
    }
    let fault = match (arguments.next().and_then(|parent| parent.to_str()?.parse().ok()), arguments.next()) {
        (Some(parent), Some(program)) => become_command(parent, program, arguments),
        _ => io::Error::other("malformed launch"),
    };
    eprintln!("the upstream's command cannot be run: {fault}");
    Some(ExitCode::from(127))
}

/// Returns only when it fails.
fn become_command(parent: u32, program: OsString, arguments: impl Iterator<Item = OsString>) -> io::Error {
    if let Err(fault) = die_with_parent() {
        return fault;
    }
    // The parent may have died before the signal was asked for; then it would never come.
    let alive = rustix::process::getppid().is_some_and(|now| u32::try_from(now.as_raw_pid()) == Ok(parent));
    if !alive {
        return io::Error::other("whoever started it is gone");
    }
    close_fds::set_fds_cloexec(3, &[]);
    Command::new(program).args(arguments).exec()
}

#[cfg(target_os = "linux")]
fn die_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent() -> io::Result<()> {
    Ok(())
}
