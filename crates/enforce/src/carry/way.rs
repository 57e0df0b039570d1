//! How a host reaches the server behind it: a connection of its own for a call that may be made once, and one sending of
//! what was permitted.
//!
//! A way is made for one request. Nothing here decides; nothing it sends was not decided.

use super::body::BoxError;
use crate::authority::Unavailable;
use crate::call::{Head, Incoming};
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Body as HttpBody;
use sayso_protocol::payload::challenge::Challenge;
use sayso_protocol::payload::protection::AccessReport;
use sayso_protocol::payload::refusal::{Forwarded, Refusal};
use std::future::ready;

/// The way of one request to the server, and of its answer back.
pub trait Way: Send + Sync + 'static {
    /// What is checked out for a call that may be made once.
    type Sender: Send;
    /// The body of the server's answer.
    type Body: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static;

    /// The answer to a request in a revision that the server is known not to speak; nothing is decided about that.
    fn unspoken(&self, _incoming: &Incoming) -> impl Future<Output = Option<Response<Self::Body>>> + Send {
        ready(None)
    }

    /// Checks out a connection that nothing will retry behind our back. Nothing was spent yet when it fails.
    fn checkout(&self, head: &Head) -> impl Future<Output = Result<Self::Sender, Unavailable>> + Send;

    /// Sends what was permitted, once.
    fn send(
        &self,
        sent: Sent<'_, Self::Sender>,
    ) -> impl Future<Output = Result<Response<Self::Body>, Broken>> + Send;

    /// The answer to what was refused, where this host has a form of its own for it. Otherwise it is answered as HTTP.
    fn turn_away(&self, _turned: &Turned, _incoming: &Incoming) -> Option<Response<Bytes>> {
        None
    }
}

/// What was permitted, at the moment its permit was used.
#[non_exhaustive]
pub struct Sent<'a, S> {
    /// What was checked out for it, if it may be made once.
    pub sender: Option<S>,
    /// The request, in its server's own name for the session. What of it reaches the server is the host's to choose.
    pub head: &'a Head,
    /// The bytes that were judged.
    pub body: Bytes,
    /// The call a grant was spent on.
    pub spent: Option<&'a AccessReport>,
}

/// What was refused.
pub enum Turned {
    /// Negotiating may cure it.
    Challenge(Box<Challenge>),
    /// Negotiating cannot.
    Refuse(Refusal),
}

/// Why there is no answer of the server's to pass on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// No connection came about, so nothing was sent.
    #[error("the server behind this address cannot be reached")]
    Unreachable,
    /// The exchange broke off; the server may have acted.
    #[error("the server behind this address broke off the exchange")]
    Interrupted,
    /// It answered with something that is not passed on: a redirect, or a change of protocol.
    #[error("the server behind this address answered with a redirect or another protocol")]
    Elsewhere,
    /// It answered a call that may be made once with a status that is no success: a server that took the call answers 200,
    /// whatever came of it. Whether the call was run, it does not say.
    #[error("the server behind this address answered the call with status {0} and no result")]
    Status(StatusCode),
    /// It refused the request by its head, or before the call in it: the call was not run.
    #[error("the server behind this address turned the request away and did not run the call")]
    TurnedAway,
}

impl Broken {
    /// What that says about the request.
    pub fn forwarded(self) -> Forwarded {
        match self {
            Broken::Unreachable | Broken::TurnedAway => Forwarded::No,
            Broken::Interrupted | Broken::Elsewhere | Broken::Status(_) => Forwarded::Unknown,
        }
    }
}
