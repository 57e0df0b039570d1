//! How each binding carries what is said. Encoder and decoder of a form share a file, with a round-trip test.

pub mod aauth;
pub mod jsonrpc;
pub mod rfc9728;
pub mod www_authenticate;
