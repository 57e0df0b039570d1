//! One request through a host that carries the answer: bound it, have it decided, send it on with a permit or say why
//! not.
//!
//! The engine judges and this obeys: nothing reaches the server but through a redeemed permit, and then the bytes that
//! were judged (D-10). A failure after a grant was spent is told to the agent and to the owner's record (D-14). How the
//! server is reached is the host's [`Way`].

mod body;
mod events;
mod filtered;
mod headers;
mod rounds;
mod sessions;
mod source;
mod stream;
mod way;

pub use body::{BoxError, Carried};
pub use events::{Events, Told};
pub use headers::goes_inward;
pub use sessions::{Farewell, SESSION};
pub use source::Source;
pub use way::{Broken, Sent, Turned, Way};

use crate::answer;
use crate::authority::Unavailable;
use crate::call::{Head, Incoming};
use crate::engine::{Engine, Outlet};
use crate::reading::{self, Bodies};
use crate::verdict::{Clearance, Permit, Verdict};
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body::Body as HttpBody;
use sayso_protocol::payload::protection::AccessReport;
use sayso_protocol::payload::refusal::{Code, Forwarded, Refusal};
use sessions::{Place, Sessions, Visit, Who};
use std::sync::Arc;
use stream::{Leaving, Terms};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The answer of a host whose server answers with bodies of this type.
type Answer<W> = Response<Carried<<W as Way>::Body>>;

/// Where the answer goes; closed when its caller hung up.
type Caller<W> = oneshot::Sender<Answer<W>>;

/// What a host that carries the answers of one resource keeps between requests.
pub struct Carrier {
    engine: Engine,
    sessions: Sessions,
}

/// Where a request came from, and the session it named.
struct Came {
    source: Source,
    visit: Option<Arc<Visit>>,
}

/// The session an answer belongs to, or the place for one that it may open.
struct Stay {
    visit: Option<Arc<Visit>>,
    place: Option<Place>,
}

