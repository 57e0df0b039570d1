//! One message as a question to a policy decision point, and its answer as leave or a no.
//!
//! A permit is for what was asked: should the mapping of a tool change while the decision point thinks, the question is
//! put again, and after that refused (COAZ-MCP-89). No permit is kept for a later message. What the decision point is,
//! here or elsewhere, is not known.

use super::audit::{Audit, Outcome};
use super::denial::Denials;
use super::filter::Filter;
use super::mappings::{Listed, Mappings};
use super::{Leave, Objection, PolicyRefusal, Question};
use crate::authority::random_text;
use bytes::Bytes;
use sayso_coaz::answer::AnswerFault;
use sayso_coaz::authzen::Request;
use sayso_coaz::{Asked, DecisionPoint, EXTRA_DEFAULTS, Engine, Fault, Operation, Projection, Settings, Why};
use sayso_protocol::Json;
use sayso_protocol::message::{Message, RequestId, reconcile_mirrors};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long a decision may take, whatever its decision point allows itself.
const LONGEST: Duration = Duration::from_secs(30);
/// How often a message is asked about whose mapping changes under it.
const ROUNDS: usize = 2;

/// What a resource's policy is made of.
pub struct PolicySettings {
    /// How its messages are mapped.
    pub mapping: Settings,
    /// The mappings its server declares.
    pub mappings: Mappings,
    /// Who decides.
    pub point: Arc<dyn DecisionPoint>,
    /// Whether lists are cut to what their reader may call, read or get.
    pub filter_lists: bool,
    /// Whether what was asked about a call is logged with its values.
    pub audit_arguments: bool,
    /// How a no is told.
    pub denials: Denials,
}

/// That there is no yes, and what the policy engine says of it where that may be told.
struct No {
    fault: Fault,
    said: Option<String>,
}

impl From<Fault> for No {
    fn from(fault: Fault) -> Self {
        Self { fault, said: None }
    }
}

/// The policy of one resource. Shared by all its hosts.
pub struct Policy {
    pub(super) engine: Engine,
    pub(super) point: Arc<dyn DecisionPoint>,
    mappings: Mappings,
    extra_defaults: BTreeSet<String>,
    filter_lists: bool,
    pub(super) audit: Audit,
    denials: Denials,
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Policy")
    }
}

impl Policy {
    /// Compiles every default mapping, so that one that cannot run is found at the start.
    ///
    /// # Errors
    /// When the settings of the mappings name a method they may not.
    pub fn new(settings: PolicySettings) -> Result<Self, Fault> {
        let PolicySettings { mapping, mappings, point, filter_lists, audit_arguments, denials } = settings;
        let extra_defaults = mapping.extra_defaults.clone();
        let (engine, audit) = (Engine::new(mapping)?, Audit::new(audit_arguments));
        Ok(Self { engine, point, mappings, extra_defaults, filter_lists, audit, denials })
    }

    /// The mappings its server declares.
    pub fn mappings(&self) -> &Mappings {
        &self.mappings
    }

    /// Whether a call is denied by a result; a host that cannot answer a call with one cannot do that.
    pub fn denies_by_result(&self) -> bool {
        self.denials.as_result
    }

    /// Whether lists are cut; a host that does not carry answers cannot do that.
    pub fn filters_lists(&self) -> bool {
        self.filter_lists
    }

