//! A decision point in this process: Cedar policies from a folder, held against a schema before they decide anything.
//!
//! The set that decides is always one that was whole and valid: it is refused at the start, and later kept, whatever
//! somebody saves into the folder. A policy that fails is never a yes. How a request becomes Cedar's is in `question`.

mod fault;
mod folder;
mod number;
mod policies;
mod question;
mod schema;
mod shape;
#[cfg(test)]
mod tests;
mod watch;

pub use fault::{BadPolicies, BadPolicy};

use policies::Policies;
use question::Unheld;
use sayso_coaz::answer::{AnswerFault, Decision, Decisions};
use sayso_coaz::authzen::{Evaluation, Request, Semantic};
use sayso_coaz::{Deciding, DecisionPoint, Fault, Tally, Why};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use watch::Watch;

/// How often the folder is looked at.
const EVERY: Duration = Duration::from_secs(1);

/// Where the policies are.
#[derive(Debug, Clone)]
pub struct EmbeddedSettings {
    /// The folder: `*.cedar`, and `schema.cedarschema` and `entities.json` where there are such.
    pub policies: PathBuf,
    /// How often it is looked at. What is found there twice, and is valid, decides from then on.
    pub every: Duration,
}

impl EmbeddedSettings {
    /// Policies from this folder, looked at every second.
    #[must_use]
    pub fn new(policies: impl Into<PathBuf>) -> Self {
        Self { policies: policies.into(), every: EVERY }
    }
}

/// The embedded decision point.
pub struct Embedded {
    current: Arc<Current>,
    _watch: Watch,
}

/// The set that decides.
struct Current(RwLock<Arc<Policies>>);

impl Current {
    fn get(&self) -> Arc<Policies> {
        // Only whole sets are ever put here, so one that a panic left behind is whole as well.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, policies: Policies) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policies);
    }
}

impl Embedded {
    /// Reads the folder, and looks at it again and again from then on, on a thread of its own that ends with this.
    ///
    /// # Errors
    /// When the folder does not hold a whole and valid set of policies. The sentence says which file, and what to do.
    pub fn open(settings: EmbeddedSettings) -> Result<Self, BadPolicies> {
        let found = folder::read(&settings.policies)?;
        let policies = Policies::compile(&found)?;
        policies.tell("policies.taken");
        let current = Arc::new(Current(RwLock::new(Arc::new(policies))));
        let watch = Watch::start(settings, found.digest(), Arc::downgrade(&current))?;
        Ok(Self { current, _watch: watch })
    }

    /// Whether the folder holds a set that could decide. It is not looked at again.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn check(folder: &Path) -> Result<(), BadPolicies> {
        Policies::compile(&folder::read(folder)?).map(drop)
    }

    /// Decides on one request by the policies of this moment.
    ///
    /// # Errors
    /// A policy fault, with the place in the request where there is one.
    pub fn evaluate(&self, asked: &Evaluation, request_id: &str) -> Result<Decision, Fault> {
        judge(&self.current.get(), asked, request_id, &Tally::default())
    }

    async fn answer(&self, request: &Request, request_id: &str, tally: &Tally) -> Result<Decisions, Fault> {
        // One set for all decisions of a request, whatever is saved meanwhile.
        let policies = self.current.get();
        let several = match request {
            Request::Evaluation(one) => {
                return Decisions::new(request, vec![judge(&policies, one, request_id, tally)?]);
            }
            Request::Evaluations(several) => several,
        };
        let unfit = |_| at(AnswerFault::Unfit, String::new());
        let mut decisions = Vec::with_capacity(several.evaluations.len());
        for one in several.singles().map_err(unfit)? {
            // The others' requests are to have their turns between the decisions of this one.
            tokio::task::yield_now().await;
            let decision = judge(&policies, &one, request_id, tally)?;
            let ends = !decision.decision && several.semantic() == Some(Semantic::DenyOnFirstDeny);
            decisions.push(decision);
            if ends {
                break;
            }
        }
        Decisions::new(request, decisions)
    }
}

impl DecisionPoint for Embedded {
    fn decide<'a>(&'a self, request: &'a Request, request_id: &'a str) -> Deciding<'a> {
        Box::pin(async move { self.answer(request, request_id, &Tally::default()).await })
    }

    fn decide_among<'a>(
        &'a self,
        request: &'a Request,
        request_id: &'a str,
        tally: &'a Tally,
    ) -> Deciding<'a> {
        Box::pin(self.answer(request, request_id, tally))
    }
}

fn judge(
    policies: &Policies,
    asked: &Evaluation,
    request_id: &str,
    tally: &Tally,
) -> Result<Decision, Fault> {
    policies.decide(asked, request_id, tally).map_err(|Unheld { place, fault }| {
        tracing::warn!(request = request_id, place, reason = %fault, "policy.unanswered");
        at(fault, place)
    })
}

fn at(fault: AnswerFault, place: String) -> Fault {
    Fault { place, why: Why::Answer(fault) }
}
