//! A certificate for a listener that others can reach, read once: the key as every secret, from a file of ours alone.

use crate::secret;
use anyhow::Context as _;
use sayso_listen::Tls;
use std::path::Path;

/// The chain of certificates and its key in these files, in PEM.
///
/// # Errors
/// When others may read the key, or the two cannot be used together.
pub(crate) fn read(chain: &Path, key: &Path) -> anyhow::Result<Tls> {
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    secret::refuse_open(key)?;
    let (chain_text, key_text) = (read(chain)?, read(key)?);
    Tls::read(&chain_text, &key_text).with_context(|| format!("{} and {}", chain.display(), key.display()))
}
