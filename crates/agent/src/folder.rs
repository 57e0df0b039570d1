//! The agent's folder: private by mode, written atomically, and refused when others can read it.
//! It keeps every file whole: a reader sees the old bytes or the new, and of two writers who must not both win,
//! one does. What is in the files is the business of `identity`, `discover` and `wallet`.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Largest file read.
const MAX_BYTES: u64 = 1 << 20;
/// Most files listed of one folder.
const MAX_FILES: usize = 100_000;

/// Why a file of the agent's cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderFault {
    /// The system says no.
    #[error("{}: {kind}", path.display())]
    Io {
        /// What was to be opened.
        path: PathBuf,
        /// What the system said.
        kind: ErrorKind,
    },
    /// Others can read it.
    #[error("{}: others can read it; run: chmod 600 {}", path.display(), path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// It does not hold what it should.
    #[error("{}: damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

/// A folder only its owner can enter.
#[derive(Clone)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Opens a folder, creating it and tightening its mode where needed.
    pub(crate) fn open(path: impl Into<PathBuf>) -> Result<Folder, FolderFault> {
        let path = path.into();
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(at(&path))?;
        let mode = std::fs::metadata(&path).map_err(at(&path))?.mode();
        if mode & 0o077 != 0 {
            std::fs::set_permissions(&path, Permissions::from_mode(0o700)).map_err(at(&path))?;
        }
        Ok(Folder { path })
    }

    pub(crate) fn within(&self, name: &str) -> Result<Folder, FolderFault> {
        Folder::open(self.path.join(name))
    }

    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The bytes of a file, if there is one.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, FolderFault> {
        match read_private(&self.path.join(name)) {
            Err(FolderFault::Io { kind: ErrorKind::NotFound, .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Puts `bytes` in place of whatever the file held.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FolderFault> {
        let path = self.path.join(name);
        let draft = self.draft(bytes)?;
        let renamed = std::fs::rename(&draft, &path).map_err(at(&path));
        self.settle(&draft, renamed)
    }

    /// Creates a file that must not exist; says whether this caller created it.
    pub(crate) fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, FolderFault> {
        let path = self.path.join(name);
        let draft = self.draft(bytes)?;
        // A link is made or it is not, and what it points at is already whole: no reader meets half a key.
        let linked = match std::fs::hard_link(&draft, &path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            other => other.map(|()| true).map_err(at(&path)),
        };
        let created = matches!(linked, Ok(true));
        self.settle(&draft, linked.map(|_| ()))?;
        Ok(created)
    }

    /// Removes a file; says whether this caller removed it.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, FolderFault> {
        let path = self.path.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            other => other.map_err(at(&path)).and_then(|()| self.sync()).map(|()| true),
        }
    }

    /// The names of the files with this ending, sorted.
    pub(crate) fn names(&self, ending: &str) -> Result<Vec<String>, FolderFault> {
        let entries = std::fs::read_dir(&self.path).map_err(at(&self.path))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).take(MAX_FILES).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn draft(&self, bytes: &[u8]) -> Result<PathBuf, FolderFault> {
        let mut random = [0; 12];
        let drawn = getrandom::fill(&mut random);
        let path = self.path.join(format!(".{}.new", sayso_protocol::b64::encode(random)));
        drawn.map_err(|_| FolderFault::Io { path: path.clone(), kind: ErrorKind::Other })?;
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(at(&path))?;
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(at(&path))?;
        Ok(path)
    }

    fn settle(&self, draft: &Path, done: Result<(), FolderFault>) -> Result<(), FolderFault> {
        // After a rename there is nothing to remove, and that is as it should be.
        let _ = std::fs::remove_file(draft);
        done?;
        self.sync()
    }

    fn sync(&self) -> Result<(), FolderFault> {
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(at(&self.path))
    }
}

/// The bytes of a file that only its owner can read.
pub(crate) fn read_private(path: &Path) -> Result<Vec<u8>, FolderFault> {
    let file = File::open(path).map_err(at(path))?;
    let facts = file.metadata().map_err(at(path))?;
    if !facts.is_file() || facts.len() > MAX_BYTES {
        return Err(FolderFault::Damaged { path: path.to_owned() });
    }
    if facts.mode() & 0o077 != 0 {
        return Err(FolderFault::Exposed { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(at(path))?;
    Ok(bytes)
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> FolderFault {
    let path = path.to_owned();
    move |error| FolderFault::Io { path, kind: error.kind() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn everything_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path().join("a/b")).unwrap();
        folder.write("x.json", b"1").unwrap();
        assert!(folder.create("y.json", b"2").unwrap());
        assert_eq!(mode(&dir.path().join("a/b")), 0o700);
        for name in ["x.json", "y.json"] {
            assert_eq!(mode(&folder.path_of(name)), 0o600);
        }
        assert_eq!(folder.names(".json").unwrap(), ["x.json", "y.json"]);
        assert_eq!(std::fs::read_dir(dir.path().join("a/b")).unwrap().count(), 2, "no drafts are left");
    }

    #[test]
    fn an_open_folder_is_tightened_and_an_open_file_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        assert_eq!(mode(dir.path()), 0o700);
        folder.write("x", b"1").unwrap();
        std::fs::set_permissions(folder.path_of("x"), Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(folder.read("x"), Err(FolderFault::Exposed { .. })));
    }

    #[test]
    fn one_creator_and_one_remover_win() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        assert!(folder.create("x", b"first").unwrap());
        assert!(!folder.create("x", b"second").unwrap());
        assert_eq!(folder.read("x").unwrap().unwrap(), b"first");
        assert!(folder.remove("x").unwrap());
        assert!(!folder.remove("x").unwrap());
        assert_eq!(folder.read("x").unwrap(), None);
    }
}
