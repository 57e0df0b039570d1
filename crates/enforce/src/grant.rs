//! A grant on its way to a permit: Presented, Live, Covering, Possessed, Bound, Approved, used.
//!
//! Each step takes the one before by value and only the step before it makes it, so the order of D-5 cannot be walked in
//! another way: nothing reaches [`SingleUse::spend`] that has not passed all the rest (CORE-90).

mod spend;

pub(crate) use spend::{Approval, Spent};

use crate::admit::{FollowUp, ProtectedCall, says_more_refusal};
use crate::authority::{Authority, Unavailable};
use crate::call::Incoming;
use crate::consequence::Consequence;
use crate::policy::PolicyRefusal;
use crate::resource::{Resource, Tool};
use crate::session::{Foreign, Session, Tie};
use http::HeaderMap;
use sayso_protocol::message::MessageFault;
use sayso_protocol::payload::operation::Operation;
use sayso_protocol::payload::protection::{AccessReport, Continuation, Inactive, Introspection, LiveGrant};
use sayso_protocol::payload::refusal::{Code, Refusal};
use sayso_protocol::payload::rpt::{LONGEST, Permission, SCHEME};
use sayso_protocol::sig::{self, BodyRule, Facts, Profile, Proof, SigFault};
use sayso_protocol::{Json, NegotiationId, Timestamp, VerifyingKey};
use std::borrow::Cow;
use std::sync::Arc;

/// Why a grant does not carry a call.
#[derive(Debug)]
pub(crate) enum Denied {
    /// Negotiating cannot cure it.
    Refuse(Refusal),
    /// A fresh ticket may.
    Renegotiate,
    /// A policy says no, or nobody could say yes.
    Policy(Box<PolicyRefusal>),
    /// Its headers say otherwise than its body, which was found out late.
    Fault(Box<MessageFault>),
}

/// A token, and nothing known about it.
pub(crate) struct Presented<'a> {
    token: &'a str,
}

/// Its authority says it is live.
pub(crate) struct Live<'a> {
    token: &'a str,
    grant: Box<LiveGrant>,
}

/// It permits this tool now.
pub(crate) struct Covering<'a>(Live<'a>);

/// The caller holds its key.
pub(crate) struct Possessed<'a> {
    live: Live<'a>,
    key: VerifyingKey,
    proof: Proof,
}

/// It is for this call.
pub(crate) struct Bound<'a> {
    live: Live<'a>,
    call: AccessReport,
    round: Option<Continuation>,
}

/// Nobody else objects.
pub(crate) struct Approved<'a> {
    bound: Bound<'a>,
    /// Whether somebody was asked, which took time in which she may have ended it.
    asked: bool,
}

impl Denied {
    pub(crate) fn refuse(code: Code, description: impl Into<Cow<'static, str>>) -> Self {
        Denied::Refuse(Refusal::new(code, description))
    }

    /// As a refusal, where nothing can be negotiated about.
    pub(crate) fn into_refusal(self) -> Refusal {
        match self {
            Denied::Refuse(refusal) => refusal,
            Denied::Renegotiate => Refusal::new(Code::InvalidToken, "show a grant that is live"),
            // INVARIANT: of what is said beside calls no policy is asked.
            Denied::Policy(_) | Denied::Fault(_) => {
                Refusal::new(Code::TemporarilyUnavailable, Unavailable::Exhausted.to_string())
            }
        }
    }

    pub(crate) fn unproven(description: impl Into<Cow<'static, str>>) -> Self {
        Denied::refuse(Code::InvalidToken, description)
    }
}

impl From<Unavailable> for Denied {
    fn from(unavailable: Unavailable) -> Self {
        Denied::refuse(Code::TemporarilyUnavailable, unavailable.to_string())
    }
}

impl From<SigFault> for Denied {
    fn from(fault: SigFault) -> Self {
        Denied::unproven(format!("possession of the grant's key is not proven: {fault}"))
    }
}

impl<'a> Presented<'a> {
    /// The token a request shows, if it shows one. Another scheme is not a way to show one (CORE-66, O-11).
    pub(crate) fn read(headers: &'a HeaderMap) -> Result<Option<Self>, Denied> {
        let Some(value) = headers.get("authorization") else { return Ok(None) };
        let (scheme, token) = value.to_str().ok().and_then(|text| text.split_once(' ')).unwrap_or_default();
        let token = token.trim_matches(' ');
        let readable =
            !token.is_empty() && token.len() <= LONGEST && token.bytes().all(|byte| byte.is_ascii_graphic());
        if scheme.eq_ignore_ascii_case(SCHEME) && readable {
            Ok(Some(Presented { token }))
        } else {
            Err(Denied::unproven("show the grant as `Authorization: PoP` on a signed request"))
        }
    }

