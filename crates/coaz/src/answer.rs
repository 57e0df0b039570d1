//! Answers of a policy engine, read strictly: a permit is HTTP 200, JSON, and an explicit `true` for every decision
//! that was asked for. A `false` that counts is a denial; everything else is no answer, and no answer is no
//! (AuthZEN sections 6.2, 7.2 and 10; binding section 10).

use sayso_protocol::Json;
use sayso_protocol::json::Limits;

use crate::authzen::{Object, Request, Semantic};
use crate::fault::{Fault, Why};

/// Bytes an answer may have.
pub const MAX_ANSWER: usize = 1 << 20;

/// An answer that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnswerFault {
    /// A status other than 200.
    #[error("the policy engine answered with another status")]
    Status,
    /// A media type other than `application/json`.
    #[error("the policy engine answered with another media type")]
    MediaType,
    /// Not strict JSON, or too large.
    #[error("the policy engine's answer is not JSON")]
    NotJson,
    /// No boolean where a decision stands, or a context that is no object.
    #[error("the policy engine's answer is no decision")]
    NotADecision,
    /// More or fewer decisions than were asked for.
    #[error("the policy engine answered a different number of decisions")]
    Count,
    /// The request holds a number that the policy engine cannot hold.
    #[error("the policy engine cannot hold a number of the request")]
    Number,
    /// The request holds something else than the policy engine's schema has there, or lacks what must be there.
    #[error("the policy engine's schema has something else there")]
    Unfit,
    /// The request holds more than the policy engine takes.
    #[error("the request is too large for the policy engine")]
    TooMuch,
    /// A policy that counts could not be evaluated.
    #[error("a policy could not be evaluated")]
    Unevaluated,
    /// No answer at all.
    #[error("the policy engine did not answer")]
    None,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Yes or no.
    pub decision: bool,
    /// What the policy engine says about it. No member of it has a meaning fixed by AuthZEN.
    pub context: Option<Object>,
}

impl Decision {
    /// Reads one decision.
    ///
    /// # Errors
    /// When `decision` is not a boolean or `context` not an object.
    pub fn read(value: &Json) -> Result<Decision, AnswerFault> {
        let decision = value.get("decision").and_then(Json::as_bool).ok_or(AnswerFault::NotADecision)?;
        let context = match value.get("context") {
            None => None,
            Some(context) => Some(Object::of(context.clone()).ok_or(AnswerFault::NotADecision)?),
        };
        Ok(Decision { decision, context })
    }

    /// Whether it is a yes that nothing is attached to.
    #[must_use]
    pub fn permits(&self) -> bool {
        self.decision && !self.obliges()
    }

    /// Whether it comes with duties. The obligations profile has those who cannot fulfil them refuse.
    fn obliges(&self) -> bool {
        let obligations = self.context.as_ref().and_then(|context| context.json().get("obligations"));
        !matches!(obligations, None | Some(Json::Null)) && obligations.and_then(Json::as_array) != Some(&[])
    }
}

/// Leave to let the message through, from the policy engine's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permitted(());

/// A policy engine's HTTP answer.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    /// The status.
    pub status: u16,
    /// The `Content-Type`.
    pub media_type: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
}

/// The answer to a whole request: a decision for each that was asked for, in order, or those up to the no that ended
/// it where the request's semantic says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decisions(Vec<Decision>);

impl Decisions {
    /// The decisions that answer a request.
    ///
    /// # Errors
    /// A policy fault when there are more or fewer than were asked for.
    pub fn new(asked: &Request, decisions: Vec<Decision>) -> Result<Decisions, Fault> {
        counted(asked, decisions).map(Decisions).map_err(|fault| Why::Answer(fault).at(""))
    }

    /// Reads them from a policy engine's HTTP answer.
    ///
    /// # Errors
    /// A policy fault for everything that is no such answer.
    pub fn read(asked: &Request, reply: Reply<'_>) -> Result<Decisions, Fault> {
        read(asked, reply).map(Decisions).map_err(|fault| Why::Answer(fault).at(""))
    }

    /// Each of them.
    #[must_use]
    pub fn each(&self) -> &[Decision] {
        &self.0
    }

    /// All of them together, as leave to let the message through.
    ///
    /// # Errors
    /// A denial when one is no, or a permit comes with obligations.
    pub fn permit(&self) -> Result<Permitted, Fault> {
        if self.0.iter().any(|decision| !decision.decision) {
            return Err(Why::Policy.at(""));
        }
        if self.0.iter().any(Decision::obliges) {
            return Err(Why::Obligations.at(""));
        }
        Ok(Permitted(()))
    }
}

/// Judges the answer to a request.
///
/// # Errors
/// A denial when a decision that counts is `false`, or a permit comes with obligations; otherwise a policy fault.
pub fn judge(asked: &Request, reply: Reply<'_>) -> Result<Permitted, Fault> {
    Decisions::read(asked, reply)?.permit()
}

/// Judges the answers to requests that were asked one by one, in order; the first that is no yes decides.
///
/// # Errors
/// As [`judge`], and when an answer is missing.
pub fn judge_singles(asked: usize, answers: &[Result<Permitted, Fault>]) -> Result<Permitted, Fault> {
    if let Some(first) = answers.iter().find_map(|answer| answer.as_ref().err()) {
        return Err(first.clone());
    }
    if asked == 0 || answers.len() != asked {
        return Err(Why::Answer(AnswerFault::Count).at(""));
    }
    Ok(Permitted(()))
}

fn read(asked: &Request, reply: Reply<'_>) -> Result<Vec<Decision>, AnswerFault> {
    if reply.status != 200 {
        return Err(AnswerFault::Status);
    }
    if !reply.media_type.is_some_and(is_json) {
        return Err(AnswerFault::MediaType);
    }
    let limits = Limits { bytes: MAX_ANSWER, ..Limits::default() };
    let body = Json::parse(reply.body, limits).map_err(|_| AnswerFault::NotJson)?;
    let decisions = match asked {
        Request::Evaluation(_) => vec![Decision::read(&body)?],
        Request::Evaluations(_) => {
            let answers =
                body.get("evaluations").and_then(Json::as_array).ok_or(AnswerFault::NotADecision)?;
            answers.iter().map(Decision::read).collect::<Result<_, _>>()?
        }
    };
    counted(asked, decisions)
}

fn counted(asked: &Request, decisions: Vec<Decision>) -> Result<Vec<Decision>, AnswerFault> {
    let several = match asked {
        Request::Evaluation(_) if decisions.len() == 1 => return Ok(decisions),
        Request::Evaluation(_) => return Err(AnswerFault::Count),
        Request::Evaluations(several) => several,
    };
    let stopped = several.semantic() == Some(Semantic::DenyOnFirstDeny)
        && decisions.len() < several.evaluations.len()
        && decisions.last().is_some_and(|last| !last.decision);
    let whole = decisions.len() == several.evaluations.len() && !decisions.is_empty();
    if whole || stopped { Ok(decisions) } else { Err(AnswerFault::Count) }
}

fn is_json(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim_matches([' ', '\t']);
    essence.eq_ignore_ascii_case("application/json")
}
