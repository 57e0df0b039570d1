//! One check, whoever asks in which way: find the resource, have the core decide, and say what became of it.
//!
//! Nothing is checked out, since nothing is sent from here; a single-use grant is spent before the yes is said, and the
//! permit is used in saying it. A second yes for one request there cannot be: its signature is spent with the first
//! (D-9, D-14).

use crate::decision::{Decision, Denial};
use crate::outward::Outward;
use crate::passed::{self, Whole};
use crate::ties::Ties;
use sayso_enforce::reading::Bodies;
use sayso_enforce::{
    BadServer, Body, Clock, Engine, Head, Incoming, Named, Observer, Outcome, Outlet, Published, Server,
    ServerConfig, ServerResource, Unavailable, Verdict, Void,
};
use sayso_protocol::payload::protection::AccessReport;
use sayso_protocol::payload::refusal::{Code, Refusal};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A stream of an older client taken up again would bring answers to calls nobody here remembers (D-15).
const LAST_EVENT: &str = "last-event-id";
/// What a gateway's message holds beside a body: headers, addresses, certificates.
const AROUND: usize = 256 << 10;

/// The authorizer of one resource server, at however many doors.
#[derive(Clone)]
pub struct ExtAuthz(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    server: Server,
    outward: Outward,
    ceiling: usize,
    whole: Whole,
    /// Bodies as they come over HTTP.
    pub(crate) bodies: Bodies,
    /// The same within a gateway's messages.
    pub(crate) messages: Bodies,
    observer: Option<Arc<dyn Observer>>,
    ties: Ties,
}

/// Where a decision goes, with what says that it was heard there.
type Caller = oneshot::Sender<(Decision, oneshot::Sender<()>)>;

/// The way to a server nobody here sends to. It closes before anything is spent when nobody waits for the answer any more.
struct Attended<'a>(&'a Caller);

impl Outlet for Attended<'_> {
    type Sender = ();

    async fn checkout(&self) -> Result<(), Unavailable> {
        if self.0.is_closed() { Err(Unavailable::NoUpstream) } else { Ok(()) }
    }
}

