//! The command of a stdio upstream: words and an environment, put together once.
//!
//! No shell reads it, and the environment is empty but for four names and those the operator adds (D-31). Nothing here
//! starts a process, and nothing here can be printed: an environment holds credentials.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// What every child is given of the environment, where it is there.
const GIVEN: [&str; 4] = ["PATH", "HOME", "LANG", "TERM"];

/// A command to run as an MCP server over stdio.
#[derive(Clone)]
pub struct StdioCommand {
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, OsString)>,
    pub(super) launcher: Option<PathBuf>,
}

/// A command that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCommand {
    /// A quote is not closed, or a backslash ends the line.
    #[error("a quote in the command is not closed")]
    Quote,
    /// There is no word in it.
    #[error("the command is empty")]
    Empty,
    /// A variable that was named is not there, or cannot be named so.
    #[error("the environment variable {0:?} is not set")]
    Variable(String),
}

impl StdioCommand {
    /// Splits a command line into words as a POSIX shell would, quotes and backslashes included; nothing is expanded.
    /// `environment` is asked for the four names every child gets and for each of `named`.
    ///
    /// # Errors
    /// When it has no words, or a variable that was named is not set.
    pub fn parse(
        line: &str,
        named: &[String],
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, BadCommand> {
        let mut words = shlex::split(line).ok_or(BadCommand::Quote)?.into_iter();
        let program = words.next().filter(|word| !word.is_empty()).ok_or(BadCommand::Empty)?;
        let mut given: Vec<(String, OsString)> = Vec::new();
        for name in GIVEN {
            given.extend(environment(name).map(|value| (name.to_owned(), value)));
        }
        for name in named {
            let sound = !name.is_empty() && !name.contains(['=', '\0']);
            let value = sound.then(|| environment(name)).flatten();
            let value = value.ok_or_else(|| BadCommand::Variable(name.clone()))?;
            given.retain(|(known, _)| known != name);
            given.push((name.clone(), value));
        }
        Ok(Self { program, arguments: words.collect(), environment: given, launcher: None })
    }

    /// Starts the command through this program, whose `main` begins with [`super::launch`]. Without one the child gets
    /// no parent-death signal and keeps whatever descriptors this process was itself given.
    #[must_use]
    pub fn launched_by(mut self, program: impl Into<PathBuf>) -> Self {
        self.launcher = Some(program.into());
        self
    }

    /// The words to run, launcher first.
    pub(super) fn words(&self, parent: u32) -> (OsString, Vec<OsString>) {
        let arguments = self.arguments.iter().map(OsString::from);
        match &self.launcher {
            None => (OsString::from(&self.program), arguments.collect()),
            Some(launcher) => {
                let own =
                    [super::launch::WORD.into(), parent.to_string().into(), OsString::from(&self.program)];
                (launcher.clone().into(), own.into_iter().chain(arguments).collect())
            }
        }
    }

    /// How logs name it.
    pub(super) fn name(&self) -> &str {
        let path = std::path::Path::new(&self.program);
        path.file_name().and_then(OsStr::to_str).unwrap_or("upstream")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str, named: &[&str]) -> Result<StdioCommand, BadCommand> {
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        let known = |name: &str| {
            ["PATH", "LANG", "API_KEY", "SECRET"].contains(&name).then(|| OsString::from(format!("{name}'s")))
        };
        StdioCommand::parse(line, &named, known)
    }

    // D-31
    #[test]
    fn words_are_split_and_nothing_is_expanded() {
        let command = parse(r#"npx -y "a b" 'c $HOME' d\ e *.txt $(id) ; rm"#, &[]).unwrap();
        assert_eq!(command.program, "npx");
        assert_eq!(command.arguments, ["-y", "a b", "c $HOME", "d e", "*.txt", "$(id)", ";", "rm"]);
        assert_eq!(parse("a 'b", &[]).err(), Some(BadCommand::Quote));
        assert_eq!(parse("  ", &[]).err(), Some(BadCommand::Empty));
        assert_eq!(parse("'' a", &[]).err(), Some(BadCommand::Empty));
    }

    // D-31
    #[test]
    fn the_environment_is_four_names_and_those_added() {
        let names = |command: StdioCommand| -> Vec<String> {
            command.environment.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(parse("a", &[]).unwrap()), ["PATH", "LANG"]);
        assert_eq!(names(parse("a", &["API_KEY", "PATH"]).unwrap()), ["LANG", "API_KEY", "PATH"]);
        for bad in ["MISSING", "", "A=B"] {
            assert_eq!(parse("a", &[bad]).err(), Some(BadCommand::Variable(bad.into())));
        }
    }
}
