//! The decision: the only file that knows the order where an owner is asked (D-5); where a policy alone is, `policed` does.
//!
//! Introspect, cover, prove, bind, policy, and only then spend (CORE-85 to CORE-90). Nothing is asked of the authority
//! for a request that could be refused without it (CORE-16), and what it cannot answer is refused (CORE-22).

use crate::admit::{self, Admitted, Opened, ProtectedCall, Said, TurnedAway};
use crate::authority::{Authority, Unavailable, random_text};
use crate::call::{Head, Incoming};
use crate::carry::Turned;
use crate::grant::{Approval, Denied, Presented, not_continued, prove_owner};
use crate::observe::{self, Known, Observer};
use crate::policy;
use crate::registry::Registry;
use crate::replay::{Claim, Replay};
use crate::resource::{Resource, Tool};
use crate::session::{self, Named, Session, Shown, Sightings};
use crate::verdict::{Permit, Verdict};
use http::HeaderMap;
use sayso_protocol::canon::S256;
use sayso_protocol::message::MessageFault;
use sayso_protocol::payload::protection::{AccessReport, PermissionFault};
use sayso_protocol::payload::refusal::{Code, Refusal};
use sayso_protocol::{NegotiationId, Timestamp};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::time::Instant;

/// What time it is, read again after every wait.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A host's way to the upstream, for calls that may be made once.
pub trait Outlet: Sync {
    /// A connection of its own, ready to send, that nothing will retry behind our back.
    type Sender: Send;

    /// Checks one out. Nothing was spent yet when it fails.
    fn checkout(&self) -> impl Future<Output = Result<Self::Sender, Unavailable>> + Send;
}

/// Decides about the requests for one resource.
#[derive(Clone)]
pub struct Engine {
    registry: Registry,
    authority: Arc<dyn Authority>,
    replay: Arc<Replay>,
    clock: Clock,
    observer: Option<Arc<dyn Observer>>,
    trims: bool,
    /// Whose the sessions are that nobody here saw begin.
    sightings: Arc<Sightings>,
}

/// What is known of a call when its verdict is told.
#[derive(Default)]
struct Trail {
    family: Option<NegotiationId>,
    claim: Option<Claim>,
}

impl Engine {
    /// An engine for a resource whose owner chose this authority. Every host of one process shares one replay cache.
    pub fn new(
        registry: impl Into<Registry>,
        authority: Arc<dyn Authority>,
        replay: Arc<Replay>,
        clock: Clock,
    ) -> Self {
        let sightings = Arc::default();
        Self { registry: registry.into(), authority, replay, clock, observer: None, trims: false, sightings }
    }

    /// The same engine, counted.
    #[must_use]
    pub fn observed(self, observer: Option<Arc<dyn Observer>>) -> Self {
        Self { observer, ..self }
    }

    /// The same engine for a host that forwards what a permit carries, which may be less than what came.
    #[must_use]
    pub(crate) fn carried(self) -> Self {
        Self { trims: true, ..self }
    }

    /// The resource as it is now.
    pub fn resource(&self) -> Arc<Resource> {
        self.registry.snapshot()
    }

    /// The registry its tools are replaced in.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What can be refused before the body is read. [`Self::decide`] checks it again.
    ///
    /// # Errors
    /// When the body does not matter.
    pub fn preview(&self, head: &Head, named: Named<'_>) -> Result<(), Refusal> {
        let began = Instant::now();
        admit::check_head(&self.registry.snapshot(), head, !matches!(named, Named::Nothing))
            .and_then(|()| match named {
                Named::Nothing | Named::Known(_) => Ok(()),
                Named::Unknown => Err(Refusal::new(
                    Code::SessionNotFound,
                    "this session is not known here; initialize anew",
                )),
            })
            .inspect_err(|refusal| self.count(observe::turned_away(refusal, &head.headers), began))
    }

    /// Decides about one request outside a session.
    pub async fn decide<O: Outlet>(&self, incoming: &Incoming, outlet: &O) -> Verdict<O::Sender> {
        self.decide_within(None, incoming, outlet).await
    }

    /// Decides about one request, in a session its host knows where it named one.
    pub async fn decide_within<O: Outlet>(
        &self,
        session: Option<&Arc<Session>>,
        incoming: &Incoming,
        outlet: &O,
    ) -> Verdict<O::Sender> {
        let began = Instant::now();
        // What is decided about one request is decided by one registry, whatever is learnt meanwhile.
        let resource = self.registry.snapshot();
        let mut trail = Trail::default();
        let within = session.is_some_and(|session| session.is_seen());
        let (tool, verdict) = match admit::admit(&resource, incoming, within, self.trims) {
            Ok(Admitted::Open(open)) => match session {
                None => (None, Verdict::Permit(Permit::open(open, None))),
                Some(session) => (None, self.hear(&resource, incoming, open, session, &mut trail).await),
            },
            Ok(Admitted::Protected(call)) => {
                let verdict = self.judge(&resource, incoming, &call, session, outlet, &mut trail).await;
                (Some(&call.tool.settings.tool), verdict)
            }
            Ok(Admitted::Policed(heard)) => {
                (None, self.hear_holder(&resource, incoming, heard, session).await)
            }
            Err(TurnedAway::Refuse(refusal)) => (None, Verdict::Refuse(refusal)),
            Err(TurnedAway::Fault(fault)) => (None, Verdict::Fault(fault)),
        };
        self.forget_unspent(&verdict, &trail);
        let known = Known { headers: &incoming.head.headers, tool, family: trail.family.as_ref() };
        self.count(observe::tell(&verdict, &known), began);
        verdict
    }

