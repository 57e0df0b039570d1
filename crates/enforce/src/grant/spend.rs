//! What is left to do with an approved grant: record a call under one for many, or spend one for one.
//!
//! The last step, and the only one that changes anything. Who is told it lost, refuses (CORE-95); who is told nothing has
//! spent it (D-14).

use super::{Approved, Bound, Denied, Live, already_consumed, dead, not_continued};
use crate::authority::{Authority, Unavailable};
use sayso_protocol::payload::protection::{
    AccessReport, ConsumeReply, Continuation, Inactive, Introspection, LiveGrant, NOT_SINGLE_USE,
};
use sayso_protocol::payload::refusal::{Code, Forwarded, Refusal};

/// What is left to do with an approved grant.
pub(crate) enum Approval<'a> {
    Reusable(Reusable<'a>),
    SingleUse(SingleUse<'a>),
}

/// A grant for many calls.
pub(crate) struct Reusable<'a> {
    live: Live<'a>,
    asked: bool,
    call: AccessReport,
}

/// A grant for one.
pub(crate) struct SingleUse<'a> {
    token: &'a str,
    asks: bool,
    call: AccessReport,
    round: Option<Continuation>,
}

/// A call its grant was spent on.
pub(crate) struct Spent {
    pub(crate) call: AccessReport,
    /// Whether its tool may ask for another round.
    pub(crate) asks: bool,
}

impl<'a> Approved<'a> {
    pub(crate) fn approval(self) -> Approval<'a> {
        let Approved { bound: Bound { live, call, round }, asked } = self;
        if live.grant.single_use {
            let (token, asks) = (live.token, live.grant.bind);
            Approval::SingleUse(SingleUse { token, asks, call, round })
        } else {
            Approval::Reusable(Reusable { live, asked, call })
        }
    }
}

impl Reusable<'_> {
    /// The last answer of her authority, where somebody was asked meanwhile (D-5); then her record has the call before the
    /// upstream does (FED-48, D-27).
    pub(crate) async fn record(self, authority: &dyn Authority) -> Result<(), Denied> {
        if self.asked {
            // Of a grant for many calls, one that answers a server is a call.
            let before = LiveGrant { continuation: None, ..*self.live.grant };
            match authority.introspect(self.live.token).await? {
                Introspection::Live(now) if *now == before => {}
                // Another grant than the one that was asked about.
                Introspection::Live(_) => return Err(Denied::Renegotiate),
                Introspection::Dead(reason) => return Err(dead(&reason)),
            }
        }
        Ok(authority.report(&self.call).await?)
    }
}

impl SingleUse<'_> {
    /// Step 5, the last (CORE-89). Who is told it lost, refuses (CORE-95); who is told nothing has spent it (D-14).
    pub(crate) async fn spend(self, authority: &dyn Authority, attempt: &str) -> Result<Spent, Denied> {
        let reply = match &self.round {
            None => authority.consume(self.token, attempt).await,
            Some(round) => authority.resume(self.token, attempt, round).await,
        };
        match reply {
            Ok(ConsumeReply { consumed: true, .. }) => Ok(Spent { call: self.call, asks: self.asks }),
            Ok(reply) => Err(lost(reply, self.round.is_some())),
            Err(gone) if gone.nothing_done() => Err(gone.into()),
            Err(_) => Err(Denied::Refuse(perhaps_spent())),
        }
    }
}

/// Why this call is not the one the grant is spent on. A round that somebody took, or that nobody asked for, is one word.
fn lost(reply: ConsumeReply, is_round: bool) -> Denied {
    match reply.error {
        Some(reason) if is_round => match Inactive::from(reason) {
            Inactive::AlreadyConsumed | Inactive::Other(_) => Denied::Refuse(not_continued()),
            reason => dead(&reason),
        },
        None if is_round => Denied::Refuse(not_continued()),
        None => already_consumed(),
        // It was single-use a moment ago; an authority of two minds is not one to act on.
        Some(reason) if reason == NOT_SINGLE_USE => Unavailable::Nonsense.into(),
        Some(reason) => dead(&Inactive::from(reason)),
    }
}

/// An unknown outcome counts as spent, and nothing is forwarded (D-14).
fn perhaps_spent() -> Refusal {
    let description = "whether the grant was spent is not known; treat it as spent and ask for another";
    let refusal = Refusal::new(Code::TemporarilyUnavailable, description);
    Refusal { spent: true, forwarded: Some(Forwarded::No), ..refusal }
}