impl ExtAuthz {
    /// An authorizer. `config.body_limit` is the length at which the gateways that ask cut a body: shorter ones are
    /// whole, and one that is as long is refused. `whole` says who is believed that a body is all there, `outward` which
    /// headers an allowed request keeps.
    ///
    /// # Errors
    /// When the configuration contradicts itself.
    pub fn new(
        config: ServerConfig,
        whole: Whole,
        outward: Outward,
        clock: Clock,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Self, BadServer> {
        let ceiling = config.body_limit;
        let cuts = |resource: &ServerResource| {
            resource.enforcement.policy().is_some_and(|policy| policy.filters_lists())
        };
        if let Some(unseen) = config.resources.iter().find(|resource| cuts(resource)) {
            return Err(BadServer::Unseen(unseen.path.clone()));
        }
        let by_result = |resource: &ServerResource| {
            resource.enforcement.policy().is_some_and(|policy| policy.denies_by_result())
        };
        if let Some(unread) = config.resources.iter().find(|resource| by_result(resource)) {
            return Err(BadServer::ByResult(unread.path.clone()));
        }
        let server = Server::new(config, clock, observer.as_ref())?;
        let (bodies, messages) = (Bodies::new(ceiling), Bodies::new(ceiling.saturating_add(AROUND)));
        let ties = Ties::default();
        Ok(Self(Arc::new(Inner { server, outward, ceiling, whole, bodies, messages, observer, ties })))
    }

    pub(crate) fn published(&self) -> &Published {
        &self.0.server.published
    }

    /// Decides about a request, of whose body a gateway passed on this much.
    pub async fn check(&self, Incoming { head, body }: Incoming) -> Decision {
        match self.preview(&head) {
            Ok(engine) => self.decide(&engine, head, body).await,
            Err(denial) => Decision::Deny(denial),
        }
    }

    /// What can be refused before the body is looked at; else whose request it is.
    pub(crate) fn preview(&self, head: &Head) -> Result<Engine, Denial> {
        let Some(engine) = self.0.server.engine(head.path()) else {
            return Err(self.refuse(&Refusal::new(Code::NotFound, "nothing is governed at this address")));
        };
        engine.preview(head, Named::Nothing).map_err(|refusal| Denial::of(&refusal))?;
        if head.headers.contains_key(LAST_EVENT) {
            let text = "a stream cannot be taken up again through this gateway; call anew";
            return Err(self.refuse(&Refusal::new(Code::InvalidRequest, text)));
        }
        Ok(engine.clone())
    }

    /// The decision, once there is all of the body that there will be.
    pub(crate) async fn decide(&self, engine: &Engine, head: Head, body: Body) -> Decision {
        let body = match body {
            Body::Whole(bytes) => passed::body(&head.headers, bytes, self.0.ceiling, self.0.whole),
            Body::Truncated => Body::Truncated,
        };
        let (caller, answered) = oneshot::channel();
        // On a task of its own: hanging up drops this future, and must not end the check between the spending of a grant
        // and the record of what became of it.
        tokio::spawn(self.clone().carry_out(engine.clone(), Incoming { head, body }, caller));
        match answered.await {
            Ok((decision, heard)) => {
                // Nobody listens where nothing was spent.
                let _ = heard.send(());
                decision
            }
            Err(_) => {
                let text = "the check was broken off; send the request again, signed afresh";
                Decision::Deny(Denial::of(&Refusal::new(Code::TemporarilyUnavailable, text)))
            }
        }
    }

    async fn carry_out(self, engine: Engine, incoming: Incoming, caller: Caller) {
        let (decision, spent) = self.judge(&engine, &incoming, &caller).await;
        let (heard, hearing) = oneshot::channel();
        // One that nobody takes is dropped, and what would have said that it was heard with it.
        let _ = caller.send((decision, heard));
        if let Some(call) = spent
            && hearing.await.is_err()
        {
            record(&engine, call, "the call was not let through: its caller hung up").await;
        }
    }

    /// The decision, and the call a grant was spent on in saying yes.
    async fn judge(
        &self,
        engine: &Engine,
        incoming: &Incoming,
        caller: &Caller,
    ) -> (Decision, Option<AccessReport>) {
        let session = self.0.ties.session(&incoming.head);
        let denial = match engine.decide_within(session.as_ref(), incoming, &Attended(caller)).await {
            Verdict::Permit(permit) => match permit.redeem() {
                Ok(clearance) => {
                    if let Some(session) = &session {
                        self.0.ties.keep(&incoming.head, session);
                    }
                    let removed = self.0.outward.removed(&incoming.head.headers, clearance.modern);
                    return (Decision::Allow(removed), clearance.spent);
                }
                Err(void) => tell_void(engine, *void).await,
            },
            Verdict::Challenge(challenge) => Denial::challenge(&challenge),
            Verdict::Refuse(refusal) => Denial::of(&refusal),
            Verdict::Fault(fault) => Denial::fault(&fault),
            Verdict::Policy(refusal) => Denial::policy(&refusal),
            Verdict::Bearer(challenge) => Denial::bearer(&challenge),
        };
        (Decision::Deny(denial), None)
    }

    /// A refusal of this host's own, told and counted as the core's are.
    pub(crate) fn refuse(&self, refusal: &Refusal) -> Denial {
        let began = Instant::now();
        let error = refusal.code.as_str();
        tracing::info!(error, "access.denied");
        if let Some(observer) = &self.0.observer {
            observer.decided(Outcome::Denied, error, began.elapsed());
        }
        Denial::of(refusal)
    }
}

/// Her record learns of an approval that was spent for nothing, if it can be told.
async fn tell_void(engine: &Engine, void: Void) -> Denial {
    if let Some(call) = void.spent {
        record(engine, call, "the call was not let through in time").await;
    }
    Denial::of(&void.refusal)
}

async fn record(engine: &Engine, call: AccessReport, summary: &str) {
    let family = call.family.clone();
    if engine.report(call, summary).await.is_err() {
        tracing::error!(family = family.as_str(), "access.report_lost");
    }
}
