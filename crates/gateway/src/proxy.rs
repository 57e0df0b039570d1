//! One request through the gateway: bound it, have it decided, forward it with a permit or say why not.
//!
//! The engine judges and this file obeys: nothing reaches the upstream but through a redeemed permit, and then the bytes
//! that were judged (D-10). A failure after a grant was spent is told to the agent and to the owner's record (D-14).

use crate::answer;
use crate::body::{self, Bodies};
use crate::config::Site;
use crate::upstream::{self, Broken};
use axum::body::Body;
use http::{Method, Response};
use sayso_enforce::{Clearance, Head, Incoming, Permit, Verdict};
use sayso_protocol::payload::protection::AccessReport;
use sayso_protocol::payload::refusal::{Code, Forwarded, Refusal};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Where the answer goes; closed when its caller hung up.
type Caller = oneshot::Sender<Response<Body>>;

/// Answers a request for a resource.
pub(crate) async fn pass(site: Arc<Site>, bodies: &Bodies, head: Head, body: Body) -> Response<Body> {
    if let Err(refusal) = site.engine.preview(&head) {
        body::drain(body, &head.headers).await;
        return turn_away(&refusal, &head.method);
    }
    let Ok((body, _place)) = bodies.read(body, &head.headers).await else {
        let text = "too many large requests are under way; send it again, signed afresh";
        return answer::refusal(&Refusal::new(Code::TemporarilyUnavailable, text));
    };
    let (caller, answered) = oneshot::channel();
    // On a task of its own: hanging up drops this future, and must not end the call between the spending of a grant and
    // the record of what became of it.
    tokio::spawn(carry_out(site, Incoming { head, body }, caller));
    answered.await.unwrap_or_else(|_| {
        answer::refusal(&Refusal::new(Code::UpstreamFailed, "the exchange with the server was broken off"))
    })
}

async fn carry_out(site: Arc<Site>, incoming: Incoming, mut caller: Caller) {
    let response = match site.upstream.unspoken(&incoming.head, &incoming.body).await {
        Some(unspoken) => Some(unspoken),
        None => judge(&site, &incoming, &mut caller).await,
    };
    if let Some(response) = response {
        // Nobody waiting for it any more is the caller's choice.
        let _ = caller.send(response);
    }
}

async fn judge(site: &Site, incoming: &Incoming, caller: &mut Caller) -> Option<Response<Body>> {
    let route = site.upstream.route(&incoming.head);
    match site.engine.decide(incoming, &route).await {
        Verdict::Permit(permit) => redeem(site, permit, &incoming.head, caller).await,
        Verdict::Challenge(challenge) => Some(answer::challenge(&challenge)),
        Verdict::Refuse(refusal) => Some(turn_away(&refusal, &incoming.head.method)),
        Verdict::Fault(fault) => Some(answer::fault(&fault)),
    }
}

fn turn_away(refusal: &Refusal, method: &Method) -> Response<Body> {
    match refusal.code {
        Code::MethodNotAllowed if *method != Method::POST => {
            answer::not_allowed("POST", "this address serves POST")
        }
        _ => answer::refusal(refusal),
    }
}

/// The answer, unless the caller hung up on it.
async fn redeem(
    site: &Site,
    permit: Permit<upstream::Sender>,
    head: &Head,
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
    if !clearance.modern {
        // An older client that hangs up may come back for the answer, so its call runs to its end without it.
        return Some(forward(site, clearance, head).await.map(upstream::outlive));
    }
    // In these revisions hanging up is how a call is cancelled, and with it the upstream request.
    let spent = clearance.spent.clone();
    let lost = if caller.is_closed() {
        "the call was not forwarded: its caller hung up"
    } else {
        tokio::select! {
            response = forward(site, clearance, head) => return Some(response),
            () = caller.closed() => "its caller hung up; whether the server ran the call is not known",
        }
    };
    if let Some(call) = spent {
        record(site, call, lost).await;
    }
    None
}

async fn forward(site: &Site, clearance: Clearance<upstream::Sender>, head: &Head) -> Response<Body> {
    let Clearance { body, sender, spent, .. } = clearance;
    match site.upstream.send(sender, head, body).await {
        Ok(response) => response,
        Err(broken) => fail(site, broken, spent).await,
    }
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
