//! What tests that cross crates share: where the repository is, which files it has, and how SPEC-MAP.md is read.
//! Nothing here ships; no other crate may depend on it.

pub mod source;
pub mod spec_map;