    /// Step 1 (CORE-85).
    pub(crate) async fn introspect(
        self,
        authority: &dyn Authority,
        follow_up: Option<&FollowUp>,
    ) -> Result<Live<'a>, Denied> {
        let answer = match follow_up {
            None => authority.introspect(self.token).await?,
            Some(round) => authority.introspect_round(self.token, &round.state).await?,
        };
        match answer {
            Introspection::Live(grant) => Ok(Live { token: self.token, grant }),
            Introspection::Dead(Inactive::AlreadyConsumed) if follow_up.is_some() => {
                Err(Denied::Refuse(not_continued()))
            }
            Introspection::Dead(reason) => Err(dead(&reason)),
        }
    }
}

/// What a reason means for the caller (CORE-17, CORE-18, FED-40, FED-42).
fn dead(reason: &Inactive) -> Denied {
    match reason {
        Inactive::AlreadyConsumed => already_consumed(),
        reason if reason.is_terminal() => Denied::refuse(
            Code::AccessRevoked,
            "the owner ended this access and this grant with it; another is hers to give",
        ),
        _ => Denied::Renegotiate,
    }
}

/// One word for every round that is not one of this grant's: never asked for, answered already, or not allowed.
pub(crate) fn not_continued() -> Refusal {
    Refusal::new(
        Code::ContinuationRefused,
        "this grant carries no such further round of its call; call again without requestState and inputResponses",
    )
}

fn already_consumed() -> Denied {
    Denied::refuse(Code::AlreadyConsumed, "this grant was for one call, and that call was made")
}

impl<'a> Live<'a> {
    pub(crate) fn family(&self) -> &NegotiationId {
        &self.grant.family
    }

    /// Step 2 (CORE-86). A grant of another authority, for another resource server or owner, is to us one for nothing.
    pub(crate) fn cover(
        self,
        resource: &Resource,
        tool: &Tool,
        now: Timestamp,
    ) -> Result<Covering<'a>, Denied> {
        let settings = resource.settings();
        let ours = self.grant.iss == settings.as_uri
            && self.grant.aud == settings.client_id
            && self.grant.owner == settings.owner;
        if !ours || now >= self.grant.exp {
            return Err(Denied::Renegotiate);
        }
        let mut covering =
            self.grant.permissions.iter().filter(|permission| covers(permission, tool, now)).peekable();
        if covering.peek().is_none() {
            return Err(Denied::Renegotiate);
        }
        let accepted = |permission: &Permission| {
            permission.definition.is_none() || permission.definition == tool.settings.definition
        };
        if !covering.any(accepted) {
            return Err(Denied::refuse(Code::ToolChanged, "the tool is not the one the owner has seen"));
        }
        if leaves_less_remedy(&self.grant, tool) {
            return Err(Denied::refuse(
                Code::ConsequenceChanged,
                "the tool's effects are graver than was granted",
            ));
        }
        Ok(Covering(self))
    }
}

fn covers(permission: &Permission, tool: &Tool, now: Timestamp) -> bool {
    permission.resource_id == tool.settings.resource_id
        && permission.admits(now)
        && tool.settings.scopes.iter().all(|scope| permission.resource_scopes.contains(scope))
}

/// Whether the class declared now is graver than the grant's (CORE-76). A class on the grant that nobody knows here
/// compares with nothing, so anything declared now is graver.
fn leaves_less_remedy(grant: &LiveGrant, tool: &Tool) -> bool {
    match (&grant.consequence, tool.settings.consequence) {
        (Some(granted), Some(declared)) => {
            granted.parse::<Consequence>().map_or(true, |granted| declared > granted)
        }
        _ => false,
    }
}

impl<'a> Covering<'a> {
    /// Step 3, by the key introspection returned and never by one in the token (CORE-87, CORE-93).
    pub(crate) fn prove(
        self,
        resource: &Resource,
        call: &ProtectedCall<'_>,
        incoming: &Incoming,
        now: Timestamp,
    ) -> Result<Possessed<'a>, Denied> {
        let Covering(live) = self;
        let key =
            live.grant.cnf.jwk.key().map_err(|_| Denied::unproven("the grant's key is not acceptable"))?;
        let facts = facts(resource, incoming, &call.body);
        let lax = resource.settings().accept_uncovered_body && !is_one_call(&live.grant, call.tool);
        let body = if lax { BodyRule::AcceptUncovered } else { BodyRule::RequireDigest };
        let profile = Profile { body, ..Profile::default() };
        let proof = sig::read(facts.headers)?.verify(&facts, &key, &profile, now)?;
        if !proof.covers_body {
            tracing::warn!(tool = %call.tool.settings.tool, "signature.body_uncovered");
        }
        Ok(Possessed { live, key, proof })
    }
}

