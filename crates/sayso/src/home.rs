//! The data folder: 0700, never committed by accident, held by one process at a time.
//!
//! Keys are created 0600 with their content on disk before they are used; nothing here is ever overwritten but
//! `ready.json`, which only says where a running `up` is.

use anyhow::{Context as _, bail};
use sayso_authority::keys::signing_key;
use sayso_protocol::SigningKey;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Held by whoever runs on the folder.
const LOCK: &str = "up.lock";

/// A data folder this process holds.
pub(crate) struct Home {
    root: PathBuf,
    _lock: File,
}

impl Home {
    /// Opens the folder, making it if needed, and holds it until dropped.
    ///
    /// # Errors
    /// When it cannot be made private, or another process holds it.
    pub(crate) fn open(root: &Path) -> anyhow::Result<Self> {
        private_folder(root)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(root.join(LOCK))
            .with_context(|| format!("cannot write in {}", root.display()))?;
        if lock.try_lock().is_err() {
            bail!(
                "another `sayso up` is running on {}; stop it or name another --data folder",
                root.display()
            );
        }
        let ignore = root.join(".gitignore");
        if !ignore.exists() {
            fs::write(ignore, "*\n")?;
        }
        Ok(Self { root: root.canonicalize()?, _lock: lock })
    }

    /// A folder another process of ours may hold, for what the store alone arbitrates.
    ///
    /// # Errors
    /// When there is no such folder.
    pub(crate) fn visit(root: &Path) -> anyhow::Result<Self> {
        let lock = File::open(root.join(LOCK)).with_context(|| {
            format!("no authority has run on {}; name its folder with --data", root.display())
        })?;
        Ok(Self { root: root.canonicalize()?, _lock: lock })
    }

    /// A path inside the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A subfolder, made private.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.root.join(name);
        private_folder(&path)?;
        Ok(path)
    }

    /// The key in `keys/NAME.pem`, drawn at first use.
    ///
    /// # Errors
    /// When it cannot be read or written, or others may read it.
    pub(crate) fn key(&self, name: &str) -> anyhow::Result<(SigningKey, PathBuf)> {
        let path = self.folder("keys")?.join(format!("{name}.pem"));
        Ok((signing_key(&path)?, path))
    }

    /// Replaces a small file in one step.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        let fresh = self.path(&format!("{name}.new"));
        let _ = fs::remove_file(&fresh);
        write_new(&fresh, content)?;
        fs::rename(&fresh, self.path(name))?;
        File::open(&self.root)?.sync_all()?;
        Ok(())
    }
}

/// Makes a folder that is its user's alone. One that others share is not taken over when it holds something that is not
/// ours: `--data .` must not lock anybody out of a project.
fn private_folder(path: &Path) -> anyhow::Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("cannot make the folder {}", path.display()))?;
    if fs::metadata(path)?.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    if fs::read_dir(path)?.next().is_some() && !path.join(LOCK).exists() {
        bail!("others may read {}; name a folder of its own, or run: chmod 700 {0}", path.display());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
        .with_context(|| format!("cannot make {} private", path.display()))
}

fn write_new(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_private_and_held_once() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("data");
        let home = Home::open(&root).unwrap();
        assert_eq!(fs::metadata(&root).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_to_string(root.join(".gitignore")).unwrap(), "*\n");
        let second = Home::open(&root).err().unwrap().to_string();
        assert!(second.contains("another `sayso up`"), "{second}");
        drop(home);
        Home::open(&root).unwrap();
    }

    #[test]
    fn a_folder_of_something_else_is_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |mode| fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        let now = || fs::metadata(dir.path()).unwrap().permissions().mode() & 0o777;
        mode(0o755);
        fs::write(dir.path().join("project.txt"), "").unwrap();
        let fault = Home::open(dir.path()).err().unwrap().to_string();
        assert!(fault.contains("chmod 700"), "{fault}");
        assert_eq!((now(), fs::read_dir(dir.path()).unwrap().count()), (0o755, 1));
        mode(0o700);
        drop(Home::open(dir.path()).unwrap());
        // One of ours that was opened to others since is closed again.
        mode(0o755);
        drop(Home::open(dir.path()).unwrap());
        assert_eq!(now(), 0o700);
    }

    #[test]
    fn a_key_is_drawn_once_and_refused_when_others_may_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let (first, path) = home.key("gateway").unwrap();
        assert_eq!(home.key("gateway").unwrap().0.kid(), first.kid());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(home.key("gateway").is_err());
    }
}
