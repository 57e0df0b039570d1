//! The authority's keys on disk: a folder of its own (0700), one file a key (0600), created once and whole (D-40).
//!
//! A file others can read is refused rather than used. Rotation is not here.

use sayso_protocol::ticket::Sealers;
use sayso_protocol::{SigningKey, b64};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The keys of one authority, one for each purpose. Has no `Debug`.
pub struct Keys {
    /// Signs grants.
    pub grants: SigningKey,
    /// Signs receipts.
    pub receipts: SigningKey,
    /// Signs this authority's own requests.
    pub requests: SigningKey,
    seal: [u8; 32],
    pairwise: [u8; 32],
}

/// Why a key cannot be had. Names the file, never its content.
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    /// The file system said no.
    #[error("{0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// Others could read it.
    #[error("{0} can be read by other users; make it 0600 and its folder 0700")]
    TooOpen(PathBuf),
    /// It holds no key.
    #[error("{0} holds no usable key; restore it from a backup")]
    Malformed(PathBuf),
    /// The system gave no random bytes.
    #[error("the system gave no random bytes for {0}")]
    NoRandomness(PathBuf),
}

impl Keys {
    /// Opens the keys under `data/keys`, creating those that are missing.
    ///
    /// # Errors
    /// When a file cannot be read or created, holds no key, or can be read by others.
    pub fn open_or_create(data: &Path) -> Result<Self, KeyFault> {
        let folder = data.join("keys");
        private_folder(&folder)?;
        Ok(Self {
            grants: signing_key(&folder.join("grants.pem"))?,
            receipts: signing_key(&folder.join("receipts.pem"))?,
            requests: signing_key(&folder.join("requests.pem"))?,
            seal: secret(&folder.join("seal.key"))?,
            pairwise: secret(&folder.join("pairwise.key"))?,
        })
    }

    /// The sealers of fresh tickets.
    pub fn sealers(&self, issuer: &str, epoch: i64) -> Sealers {
        Sealers::new(&self.seal, issuer, epoch)
    }

    /// The key under which names of agents are derived for policies (D-7).
    pub fn pairwise(&self) -> &[u8; 32] {
        &self.pairwise
    }
}

/// Makes `folder` if it is missing and refuses one that others can enter.
///
/// # Errors
/// When it cannot be created or is open to others.
pub fn private_folder(folder: &Path) -> Result<(), KeyFault> {
    let io = |fault| KeyFault::Io(folder.to_owned(), fault);
    match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        Ok(()) => refuse_open(folder),
        Err(fault) => Err(io(fault)),
    }
}

/// Opens the Ed25519 key in a PKCS#8 PEM, creating it if the file is missing.
///
/// # Errors
/// When it cannot be read or created, holds no key, or can be read by others.
pub fn signing_key(path: &Path) -> Result<SigningKey, KeyFault> {
    let text = read_or_create(path, SigningKey::seed_to_pem)?;
    SigningKey::from_pem(&text).map_err(|_| KeyFault::Malformed(path.to_owned()))
}

fn secret(path: &Path) -> Result<[u8; 32], KeyFault> {
    let text = read_or_create(path, |seed| format!("{}\n", b64::encode(seed)))?;
    let bytes = b64::decode(text.trim_end()).ok();
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| KeyFault::Malformed(path.to_owned()))
}

fn read_or_create(path: &Path, form: impl Fn(&[u8; 32]) -> String) -> Result<String, KeyFault> {
    let io = |fault| KeyFault::Io(path.to_owned(), fault);
    match fs::symlink_metadata(path) {
        Ok(_) => {}
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
            let seed = crate::draw().map_err(|_| KeyFault::NoRandomness(path.to_owned()))?;
            create(path, form(&seed).as_bytes()).map_err(io)?;
        }
        Err(fault) => return Err(io(fault)),
    }
    refuse_open(path)?;
    fs::read_to_string(path).map_err(io)
}

/// Writes a new file whole or not at all; one that another process created meanwhile is left alone.
fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let suffix = crate::draw::<8>().map_err(|_| io::Error::other("no randomness"))?;
    let draft = folder.join(format!(".new-{}", b64::encode(suffix)));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    // A link, unlike a rename, never replaces a key that is already there.
    let linked = written.and_then(|()| match fs::hard_link(&draft, path) {
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    });
    fs::remove_file(&draft)?;
    linked?;
    File::open(folder)?.sync_all()
}

fn refuse_open(path: &Path) -> Result<(), KeyFault> {
    let mode = fs::metadata(path).map_err(|fault| KeyFault::Io(path.to_owned(), fault))?.permissions().mode();
    if mode & 0o077 == 0 { Ok(()) } else { Err(KeyFault::TooOpen(path.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn keys_are_made_once_and_kept_private() {
        let data = tempfile::tempdir().unwrap();
        let first = Keys::open_or_create(data.path()).unwrap();
        let again = Keys::open_or_create(data.path()).unwrap();
        assert_eq!(first.grants.kid(), again.grants.kid());
        assert_eq!(first.pairwise(), again.pairwise());
        let kids = [first.grants.kid(), first.receipts.kid(), first.requests.kid()];
        assert!(kids[0] != kids[1] && kids[1] != kids[2] && kids[0] != kids[2]);
        let folder = data.path().join("keys");
        assert_eq!(mode(&folder), 0o700);
        let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 5);
        assert!(files.iter().all(|file| mode(file) == 0o600), "{files:?}");
    }

    #[test]
    fn a_key_others_can_read_is_not_used() {
        let data = tempfile::tempdir().unwrap();
        Keys::open_or_create(data.path()).unwrap();
        let file = data.path().join("keys/grants.pem");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Keys::open_or_create(data.path()), Err(KeyFault::TooOpen(path)) if path == file));
    }

    #[test]
    fn a_damaged_key_is_not_replaced() {
        let data = tempfile::tempdir().unwrap();
        Keys::open_or_create(data.path()).unwrap();
        for name in ["receipts.pem", "seal.key"] {
            let file = data.path().join("keys").join(name);
            let before = fs::read(&file).unwrap();
            fs::write(&file, b"").unwrap();
            assert!(
                matches!(Keys::open_or_create(data.path()), Err(KeyFault::Malformed(path)) if path == file)
            );
            assert_eq!(fs::read(&file).unwrap(), b"");
            fs::write(&file, before).unwrap();
        }
    }
}
