//! One request through the gateway: bound it, have it decided, forward it with a permit or say why not.
//!
//! The engine judges and this file obeys: nothing reaches the upstream but through a redeemed permit, and then the bytes
//! that were judged (D-10). A failure after a grant was spent is told to the agent and to the owner's record (D-14).

use crate::config::Site;
use crate::session::{self, Visit};
use crate::stream::{self, Leaving, Terms};
use crate::upstream::{self, Broken};
use axum::body::Body;
use http::{Method, Response, StatusCode};
use sayso_enforce::answer;
use sayso_enforce::reading::{self, Bodies};
use sayso_enforce::{Clearance, Head, Incoming, Outlet, Permit, Unavailable, Verdict};
use sayso_protocol::payload::protection::AccessReport;
use sayso_protocol::payload::refusal::{Code, Forwarded, Refusal};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Where the answer goes; closed when its caller hung up.
type Caller = oneshot::Sender<Response<Body>>;

/// Answers a request for a resource.
pub(crate) async fn pass(site: Arc<Site>, bodies: &Bodies, head: Head, body: Body) -> Response<Body> {
    let found = site.sessions.find(&head);
    if let Err(refusal) = site.engine.preview(&head, found.named()) {
        reading::drain(body, &head.headers).await;
        return answer::turn_away(&refusal);
    }
    let Ok((body, _place)) = bodies.read(body, &head.headers).await else {
        let text = "too many large requests are under way; send it again, signed afresh";
        return answer::refusal(&Refusal::new(Code::TemporarilyUnavailable, text));
    };
    let (caller, answered) = oneshot::channel();
    // On a task of its own: hanging up drops this future, and must not end the call between the spending of a grant and
    // the record of what became of it.
    tokio::spawn(carry_out(site, Incoming { head, body }, found.visit(), caller));
    answered.await.unwrap_or_else(|_| {
        answer::refusal(&Refusal::new(Code::UpstreamFailed, "the exchange with the server was broken off"))
    })
}

async fn carry_out(site: Arc<Site>, incoming: Incoming, visit: Option<Arc<Visit>>, mut caller: Caller) {
    // In a session the revision was agreed when it began.
    let unspoken = match visit {
        Some(_) => None,
        None => site.upstream.unspoken(&incoming.head, &incoming.body).await,
    };
    let response = match unspoken {
        Some(unspoken) => Some(unspoken),
        None => judge(&site, &incoming, visit, &mut caller).await,
    };
    if let Some(response) = response {
        // Nobody waiting for it any more is the caller's choice.
        let _ = caller.send(response);
    }
}

async fn judge(
    site: &Site,
    incoming: &Incoming,
    visit: Option<Arc<Visit>>,
    caller: &mut Caller,
) -> Option<Response<Body>> {
    let outward = session::outward(&incoming.head, visit.as_deref());
    let route = Attended { route: site.upstream.route(&outward), caller, head: &incoming.head };
    let session = visit.as_ref().map(|visit| &visit.session);
    match site.engine.decide_within(session, incoming, &route).await {
        Verdict::Permit(permit) => redeem(site, permit, &incoming.head, visit, caller).await,
        Verdict::Challenge(challenge) => Some(answer::challenge(&challenge)),
        Verdict::Refuse(refusal) => Some(answer::turn_away(&refusal)),
        Verdict::Fault(fault) => Some(answer::fault(&fault)),
    }
}

/// The way out, which closes before anything is spent when the caller has cancelled the call by then.
struct Attended<'a> {
    route: upstream::Route<'a>,
    caller: &'a Caller,
    head: &'a Head,
}

impl Outlet for Attended<'_> {
    type Sender = upstream::Sender;

    async fn checkout(&self) -> Result<upstream::Sender, Unavailable> {
        let sender = self.route.checkout().await?;
        if self.caller.is_closed() && session::is_modern(self.head) {
            return Err(Unavailable::NoUpstream);
        }
        Ok(sender)
    }
}

