//! The port to a policy engine: whoever answers, over a network or in this process, answers this.
//! What of an answer is a yes is settled in `answer`; a decision point only brings it.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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

    /// Asks it about one of several that came together and have `tally` in common: a decision point that bounds what a
    /// request may hold bounds all of them as it would one. The others are answered whatever comes of this one.
    fn decide_among<'a>(
        &'a self,
        request: &'a Request,
        request_id: &'a str,
        tally: &'a Tally,
    ) -> Deciding<'a> {
        let _ = tally;
        self.decide(request, request_id)
    }
}

/// What was taken by all decisions of one request, in whatever measure the decision point has.
#[derive(Debug, Default)]
pub struct Tally {
    taken: AtomicUsize,
    told: AtomicBool,
}

impl Tally {
    /// Takes so much, unless that makes more than `most` of all; then nothing is taken.
    #[must_use]
    pub fn take(&self, much: usize, most: usize) -> bool {
        let more = |taken: usize| taken.checked_add(much).filter(|taken| *taken <= most);
        self.taken.try_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Whether nobody asked this before: for what is said once of a request, whatever its decisions have of it.
    #[must_use]
    pub fn is_first(&self) -> bool {
        !self.told.swap(true, Ordering::Relaxed)
    }
}
