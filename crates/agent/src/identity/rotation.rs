//! A new key for an authority: drawn beside the old one, vouched for by both, and used once the owner accepted it.
//!
//! Until then the old key is the agent's: a new one is a stranger to her. Of the old key a copy is kept.

use super::{Keystore, file_name, parse};
use crate::fault::Fault;
use crate::folder::FolderFault;
use sayso_protocol::SigningKey;
use sayso_protocol::id::Timestamp;
use sayso_protocol::payload::relink::{MAX_LIFE, Relink};
use url::Url;

impl Keystore {
    /// The statement that a new key succeeds the one for this authority, for its owner to accept; the new key is drawn
    /// when it is first asked for, and the same one is stated until it is adopted.
    ///
    /// # Errors
    /// When a key cannot be read, written or drawn, or does not sign.
    pub fn succeed(&self, issuer: &str, now: Timestamp) -> Result<Relink, Fault> {
        let url = Url::parse(issuer).map_err(|_| Fault::Resource)?;
        let old = self.key_for(&url)?;
        let name = Names::of(&url);
        let mut new = self.successor(&name)?;
        if new.as_ref().is_none_or(|new| new.kid() == old.kid()) {
            // Left by an adoption that did not get to its end: the key is in use already.
            self.folder.remove(&name.next)?;
            let text = super::drawn(&url)?;
            self.folder.create(&name.next, text.as_bytes())?;
            new = self.successor(&name)?;
        }
        let new = new.ok_or_else(|| FolderFault::Damaged { path: self.folder.path_of(&name.next) })?;
        Relink::sign(&old, &new, issuer, now, MAX_LIFE).map_err(|_| Fault::Unwritable)
    }

    /// Uses the new key from now on, if one was drawn; says whether.
    ///
    /// # Errors
    /// When a key cannot be read or written.
    pub fn adopt(&self, issuer: &Url) -> Result<bool, Fault> {
        let name = Names::of(issuer);
        let (Some(next), Some(old)) = (self.folder.read(&name.next)?, self.folder.read(&name.now)?) else {
            return Ok(false);
        };
        parse(&next, &self.folder.path_of(&name.next))?;
        self.folder.write(&name.old, &old)?;
        self.folder.write(&name.now, &next)?;
        self.folder.remove(&name.next)?;
        Ok(true)
    }

    fn successor(&self, name: &Names) -> Result<Option<SigningKey>, FolderFault> {
        let bytes = self.folder.read(&name.next)?;
        bytes.map(|bytes| parse(&bytes, &self.folder.path_of(&name.next))).transpose()
    }
}

/// The files of one authority's keys. Only the one in use is among the identities.
struct Names {
    now: String,
    next: String,
    old: String,
}

impl Names {
    fn of(issuer: &Url) -> Names {
        let now = file_name(&issuer.origin().ascii_serialization());
        let base = now.trim_end_matches(".pem");
        Names { next: format!("{base}.next"), old: format!("{base}.old"), now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::handle_of;

    const ISSUER: &str = "https://as.example.test";
    const NOW: Timestamp = Timestamp(1_790_000_000);

    #[test]
    fn a_new_key_is_stated_until_it_is_adopted() {
        let dir = tempfile::tempdir().unwrap();
        let keys = Keystore::open(dir.path()).unwrap();
        let url = Url::parse(ISSUER).unwrap();
        assert!(!keys.adopt(&url).unwrap(), "nothing was drawn");
        let old = keys.key_for(&url).unwrap();
        let proven = keys.succeed(ISSUER, NOW).unwrap().verify(ISSUER, NOW).unwrap();
        assert_eq!(proven.from, handle_of(&old));
        assert_eq!(keys.key_for(&url).unwrap().kid(), old.kid(), "until she accepted, the old one is used");
        assert_eq!(keys.succeed(ISSUER, NOW).unwrap().verify(ISSUER, NOW).unwrap(), proven);
        assert!(keys.adopt(&url).unwrap() && !keys.adopt(&url).unwrap());
        assert_eq!(handle_of(&keys.key_for(&url).unwrap()), proven.to);
        assert_eq!(keys.identities().unwrap().len(), 1);
        let again = keys.succeed(ISSUER, NOW).unwrap().verify(ISSUER, NOW).unwrap();
        assert_eq!(again.from, proven.to);
        assert_ne!(again.to, proven.from);
    }

    #[test]
    fn an_adoption_that_broke_off_leaves_a_key_that_is_not_its_own_successor() {
        let dir = tempfile::tempdir().unwrap();
        let keys = Keystore::open(dir.path()).unwrap();
        let url = Url::parse(ISSUER).unwrap();
        keys.succeed(ISSUER, NOW).unwrap();
        let name = Names::of(&url);
        let next = keys.folder.read(&name.next).unwrap().unwrap();
        keys.folder.write(&name.now, &next).unwrap();
        let proven = keys.succeed(ISSUER, NOW).unwrap().verify(ISSUER, NOW).unwrap();
        assert_ne!(proven.from, proven.to);
    }
}