    /// Methods of clients of the newest revision that nothing maps here, and which are therefore denied.
    pub fn unmapped(&self) -> impl Iterator<Item = &'static str> {
        EXTRA_DEFAULTS.into_iter().filter(|method| !self.extra_defaults.contains(*method))
    }

    /// The claim of a token that names its subject, as it is designated for its issuer.
    pub(crate) fn subject_claim(&self, token: &Json) -> &str {
        self.engine.subject_claim(token)
    }

    /// Whether a message may pass.
    pub(crate) async fn consult(&self, question: &Question<'_>) -> Result<Leave, Objection> {
        let Some(operation) = Operation::of(question.message) else { return Ok(Leave::Unasked) };
        for _ in 0..ROUNDS {
            let listed = match operation.tool() {
                Some(_) => self.mappings.current().await,
                None => self.mappings.known(),
            };
            mirrored(question, &listed)?;
            let projected =
                self.engine.project(operation, &listed.registry, self.mappings.now(), question.token);
            let asked = match projected {
                Ok(Projection::PassThrough) => return Ok(Leave::Unasked),
                Ok(Projection::Ask(asked)) => asked,
                Err(fault) => return Err(objection(&fault, question)),
            };
            self.audit.warn(operation.tool(), &asked, question.observer);
            if let Err(no) = self.ask(operation, &asked, question).await {
                return Err(self.object(&no, question));
            }
            if self.still_maps(operation, &asked, &listed).await {
                return Ok(Leave::Permitted);
            }
        }
        Err(objection(&Fault { place: String::new(), why: Why::Unlisted }, question))
    }

    async fn ask(&self, operation: Operation<'_>, asked: &Asked, question: &Question<'_>) -> Result<(), No> {
        // Fresh for each question, and nothing of the agent's.
        let id = random_text().map_err(|_| unanswered())?;
        let began = Instant::now();
        let decided = self.decide(&asked.request, &id).await;
        let took = began.elapsed();
        let outcome = Outcome::of(decided.as_ref().err().map(|no| &no.fault));
        self.audit.tell(&id, operation, asked, outcome, took);
        if let Some(observer) = question.observer {
            observer.consulted(outcome.as_str(), took);
        }
        decided
    }

    /// The answer to one request, yes or no.
    async fn decide(&self, request: &Request, id: &str) -> Result<(), No> {
        let answer = timeout(LONGEST, self.point.decide(request, id)).await;
        let decisions = answer.unwrap_or_else(|_| Err(unanswered()))?;
        let no = |fault| No { said: self.denials.said(&decisions), fault };
        decisions.permit().map(drop).map_err(no)
    }

    /// A no as it is told.
    fn object(&self, No { fault, said }: &No, question: &Question<'_>) -> Objection {
        let told = refusal(fault, question.message.request_id());
        let message = said.as_ref().map_or_else(|| fault.message(), |said| fault.message_saying(said));
        let id = question.message.request_id();
        let call = if let Message::Request(request) = question.message { request.call() } else { None };
        let result = id.filter(|_| self.denials.as_result && call.is_some());
        let result = result.and_then(|id| fault.tool_result_saying(id, &message));
        let body = Bytes::from(result.unwrap_or_else(|| fault.answer(id, &message)));
        Objection::Policy(Box::new(PolicyRefusal { message, body, ..told }))
    }

    /// Whether what was asked is what would be asked now.
    async fn still_maps(&self, operation: Operation<'_>, asked: &Asked, before: &Arc<Listed>) -> bool {
        let Some(tool) = operation.tool() else { return true };
        let now = self.mappings.current().await;
        Arc::ptr_eq(&now, before)
            || now.registry.declared(tool, self.mappings.now()).is_ok_and(|mapping| {
                mapping.map(sayso_coaz::Mapping::digest) == Some(asked.mapping.as_ref())
                    || (mapping.is_none() && asked.mapping.is_none())
            })
    }

    /// How the answer to this message is cut, if it is.
    pub(crate) fn filter(self: &Arc<Self>, question: &Question<'_>) -> Option<Filter> {
        let Message::Request(request) = question.message else { return None };
        if !self.filter_lists {
            return None;
        }
        Filter::of(self, request, question.token)
    }
}

/// That there was no answer.
pub(super) fn unanswered() -> Fault {
    Fault { place: String::new(), why: Why::Answer(AnswerFault::None) }
}

fn mirrored(question: &Question<'_>, listed: &Listed) -> Result<(), Objection> {
    let Message::Request(request) = question.message else { return Ok(()) };
    let Some(call) = request.call() else { return Ok(()) };
    let mirrors = listed.mirrors(call.name);
    reconcile_mirrors(question.headers, mirrors, request, question.revision).map_err(Objection::Fault)
}

fn objection(fault: &Fault, question: &Question<'_>) -> Objection {
    Objection::Policy(Box::new(refusal(fault, question.message.request_id())))
}

/// A fault as it is answered.
pub(super) fn refusal(fault: &Fault, id: Option<&RequestId>) -> PolicyRefusal {
    let category = fault.category();
    PolicyRefusal {
        code: category.code(),
        category: category.as_str(),
        message: fault.message(),
        place: fault.place.clone(),
        id: id.cloned(),
        body: Bytes::from(fault.body(id)),
    }
}
