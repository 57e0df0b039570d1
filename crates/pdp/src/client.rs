//! A policy engine asked over HTTPS, by OpenID AuthZEN Authorization API 1.0.
//! What of an answer is a yes is `sayso-coaz`'s; here is how it is had, within a time limit, from the engine that was meant
//! and no other. Whatever goes wrong on the way is a policy fault: nothing here can turn into a yes.

mod ask;
mod breaker;
mod knowledge;
mod metadata;
mod settings;
mod singles;

use std::sync::Arc;
use std::time::Duration;

use sayso_coaz::answer::{AnswerFault, Decisions, Reply};
use sayso_coaz::authzen::Request;
use sayso_coaz::{Deciding, DecisionPoint, Fault, Why};
use sayso_fetch::FetchError;
use tokio::time::Instant;

use ask::Doors;
use breaker::Breaker;
use knowledge::{Answer, Endpoint, Endpoints, Knowledge};

pub use metadata::NoMetadata;
pub use settings::{BadRemote, Identity, RemoteSettings};

const NONE: Why = Why::Answer(AnswerFault::None);

/// A policy engine that is asked over HTTPS.
///
/// Connections are kept and used again. It is asked at most once for a message (twice where no byte was sent), and after
/// several requests without an answer not at all for a while.
pub struct Remote(Arc<Inner>);

struct Inner {
    doors: Doors,
    knowledge: Knowledge,
    breaker: Breaker,
    time_limit: Duration,
    most_singles: usize,
    singles_at_once: usize,
}

impl Remote {
    /// The policy engine of these settings. Nothing is sent yet.
    ///
    /// # Errors
    /// When they name none, or one that may not be asked.
    pub fn new(settings: &RemoteSettings) -> Result<Remote, BadRemote> {
        settings.bounded()?;
        Ok(Remote(Arc::new(Inner {
            doors: Doors::new(settings)?,
            knowledge: Knowledge::new(settings.place()?),
            breaker: Breaker::new(settings.faults, settings.pause),
            time_limit: settings.time_limit,
            most_singles: settings.most_singles,
            singles_at_once: settings.singles_at_once,
        })))
    }

    /// Finds the endpoints, for a start that should not succeed with the wrong policy engine. A fault that
    /// [passes](NoMetadata::passes) is no reason not to start: each request finds them anew.
    ///
    /// # Errors
    /// When they cannot be had.
    pub async fn prepare(&self) -> Result<(), NoMetadata> {
        let found = self.0.knowledge.endpoints(&self.0.doors);
        let found = tokio::time::timeout(self.0.time_limit, found).await;
        found.unwrap_or(Err(NoMetadata::Unreachable(FetchError::TimedOut))).map(drop)
    }
}

impl DecisionPoint for Remote {
    fn decide<'a>(&'a self, request: &'a Request, request_id: &'a str) -> Deciding<'a> {
        Box::pin(self.0.decide(request, request_id))
    }
}

/// No decisions, and what that says of the policy engine.
struct Trouble {
    fault: Fault,
    /// Whether it seems not to be there.
    down: bool,
    /// What happened, for whoever runs this; never for whoever asked.
    how: How,
}

/// What happened instead of decisions.
#[derive(Debug, Clone, Copy, thiserror::Error)]
enum How {
    /// They were answered, and were none.
    #[error("it answered, and not with decisions")]
    Answered,
    /// With this status.
    #[error("it answered with status {0}")]
    Status(u16),
    /// No answer came.
    #[error("{0}")]
    Unanswered(FetchError),
    /// The endpoints are not known.
    #[error("where it is asked is not known: {0}")]
    Unknown(NoMetadata),
    /// It was not asked: that is nothing it could answer one by one.
    #[error("it was not asked")]
    NotAsked,
}

impl Trouble {
    fn answered(fault: Fault) -> Trouble {
        Trouble { fault, down: false, how: How::Answered }
    }

    fn not_asked(why: Why) -> Trouble {
        Trouble { fault: fault(why), down: false, how: How::NotAsked }
    }