    fn count(&self, (outcome, reason): (observe::Outcome, &'static str), began: Instant) {
        if let Some(observer) = &self.observer {
            observer.decided(outcome, reason, began.elapsed());
        }
    }

    /// Tells the owner's record what became of a call after its grant was spent (D-14).
    ///
    /// # Errors
    /// When her authority cannot be told.
    pub async fn report(&self, call: AccessReport, summary: &str) -> Result<(), Unavailable> {
        self.authority.report(&AccessReport { summary: Some(summary.to_owned()), ..call }).await
    }

    /// Tells her authority that a call's tool asks for another round of it, by the state that the round will carry
    /// (D-11).
    ///
    /// # Errors
    /// When her authority cannot be told; the round will be refused.
    pub async fn offer(&self, call: AccessReport, state: S256) -> Result<(), Unavailable> {
        self.authority.report(&AccessReport { continuation: Some(state), summary: None, ..call }).await
    }

    /// The answer to a call of a tool that no HTTP request carried: nobody can show a grant for it or prove anything,
    /// so it gets a ticket at most, for the resource's HTTP address (D-15).
    pub async fn turn_away(&self, tool: Option<&str>) -> Turned {
        let began = Instant::now();
        let resource = self.registry.snapshot();
        let mut trail = Trail::default();
        let governed = admit::governed(&resource, tool);
        let tool = governed.as_ref().ok().map(|tool| &tool.settings.tool);
        let verdict: Verdict<Infallible> = match &governed {
            Ok(tool) => self.challenge(&resource, tool, &mut trail).await,
            Err(refusal) => Verdict::Refuse(refusal.clone()),
        };
        let known = Known { headers: &HeaderMap::new(), tool, family: trail.family.as_ref() };
        self.count(observe::tell(&verdict, &known), began);
        match verdict {
            Verdict::Challenge(challenge) => Turned::Challenge(challenge),
            Verdict::Refuse(refusal) => Turned::Refuse(refusal),
            // INVARIANT: a challenge is given, or refused.
            Verdict::Permit(_) | Verdict::Fault(_) | Verdict::Policy(_) | Verdict::Bearer(_) => {
                Turned::Refuse(Refusal::new(Code::TemporarilyUnavailable, Unavailable::Exhausted.to_string()))
            }
        }
    }

    async fn judge<O: Outlet>(
        &self,
        resource: &Resource,
        incoming: &Incoming,
        call: &ProtectedCall<'_>,
        session: Option<&Arc<Session>>,
        outlet: &O,
        trail: &mut Trail,
    ) -> Verdict<O::Sender> {
        match self.walk(resource, incoming, call, session, outlet, trail).await {
            Ok(permit) => Verdict::Permit(permit),
            Err(Denied::Refuse(refusal)) => Verdict::Refuse(refusal),
            Err(Denied::Renegotiate) => self.challenge(resource, call.tool, trail).await,
            Err(Denied::Policy(refusal)) => Verdict::Policy(refusal),
            Err(Denied::Fault(fault)) => Verdict::Fault(*fault),
        }
    }

    fn forget_unspent<S>(&self, verdict: &Verdict<S>, trail: &Trail) {
        if let (Verdict::Refuse(refusal), Some(claim)) = (verdict, &trail.claim)
            && refusal.code == Code::TemporarilyUnavailable
            && !refusal.spent
        {
            self.replay.release(claim);
        }
    }

    /// The order for what is said in a session beside calls: whose it is, that it is new, that she still stands behind
    /// it, and only then what it fits (D-13).
    async fn hear<S>(
        &self,
        resource: &Resource,
        incoming: &Incoming,
        open: Opened,
        session: &Session,
        trail: &mut Trail,
    ) -> Verdict<S> {
        // Before the owner is looked at: should the session become somebody's meanwhile, this is closed.
        let closing = session.closing();
        if let Some((key, token)) = session.owner() {
            let follows = async {
                let proof = prove_owner(&key, resource, incoming, &open.body, self.now())?;
                trail.claim = Some(self.replay.claim(&proof, self.now())?);
                match open.said {
                    Said::Listen(_) | Said::Answer(_) => self.require_standing(&token).await,
                    Said::Open | Said::Initialize | Said::Cancel | Said::End | Said::Unserved(_) => Ok(()),
                }
            };
            if let Err(denied) = follows.await {
                return Verdict::Refuse(denied.into_refusal());
            }
        }
        let enforced = resource.settings().enforcement.asks_owner();
        match open.said {
            Said::Unserved(fault) => Verdict::Fault(fault),
            // Whose request it takes back, nobody can know where no call that passed here made the session anybody's.
            Said::Cancel if enforced && !session.is_seen() && !session.is_bound() => {
                Verdict::Fault(MessageFault::not_served(403, None))
            }
            Said::Answer(id) if !session.answer(&id) => Verdict::Refuse(Refusal::new(
                Code::InvalidRequest,
                "this session's server asked nothing by that id that has no answer yet",
            )),
            Said::Listen(Some(event)) if !session.has_told(&event) => Verdict::Refuse(Refusal::new(
                Code::InvalidRequest,
                "no stream of this session told that event, or too long ago; listen anew",
            )),
            said => Verdict::Permit(Permit::open(Opened { said, ..open }, Some(closing))),
        }
    }

    async fn require_standing(&self, token: &Shown) -> Result<(), Denied> {
        if self.has_ended(token).await? {
            let text = "the owner ended the access this session goes by";
            return Err(Denied::refuse(Code::AccessRevoked, text));
        }
        Ok(())
    }

    /// Whether she, or her authority, no longer stands behind what a token was good for. That it is spent or over is no
    /// such thing.
    ///
    /// # Errors
    /// When her authority cannot say.
    pub async fn has_ended(&self, token: &Shown) -> Result<bool, Unavailable> {
        Ok(session::ends(&self.authority.introspect(&token.0).await?))
    }

    /// The order.
    async fn walk<O: Outlet>(
        &self,
        resource: &Resource,
        incoming: &Incoming,
        call: &ProtectedCall<'_>,
        session: Option<&Arc<Session>>,
        outlet: &O,
        trail: &mut Trail,
    ) -> Result<Permit<O::Sender>, Denied> {
        let authority = self.authority.as_ref();
        let Some(presented) = Presented::read(&incoming.head.headers)? else {
            return match &call.follow_up {
                // What was asked, was asked of somebody who had a grant; a new one begins a new call.
                Some(_) if call.tool.settings.single_use => Err(Denied::Refuse(not_continued())),
                _ => Err(Denied::Renegotiate),
            };
        };
        let live = presented.introspect(authority, call.follow_up.as_ref()).await?;
        trail.family = Some(live.family().clone());
        let covering = live.cover(resource, call.tool, self.now())?;
        let possessed = covering.prove(resource, call, incoming, self.now())?;
        trail.claim = Some(self.replay.claim(possessed.proof(), self.now())?);
        let tie = possessed.tie(session)?;
        let bound = possessed.bind(call)?;
        let token = bound.token();
        let policy = resource.settings().enforcement.policy();
        let approved = policy::consult(policy, bound, call, incoming, self.observer.as_ref()).await?;
        match approved.approval() {
            Approval::Reusable(grant) => {
                grant.record(authority).await?;
                Ok(Permit::reusable(call.body.clone(), call.modern).of(token, tie))
            }
            Approval::SingleUse(grant) => {
                admit::check_answers(&incoming.head.headers).map_err(Denied::Refuse)?;
                let sender = outlet.checkout().await?;
                // The attempt is ours, fresh, and never made of what the agent sent (D-14).
                let spent = grant.spend(authority, &random_text()?).await?;
                Ok(Permit::spent(call.body.clone(), call.modern, sender, spent).of(token, tie))
            }
        }
    }

    /// One registered attempt, one ticket, one challenge (CORE-82). From here on the negotiation is the new one.
    async fn challenge<S>(&self, resource: &Resource, tool: &Tool, trail: &mut Trail) -> Verdict<S> {
        match self.authority.permission(&tool.permission_request()).await {
            Ok(Ok(reply)) => {
                trail.family = reply.family;
                Verdict::Challenge(Box::new(resource.challenge(tool, reply.ticket)))
            }
            Ok(Err(fault)) => Verdict::Refuse(stale(fault)),
            Err(gone) => Verdict::Refuse(Refusal::new(Code::TemporarilyUnavailable, gone.to_string())),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

/// The authority and this registry disagree about what there is, or the owner has yet to see a change.
fn stale(fault: PermissionFault) -> Refusal {
    if fault == PermissionFault::ToolChanged {
        let what = "this tool is not as its owner last saw it; she has to look at the change first";
        return Refusal::new(Code::ToolChanged, what);
    }
    let what = fault.as_str();
    let description =
        format!("the authority's registry of this resource is stale ({what}); it must read it again");
    Refusal::new(Code::TemporarilyUnavailable, description)
}

mod policed;
#[cfg(test)]
mod tests;
