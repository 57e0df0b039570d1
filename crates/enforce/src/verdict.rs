//! What the engine decided, and the permit that lets exactly one request through.
//!
//! A permit has private fields and no constructor outside this crate, is taken by value when it is used, carries the
//! very bytes that were judged (D-10), and is void a second after it was given (D-5). How a verdict is answered is the
//! host's business.

use crate::admit::{Opened, Said};
use crate::bearer::{BearerChallenge, Holder};
use crate::grant::Spent;
use crate::policy::{Filter, PolicyRefusal};
use crate::session::{Closing, Shown, Tie};
use bytes::Bytes;
use sayso_protocol::Timestamp;
use sayso_protocol::message::MessageFault;
use sayso_protocol::payload::challenge::Challenge;
use sayso_protocol::payload::protection::AccessReport;
use sayso_protocol::payload::refusal::{Code, Forwarded, Refusal};
use std::time::Duration;
use tokio::time::Instant;

/// How long a permit is good.
pub const PERMIT_LIFE: Duration = Duration::from_secs(1);

/// The engine's answer to one request.
pub enum Verdict<S> {
    /// Forward it.
    Permit(Permit<S>),
    /// Negotiate: 401 and a ticket.
    Challenge(Box<Challenge>),
    /// Negotiating cannot cure it.
    Refuse(Refusal),
    /// It never was a message this host acts on.
    Fault(MessageFault),
    /// A policy says no, or nobody could say yes.
    Policy(Box<PolicyRefusal>),
    /// Show an access token that is good here.
    Bearer(Box<BearerChallenge>),
}

/// Leave to forward one request, once and at once.
#[must_use]
pub struct Permit<S> {
    given: Instant,
    body: Bytes,
    modern: bool,
    introduces: bool,
    token: Option<Shown>,
    holder: Option<Holder>,
    until: Option<Timestamp>,
    filter: Option<Box<Filter>>,
    stay: Stay,
    passage: Passage<S>,
}

/// What its session makes of it.
enum Stay {
    Sessionless,
    Until(Closing),
    Tied(Tie),
}

enum Passage<S> {
    Open,
    /// A policy was asked and said yes.
    Policy,
    Reusable,
    Spent {
        sender: S,
        spent: Box<Spent>,
    },
}

/// A permit that was used in time: what a host needs to forward. Nothing else makes one.
#[non_exhaustive]
pub struct Clearance<S> {
    /// The bytes that were judged, and the only ones that may be forwarded.
    pub body: Bytes,
    /// Whether the caller speaks a revision in which hanging up cancels the call.
    pub modern: bool,
    /// Whether it is the first word of an older client, which its server may answer with a session.
    pub introduces: bool,
    /// The token that was good for it: what is streamed in answer lasts no longer than what it stands for (D-21).
    pub token: Option<Shown>,
    /// Whose a session is that its server begins in answer.
    pub(crate) holder: Option<Holder>,
    /// Until when the access token it was permitted by is good: what is streamed in answer lasts no longer.
    pub(crate) until: Option<Timestamp>,
    /// How its answer is cut to what may be shown.
    pub(crate) filter: Option<Box<Filter>>,
    /// Until when it may stay open, if it is in a session.
    pub closing: Option<Closing>,
    /// The upstream connection checked out before a single-use grant was spent.
    pub sender: Option<S>,
    /// The call a grant was spent on. A failure from here on is a loss of the owner's approval, and is reported.
    pub spent: Option<AccessReport>,
    /// Whether the owner lets the tool ask for another round of that call: then its answer is read before it passes
    /// (D-11).
    pub asks: bool,
}

impl<S> Permit<S> {
    fn new(body: Bytes, modern: bool, passage: Passage<S>) -> Self {
        let stay = Stay::Sessionless;
        let (introduces, token, holder, until, filter) = (false, None, None, None, None);
        Self { given: Instant::now(), body, modern, introduces, token, holder, until, filter, stay, passage }
    }

    pub(crate) fn open(opened: Opened, closing: Option<Closing>) -> Self {
        let introduces = matches!(opened.said, Said::Initialize) && !opened.modern;
        let stay = closing.map_or(Stay::Sessionless, Stay::Until);
        Self { introduces, stay, ..Self::new(opened.body, opened.modern, Passage::Open) }
    }