fn facts<'f>(resource: &'f Resource, incoming: &'f Incoming, body: &'f [u8]) -> Facts<'f> {
    Facts {
        method: incoming.head.method.as_str(),
        scheme: resource.scheme(),
        authority: resource.authority(),
        path: incoming.head.path(),
        query: incoming.head.query(),
        headers: &incoming.head.headers,
        body: sig::Body::Whole(body),
    }
}

/// Possession of a session's key, for what is said in it beside calls; its whole body is covered (D-13).
pub(crate) fn prove_owner(
    key: &VerifyingKey,
    resource: &Resource,
    incoming: &Incoming,
    body: &[u8],
    now: Timestamp,
) -> Result<Proof, Denied> {
    let facts = facts(resource, incoming, body);
    let proof = sig::read(facts.headers).and_then(|read| read.verify(&facts, key, &Profile::default(), now));
    proof.map_err(|fault| {
        Denied::unproven(format!("this session is a key's; sign what you say in it with that key: {fault}"))
    })
}

/// Whether the grant, or the tool, is a matter of one call at a time.
fn is_one_call(grant: &LiveGrant, tool: &Tool) -> bool {
    grant.single_use || grant.operation.is_some() || tool.settings.single_use
}

impl<'a> Possessed<'a> {
    pub(crate) fn proof(&self) -> &Proof {
        &self.proof
    }

    /// Makes the call one of its session's, if that is not another key's (D-13).
    pub(crate) fn tie(&self, session: Option<&Arc<Session>>) -> Result<Option<Tie>, Denied> {
        let tie = session.map(|session| session.tie(&self.key, self.live.token)).transpose();
        tie.map_err(|Foreign| {
            Denied::refuse(Code::SessionBound, "this session is another key's; open one of your own")
        })
    }

    /// Step 4 (CORE-88, CORE-91).
    pub(crate) fn bind(self, call: &ProtectedCall<'_>) -> Result<Bound<'a>, Denied> {
        let grant = &self.live.grant;
        let round = match is_one_call(grant, call.tool) {
            true => self.round(call, require_operation(grant, call)?)?,
            false => None,
        };
        let report = AccessReport {
            family: grant.family.clone(),
            tool: call.tool.settings.tool.clone(),
            params_s256: call.operation.as_ref().map(|operation| operation.params_s256.clone()),
            summary: None,
            continuation: None,
        };
        Ok(Bound { live: self.live, call: report, round })
    }

    /// The round of its call that this is. A call that answers nothing is none; one that answers what its authority
    /// does not know of is refused.
    fn round(&self, call: &ProtectedCall<'_>, operation: &Operation) -> Result<Option<Continuation>, Denied> {
        let Some(FollowUp { state, answers }) = &call.follow_up else { return Ok(None) };
        if self.live.grant.continuation.as_ref() != Some(state) {
            return Err(Denied::Refuse(not_continued()));
        }
        Ok(Some(Continuation {
            state: state.clone(),
            answers: answers.clone(),
            operation: operation.clone(),
            key: self.key.thumbprint(),
        }))
    }
}

fn require_operation<'g>(grant: &'g LiveGrant, call: &ProtectedCall<'_>) -> Result<&'g Operation, Denied> {
    let designated = call.tool.settings.single_use && !grant.single_use;
    let Some(approved) = grant.operation.as_ref().filter(|_| !designated) else {
        return Err(Denied::refuse(
            Code::OperationRequired,
            "this tool takes a grant for one call with these arguments; ask for one",
        ));
    };
    if call.says_more {
        return Err(Denied::Refuse(says_more_refusal()));
    }
    match &call.operation {
        None => Err(Denied::refuse(Code::InvalidRequest, "the arguments have no canonical form to compare")),
        Some(operation) if operation == approved => Ok(approved),
        Some(_) => {
            Err(Denied::refuse(Code::OperationMismatch, "the owner approved another call than this one"))
        }
    }
}

impl<'a> Bound<'a> {
    pub(crate) fn token(&self) -> &'a str {
        self.live.token
    }

    /// For the policy stage alone.
    pub(crate) fn approved(self) -> Approved<'a> {
        Approved { bound: self, asked: false }
    }

    /// The same, once somebody was asked.
    pub(crate) fn approved_after_asking(self) -> Approved<'a> {
        Approved { bound: self, asked: true }
    }

    /// The grant in its authority's words, for a policy to read.
    pub(crate) fn described(&self) -> Json {
        Json::from(Introspection::Live(self.live.grant.clone()).to_json())
    }
}
