//! The hosts of this crate, driven in process before an authority that answers by script.

mod cast;
mod delivery;
mod documents;
mod examples;
#[cfg(feature = "rmcp")]
mod guarded;
mod passed;
mod refused;
mod request;
mod sessions;
#[cfg(feature = "rmcp")]
mod wordless;
