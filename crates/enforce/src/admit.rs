//! The checks that need nobody else, in the order of D-5: host, origin, method, query, codings, whole body, strict parse,
//! headers against body, method class, tool.
//!
//! Pure: nothing here asks, waits or remembers. What is not known to be allowed is refused (CORE-84); the body alone
//! says what a request is.

mod accept;
mod listen;

use crate::call::{Body, Head, Incoming};
use crate::listener::{check_host, check_origin};
use crate::resource::{Resource, Tool};
pub(crate) use accept::check_answers;
use bytes::Bytes;
use http::{HeaderMap, Method};
pub(crate) use listen::trimmed;
use sayso_protocol::Json;
use sayso_protocol::canon::{self, S256};
use sayso_protocol::json::Limits;
use sayso_protocol::message::{
    self, Message, MessageFault, Request, RequestId, reconcile, reconcile_mirrors,
};
use sayso_protocol::method::{Revision, UmaClass, uma_class};
use sayso_protocol::payload::operation::Operation;
use sayso_protocol::payload::refusal::{Code, Refusal};

/// The headers of MCP's that every call may carry.
const ROUTING: [&str; 4] = ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"];

const NO_ARGUMENTS: &Json = &Json::Object(Vec::new());

const INITIALIZE: &str = "initialize";
const CANCELLED: &str = "notifications/cancelled";
const LAST_EVENT: &str = "last-event-id";

/// What a further round of a call carries.
const STATE: &str = "requestState";
const RESPONSES: &str = "inputResponses";

/// A request that goes no further.
#[derive(Debug)]
pub(crate) enum TurnedAway {
    Refuse(Refusal),
    Fault(MessageFault),
}

/// A request that may go on.
pub(crate) enum Admitted<'r> {
    /// Its method is open.
    Open(Opened),
    /// It calls a tool.
    Protected(ProtectedCall<'r>),
    /// A policy is asked about it, whatever it is.
    Policed(Unjudged),
}

/// What was said to a resource that a policy alone protects.
pub(crate) struct Unjudged {
    pub(crate) opened: Opened,
    pub(crate) revision: Revision,
    /// Nothing of a request without a body.
    pub(crate) message: Option<Message>,
}

/// What passes without a grant.
pub(crate) struct Opened {
    pub(crate) body: Bytes,
    pub(crate) modern: bool,
    pub(crate) said: Said,
}

/// What it is.
pub(crate) enum Said {
    /// An open method.
    Open,
    /// One of them: the first word of an older client.
    Initialize,
    /// One of them: an older client takes back a request of its own.
    Cancel,
    /// In a session: the answer to a request of its server's.
    Answer(RequestId),
    /// In a session: its server is listened to, from after this event if one is named.
    Listen(Option<Bytes>),
    /// In a session: its end.
    End,
    /// In a session: a method that is not served, which is said to nobody but whose session it is.
    Unserved(MessageFault),
}

/// A call of a known tool, read once.
pub(crate) struct ProtectedCall<'r> {
    pub(crate) tool: &'r Tool,
    pub(crate) body: Bytes,
    pub(crate) modern: bool,
    pub(crate) revision: Revision,
    /// What was read.
    pub(crate) message: Message,
    /// The operation it is; none when its arguments have no canonical form.
    pub(crate) operation: Option<Operation>,
    /// Whether it says more than an operation covers.
    pub(crate) says_more: bool,
    /// What it answers, if it is a further round of a call.
    pub(crate) follow_up: Option<FollowUp>,
}

/// The answer to a question of the tool's (D-11). It changes what the call does and is no part of its operation.
pub(crate) struct FollowUp {
    pub(crate) state: S256,
    pub(crate) answers: Option<S256>,
}

impl From<Refusal> for TurnedAway {
    fn from(refusal: Refusal) -> Self {
        TurnedAway::Refuse(refusal)
    }
}

impl From<MessageFault> for TurnedAway {
    fn from(fault: MessageFault) -> Self {
        TurnedAway::Fault(fault)
    }
}

/// What can be refused before the body is read. A host that reads the body itself asks this first.
/// `within` says whether the request names a session, in a revision that has them.
pub(crate) fn check_head(resource: &Resource, head: &Head, within: bool) -> Result<(), Refusal> {
    if !head.claims_possession() {
        check_host(&resource.settings().hosts, head)?;
    }
    check_origin(&resource.settings().allowed_origins, &head.headers)?;
    let bodiless = within && is_bodiless(&head.method);
    if head.method != Method::POST && !bodiless {
        return Err(Refusal::new(Code::MethodNotAllowed, "this address serves POST"));
    }
    if head.query().is_some() && !resource.settings().serve_query {
        return Err(Refusal::new(Code::InvalidRequest, "this address takes no query"));
    }
    check_coding(&head.headers)?;
    if bodiless { Ok(()) } else { check_content_type(&head.headers) }
}

/// The two ways to speak of a session rather than in it.
fn is_bodiless(method: &Method) -> bool {
    *method == Method::GET || *method == Method::DELETE
}

