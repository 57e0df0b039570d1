//! Secrets of the agent's own, for hosts that have to recognise what they gave away: 32 random bytes each, drawn once.

use crate::fault::Fault;
use crate::folder::{Folder, FolderFault};
use sayso_protocol::b64;
use std::path::Path;

/// The secrets of a folder.
pub(crate) struct Secrets(Folder);

impl Secrets {
    pub(crate) fn open(dir: &Path) -> Result<Secrets, FolderFault> {
        Ok(Secrets(Folder::open(dir)?.within("secrets")?))
    }

    /// The secret of this name, drawn now if there is none. Of two callers, both get the one that was first.
    pub(crate) fn of(&self, name: &str) -> Result<[u8; 32], Fault> {
        if self.0.read(name)?.is_none() {
            let mut drawn = [0; 32];
            getrandom::fill(&mut drawn).map_err(|_| Fault::Random)?;
            self.0.create(name, b64::encode(drawn).as_bytes())?;
        }
        let held = self.0.read(name)?.and_then(|text| String::from_utf8(text).ok());
        let bytes =
            held.and_then(|text| b64::decode(text.trim()).ok()).and_then(|bytes| bytes.try_into().ok());
        Ok(bytes.ok_or(FolderFault::Damaged { path: self.0.path_of(name) })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_drawn_once_and_a_damaged_one_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let secrets = Secrets::open(dir.path()).unwrap();
        let first = secrets.of("shim").unwrap();
        assert_eq!(Secrets::open(dir.path()).unwrap().of("shim").unwrap(), first);
        assert_ne!(secrets.of("other").unwrap(), first);
        secrets.0.write("shim", b"short").unwrap();
        assert!(secrets.of("shim").is_err());
    }
}
