//! A verdict as an HTTP response (D-3).
//!
//! A challenge carries its header and the same seven members as plain JSON, a refusal is plain JSON, a fault of the MCP
//! layer keeps MCP's shape. No refusal is a JSON-RPC result, and only what negotiating can cure names the UMA scheme
//! (CORE-16, MCP-08, MCP-09). Every host that speaks HTTP answers with these; B is its server's type of body.

use crate::bearer::{BearerChallenge, INVALID_TOKEN};
use crate::policy::PolicyRefusal;
use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use sayso_protocol::envelope::www_authenticate;
use sayso_protocol::message::MessageFault;
use sayso_protocol::payload::challenge::Challenge;
use sayso_protocol::payload::refusal::{Code, Refusal};
use serde::Serialize;
use serde_json::json;

/// A JSON answer that is not to be kept.
pub fn json<T: Serialize, B: From<Bytes>>(status: StatusCode, value: &T) -> Response<B> {
    // INVARIANT: what is answered here is made of strings and numbers, so it always can be written.
    let text = serde_json::to_vec(value).unwrap_or_else(|_| b"{}".to_vec());
    bytes(status, text)
}

/// A JSON answer whose text is there already.
pub fn bytes<B: From<Bytes>>(status: StatusCode, text: impl Into<Bytes>) -> Response<B> {
    let mut response = Response::new(B::from(text.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A fault repeats the id of its request, which a stranger may have written.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn status(number: u16) -> StatusCode {
    StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// 401 with a ticket.
pub fn challenge<B: From<Bytes>>(challenge: &Challenge) -> Response<B> {
    let Ok(header) = www_authenticate::encode(challenge) else {
        let description = "the owner's authority gave a ticket that cannot be passed on";
        return refusal(&Refusal::new(Code::TemporarilyUnavailable, description));
    };
    let mut response = json(StatusCode::UNAUTHORIZED, &challenge.object());
    response.headers_mut().insert(WWW_AUTHENTICATE, header);
    response
}

/// Any other refusal.
pub fn refusal<B: From<Bytes>>(refusal: &Refusal) -> Response<B> {
    let mut response = json(status(refusal.code.status()), &refusal.body());
    let (name, value): (HeaderName, &str) = match refusal.code {
        Code::InvalidToken => (WWW_AUTHENTICATE, r#"PoP error="invalid_token""#),
        Code::TemporarilyUnavailable if !refusal.spent => (RETRY_AFTER, "1"),
        _ => return response,
    };
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

/// 405, with what is allowed.
pub fn not_allowed<B: From<Bytes>>(allowed: &'static str, text: &'static str) -> Response<B> {
    let mut response = refusal(&Refusal::new(Code::MethodNotAllowed, text));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// A refusal at a resource's own address.
pub fn turn_away<B: From<Bytes>>(refused: &Refusal) -> Response<B> {
    match refused.code {
        Code::MethodNotAllowed => not_allowed("POST", "this address serves POST"),
        _ => refusal(refused),
    }
}

/// A no of COAZ's, as the answer to the message it is about.
pub fn policy<B: From<Bytes>>(refusal: &PolicyRefusal) -> Response<B> {
    bytes(status(refusal.status()), refusal.body().clone())
}

/// 401, with where to get a token (RFC 9728).
pub fn bearer<B: From<Bytes>>(challenge: &BearerChallenge) -> Response<B> {
    let body = json!({ "error": INVALID_TOKEN, "error_description": challenge.description });
    let mut response = json(StatusCode::UNAUTHORIZED, &body);
    if let Some(header) = challenge.header() {
        response.headers_mut().insert(WWW_AUTHENTICATE, header);
    }
    response
}

/// A fault of the MCP layer.
pub fn fault<B: From<Bytes>>(fault: &MessageFault) -> Response<B> {
    bytes(status(fault.http_status), fault.body())
}

#[cfg(test)]
mod tests {
    use super::*;

    // CORE-16, CORE-23, MCP-09
    #[test]
    fn every_refusal_is_json_with_its_status_and_no_challenge() {
        for code in Code::ALL {
            let response: Response<Bytes> = refusal(&Refusal::new(code, "what to do"));
            assert_eq!(response.status().as_u16(), code.status());
            assert!(!response.status().is_success());
            let scheme = response.headers().get(WWW_AUTHENTICATE).map(|value| value.to_str().unwrap());
            assert_eq!(scheme, (code == Code::InvalidToken).then_some(r#"PoP error="invalid_token""#));
            let body: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
            assert_eq!(body["error"], code.as_str());
            assert!(body.get("jsonrpc").is_none());
        }
    }
}
