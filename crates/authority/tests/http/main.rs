//! The authority over real sockets and a real store: every beat, every refusal, and that a refusal changes nothing.
//!
//! `house` builds the parties, `wire` sends bytes; a test names the register rows it checks.

#![allow(unreachable_pub, reason = "modules of one test binary")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod beats;
mod browser;
mod counted;
mod credentials;
mod house;
mod hung_up;
mod identified;
mod introductions;
mod owner;
mod policy;
mod portal;
mod portal_forms;
mod portal_fresh;
mod portal_servers;
mod portal_words;
mod protection;
mod public;
mod pulls;
mod relinks;
mod server;
mod strangers;
mod tickets;
mod web;
mod wire;
