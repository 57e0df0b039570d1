//! One tool call of a client's: made as it is where nothing stands against it, and taken through the dance where the
//! owner's say is wanted.
//!
//! It stays inside what stock clients bear: a call of an older client ends before its minute is over, one of the newest
//! revision is asked back a few times and then answered. Whatever ends early can be taken up by the same call.

use super::incoming::Incoming;
use super::person::{Manner, Person};
use super::questions::Questions;
use super::round::{NotTaken, Question, Round, Said};
use super::{Shim, words};
use bytes::Bytes;
use http::Response;
use sayso_agent::{Answer, Errand, Fault, Letter, Line, Outcome, Standing, Stop, Stopper};
use sayso_fetch::Pieces;
use sayso_protocol::canon::{S256, s256_of};
use sayso_protocol::id::ToolName;
use sayso_protocol::message::MessageFault;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// What is said to the client about its call.
pub(super) enum Event {
    /// A message on the way: a notification, or a question.
    Note(Bytes),
    /// The server's answer.
    Carried(Response<Pieces>),
    /// Our own result, and whether it is one.
    Result(Value),
    /// An error about the message.
    Fault(MessageFault),
    /// The server does not know the session any more.
    NoSession,
}

/// What is known of the client for one call.
pub(super) struct Client<'a> {
    /// Whether it can be asked.
    pub(super) asks: bool,
    pub(super) questions: &'a Questions,
    pub(super) line: &'a Line,
    /// Headers of its own that go with the call in place of ours.
    pub(super) headers: Option<http::HeaderMap>,
    pub(super) out: mpsc::Sender<Event>,
    pub(super) stop: Stop,
}

/// A call at the desk.
struct Case<'a> {
    shim: &'a Shim,
    client: &'a Client<'a>,
    letter: Letter,
    errand: Errand,
    operation: S256,
    began: Instant,
}

/// Answers a call.
pub(super) async fn call(shim: &Shim, client: Client<'_>, mut call: Incoming) {
    let modern = call.is_modern();
    let event = match prepare(shim, &client, &mut call).await {
        Ok((case, round)) if modern => case.rounds(round, call.progress_token()).await,
        Ok((case, _)) => case.open(call.progress_token()).await,
        Err(event) => Some(*event),
    };
    if let Some(event) = event {
        // A client that has gone does not want it.
        let _ = client.out.send(event).await;
    }
}

async fn prepare<'a>(
    shim: &'a Shim,
    client: &'a Client<'a>,
    call: &mut Incoming,
) -> Result<(Case<'a>, Round), Box<Event>> {
    let modern = call.is_modern();
    let failed = |text: &str| Box::new(Event::Result(words::failed(text, modern, false)));
    let arguments = call.text(&["params", "arguments"]).unwrap_or("{}").to_owned();
    let name = call.param("name").and_then(|name| name.as_str()).unwrap_or_default().to_owned();
    let tool = ToolName::parse(name).map_err(|_| failed("Not called: that is not the name of a tool."))?;
    let mut errand = Errand::new(&shim.resource, tool.clone(), &arguments)
        .map_err(|fault| failed(&words::fault(&fault, &shim.resource)))?;
    errand.key.clone_from(&shim.key);
    errand.reason.clone_from(&shim.reason);
    let operation = s256_of(&json!([shim.resource, tool, errand.params_s256()]))
        .map_err(|_| failed("Not called: its arguments cannot be bound to a grant."))?;
    let round = if modern {
        Round::open(&shim.seal, call, &operation, crate::clock::now())
            .map_err(|NotTaken| Box::new(Event::Fault(not_taken(call))))?
    } else {
        Round { asked: 0, answered: None, own: (None, None) }
    };
    let letter = match &client.headers {
        // The client's own headers say what it says in them, and the server compares.
        Some(own) => {
            Letter { headers: own.clone(), body: call.body.clone(), id: call.message.request_id().cloned() }
        }
        None if modern => {
            let mirrors = shim.agent.mirrors(client.line, tool.as_str()).await.unwrap_or_default();
            call.letter(&mirrors)
        }
        None => call.letter(&[]),
    };
    Ok((Case { shim, client, letter, errand, operation, began: Instant::now() }, round))
}

fn not_taken(call: &Incoming) -> MessageFault {
    MessageFault {
        jsonrpc_code: MessageFault::INVALID_PARAMS,
        message: "requestState is of another call, too old, or altered",
        ..call.unreadable()
    }
}

