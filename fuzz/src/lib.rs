//! One body for each reader of bytes a peer sends: it reads its input and asserts what must hold of any input.
//! The fuzzer feeds these bodies what it invents, `crates/testkit/tests/corpus.rs` what is committed under `corpus`.
//! No body waits, and none asserts more than one input can show.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a body that finds a fault says so by panicking; what is indexed is JSON, where nothing there is null"
)]

pub mod access_token;
pub mod agreement;
pub mod answer;
pub mod asked;
pub mod challenge;
pub mod coaz;
pub mod credential;
pub mod engine;
pub mod ext_authz;
mod framed;
pub mod guard;
pub mod ids;
pub mod introduction;
pub mod introspection;
pub mod json;
pub mod jsonrpc;
pub mod jws;
pub mod keys;
pub mod message;
pub mod metadata;
pub mod mirrors;
mod ready;
mod same;
pub mod sig_fields;
pub mod ticket;
pub mod token_answer;
pub mod token_form;

/// A target: its name, that of its corpus folder, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 24] = [
    ("access_token", access_token::check),
    ("agreement", agreement::check),
    ("answer", answer::check),
    ("asked", asked::check),
    ("challenge", challenge::check),
    ("coaz", coaz::check),
    ("credential", credential::check),
    ("engine", engine::check),
    ("ext_authz", ext_authz::check),
    ("guard", guard::check),
    ("ids", ids::check),
    ("introduction", introduction::check),
    ("introspection", introspection::check),
    ("json", json::check),
    ("jsonrpc", jsonrpc::check),
    ("jws", jws::check),
    ("keys", keys::check),
    ("message", message::check),
    ("metadata", metadata::check),
    ("mirrors", mirrors::check),
    ("sig_fields", sig_fields::check),
    ("ticket", ticket::check),
    ("token_answer", token_answer::check),
    ("token_form", token_form::check),
];