impl Carrier {
    /// Requests decided by this engine, in sessions whose ends its server is told of.
    pub fn new(engine: Engine, farewell: Arc<dyn Farewell>) -> Self {
        Self { engine: engine.carried(), sessions: Sessions::of(farewell) }
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Answers a request for the resource, which came from there.
    pub async fn pass<W: Way, B>(
        self: Arc<Self>,
        way: W,
        bodies: &Bodies,
        source: Source,
        head: Head,
        body: B,
    ) -> Answer<W>
    where
        B: HttpBody<Data = Bytes> + Unpin,
    {
        let found = self.sessions.find(&head);
        if let Err(refusal) = self.engine.preview(&head, found.named()) {
            reading::drain(body, &head.headers).await;
            return answer::turn_away(&refusal);
        }
        let Ok((body, place)) = bodies.read(body, &head.headers).await else {
            let text = "too many large requests are under way; send it again, signed afresh";
            return answer::refusal(&Refusal::new(Code::TemporarilyUnavailable, text));
        };
        let (caller, answered) = oneshot::channel();
        // On a task of its own: hanging up drops this future, and must not end the call between the spending of a grant
        // and the record of what became of it.
        let carrying =
            self.carry_out(way, Incoming { head, body }, Came { source, visit: found.visit() }, caller);
        tokio::spawn(async move {
            carrying.await;
            // As long as the body is held, whoever hung up meanwhile.
            drop(place);
        });
        answered.await.unwrap_or_else(|_| {
            let text = "the exchange with the server was broken off";
            answer::refusal(&Refusal::new(Code::UpstreamFailed, text))
        })
    }

    async fn carry_out<W: Way>(
        self: Arc<Self>,
        way: W,
        incoming: Incoming,
        came: Came,
        mut caller: Caller<W>,
    ) {
        // In a session the revision was agreed when it began.
        let unspoken = match came.visit {
            Some(_) => None,
            None => way.unspoken(&incoming).await,
        };
        let response = match unspoken {
            Some(unspoken) => Some(unspoken.map(Carried::passed)),
            None => self.judge(&way, &incoming, came, &mut caller).await,
        };
        if let Some(response) = response {
            // Nobody waiting for it any more is the caller's choice.
            let _ = caller.send(response);
        }
    }

    async fn judge<W: Way>(
        &self,
        way: &W,
        incoming: &Incoming,
        came: Came,
        caller: &mut Caller<W>,
    ) -> Option<Answer<W>> {
        let outward = sessions::outward(&incoming.head, came.visit.as_deref());
        let attended = Attended { way, caller, head: &incoming.head, outward: &outward };
        let session = came.visit.as_ref().map(|visit| &visit.session);
        let turned = match self.engine.decide_within(session, incoming, &attended).await {
            Verdict::Permit(permit) => return self.redeem(way, permit, incoming, came, caller).await,
            Verdict::Fault(fault) => return Some(answer::fault(&fault)),
            Verdict::Policy(refusal) => return Some(answer::policy(&refusal)),
            Verdict::Bearer(challenge) => return Some(answer::bearer(&challenge)),
            Verdict::Challenge(challenge) => Turned::Challenge(challenge),
            Verdict::Refuse(refusal) => Turned::Refuse(refusal),
        };
        Some(turn_away(way, &turned, incoming))
    }

    /// The answer, unless the caller hung up on it.
    async fn redeem<W: Way>(
        &self,
        way: &W,
        permit: Permit<W::Sender>,
        incoming: &Incoming,
        came: Came,
        caller: &mut Caller<W>,
    ) -> Option<Answer<W>> {
        let clearance = match permit.redeem() {
            Ok(clearance) => clearance,
            Err(void) => {
                if let Some(call) = void.spent {
                    self.record(call, "the call was not forwarded in time").await;
                }
                return Some(turn_away(way, &Turned::Refuse(void.refusal), incoming));
            }
        };
        let who = Who { source: came.source, holder: clearance.holder.clone() };
        let place = match clearance.introduces.then(|| self.sessions.place(who)) {
            Some(None) => return Some(no_room()),
            kept => kept.flatten(),
        };
        let stay = Stay { visit: came.visit, place };
        let head = &incoming.head;
        if !clearance.modern && head.method != Method::GET {
            // An older client that hangs up may come back for the answer, so its call runs to its end without it.
            return Some(self.forward(way, clearance, incoming, stay).await);
        }
        // In the revisions since, hanging up is how a call is cancelled, and with it the request to the server; in any,
        // it is how one stops listening.
        let spent = clearance.spent.clone();
        let lost = if caller.is_closed() {
            "the call was not forwarded: its caller hung up"
        } else {
            tokio::select! {
                response = self.forward(way, clearance, incoming, stay) => return Some(response),
                () = caller.closed() => "its caller hung up; whether the server ran the call is not known",
            }
        };
        if let Some(call) = spent {
            self.record(call, lost).await;
        }
        None
    }

    async fn forward<W: Way>(
        &self,
        way: &W,
        mut clearance: Clearance<W::Sender>,
        incoming: &Incoming,
        Stay { visit, place }: Stay,
    ) -> Answer<W> {
        let (head, since) = (&incoming.head, Instant::now());
        let outward = sessions::outward(head, visit.as_deref());
        let ends = visit.as_ref().filter(|_| head.method == Method::DELETE);
        if let Some(visit) = ends {
            // Here it ends whatever its server says.
            self.sessions.end(visit);
        }
        if let Some(visit) = visit.as_ref().filter(|_| sessions::takes_up(head)) {
            visit.take_up().await;
        }
        let (sender, body) = (clearance.sender.take(), std::mem::take(&mut clearance.body));
        let sent = way.send(Sent { sender, head: &outward, body, spent: clearance.spent.as_ref() }).await;
        let sent = sent.and_then(answered).and_then(|response| taken(response, clearance.spent.is_some()));
        let mut response = match sent {
            _ if ends.is_some() => return ended(sent),
            Ok(response) => response,
            Err(broken) => {
                let refusal = self.fail(broken, clearance.spent).await;
                return turn_away(way, &Turned::Refuse(refusal), incoming);
            }
        };
        let stayed = self.sessions.rename(&mut response, visit, place);
        let Ok(visit) = stayed else { return no_room() };
        if let Some(filter) = clearance.filter.take() {
            return filtered::cut(response, *filter).await;
        }
        let leaving = match clearance.modern || head.method == Method::GET {
            true => Leaving::Ends,
            false => Leaving::RunsOn,
        };
        let Clearance { token, until, closing, spent, asks, modern, .. } = clearance;
        let asks = spent.filter(|_| asks && modern);
        // What says that a session is gone is not closed with it.
        let closing = closing.filter(|_| visit.is_some());
        stream::carry(
            response,
            Terms { engine: self.engine.clone(), leaving, token, until, visit, closing, asks, since },
        )
    }

    async fn fail(&self, broken: Broken, spent: Option<AccessReport>) -> Refusal {
        let text = broken.to_string();
        let forwarded = broken.forwarded();
        let family = spent.as_ref().map(|call| call.family.as_str());
        tracing::warn!(family, spent = spent.is_some(), reason = %text, "upstream.failed");
        let Some(call) = spent else {
            let refusal = Refusal::new(Code::UpstreamFailed, text);
            return Refusal { forwarded: Some(forwarded), ..refusal };
        };
        let summary = match (broken, forwarded) {
            (Broken::TurnedAway, _) => "the call was not run: the server turned its request away",
            (_, Forwarded::No) => "the call was not forwarded: the server could not be reached",
            (_, Forwarded::Unknown) => "whether the server ran the call is not known",
        };
        self.record(call, summary).await;
        Refusal::after_spend(text, forwarded)
    }

    /// Her record learns of the loss if it can; the answer to the agent does not wait for a second try.
    async fn record(&self, call: AccessReport, summary: &str) {
        let family = call.family.clone();
        if self.engine.report(call, summary).await.is_err() {
            tracing::error!(family = family.as_str(), "access.report_lost");
        }
    }
}

/// The way out, which closes before anything is spent when the caller has cancelled the call by then.
struct Attended<'a, W: Way> {
    way: &'a W,
    caller: &'a Caller<W>,
    head: &'a Head,
    /// As the server gets it.
    outward: &'a Head,
}