/// `within` as in [`check_head`]; `trims` says whether what is let through is carried by its host, which may then be less
/// than what came.
pub(crate) fn admit<'r>(
    resource: &'r Resource,
    incoming: &Incoming,
    within: bool,
    trims: bool,
) -> Result<Admitted<'r>, TurnedAway> {
    check_head(resource, &incoming.head, within)?;
    let limit = resource.settings().body_limit;
    let body = whole(incoming, limit)?;
    if is_bodiless(&incoming.head.method) {
        check_host(&resource.settings().hosts, &incoming.head)?;
        let opened = bodiless(incoming, body)?;
        let policed = resource.settings().enforcement.policed().is_some();
        // Only older revisions have sessions to be spoken of.
        let unjudged = |opened| Unjudged { opened, revision: Revision::V20250326, message: None };
        return Ok(if policed { Admitted::Policed(unjudged(opened)) } else { Admitted::Open(opened) });
    }
    let message = message::parse(body, Limits { bytes: limit, ..Limits::default() })?;
    let revision = reconcile(&incoming.head.headers, &message)?;
    let method = message.method().unwrap_or_default();
    if method == INITIALIZE && revision.is_modern() {
        // There is no session to begin in this revision, and a server that began one would keep it for nobody.
        return Err(MessageFault::not_served(404, message.request_id().cloned()).into());
    }
    if resource.settings().enforcement.policed().is_some() {
        // No signature is looked at, so none can stand in for the host list.
        check_host(&resource.settings().hosts, &incoming.head)?;
        return Ok(Admitted::Policed(unjudged(message, revision, body)));
    }
    if resource.opens(method) {
        let asked = !resource.settings().enforcement.asks_nobody();
        let body = if asked { trimmed(&message, body, trims)? } else { body.clone() };
        // The signature of an open request is never verified, so it cannot stand in for the host list.
        check_host(&resource.settings().hosts, &incoming.head)?;
        let said = match method {
            INITIALIZE => Said::Initialize,
            CANCELLED if !revision.is_modern() => Said::Cancel,
            _ => Said::Open,
        };
        return Ok(Admitted::Open(Opened { body, modern: revision.is_modern(), said }));
    }
    let protected_call = uma_class(method) == UmaClass::Protected;
    match message {
        message @ Message::Request(_) if protected_call => {
            protected(resource, incoming, message, revision, body).map(Admitted::Protected)
        }
        message if within && !revision.is_modern() => {
            check_host(&resource.settings().hosts, &incoming.head)?;
            Ok(Admitted::Open(Opened { body: body.clone(), modern: false, said: in_session(&message) }))
        }
        message => {
            let status = if revision.is_modern() { 404 } else { 403 };
            Err(MessageFault::not_served(status, message.request_id().cloned()).into())
        }
    }
}

/// A message that is not looked at further before it is known who sent it.
fn unjudged(message: Message, revision: Revision, body: &Bytes) -> Unjudged {
    let said = match &message {
        Message::Response { id } => Said::Answer(id.clone()),
        message if message.method() == Some(INITIALIZE) => Said::Initialize,
        message if message.method() == Some(CANCELLED) && !revision.is_modern() => Said::Cancel,
        _ => Said::Open,
    };
    let opened = Opened { body: body.clone(), modern: revision.is_modern(), said };
    Unjudged { opened, revision, message: Some(message) }
}

/// What is neither open nor protected, where there is a session it can belong to.
fn in_session(message: &Message) -> Said {
    match message {
        Message::Response { id } => Said::Answer(id.clone()),
        // Never 404: that would mean that the session is gone (D-3).
        _ => Said::Unserved(MessageFault::not_served(200, message.request_id().cloned())),
    }
}

fn bodiless(incoming: &Incoming, body: &Bytes) -> Result<Opened, Refusal> {
    if !body.is_empty() {
        return Err(Refusal::new(Code::InvalidRequest, "send this request without a body"));
    }
    let mut events = incoming.head.headers.get_all(LAST_EVENT).iter();
    let said = match (&incoming.head.method, events.next(), events.next()) {
        (&Method::DELETE, None, _) => Said::End,
        (&Method::GET, event, None) => {
            Said::Listen(event.map(|event| Bytes::copy_from_slice(event.as_bytes().trim_ascii())))
        }
        _ => return Err(Refusal::new(Code::InvalidRequest, "name one event, of a stream to be taken up")),
    };
    Ok(Opened { body: Bytes::new(), modern: false, said })
}

/// The tool a call names, where this resource governs one of that name.
pub(crate) fn governed<'r>(resource: &'r Resource, name: Option<&str>) -> Result<&'r Tool, Refusal> {
    if !resource.is_listed() {
        let refusal = "what tools there are is not known yet; call again in a moment";
        return Err(Refusal::new(Code::TemporarilyUnavailable, refusal));
    }
    name.and_then(|name| resource.tool(name))
        .ok_or_else(|| Refusal::new(Code::UnknownTool, "this resource governs no tool of that name"))
}

