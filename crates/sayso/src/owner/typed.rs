//! Her next command, as it has to be typed: to the same authority as this one.

use super::Command;
use crate::terminal::{plain, shell};
use std::path::Path;

/// Where `sayso owner` looks when it is not told.
pub(crate) const USUAL: &str = ".sayso";

/// What says which authority is meant, ready to be typed after a command.
pub(crate) struct Typed(String);

impl Typed {
    /// As this command said it.
    pub(super) fn like(command: &Command) -> Self {
        let path = |path: &Path| shell(&path.display().to_string());
        match (&command.authority, &command.key) {
            (Some(authority), Some(key)) => {
                Self(format!(" --authority {} --key {}", shell(authority), path(key)))
            }
            _ => Self::at(&command.data),
        }
    }

    /// For the authority of this data folder.
    pub(crate) fn at(data: &Path) -> Self {
        let usual = data == Path::new(USUAL);
        Self(if usual { String::new() } else { format!(" --data {}", shell(&data.display().to_string())) })
    }

    /// A command of `sayso owner` with these words.
    pub(crate) fn line(&self, words: &str) -> String {
        plain(&format!("sayso owner {words}{}", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_command_goes_to_the_same_place() {
        assert_eq!(Typed::at(Path::new(".sayso")).line("open"), "sayso owner open");
        assert_eq!(Typed::at(Path::new("my words")).line("open"), "sayso owner open --data 'my words'");
    }
}
