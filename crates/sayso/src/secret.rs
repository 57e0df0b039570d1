//! A secret in a file of its own, which nobody but its owner may read. It is never printed.

use anyhow::{Context as _, bail, ensure};
use sayso_protocol::b64;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Most bytes of such a file.
const LARGEST: u64 = 4 << 10;
/// Fewest characters of a secret: fewer can be guessed.
const SHORTEST: usize = 32;

/// What the file says, without the end of its line; drawn, with 256 bits, where there is no file. Of two processes that
/// draw, both get what the first one drew.
///
/// # Errors
/// When others may read the file, it cannot be read or made, or what it holds can be guessed.
pub(crate) fn read_or_draw(path: &Path) -> anyhow::Result<String> {
    match draw(path) {
        Err(fault) if fault.kind() != io::ErrorKind::AlreadyExists => {
            return Err(fault).with_context(|| format!("cannot write {}", path.display()));
        }
        Ok(()) | Err(_) => {}
    }
    let file = open_private(path)?;
    let owner = file.metadata().map(|known| known.uid());
    if owner.ok() != Some(rustix::process::geteuid().as_raw()) {
        bail!("{0} was made by another user; remove it to have one drawn", path.display());
    }
    let mut text = String::new();
    let read = file.take(LARGEST + 1).read_to_string(&mut text);
    read.with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(text.len() as u64 <= LARGEST, "{} is too large for a secret", path.display());
    let secret = text.trim_end_matches(['\r', '\n']);
    ensure!(
        secret.len() >= SHORTEST && secret.bytes().all(|byte| byte.is_ascii_graphic()),
        "{}: a secret has at least {SHORTEST} printable characters; remove the file to have one drawn",
        path.display()
    );
    Ok(secret.to_owned())
}

/// Refuses a file that others may read or write.
///
/// # Errors
/// When they may, or nobody can say.
pub(crate) fn refuse_open(path: &Path) -> anyhow::Result<()> {
    open_private(path).map(drop)
}

/// The file, looked at after it was opened: what its name leads to may be another a moment later.
fn open_private(path: &Path) -> anyhow::Result<File> {
    let cannot = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(cannot)?;
    if file.metadata().with_context(cannot)?.permissions().mode() & 0o077 != 0 {
        bail!("others may read {0}; run: chmod 600 {0}", path.display());
    }
    Ok(file)
}

fn draw(path: &Path) -> io::Result<()> {
    let secret = b64::encode(crate::clock::draw::<32>().map_err(io::Error::other)?);
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)?;
    file.write_all(format!("{secret}\n").as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_secret_is_drawn_once_and_kept_from_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        let secret = read_or_draw(&path).unwrap();
        assert_eq!((secret.len(), read_or_draw(&path).unwrap()), (43, secret));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let fault = read_or_draw(&path).unwrap_err().to_string();
        assert!(fault.contains("chmod 600"), "{fault}");
        assert!(read_or_draw(&dir.path().join("none/secret")).is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for weak in ["", "short", "a b c d e f g h i j k l m n o p q r s t u v w x y z", &"x".repeat(5000)] {
            fs::write(&path, weak).unwrap();
            assert!(read_or_draw(&path).is_err(), "{weak}");
        }
    }
}