impl<W: Way> Outlet for Attended<'_, W> {
    type Sender = W::Sender;

    async fn checkout(&self) -> Result<W::Sender, Unavailable> {
        let sender = self.way.checkout(self.outward).await?;
        if self.caller.is_closed() && sessions::is_modern(self.head) {
            return Err(Unavailable::NoUpstream);
        }
        Ok(sender)
    }
}

/// What was refused, in the host's own form if it has one.
fn turn_away<W: Way>(way: &W, turned: &Turned, incoming: &Incoming) -> Answer<W> {
    match (way.turn_away(turned, incoming), turned) {
        (Some(own), _) => own.map(Carried::from),
        (None, Turned::Challenge(challenge)) => answer::challenge(challenge),
        (None, Turned::Refuse(refusal)) => answer::turn_away(refusal),
    }
}

/// An answer that may pass: no redirect and no other protocol, which nobody here follows.
fn answered<B>(response: Response<B>) -> Result<Response<B>, Broken> {
    let status = response.status();
    if status.is_redirection() || status.is_informational() {
        return Err(Broken::Elsewhere);
    }
    Ok(passed_on(response))
}

/// An answer to a call that a grant was spent on may pass only if the server took the call: nobody would learn from its own
/// refusal that the grant is gone (D-14).
fn taken<B>(response: Response<B>, spent: bool) -> Result<Response<B>, Broken> {
    let status = response.status();
    if spent && !status.is_success() { Err(Broken::Status(status)) } else { Ok(response) }
}

/// An answer as the agent gets it: its body untouched, whatever streams through it.
fn passed_on<B>(mut response: Response<B>) -> Response<B> {
    headers::strip(response.headers_mut());
    response
}

/// A session has ended, whether or not its server knows.
fn ended<A, B: From<Bytes>>(sent: Result<Response<A>, Broken>) -> Response<B> {
    let status = sent.map_or(StatusCode::OK, |response| response.status());
    let mut response = Response::new(B::from(Bytes::new()));
    *response.status_mut() = if status.is_success() { status } else { StatusCode::OK };
    response
}

fn no_room<B: From<Bytes>>() -> Response<B> {
    let text = "there is no room for another session now";
    answer::refusal(&Refusal::new(Code::TemporarilyUnavailable, text))
}

#[cfg(test)]
mod tests;
