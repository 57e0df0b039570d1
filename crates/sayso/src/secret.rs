//! A secret in a file of its own, which nobody but its owner may read. It is never printed.

use anyhow::{Context as _, bail, ensure};
use sayso_protocol::b64;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Most bytes of such a file.
const LARGEST: u64 = 4 << 10;

/// What the file says, without the end of its line; drawn, with 256 bits, where there is no file.
///
/// # Errors
/// When others may read the file, or it cannot be read or made.
pub(crate) fn read_or_draw(path: &Path) -> anyhow::Result<String> {
    match fs::symlink_metadata(path) {
        Ok(_) => {}
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => draw(path)?,
        Err(fault) => return Err(fault).with_context(|| format!("cannot read {}", path.display())),
    }
    refuse_open(path)?;
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
    read.with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(text.len() as u64 <= LARGEST, "{} is too large for a secret", path.display());
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Refuses a file that others may read or write.
///
/// # Errors
/// When they may, or nobody can say.
pub(crate) fn refuse_open(path: &Path) -> anyhow::Result<()> {
    let known = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if known.permissions().mode() & 0o077 != 0 {
        bail!("others may read {0}; run: chmod 600 {0}", path.display());
    }
    Ok(())
}

fn draw(path: &Path) -> anyhow::Result<()> {
    let secret = b64::encode(crate::clock::draw::<32>()?);
    let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| {
        file.write_all(format!("{secret}\n").as_bytes())?;
        file.sync_all()
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
