//! The port to a policy engine: whoever answers, over a network or in this process, answers this.
//! What of an answer is a yes is settled in `answer`; a decision point only brings it.

use std::future::Future;
use std::pin::Pin;

use crate::answer::Decisions;
use crate::authzen::Request;
use crate::fault::Fault;

/// An answer on its way.
pub type Deciding<'a> = Pin<Box<dyn Future<Output = Result<Decisions, Fault>> + Send + 'a>>;

/// A policy decision point.
pub trait DecisionPoint: Send + Sync {
    /// Asks it. `request_id` names the request in its log and ours: AuthZEN's `X-Request-ID` (section 10.1.4).
    ///
    /// The answer is a policy fault when there is none; waiting is bounded by whoever implements this.
    fn decide<'a>(&'a self, request: &'a Request, request_id: &'a str) -> Deciding<'a>;
}
