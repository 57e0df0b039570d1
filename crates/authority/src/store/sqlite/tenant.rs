//! As what a file is being served: by any number of processes, all under the same public addresses.
//!
//! Terms, tickets and grants name the issuer they were made under, so two live processes that call themselves otherwise
//! would each refuse what the other gave. Each role has a mark, a lock beside the file itself, wherever it was named from; it
//! is shared by those who serve in that role and gone with the last of them, however it ended.

use super::SqliteStore;
use super::open::OpenError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most bytes of a mark.
const LONGEST: u64 = 8 << 10;
/// Links followed to a file that is not there yet.
const LINKS: u32 = 16;
/// How often a mark that is just being written is looked at again, and how long between.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

impl SqliteStore {
    /// Opens the file to serve it under these public addresses, each by the name of its role, until the store is
    /// dropped. Before anything in it is touched.
    ///
    /// # Errors
    /// As [`Self::open`], and when a live process serves it under others.
    pub fn serve(path: &Path, addresses: &[(&str, &str)]) -> Result<SqliteStore, OpenError> {
        let tenant = Tenant::join(path, addresses)?;
        let mut store = Self::open(path)?;
        store._tenant = Some(tenant);
        Ok(store)
    }
}

/// Held for as long as a file is served.
pub(super) struct Tenant {
    _locks: Vec<File>,
}

impl Tenant {
    /// Joins those who serve the file under these addresses, each by the name of its role.
    pub(super) fn join(store: &Path, addresses: &[(&str, &str)]) -> Result<Self, OpenError> {
        let store = itself(store, LINKS)?;
        // In one order, so that of two that disagree in everything one gets in.
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        let locks = addresses.into_iter().map(|(role, url)| join(&beside(&store, role), role, url));
        Ok(Self { _locks: locks.collect::<Result<_, _>>()? })
    }
}

/// Shares the mark of one role, if it says this address or nobody holds it.
fn join(path: &Path, role: &str, url: &str) -> Result<File, OpenError> {
    let mut mark = open(path)?;
    for _ in 0..TRIES {
        match mark.try_lock() {
            Ok(()) => {
                write(&mut mark, url)?;
                // Between the two locks another may be first with its own, which is looked at like any other's.
                mark.unlock()?;
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        if mark.try_lock_shared().is_ok() {
            let served = read(&mut mark)?;
            return if served == url {
                Ok(mark)
            } else {
                Err(OpenError::Elsewhere { served: format!("{role} {served}") })
            };
        }
        std::thread::sleep(PAUSE);
    }
    Err(std::io::Error::from(std::io::ErrorKind::WouldBlock).into())
}

/// The file a path leads to, also one that is not there yet: what is one store must not have two marks.
fn itself(path: &Path, links: u32) -> Result<PathBuf, std::io::Error> {
    match path.canonicalize() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        known => return known,
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (path.read_link(), path.file_name()) {
        (Ok(target), _) if links > 0 => itself(&folder.join(target), links - 1),
        (Err(_), Some(name)) => Ok(folder.canonicalize()?.join(name)),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    }
}

fn beside(store: &Path, role: &str) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(format!("-served-{role}"));
    path.into()
}

fn open(path: &Path) -> Result<File, std::io::Error> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

fn write(mark: &mut File, url: &str) -> Result<(), std::io::Error> {
    mark.set_len(0)?;
    mark.rewind()?;
    mark.write_all(url.as_bytes())
}

fn read(mark: &mut File) -> Result<String, std::io::Error> {
    let mut text = String::new();
    mark.rewind()?;
    mark.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: [(&str, &str); 2] = [("authority", "http://127.0.0.1:1"), ("gateway", "http://127.0.0.1:2")];

    fn joins(store: &Path, addresses: &[(&str, &str)]) -> Result<Tenant, String> {
        Tenant::join(store, addresses).map_err(|error| error.to_string())
    }

    #[test]
    fn a_store_is_served_under_one_set_of_addresses() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("sayso.db");
        let first = joins(&store, &HERE).ok().unwrap();
        let second = joins(&store, &HERE).ok().unwrap();
        // The authority alone, beside one that also has a gateway.
        let third = joins(&store, &HERE[..1]).ok().unwrap();
        for moved in
            [[HERE[0], ("gateway", "http://127.0.0.1:3")], [("authority", "http://127.0.0.1:3"), HERE[1]]]
        {
            let error = joins(&store, &moved).err().unwrap();
            assert!(error.contains("127.0.0.1:") && error.contains("stop"), "{error}");
        }
        drop((first, third));
        assert!(joins(&store, &[("authority", "http://127.0.0.1:9")]).is_err());
        drop(second);
        // The last of them is gone, so others may come.
        assert!(joins(&store, &[("authority", "http://127.0.0.1:9")]).is_ok());
    }

    // Roles that join later are marked, too: one that is served elsewhere meets them.
    #[test]
    fn who_joins_later_marks_what_it_adds() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("sayso.db");
        let _first = joins(&store, &HERE[..1]).ok().unwrap();
        let second = joins(&store, &HERE).ok().unwrap();
        let elsewhere = [HERE[0], ("gateway", "http://127.0.0.1:3")];
        let error = joins(&store, &elsewhere).err().unwrap();
        assert!(error.contains("gateway http://127.0.0.1:2"), "{error}");
        drop(second);
        assert!(joins(&store, &elsewhere).is_ok(), "and go with whoever had them");
        assert!(joins(&store, &[("authority", "http://127.0.0.1:9")]).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn however_a_store_is_named_it_has_one_mark() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        std::fs::create_dir(&real).unwrap();
        symlink(&real, folder.path().join("by-folder")).unwrap();
        symlink("real/sayso.db", folder.path().join("by-file.db")).unwrap();
        symlink("round.db", folder.path().join("round.db")).unwrap();
        let names = ["real/sayso.db", "by-folder/sayso.db", "by-file.db", "real/../real/./sayso.db"];
        // Also before there is a file.
        for there in [false, true] {
            if there {
                std::fs::write(real.join("sayso.db"), "").unwrap();
            }
            for first in names {
                let _held = joins(&folder.path().join(first), &HERE).ok().unwrap();
                for other in names {
                    let other = folder.path().join(other);
                    assert!(joins(&other, &[("authority", "http://127.0.0.1:9")]).is_err(), "{other:?}");
                    assert!(joins(&other, &HERE).is_ok(), "{other:?}");
                }
            }
        }
        assert!(joins(&folder.path().join("round.db"), &HERE).is_err());
        assert!(joins(&folder.path().join("nowhere/sayso.db"), &HERE).is_err());
    }

    #[test]
    fn of_many_at_once_only_those_who_agree_get_in() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("sayso.db");
        let together = std::sync::Barrier::new(32);
        let joined: Vec<Option<(usize, Tenant)>> = std::thread::scope(|scope| {
            let join = |number: usize| {
                let (store, together) = (&store, &together);
                scope.spawn(move || {
                    together.wait();
                    let url = format!("http://127.0.0.1:{}", number % 2);
                    let joined = Tenant::join(store, &[("authority", &url)]).ok();
                    // Nobody leaves before everybody has tried.
                    together.wait();
                    joined.map(|tenant| (number % 2, tenant))
                })
            };
            let threads: Vec<_> = (0..32).map(join).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let served: std::collections::BTreeSet<usize> =
            joined.iter().flatten().map(|(which, _)| *which).collect();
        assert_eq!(served.len(), 1);
    }
}
