//! The hosts of this crate, driven in process before an authority that answers by script.

pub(crate) mod cast;
mod delivery;
mod documents;
mod examples;
#[cfg(feature = "rmcp")]
pub(crate) mod guarded;
mod passed;
mod policed;
mod refused;
mod request;
mod rounds;
mod sessions;
#[cfg(feature = "rmcp")]
mod wordless;
