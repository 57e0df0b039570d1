//! As what a file is being served: by any number of processes, all under the same public addresses.
//!
//! Terms, tickets and grants name the issuer they were made under, so two live processes that call themselves otherwise
//! would each refuse what the other gave. The mark is a lock beside the file, shared by those who serve it and gone with
//! the last of them, however it ended.

use super::SqliteStore;
use super::open::OpenError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most bytes of a mark.
const LONGEST: u64 = 8 << 10;
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
    _lock: File,
}

impl Tenant {
    /// Joins those who serve the file under these addresses, each by the name of its role.
    pub(super) fn join(store: &Path, addresses: &[(&str, &str)]) -> Result<Self, OpenError> {
        let mut mark = open(&beside(store))?;
        for _ in 0..TRIES {
            match mark.try_lock() {
                Ok(()) => {
                    write(&mut mark, addresses)?;
                    // Between the two locks another may be first with its own, which is looked at like any other's.
                    mark.unlock()?;
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
            if mark.try_lock_shared().is_ok() {
                return match differing(&read(&mut mark)?, addresses) {
                    None => Ok(Self { _lock: mark }),
                    Some(served) => Err(OpenError::Elsewhere { served }),
                };
            }
            std::thread::sleep(PAUSE);
        }
        Err(std::io::Error::from(std::io::ErrorKind::WouldBlock).into())
    }
}

fn beside(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push("-served");
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

fn write(mark: &mut File, addresses: &[(&str, &str)]) -> Result<(), std::io::Error> {
    let text: String = addresses.iter().map(|(role, url)| format!("{role} {url}\n")).collect();
    mark.set_len(0)?;
    mark.rewind()?;
    mark.write_all(text.as_bytes())
}

fn read(mark: &mut File) -> Result<String, std::io::Error> {
    let mut text = String::new();
    mark.rewind()?;
    mark.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// An address in a mark that is another than ours of the same role. A role that only one of the two has is no quarrel.
fn differing(mark: &str, addresses: &[(&str, &str)]) -> Option<String> {
    let served = mark.lines().filter_map(|line| line.split_once(' '));
    let mut others =
        served.filter(|(role, url)| addresses.iter().any(|(ours, at)| ours == role && at != url));
    others.next().map(|(role, url)| format!("{role} {url}"))
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
