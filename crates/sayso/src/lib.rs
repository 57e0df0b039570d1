//! What the `sayso` binary is made of, as a library. Each module is one role the binary can play; protocol,
//! enforcement and the owner's authority live in their own crates.

pub mod agent;
mod clock;
pub mod coaz;
mod home;
mod listings;
pub mod local;
mod metrics;
mod origin;
pub mod owner;
#[cfg(feature = "cedar")]
pub mod pdp;
mod policed;
pub mod roles;
mod secret;
mod settings;
pub mod shim;
mod tables;
mod terminal;
pub mod up;
mod upstream;
pub mod vault;