    /// For whoever showed a token of this holder's; `asked` says whether a policy said yes to it or had not to be asked.
    pub(crate) fn policed(
        opened: Opened,
        asked: bool,
        holder: Option<Holder>,
        closing: Option<Closing>,
        filter: Option<Box<Filter>>,
    ) -> Self {
        let passage = if asked { Passage::Policy } else { Passage::Open };
        Self { passage, holder, filter, ..Self::open(opened, closing) }
    }

    /// The same permit, by an access token that is good until then.
    pub(crate) fn lasting(self, until: Option<Timestamp>) -> Self {
        Self { until, ..self }
    }

    pub(crate) fn reusable(body: Bytes, modern: bool) -> Self {
        Self::new(body, modern, Passage::Reusable)
    }

    pub(crate) fn spent(body: Bytes, modern: bool, sender: S, spent: Spent) -> Self {
        Self::new(body, modern, Passage::Spent { sender, spent: Box::new(spent) })
    }

    /// The same permit for whoever showed this token, in the session it is tied to.
    pub(crate) fn of(self, token: &str, tie: Option<Tie>) -> Self {
        Self { token: Some(Shown(token.into())), stay: tie.map_or(Stay::Sessionless, Stay::Tied), ..self }
    }

    /// Whether a grant or a policy stands behind it; open methods need none.
    pub fn is_granted(&self) -> bool {
        !matches!(self.passage, Passage::Open)
    }

    /// Why it lets pass, in a word.
    pub(crate) fn passage(&self) -> &'static str {
        match self.passage {
            Passage::Open => "open",
            Passage::Policy => "policy",
            Passage::Reusable => "reusable",
            Passage::Spent { .. } => "single_use",
        }
    }

    /// Uses the permit.
    ///
    /// # Errors
    /// When it is void. A grant spent on it stays spent, and the refusal says so.
    pub fn redeem(self) -> Result<Clearance<S>, Box<Void>> {
        let void = self.given.elapsed() > PERMIT_LIFE;
        let (sender, spent, asks) = match self.passage {
            Passage::Open | Passage::Policy | Passage::Reusable => (None, None, false),
            Passage::Spent { sender, spent } => (Some(sender), Some(spent.call), spent.asks),
        };
        if void {
            let refusal = match spent {
                Some(_) => Refusal::after_spend("the call was not forwarded in time", Forwarded::No),
                None => Refusal::new(
                    Code::TemporarilyUnavailable,
                    "the call was not forwarded in time; send it again, signed afresh",
                ),
            };
            return Err(Box::new(Void { refusal, spent }));
        }
        let closing = match self.stay {
            Stay::Sessionless => None,
            Stay::Until(closing) => Some(closing),
            Stay::Tied(tie) => Some(tie.keep()),
        };
        let Self { body, modern, introduces, token, holder, until, filter, .. } = self;
        Ok(Clearance { body, modern, introduces, token, holder, until, filter, closing, sender, spent, asks })
    }
}

/// A permit that came too late.
#[derive(Debug)]
pub struct Void {
    /// The answer.
    pub refusal: Refusal,
    /// The call a grant was spent on for nothing, to be reported.
    pub spent: Option<AccessReport>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_permit_is_void_after_a_second() {
        let permit = || Permit::<()>::reusable(Bytes::from_static(b"{}"), true);
        assert!(permit().redeem().is_ok());
        let late = permit();
        tokio::time::advance(PERMIT_LIFE + Duration::from_millis(1)).await;
        let void = late.redeem().err().unwrap();
        assert_eq!((void.refusal.code, void.spent), (Code::TemporarilyUnavailable, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_void_permit_gives_nothing_back() {
        let call = AccessReport {
            family: "n".parse().unwrap(),
            tool: "t".parse().unwrap(),
            params_s256: None,
            summary: None,
            continuation: None,
        };
        let late = Permit::spent(Bytes::new(), true, (), Spent { call, asks: false });
        tokio::time::advance(PERMIT_LIFE * 2).await;
        let Void { refusal, spent } = *late.redeem().err().unwrap();
        assert_eq!((refusal.code, refusal.spent), (Code::UpstreamFailed, true));
        assert_eq!(refusal.forwarded, Some(Forwarded::No));
        assert_eq!(spent.unwrap().tool.as_str(), "t");
    }
}
