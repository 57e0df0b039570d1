//! Who the agent is to an authority: a bare key, drawn on first use and kept for that authority alone (D-33).
//! It keeps keys apart and private: one file each, 0600, PKCS#8, created by exactly one caller, and refused when
//! others can read it. A key is used to sign agreements, polls and calls, elsewhere.

mod rotation;

use crate::fault::Fault;
use crate::folder::{Folder, FolderFault, read_private};
use sayso_protocol::canon::sha256;
use sayso_protocol::id::Handle;
use sayso_protocol::{SigningKey, b64};
use std::path::{Path, PathBuf};
use url::Url;

/// The folder an agent keeps its keys, receipts and grants in, unless it is told another one.
#[must_use]
pub fn default_dir(xdg_config_home: Option<&str>, home: Option<&str>) -> Option<PathBuf> {
    let absolute = |text: Option<&str>| text.map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute(xdg_config_home).or_else(|| absolute(home).map(|home| home.join(".config")));
    config.map(|config| config.join("sayso"))
}

/// The agent's keys.
pub struct Keystore {
    folder: Folder,
}

/// What an authority knows the agent by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The authority's origin.
    pub authority: String,
    /// The handle its owner sees.
    pub handle: Handle,
    /// Where the key is.
    pub path: PathBuf,
}

const MARK: &str = "authority: ";

impl Keystore {
    /// Opens the keys of a folder, creating it where needed.
    ///
    /// # Errors
    /// When it cannot be created or entered.
    pub fn open(dir: &Path) -> Result<Keystore, FolderFault> {
        Ok(Keystore { folder: Folder::open(dir)?.within("keys")? })
    }

    /// The key for the authority of this issuer, drawn now if there is none.
    ///
    /// # Errors
    /// When it cannot be read, written or drawn.
    pub fn key_for(&self, issuer: &Url) -> Result<SigningKey, Fault> {
        let origin = issuer.origin().ascii_serialization();
        let name = file_name(&origin);
        if let Some(key) = self.held(&name)? {
            return Ok(key);
        }
        self.folder.create(&name, drawn(issuer)?.as_bytes())?;
        // Read back, so that of two callers both use the key of the one who created it.
        let damaged = FolderFault::Damaged { path: self.folder.path_of(&name) };
        Ok(self.held(&name)?.ok_or(damaged)?)
    }

    /// The key for an authority, if one was drawn.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn drawn_for(&self, issuer: &Url) -> Result<Option<SigningKey>, FolderFault> {
        self.held(&file_name(&issuer.origin().ascii_serialization()))
    }

    fn held(&self, name: &str) -> Result<Option<SigningKey>, FolderFault> {
        let bytes = self.folder.read(name)?;
        bytes.map(|bytes| parse(&bytes, &self.folder.path_of(name))).transpose()
    }

    /// Every authority the agent has a key for.
    ///
    /// # Errors
    /// When a key cannot be read.
    pub fn identities(&self) -> Result<Vec<Identity>, FolderFault> {
        let mut found = Vec::new();
        for name in self.folder.names(".pem")? {
            let path = self.folder.path_of(&name);
            let Some(bytes) = self.folder.read(&name)? else { continue };
            let key = parse(&bytes, &path)?;
            let text = String::from_utf8_lossy(&bytes);
            let authority =
                text.lines().find_map(|line| line.strip_prefix(MARK)).unwrap_or_default().to_owned();
            found.push(Identity { authority, handle: handle_of(&key), path });
        }
        Ok(found)
    }
}

/// The handle a key is known by (CORE-45).
#[must_use]
pub fn handle_of(key: &SigningKey) -> Handle {
    Handle::pseudonymous(&key.verifying().thumbprint())
}

/// Reads a key from a file the user names.
///
/// # Errors
/// When others can read it, or it holds no Ed25519 key.
pub fn read_key(path: &Path) -> Result<SigningKey, FolderFault> {
    parse(&read_private(path)?, path)
}

fn parse(bytes: &[u8], path: &Path) -> Result<SigningKey, FolderFault> {
    let key = std::str::from_utf8(bytes).ok().and_then(|text| SigningKey::from_pem(text).ok());
    key.ok_or_else(|| FolderFault::Damaged { path: path.to_owned() })
}

/// A fresh key for the authority of this issuer, as a file holds it.
fn drawn(issuer: &Url) -> Result<String, Fault> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|_| Fault::Random)?;
    // What stands before a PEM's first line is for people (RFC 7468 section 2), and for `identities`.
    let origin = issuer.origin().ascii_serialization();
    Ok(format!("{MARK}{origin}\n{}", SigningKey::seed_to_pem(&seed)))
}

fn file_name(origin: &str) -> String {
    format!("{}.pem", b64::encode(sha256(origin.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    // CORE-44, CORE-45
    #[test]
    fn each_authority_knows_another_key() {
        let dir = tempfile::tempdir().unwrap();
        let keys = Keystore::open(dir.path()).unwrap();
        let first = keys.key_for(&url("https://as.example.test/tenant")).unwrap();
        let again = keys.key_for(&url("https://as.example.test/")).unwrap();
        let other = keys.key_for(&url("https://as.example.test:8443/")).unwrap();
        assert_eq!(first.kid(), again.kid());
        assert_ne!(first.kid(), other.kid());
        let identities = keys.identities().unwrap();
        let mut known: Vec<_> = identities.iter().map(|identity| identity.authority.as_str()).collect();
        known.sort_unstable();
        assert_eq!(known, ["https://as.example.test", "https://as.example.test:8443"]);
        let mode = std::fs::metadata(&identities[0].path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(read_key(&identities[0].path).unwrap().kid().len(), 43);
    }

    #[test]
    fn a_key_others_can_read_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let keys = Keystore::open(dir.path()).unwrap();
        keys.key_for(&url("https://as.example.test")).unwrap();
        let path = keys.identities().unwrap().remove(0).path;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(read_key(&path), Err(FolderFault::Exposed { .. })));
        assert!(keys.key_for(&url("https://as.example.test")).is_err());
    }

    #[test]
    fn many_callers_draw_one_key() {
        let dir = tempfile::tempdir().unwrap();
        let kids: Vec<String> = std::thread::scope(|scope| {
            let draw = || {
                Keystore::open(dir.path()).unwrap().key_for(&url("https://as.example.test")).unwrap().kid()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(draw)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(kids.iter().all(|kid| *kid == kids[0]));
    }

    #[test]
    fn the_folder_follows_the_desktop_rules() {
        assert_eq!(default_dir(Some("/x"), Some("/h")), Some("/x/sayso".into()));
        assert_eq!(default_dir(Some("relative"), Some("/h")), Some("/h/.config/sayso".into()));
        assert_eq!(default_dir(None, Some("/h")), Some("/h/.config/sayso".into()));
        assert_eq!(default_dir(None, None), None);
    }
}
