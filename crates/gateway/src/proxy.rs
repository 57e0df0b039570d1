//! One request through the gateway: bound it, have it decided, forward it with a permit or say why not.
//!
//! The engine judges and this file obeys: nothing reaches the upstream but through a redeemed permit, and then the bytes
//! that were judged (D-10). A failure after a grant was spent is told to the agent and to the owner's record (D-14).

use crate::config::Site;
use crate::upstream::{self, Broken};
use crate::{answer, body};
use axum::body::Body;
use http::{Method, Response};
use sayso_enforce::{Clearance, Head, Incoming, Permit, Verdict};
use sayso_protocol::payload::protection::AccessReport;
use sayso_protocol::payload::refusal::{Code, Forwarded, Refusal};
use std::sync::Arc;

/// Answers a request for a resource.
pub(crate) async fn pass(site: Arc<Site>, body_limit: usize, head: Head, body: Body) -> Response<Body> {
    if let Err(refusal) = site.engine.preview(&head) {
        body::drain(body, &head.headers).await;
        return turn_away(&refusal, &head.method);
    }
    let body = body::read(body, &head.headers, body_limit).await;
    let incoming = Incoming { head, body };
    match site.engine.decide(&incoming, &site.upstream).await {
        Verdict::Permit(permit) => redeem(Arc::clone(&site), permit, incoming.head).await,
        Verdict::Challenge(challenge) => answer::challenge(&challenge),
        Verdict::Refuse(refusal) => turn_away(&refusal, &incoming.head.method),
        Verdict::Fault(fault) => answer::fault(&fault),
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

async fn redeem(site: Arc<Site>, permit: Permit<upstream::Sender>, head: Head) -> Response<Body> {
    let clearance = match permit.redeem() {
        Ok(clearance) => clearance,
        Err(void) => {
            if let Some(call) = void.spent {
                record(&site, call, "the call was not forwarded in time").await;
            }
            return answer::refusal(&void.refusal);
        }
    };
    if clearance.modern {
        // Hanging up drops this future, and with it the upstream request: in these revisions that is how a call is
        // cancelled.
        return forward(&site, clearance, &head).await;
    }
    // An older client that hangs up may come back for the answer, so its call runs to its end without it.
    let running = tokio::spawn(async move { forward(&site, clearance, &head).await.map(upstream::outlive) });
    running.await.unwrap_or_else(|_| {
        answer::refusal(&Refusal::new(Code::UpstreamFailed, "the exchange with the server was broken off"))
    })
}

async fn forward(site: &Site, clearance: Clearance<upstream::Sender>, head: &Head) -> Response<Body> {
    let Clearance { body, sender, spent, .. } = clearance;
    let sent = match sender {
        Some(sender) => site.upstream.send_once(sender, head, body).await,
        None => site.upstream.send(head, body).await,
    };
    match sent {
        Ok(response) => response,
        Err(broken) => fail(site, broken, spent).await,
    }
}

async fn fail(site: &Site, broken: Broken, spent: Option<AccessReport>) -> Response<Body> {
    let text = broken.to_string();
    let forwarded = broken.forwarded();
    tracing::warn!(spent = spent.is_some(), reason = %text, "upstream.failed");
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
