//! The files of a folder of policies, read whole and within bounds. What they say is read elsewhere.

use super::fault::{BadPolicies, BadPolicy};
use sayso_protocol::canon;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Most files of policies.
pub(super) const MOST_FILES: usize = 256;
/// Bytes of all policies together, and of the schema.
const POLICIES: u64 = 4 << 20;
/// Bytes of the entities.
const ENTITIES: u64 = 16 << 20;
/// The author's schema.
const SCHEMA_NAME: &str = "schema.cedarschema";
/// The entities everybody is told of.
pub(super) const ENTITIES_NAME: &str = "entities.json";

/// One file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// What a folder holds.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) root: PathBuf,
    /// By name.
    pub(super) policies: Vec<Text>,
    pub(super) schema: Option<Text>,
    pub(super) entities: Option<Text>,
}

/// What tells two contents of a folder apart.
pub(super) type Digest = [u8; 32];

impl Found {
    /// The digest of every name and every byte.
    pub(super) fn digest(&self) -> Digest {
        let mut all = Vec::new();
        for file in self.policies.iter().chain(&self.schema).chain(&self.entities) {
            for part in [file.path.as_os_str().as_encoded_bytes(), file.text.as_bytes()] {
                all.extend(canon::sha256(part));
            }
        }
        canon::sha256(&all)
    }
}

/// Reads a folder.
pub(super) fn read(root: &Path) -> Result<Found, BadPolicies> {
    let bad = |path: &Path, why| BadPolicies { path: path.to_owned(), why };
    let unreadable = |fault| bad(root, BadPolicy::Unreadable(fault));
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(root).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension() == Some(OsStr::new("cedar")) && !is_hidden(&path) {
            paths.push(path);
        }
        if paths.len() > MOST_FILES {
            return Err(bad(root, BadPolicy::TooMany));
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(bad(root, BadPolicy::Empty));
    }
    let mut left = POLICIES;
    let mut policies = Vec::with_capacity(paths.len());
    for path in paths {
        let text = text(&path, left, POLICIES)?;
        left = left.saturating_sub(text.len() as u64);
        policies.push(Text { path, text });
    }
    let schema = optional(root.join(SCHEMA_NAME), POLICIES)?;
    let entities = optional(root.join(ENTITIES_NAME), ENTITIES)?;
    Ok(Found { root: root.to_owned(), policies, schema, entities })
}

/// What an editor keeps beside a file is not meant.
fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn optional(path: PathBuf, limit: u64) -> Result<Option<Text>, BadPolicies> {
    match text(&path, limit, limit) {
        Ok(text) => Ok(Some(Text { path, text })),
        Err(BadPolicies { why: BadPolicy::Unreadable(fault), .. })
            if fault.kind() == io::ErrorKind::NotFound =>
        {
            Ok(None)
        }
        Err(bad) => Err(bad),
    }
}

fn text(path: &Path, left: u64, limit: u64) -> Result<String, BadPolicies> {
    let bad = |why| BadPolicies { path: path.to_owned(), why };
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(left + 1).read_to_end(&mut bytes));
    read.map_err(|fault| bad(BadPolicy::Unreadable(fault)))?;
    if bytes.len() as u64 > left {
        return Err(bad(BadPolicy::TooLarge(limit)));
    }
    String::from_utf8(bytes).map_err(|_| bad(BadPolicy::NotText))
}
