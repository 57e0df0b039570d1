//! A refusal as a JSON-RPC error: the encoding in process (MCP-10..14).
//!
//! Every one has `data.error` and `data.status`, the number is the one that is announced, and the rest of a challenge's
//! `data` is what its HTTP body is (D-2, D-3).

use bytes::Bytes;
use http::{Response, StatusCode};
use sayso_enforce::carry::Turned;
use sayso_enforce::{Body, answer};
use sayso_protocol::envelope::jsonrpc::{self, Codes, ErrorObject, RefusalData};
use sayso_protocol::json::Limits;
use sayso_protocol::message::{self, Message};
use sayso_protocol::method::{UmaClass, uma_class};
use sayso_protocol::payload::challenge::ChallengeObject;
use serde::Serialize;

/// `data` of a challenge: the HTTP body, and the status it would have had.
#[derive(Serialize)]
pub(crate) struct ChallengeData {
    #[serde(flatten)]
    object: ChallengeObject,
    status: u16,
}

/// The error of what was refused.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Said<'a> {
    Challenge(ErrorObject<ChallengeData>),
    Refusal(ErrorObject<RefusalData<'a>>),
}

impl<'a> Said<'a> {
    pub(crate) fn of(codes: Codes, turned: &'a Turned) -> Self {
        match turned {
            Turned::Challenge(challenge) => {
                let ErrorObject { code, message, data } = jsonrpc::challenge(codes, challenge);
                let data = ChallengeData { object: data, status: StatusCode::UNAUTHORIZED.as_u16() };
                Self::Challenge(ErrorObject { code, message, data })
            }
            Turned::Refuse(refusal) => Self::Refusal(jsonrpc::refusal(codes, refusal)),
        }
    }
}

/// The answer to a call that was refused, under its own id; none where no call can be read from the request.
pub(crate) fn answer(codes: Codes, turned: &Turned, body: &Body) -> Option<Response<Bytes>> {
    let Body::Whole(body) = body else { return None };
    let limits = Limits { bytes: usize::MAX, ..Limits::default() };
    let Ok(Message::Request(request)) = message::parse(body, limits) else { return None };
    if uma_class(&request.method) != UmaClass::Protected {
        return None;
    }
    let text = match Said::of(codes, turned) {
        Said::Challenge(error) => jsonrpc::response(&request.id, &error),
        Said::Refusal(error) => jsonrpc::response(&request.id, &error),
    };
    text.ok().map(|text| answer::bytes(StatusCode::OK, text))
}
