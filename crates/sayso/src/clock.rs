//! The one place of the binary that reads the wall clock and the system's randomness.

use anyhow::Context as _;
use sayso_protocol::{Timestamp, b64};

/// Now.
#[allow(clippy::disallowed_methods, reason = "the binary is the edge that supplies time to everything else")]
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// `N` fresh random bytes.
///
/// # Errors
/// When the system has no randomness to give.
pub(crate) fn draw<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok().context("the system gave no randomness")?;
    Ok(bytes)
}

/// A name that tells nothing.
///
/// # Errors
/// When the system has no randomness to give.
pub(crate) fn name() -> anyhow::Result<String> {
    Ok(b64::encode(draw::<9>()?).replace(['-', '_'], "x"))
}