fn protected<'r>(
    resource: &'r Resource,
    incoming: &Incoming,
    message: Message,
    revision: Revision,
    body: &Bytes,
) -> Result<ProtectedCall<'r>, TurnedAway> {
    let Message::Request(request) = &message else {
        return Err(MessageFault::not_served(403, None).into());
    };
    let call = request.call();
    let tool = governed(resource, call.map(|call| call.name))?;
    // INVARIANT: `governed` knows no call without a name.
    let arguments = call.map_or(NO_ARGUMENTS, |call| call.arguments());
    reconcile_mirrors(&incoming.head.headers, &tool.settings.mirrors, request, revision)?;
    if request.declares_tasks() {
        let refusal = "a protected call is not run as a task here; call again without declaring tasks";
        return Err(Refusal::new(Code::TaskNotServed, refusal).into());
    }
    let follow_up = follow_up(request, revision);
    let says_more =
        says_more(request, &incoming.head.headers, tool) || (follow_up.is_none() && answers(request));
    if says_more && tool.settings.single_use {
        return Err(says_more_refusal().into());
    }
    let operation = Operation::of(tool.settings.tool.clone(), arguments).ok();
    let (body, modern) = (body.clone(), revision.is_modern());
    Ok(ProtectedCall { tool, body, modern, revision, message, operation, says_more, follow_up })
}

/// A round that can be told from every other: it carries the state it was asked with, and answers that have a canonical
/// form. Older revisions have no rounds.
fn follow_up(request: &Request, revision: Revision) -> Option<FollowUp> {
    let params = request.params.as_ref().filter(|_| revision.is_modern())?;
    let state = params.get(STATE)?.as_str()?;
    let answers = match params.get(RESPONSES) {
        None => None,
        Some(answers @ Json::Object(_)) => Some(canon::s256(answers).ok()?),
        Some(_) => return None,
    };
    Some(FollowUp { state: canon::s256_bytes(state.as_bytes()), answers })
}

/// Whether it speaks as a further round does.
fn answers(request: &Request) -> bool {
    let params = request.params.as_ref();
    [STATE, RESPONSES].iter().any(|name| params.is_some_and(|params| params.get(name).is_some()))
}

/// A call that is approved one at a time carries what was approved and nothing beside it (D-10, D-11). Headers count:
/// no signature has to cover them, and an upstream may act on one that mirrors no argument known here.
fn says_more(request: &Request, headers: &HeaderMap, tool: &Tool) -> bool {
    let known = |name: &str| {
        ROUTING.contains(&name) || tool.settings.mirrors.iter().any(|mirror| mirror.header == name)
    };
    request.unknown_member().is_some()
        || headers.keys().any(|name| name.as_str().starts_with("mcp-") && !known(name.as_str()))
}

pub(crate) fn says_more_refusal() -> Refusal {
    Refusal::new(
        Code::InvalidRequest,
        "a call approved one at a time carries its name, arguments and protocol metadata alone",
    )
}

/// A body is judged as it came, so it may not come coded; chunks are how it comes, not what.
fn check_coding(headers: &HeaderMap) -> Result<(), Refusal> {
    let are_all = |name, plain: &[u8]| {
        headers.get_all(name).iter().all(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(plain))
    };
    if are_all("content-encoding", b"identity") && are_all("transfer-encoding", b"chunked") {
        Ok(())
    } else {
        Err(Refusal::new(Code::UnsupportedMediaType, "send the body without a coding"))
    }
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut lines = headers.get_all("content-type").iter();
    let json = lines.next().and_then(|value| value.to_str().ok()).is_some_and(is_json);
    // INVARIANT: two of them are a fault of the message's headers, and `reconcile` lets no message pass that has one.
    if json || lines.next().is_some() {
        Ok(())
    } else {
        Err(Refusal::new(Code::UnsupportedMediaType, "send the message as application/json in UTF-8"))
    }
}

/// JSON, and in the one encoding it is parsed in: an upstream may heed a `charset`.
fn is_json(value: &str) -> bool {
    let mut parts = value.split(';').map(str::trim);
    let essence = parts.next().is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
    essence
        && parts.all(|parameter| {
            parameter.is_empty()
                || ["charset=utf-8", "charset=\"utf-8\""]
                    .iter()
                    .any(|utf8| parameter.eq_ignore_ascii_case(utf8))
        })
}

/// The body, if all of it is here (MCP-29) and it is within the limit.
fn whole(incoming: &Incoming, limit: usize) -> Result<&Bytes, Refusal> {
    let Body::Whole(body) = &incoming.body else { return Err(truncated()) };
    if body.len() > limit {
        return Err(truncated());
    }
    let declared =
        incoming.head.headers.get("content-length").map(|value| value.to_str().map(str::parse::<usize>));
    match declared {
        None => Ok(body),
        Some(Ok(Ok(length))) if length == body.len() => Ok(body),
        Some(_) => Err(truncated()),
    }
}

fn truncated() -> Refusal {
    Refusal::new(Code::RequestBodyTooLarge, "the request body is too large, or was truncated on its way here")
}

#[cfg(test)]
mod tests;