impl Case<'_> {
    async fn dance(&self, errand: &Errand, consent: &Person<'_>) -> Result<Answer, Fault> {
        let consent = Standing { rule: self.shim.rule.clone(), otherwise: Borrowed(consent) };
        self.shim.agent.call_on(self.client.line, &self.letter, errand, &consent).await
    }

    fn tool(&self) -> &str {
        self.errand.tool().as_str()
    }

    /// A call that comes back as often as its client is asked (2026-07-28).
    async fn rounds(mut self, round: Round, token: Option<&str>) -> Option<Event> {
        let asks = self.client.asks;
        if let Some((Question::Wait, Said::No | Said::Nothing)) = &round.answered {
            return Some(Event::Result(words::failed(&words::stopped(self.tool()), true, true)));
        }
        let manner = if asks { Manner::Rounds(Mutex::new(round.answered.clone())) } else { Manner::None };
        let person = Person::new(manner, &self.client.out, &self.client.stop, token);
        self.errand.wait = self.shim.hold;
        self.errand.stop = Some(self.client.stop.clone());
        let mut answer = self.dance(&self.errand, &person).await;
        if let Some((Question::Terms { family, .. }, _)) = &round.answered {
            self.shim.asked.answered(family);
        } else if let (true, Ok(Answer::Ended(Outcome::Later))) = (asks, &answer)
            && let Some(Question::Terms { family, .. }) = person.put().map(|put| put.question)
            && !self.shim.asked.is_first(&family)
        {
            // Somebody is being asked about these very terms; the answer is for all who wait.
            self.shim.asked.wait(&family, Duration::from_secs(self.shim.hold.into())).await;
            answer = self.dance(&self.errand, &person).await;
        }
        let asked = match &answer {
            Ok(Answer::Ended(Outcome::Later)) => person.put().map(|put| (put.question, put.text)),
            Ok(Answer::Ended(Outcome::Waiting { authority, .. })) => {
                Some((Question::Wait, words::keep_waiting(self.tool(), authority)))
            }
            Ok(Answer::Ended(Outcome::Busy)) => Some((Question::Wait, words::waits_elsewhere(self.tool()))),
            _ => None,
        };
        if let Some((question, message)) = asked.filter(|_| asks)
            && let Ok(nonce) = crate::clock::draw()
            && let moment = (crate::clock::now(), nonce)
            && let Some(back) = round.ask(&self.shim.seal, question, &message, &self.operation, moment)
        {
            return Some(Event::Result(back));
        }
        self.end(answer, &person, true)
    }

    /// A call that stays open while its client is asked (before 2026-07-28).
    async fn open(mut self, token: Option<&str>) -> Option<Event> {
        let asks = self.client.asks;
        let manner = if asks { Manner::Open(self.client.questions) } else { Manner::None };
        let person = Person::new(manner, &self.client.out, &self.client.stop, token);
        self.errand.wait = self.shim.hold.min(self.shim.patience);
        self.errand.stop = Some(self.client.stop.clone());
        let answer = self.dance(&self.errand, &person).await;
        let text = match &answer {
            Ok(Answer::Ended(Outcome::Waiting { authority, .. })) => {
                words::keep_waiting(self.tool(), authority)
            }
            Ok(Answer::Ended(Outcome::Busy)) => words::waits_elsewhere(self.tool()),
            _ => return self.end(answer, &person, false),
        };
        let left = self.left();
        if !asks || left == 0 {
            return self.end(answer, &person, false);
        }
        let (answer, said_no) = self.wait_on(&text, left, &person).await;
        if said_no && !self.client.stop.is_said() {
            return Some(Event::Result(words::failed(&words::stopped(self.tool()), false, true)));
        }
        self.end(answer, &person, false)
    }

    /// Goes on asking the authority while the one question is open; says whether it was answered with no. Once the owner
    /// has said yes the call is made, and there is nothing left to stop: the question is withdrawn.
    async fn wait_on(&mut self, text: &str, left: u32, person: &Person<'_>) -> (Result<Answer, Fault>, bool) {
        let (stopper, stop) = Stopper::new();
        self.errand.wait = left;
        self.errand.stop = Some(stop);
        let mut going = std::pin::pin!(self.dance(&self.errand, person));
        let mut asking = Some(Box::pin(self.client.questions.ask(&Question::Wait, text, &self.client.out)));
        let mut said_no = false;
        loop {
            tokio::select! {
                answer = &mut going => {
                    let no_answer = matches!(answer, Ok(Answer::Ended(Outcome::Stopped | Outcome::Waiting { .. })));
                    return (answer, said_no && no_answer);
                }
                () = person.is_granted() => asking = None,
                said = answered(&mut asking) => {
                    asking = None;
                    if said == Said::No {
                        said_no = true;
                        stopper.stop();
                    }
                }
                () = self.client.stop.said(), if !said_no => {
                    said_no = true;
                    stopper.stop();
                }
            }
        }
    }

    /// Seconds until a call of an older client has to end.
    fn left(&self) -> u32 {
        let gone = u32::try_from(self.began.elapsed().as_secs()).unwrap_or(u32::MAX);
        self.shim.patience.saturating_sub(gone)
    }

    /// What the client is told in the end; nothing, when it has said that it does not want to know.
    fn end(&self, answer: Result<Answer, Fault>, person: &Person<'_>, modern: bool) -> Option<Event> {
        let outcome = match answer {
            Ok(Answer::Carried(answer)) => return Some(Event::Carried(*answer)),
            Ok(Answer::Ended(outcome)) => outcome,
            Err(fault) => {
                let text = words::fault(&fault, &self.shim.resource);
                return Some(Event::Result(words::failed(&text, modern, false)));
            }
        };
        if self.client.stop.is_said() {
            return None;
        }
        let text = match (&outcome, person.put()) {
            (Outcome::Refused(refused), _) if refused.has_no_session() => return Some(Event::NoSession),
            (Outcome::Later, Some(put)) if !self.client.asks => words::terms_unasked(&put.text, self.tool()),
            _ => words::ending(&outcome, &self.shim.resource, self.tool()),
        };
        let waits = matches!(outcome, Outcome::Waiting { .. } | Outcome::Busy | Outcome::Stopped);
        Some(Event::Result(words::failed(&text, modern, waits)))
    }
}

/// The answer to a question, unless it is not asked any more.
async fn answered<F: Future<Output = Said> + Unpin>(asking: &mut Option<F>) -> Said {
    match asking {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}

/// A consent that is asked through a reference.
struct Borrowed<'a>(&'a Person<'a>);

#[async_trait::async_trait]
impl sayso_agent::Consent for Borrowed<'_> {
    async fn agree(&self, ask: &sayso_agent::Ask<'_>) -> sayso_agent::Decision {
        self.0.agree(ask).await
    }

    fn tell(&self, news: &sayso_agent::News<'_>) {
        self.0.tell(news);
    }
}
