//! Why the files of a folder are no set of policies: the file, what is wrong with it, and what to do.
//! The sentences repeat words of the author's own files and nothing of any request.

use super::folder;
use std::path::PathBuf;

/// A folder whose policies cannot decide.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct BadPolicies {
    /// The file, or the folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: BadPolicy,
}

/// What is wrong with the files of a folder.
#[derive(Debug, thiserror::Error)]
pub enum BadPolicy {
    /// It cannot be read.
    #[error("cannot be read ({0}); name a folder of policies that this process may read")]
    Unreadable(std::io::Error),
    /// Nobody would look at it again.
    #[error("cannot be watched for changes ({0})")]
    Unwatched(std::io::Error),
    /// There is no policy.
    #[error("holds no file *.cedar, and without policies every answer is no; write one")]
    Empty,
    /// It has too many files.
    #[error("holds more than {} files *.cedar; join some of them", folder::MOST_FILES)]
    TooMany,
    /// It has too many bytes.
    #[error("is larger than {} MiB; the policies of one decision point are to stay below that", .0 >> 20)]
    TooLarge(u64),
    /// It is not text.
    #[error("is not UTF-8 text")]
    NotText,
    /// It is not Cedar.
    #[error("{} {fault}; correct it and save again", of_line(.line))]
    Syntax {
        /// Where.
        line: Option<usize>,
        /// What Cedar says.
        fault: Box<str>,
    },
    /// It is a template, which nobody here fills in.
    #[error("policy `{0}` is a template; write its principal and resource out")]
    Template(String),
    /// Two policies have one name.
    #[error("two policies are named `{0}`; give each its own @id")]
    Named(String),
    /// The schema is none.
    #[error("{} {fault}; correct the schema", of_line(.line))]
    Schema {
        /// Where.
        line: Option<usize>,
        /// What Cedar says.
        fault: Box<str>,
    },
    /// The entities are none.
    #[error("{0}; correct the entities, or declare their types and attributes in schema.cedarschema")]
    Entities(Box<str>),
    /// The entities are no entities: nothing would tell this from a list that got lost.
    #[error(
        "holds no entity of any type, so requests would be believed about all of them; put the entities back, or delete \
         the file if that is meant, and start again"
    )]
    NoEntities,
    /// A type whose entities were there is without any.
    #[error(
        "has no entity of type `{0}` any more, so requests would be believed about all of them; put the entities back, or \
         start again if that is meant"
    )]
    Unlisted(String),
    /// A policy is about what the schema does not have.
    #[error(
        "{} policy `{policy}`: {fault}; correct it, or declare what it names in schema.cedarschema beside it",
        of_line(.line)
    )]
    Invalid {
        /// The policy.
        policy: String,
        /// Where.
        line: Option<usize>,
        /// What Cedar says.
        fault: Box<str>,
    },
}

fn of_line(line: &Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}:"))
}
