//! The order where a policy alone protects a resource: a token, whose session it is, the policy, and forward.
//!
//! Nothing of a message reaches a mapping before its token was validated (COAZ-MCP-70), nobody is told of a session that is
//! another's, and what is neither permitted nor passed by name is refused (COAZ-FW-43).

use super::Engine;
use crate::access_token::{AccessTokens, TokenFault};
use crate::admit::{Opened, Said, Unjudged, trimmed};
use crate::bearer::{BearerChallenge, Holder, ShownToken, shown};
use crate::call::Incoming;
use crate::policy::{Leave, Objection, PolicyRefusal, Question};
use crate::resource::{Policed, Resource};
use crate::session::{Session, Sighted};
use crate::verdict::{Permit, Verdict};
use http::HeaderMap;
use sayso_protocol::Json;
use sayso_protocol::message::MessageFault;
use sayso_protocol::payload::refusal::{Code, Refusal};
use std::sync::Arc;

/// Why it goes no further.
enum Stop {
    Bearer(BearerChallenge),
    Refuse(Refusal),
    Fault(MessageFault),
    Policy(Box<PolicyRefusal>),
}

impl From<Objection> for Stop {
    fn from(objection: Objection) -> Self {
        match objection {
            Objection::Policy(refusal) => Stop::Policy(refusal),
            Objection::Fault(fault) => Stop::Fault(fault),
        }
    }
}

impl<S> From<Stop> for Verdict<S> {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Bearer(challenge) => Verdict::Bearer(Box::new(challenge)),
            Stop::Refuse(refusal) => Verdict::Refuse(refusal),
            Stop::Fault(fault) => Verdict::Fault(fault),
            Stop::Policy(refusal) => Verdict::Policy(refusal),
        }
    }
}

impl Engine {
    pub(super) async fn hear_holder<S>(
        &self,
        resource: &Resource,
        incoming: &Incoming,
        said: Unjudged,
        session: Option<&Arc<Session>>,
    ) -> Verdict<S> {
        // INVARIANT: only such a resource hears anything in this way.
        let Some(policed) = resource.settings().enforcement.policed() else {
            let text = "nobody can decide about this here";
            return Verdict::Refuse(Refusal::new(Code::TemporarilyUnavailable, text));
        };
        match self.walk_policed(resource, policed, incoming, said, session).await {
            Ok(permit) => Verdict::Permit(permit),
            Err(stop) => stop.into(),
        }
    }

    async fn walk_policed<S>(
        &self,
        resource: &Resource,
        Policed { policy, tokens }: &Policed,
        incoming: &Incoming,
        said: Unjudged,
        session: Option<&Arc<Session>>,
    ) -> Result<Permit<S>, Stop> {
        let Unjudged { opened, revision, message } = said;
        let token = self.validate(resource, tokens.as_ref(), incoming).await?;
        let holder = Holder::of(&token, policy.subject_claim(&token));
        let headers = &incoming.head.headers;
        // Where sessions are not seen to begin, one is known by its name alone.
        let unseen = session.is_some_and(|session| !session.is_seen());
        if unseen {
            self.check_unseen(headers, holder.as_ref(), &opened)?;
        }
        let session = session.filter(|session| session.is_seen());
        // Before it is looked at whose it is: should the session end meanwhile, this is closed.
        let closing = session.map(|session| session.closing());
        check_session(session, holder.as_ref(), &opened)?;
        let until = tokens.until(&token);
        let Some(message) = message else {
            return Ok(Permit::policed(opened, false, holder, closing, None).lasting(until));
        };
        let observer = self.observer.as_ref();
        let question = Question { message: &message, headers, revision, token: &token, observer };
        let leave = policy.consult(&question).await?;
        if unseen && !self.sightings.note(headers, holder.as_ref()) {
            return Err(anothers());
        }
        let filter = policy.filter(&question).map(Box::new);
        let body = trimmed(&message, &opened.body, self.trims).map_err(Stop::Fault)?;
        let opened = Opened { body, ..opened };
        let permit = Permit::policed(opened, leave == Leave::Permitted, holder, closing, filter);
        Ok(permit.lasting(until))
    }

    /// A session that is known by its name alone is theirs whose message was first let through in it. Until then it is
    /// nobody's, and nobody takes back what may be another's.
    fn check_unseen(
        &self,
        headers: &HeaderMap,
        holder: Option<&Holder>,
        opened: &Opened,
    ) -> Result<(), Stop> {
        match self.sightings.of(headers, holder) {
            Sighted::Anothers => Err(anothers()),
            Sighted::Never if matches!(opened.said, Said::Cancel) => {
                Err(Stop::Fault(MessageFault::not_served(403, None)))
            }
            Sighted::Never | Sighted::Theirs => Ok(()),
        }
    }

    async fn validate(
        &self,
        resource: &Resource,
        tokens: &dyn AccessTokens,
        incoming: &Incoming,
    ) -> Result<Json, Stop> {
        let at = resource.metadata_url();
        let token = match shown(&incoming.head.headers) {
            ShownToken::Token(token) => token,
            ShownToken::Nothing => return Err(Stop::Bearer(BearerChallenge::missing(at))),
            ShownToken::Unreadable => {
                let text = "show one access token, in one Authorization header";
                return Err(Stop::Bearer(BearerChallenge::invalid(at, text)));
            }
        };
        match tokens.validate(token, self.now()).await {
            Ok(claims) if claims.as_object().is_some() => Ok(claims),
            Ok(_) => Err(Stop::Bearer(BearerChallenge::invalid(at, "the token claims nothing"))),
            Err(TokenFault::Invalid(what)) => Err(Stop::Bearer(BearerChallenge::invalid(at, what))),
            Err(fault @ TokenFault::Unavailable) => {
                Err(Stop::Refuse(Refusal::new(Code::TemporarilyUnavailable, fault.to_string())))
            }
        }
    }
}

fn anothers() -> Stop {
    let text = "this session is another's; open one of your own";
    Stop::Refuse(Refusal::new(Code::SessionBound, text))
}

/// A session is its holder's alone, and what is said of it is about something that is there.
fn check_session(
    session: Option<&Arc<Session>>,
    holder: Option<&Holder>,
    opened: &Opened,
) -> Result<(), Stop> {
    let refuse = |code, text: &'static str| Err(Stop::Refuse(Refusal::new(code, text)));
    if session.is_some_and(|session| !holder.is_some_and(|holder| session.is_of(holder))) {
        return Err(anothers());
    }
    match &opened.said {
        Said::Answer(id) if !session.is_some_and(|session| session.answer(id)) => refuse(
            Code::InvalidRequest,
            "this session's server asked nothing by that id that has no answer yet",
        ),
        Said::Listen(Some(event)) if !session.is_some_and(|session| session.has_told(event)) => refuse(
            Code::InvalidRequest,
            "no stream of this session told that event, or too long ago; listen anew",
        ),
        Said::Open
        | Said::Initialize
        | Said::Cancel
        | Said::Answer(_)
        | Said::Listen(_)
        | Said::End
        | Said::Unserved(_) => Ok(()),
    }
}
