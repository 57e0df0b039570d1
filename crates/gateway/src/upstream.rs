//! The server behind a resource, and the two ways to send it a request.
//!
//! A single-use call goes over a connection checked out for it before its grant is spent; everything else over a pool.
//! Neither retries, neither follows a redirect (D-5, D-14): once sent, a request is sent.

mod headers;
mod http;
mod outlive;

pub(crate) use self::http::{HttpUpstream, Sender};
pub(crate) use outlive::outlive;

use sayso_protocol::payload::refusal::Forwarded;

/// An upstream URL that cannot be dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadUpstream {
    /// Not a plain `http` URL.
    #[error("not an http url without user and fragment")]
    Url,
}

/// Why there is no response of the upstream's to pass on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    /// No connection came about, so nothing was sent.
    #[error("the server behind this address cannot be reached")]
    Unreachable,
    /// The connection broke; the server may have acted.
    #[error("the server behind this address broke off the exchange")]
    Interrupted,
    /// It answered with something that is not passed on: a redirect, or a change of protocol.
    #[error("the server behind this address answered with a redirect or another protocol")]
    Elsewhere,
}

impl Broken {
    pub(crate) fn forwarded(self) -> Forwarded {
        match self {
            Broken::Unreachable => Forwarded::No,
            Broken::Interrupted | Broken::Elsewhere => Forwarded::Unknown,
        }
    }
}