/// The answer, unless the caller hung up on it.
async fn redeem(
    site: &Site,
    permit: Permit<upstream::Sender>,
    head: &Head,
    visit: Option<Arc<Visit>>,
    caller: &mut Caller,
) -> Option<Response<Body>> {
    let clearance = match permit.redeem() {
        Ok(clearance) => clearance,
        Err(void) => {
            if let Some(call) = void.spent {
                record(site, call, "the call was not forwarded in time").await;
            }
            return Some(answer::refusal(&void.refusal));
        }
    };
    if clearance.introduces && !site.sessions.has_room() {
        return Some(no_room());
    }
    if !clearance.modern && head.method != Method::GET {
        // An older client that hangs up may come back for the answer, so its call runs to its end without it.
        return Some(forward(site, clearance, head, visit).await);
    }
    // In the revisions since, hanging up is how a call is cancelled, and with it the upstream request; in any, it is how
    // one stops listening.
    let spent = clearance.spent.clone();
    let lost = if caller.is_closed() {
        "the call was not forwarded: its caller hung up"
    } else {
        tokio::select! {
            response = forward(site, clearance, head, visit) => return Some(response),
            () = caller.closed() => "its caller hung up; whether the server ran the call is not known",
        }
    };
    if let Some(call) = spent {
        record(site, call, lost).await;
    }
    None
}

async fn forward(
    site: &Site,
    mut clearance: Clearance<upstream::Sender>,
    head: &Head,
    visit: Option<Arc<Visit>>,
) -> Response<Body> {
    let since = Instant::now();
    let outward = session::outward(head, visit.as_deref());
    let ends = visit.as_ref().filter(|_| head.method == Method::DELETE);
    if let Some(visit) = ends {
        // Here it ends whatever its server says.
        site.sessions.end(visit);
    }
    if let Some(visit) = visit.as_ref().filter(|_| session::takes_up(head)) {
        visit.take_up().await;
    }
    let (sender, body) = (clearance.sender.take(), std::mem::take(&mut clearance.body));
    let sent = site.upstream.send(sender, &outward, body).await;
    let mut response = match sent {
        _ if ends.is_some() => return ended(sent),
        Ok(response) => response,
        Err(broken) => return fail(site, broken, clearance.spent).await,
    };
    let Ok(visit) = site.sessions.rename(&mut response, &clearance, visit) else { return no_room() };
    let leaving = match clearance.modern || head.method == Method::GET {
        true => Leaving::Ends,
        false => Leaving::RunsOn,
    };
    let Clearance { token, closing, .. } = clearance;
    // What says that a session is gone is not closed with it.
    let closing = closing.filter(|_| visit.is_some());
    stream::carry(response, Terms { engine: site.engine.clone(), leaving, token, visit, closing, since })
}

/// A session has ended, whether or not its server knows.
fn ended(sent: Result<Response<Body>, Broken>) -> Response<Body> {
    let status = sent.map_or(StatusCode::OK, |response| response.status());
    let mut response = Response::new(Body::empty());
    *response.status_mut() = if status.is_success() { status } else { StatusCode::OK };
    response
}

fn no_room() -> Response<Body> {
    let text = "there is no room for another session now";
    answer::refusal(&Refusal::new(Code::TemporarilyUnavailable, text))
}

async fn fail(site: &Site, broken: Broken, spent: Option<AccessReport>) -> Response<Body> {
    let text = broken.to_string();
    let forwarded = broken.forwarded();
    let family = spent.as_ref().map(|call| call.family.as_str());
    tracing::warn!(family, spent = spent.is_some(), reason = %text, "upstream.failed");
    let Some(call) = spent else {
        let refusal = Refusal::new(Code::UpstreamFailed, text);
        return answer::refusal(&Refusal { forwarded: Some(forwarded), ..refusal });
    };
    let summary = match forwarded {
        Forwarded::No => "the call was not forwarded: the server could not be reached",
        Forwarded::Unknown => "whether the server ran the call is not known",
    };
    record(site, call, summary).await;
    answer::refusal(&Refusal::after_spend(text, forwarded))
}

/// Her record learns of the loss if it can; the answer to the agent does not wait for a second try.
async fn record(site: &Site, call: AccessReport, summary: &str) {
    let family = call.family.clone();
    if site.engine.report(call, summary).await.is_err() {
        tracing::error!(family = family.as_str(), "access.report_lost");
    }
}
