//! The policy engine asked over HTTPS, against engines on real sockets that answer in every wrong way there is.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot set up its engine has failed"
)]

#[path = "remote/answers.rs"]
mod answers;
#[path = "remote/breaking.rs"]
mod breaking;
#[path = "remote/discovery.rs"]
mod discovery;
#[path = "remote/engine.rs"]
mod engine;
#[path = "remote/sending.rs"]
mod sending;
#[path = "remote/singles.rs"]
mod singles;
#[path = "remote/tls.rs"]
mod tls;