    fn unanswered(error: FetchError) -> Trouble {
        let (why, down) = match error {
            FetchError::TooLarge => (Why::Answer(AnswerFault::NotJson), false),
            FetchError::Refused => (NONE, false),
            _ => (NONE, true),
        };
        Trouble { fault: fault(why), down, how: How::Unanswered(error) }
    }
}

fn fault(why: Why) -> Fault {
    Fault { place: String::new(), why }
}

impl Inner {
    async fn decide(self: &Arc<Self>, request: &Request, request_id: &str) -> Result<Decisions, Fault> {
        let Some(leave) = self.breaker.enter(Instant::now()) else {
            tracing::debug!(request_id, "pdp.not_asked");
            return Err(fault(NONE));
        };
        if self.knowledge.is_due(Instant::now()) {
            let inner = self.clone();
            tokio::spawn(async move { inner.knowledge.renew(&inner.doors).await });
        }
        let asked = tokio::time::timeout(self.time_limit, self.asked(request, request_id)).await;
        let asked = asked.unwrap_or_else(|_| Err(Trouble::unanswered(FetchError::TimedOut)));
        let down = asked.as_ref().is_err_and(|trouble| trouble.down);
        if leave.settle(!down, Instant::now()) {
            tracing::warn!(request_id, "pdp.left_alone");
        }
        asked.map_err(|trouble| {
            tracing::warn!(request_id, down, how = %trouble.how, fault = %trouble.fault.why, "pdp.fault");
            trouble.fault
        })
    }

    async fn asked(&self, request: &Request, request_id: &str) -> Result<Decisions, Trouble> {
        let endpoints = self.knowledge.endpoints(&self.doors).await;
        let endpoints = endpoints.map_err(|unknown| Trouble {
            fault: fault(NONE),
            down: unknown.passes(),
            how: How::Unknown(unknown),
        })?;
        let exchange = Exchange { doors: &self.doors, endpoints: &endpoints, request_id };
        let several = match request {
            Request::Evaluation(_) => {
                return exchange.at(&endpoints.evaluation, request, request_id).await;
            }
            Request::Evaluations(several) => several,
        };
        if let Some(endpoint) = &endpoints.evaluations {
            let answer = exchange.answer(endpoint, request, request_id).await?;
            // Nobody said that there is such an endpoint, and there is none (AMB-15, EVS-20).
            if !endpoints.guessed || !matches!(answer.status().as_u16(), 404 | 405 | 501) {
                return read(request, &answer);
            }
            self.knowledge.one_at_a_time();
        }
        singles::ask(&exchange, request, several, self.most_singles, self.singles_at_once).await
    }
}

/// Asking about one message.
struct Exchange<'a> {
    doors: &'a Doors,
    endpoints: &'a Endpoints,
    request_id: &'a str,
}

impl Exchange<'_> {
    async fn at(&self, endpoint: &Endpoint, request: &Request, id: &str) -> Result<Decisions, Trouble> {
        read(request, &self.answer(endpoint, request, id).await?)
    }

    async fn answer(&self, endpoint: &Endpoint, request: &Request, id: &str) -> Result<Answer, Trouble> {
        let body = request.body().map_err(|_| Trouble::not_asked(Why::Number))?;
        self.doors.post(endpoint, body.into(), id).await.map_err(Trouble::unanswered)
    }
}

fn read(asked: &Request, answer: &Answer) -> Result<Decisions, Trouble> {
    let status = answer.status().as_u16();
    let reply = Reply { status, media_type: ask::media_type(answer.headers()), body: answer.body() };
    // What stands before an engine says that it is not there. An engine that answers is there, whatever it says: else five
    // messages of one caller that it chokes on would keep everybody from asking.
    let down = matches!(status, 502..=504);
    let how = if status == 200 { How::Answered } else { How::Status(status) };
    Decisions::read(asked, reply).map_err(|fault| Trouble { fault, down, how })
}
