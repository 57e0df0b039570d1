//! The stage of a policy decision point: after whoever asks is known, before anything is spent or forwarded.
//!
//! Its place is the rule it keeps (D-5): a no here must not cost the owner's approval. Everything but an explicit yes for
//! every decision is a no (COAZ-FW-43). Without the feature `coaz` there is no [`Policy`] to be had, so a resource that
//! asks one cannot be made.

#![cfg_attr(not(feature = "coaz"), expect(dead_code, reason = "in such a build nobody is asked"))]

#[cfg(feature = "coaz")]
mod asked;
#[cfg(feature = "coaz")]
mod audit;
#[cfg(feature = "coaz")]
mod denial;
#[cfg(feature = "coaz")]
mod filter;
#[cfg(feature = "coaz")]
mod mappings;
#[cfg(all(feature = "coaz", any(test, feature = "scripted")))]
pub mod scripted;

#[cfg(not(feature = "coaz"))]
mod absent;

#[cfg(not(feature = "coaz"))]
pub use absent::Policy;
#[cfg(feature = "coaz")]
pub use asked::{Policy, PolicySettings};
#[cfg(feature = "coaz")]
pub use denial::{Denials, NoWay, Words};
#[cfg(feature = "coaz")]
pub use mappings::{Lister, Mappings};
#[cfg(feature = "coaz")]
pub use sayso_coaz as coaz;

#[cfg(not(feature = "coaz"))]
pub(crate) use absent::Filter;
#[cfg(feature = "coaz")]
pub(crate) use filter::Filter;

use crate::admit::ProtectedCall;
use crate::call::Incoming;
use crate::grant::{Approved, Bound, Denied};
use crate::observe::Observer;
use bytes::Bytes;
use http::HeaderMap;
use sayso_protocol::Json;
use sayso_protocol::message::{Message, MessageFault, RequestId};
use sayso_protocol::method::Revision;
use std::sync::Arc;

/// A no of COAZ's: a JSON-RPC error under the message's own id (D-2), or the result of a denied call that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRefusal {
    /// The JSON-RPC code.
    pub code: i64,
    /// `data.coaz.category`.
    pub category: &'static str,
    /// In words; none of them an argument's or a claim's, and a policy engine's only where an operator said which.
    pub message: String,
    /// `data.coaz.path`, where in the mapping; empty for the whole.
    pub place: String,
    id: Option<RequestId>,
    body: Bytes,
}

impl PolicyRefusal {
    /// The JSON-RPC answer.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The status at a host that answers the client itself: 200, since the error is the answer to a request (D-3). What
    /// has no id has no answer, so its sender learns it from the status.
    pub fn status(&self) -> u16 {
        if self.id.is_some() { 200 } else { 400 }
    }
}

/// A message about to be decided about.
pub(crate) struct Question<'a> {
    pub(crate) message: &'a Message,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) revision: Revision,
    /// The claims of a token that was validated, or a grant as its authority describes it.
    pub(crate) token: &'a Json,
    pub(crate) observer: Option<&'a Arc<dyn Observer>>,
}

/// Why a message does not pass.
#[derive(Debug)]
pub(crate) enum Objection {
    Policy(Box<PolicyRefusal>),
    /// A header says otherwise than the argument it repeats.
    Fault(MessageFault),
}

/// That it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Nobody was asked: it is of the two kinds that always pass.
    Unasked,
    /// Every decision was a yes.
    Permitted,
}

/// Asks about a call that everything else speaks for, where its resource has somebody to ask.
pub(crate) async fn consult<'a>(
    policy: Option<&Arc<Policy>>,
    bound: Bound<'a>,
    call: &ProtectedCall<'_>,
    incoming: &Incoming,
    observer: Option<&Arc<dyn Observer>>,
) -> Result<Approved<'a>, Denied> {
    let Some(policy) = policy else { return Ok(bound.approved()) };
    let (headers, token) = (&incoming.head.headers, &bound.described());
    let question = Question { message: &call.message, headers, revision: call.revision, token, observer };
    match policy.consult(&question).await {
        Ok(Leave::Permitted | Leave::Unasked) => Ok(bound.approved_after_asking()),
        Err(Objection::Policy(refusal)) => Err(Denied::Policy(refusal)),
        Err(Objection::Fault(fault)) => Err(Denied::Fault(Box::new(fault))),
    }
}

#[cfg(test)]
mod tests;
