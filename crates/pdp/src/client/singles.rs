//! Several decisions from a policy engine that makes only one at a time: one request an entry, with what holds for all
//! of them filled in as AuthZEN fills it in (section 7.1.1; framework section 2.7).
//! What decides is the first entry, in their order, that is no yes (AMB-25).

use futures::StreamExt;
use futures::stream;
use sayso_coaz::answer::{Decision, Decisions};
use sayso_coaz::authzen::{Evaluation, Evaluations, Request, Semantic};
use sayso_coaz::{Fault, Why};

use super::{Exchange, Trouble, fault};

/// Asks for each, `at_once` at a time; those that end with the first no, one after the other.
pub(super) async fn ask(
    exchange: &Exchange<'_>,
    asked: &Request,
    several: &Evaluations,
    most: usize,
    at_once: usize,
) -> Result<Decisions, Trouble> {
    if several.evaluations.len() > most {
        tracing::warn!(asked = several.evaluations.len(), most, "pdp.too_many_singles");
        return Err(Trouble::not_asked(super::NONE));
    }
    // A part that neither an entry nor the top has: the engine does not make such requests.
    let singles = several.singles().map_err(|_| Trouble::not_asked(Why::Missing))?;
    let (at_once, stops) = match several.semantic() {
        Some(Semantic::ExecuteAll) => (at_once, false),
        Some(Semantic::DenyOnFirstDeny) => (1, true),
        Some(Semantic::PermitOnFirstPermit) | None => return Err(Trouble::not_asked(Why::Semantic)),
    };
    let numbered = singles.enumerate();
    let mut answers =
        stream::iter(numbered.map(|(number, single)| one(exchange, number, single))).buffered(at_once);
    let mut decisions: Vec<Decision> = Vec::new();
    while let Some(answer) = answers.next().await {
        let denied = decisions.iter().any(|decision| !decision.decision);
        match answer {
            Ok(decision) => decisions.push(decision),
            Err(trouble) if denied => return Err(Trouble { fault: fault(Why::Policy), ..trouble }),
            Err(trouble) => return Err(trouble),
        }
        if stops && decisions.last().is_some_and(|last| !last.decision) {
            break;
        }
    }
    Decisions::new(asked, decisions).map_err(Trouble::answered)
}

async fn one(exchange: &Exchange<'_>, number: usize, single: Evaluation) -> Result<Decision, Trouble> {
    let id = format!("{}-{}", exchange.request_id, number + 1);
    let request = Request::Evaluation(Box::new(single));
    let decisions = exchange.at(&exchange.endpoints.evaluation, &request, &id).await?;
    let missing = || Trouble::answered(Fault { place: String::new(), why: super::NONE });
    decisions.each().first().cloned().ok_or_else(missing)
}
