//! What a gateway is told: let it through without these headers, or answer this instead.
//!
//! INVARIANT: a denial never has a status that a gateway takes for a yes, whatever vocabulary it was written in (D-3,
//! MCP-09); the one constructor sees to it.

use bytes::Bytes;
use http::{HeaderName, Response, StatusCode};
use sayso_enforce::bearer::BearerChallenge;
use sayso_enforce::{PolicyRefusal, answer};
use sayso_protocol::message::MessageFault;
use sayso_protocol::payload::challenge::Challenge;
use sayso_protocol::payload::refusal::{Code, Refusal};

/// The decision about one check.
pub enum Decision {
    /// The request may go on to the server, once, without these headers.
    Allow(Vec<HeaderName>),
    /// It may not, and this is the answer to whoever sent it.
    Deny(Denial),
}

/// An answer that is no yes.
pub struct Denial(Box<Response<Bytes>>);

impl Denial {
    fn new(mut response: Response<Bytes>) -> Self {
        if response.status() < StatusCode::BAD_REQUEST {
            *response.status_mut() = StatusCode::FORBIDDEN;
        }
        Self(Box::new(response))
    }

    /// A refusal, at a resource's own address.
    pub fn of(refusal: &Refusal) -> Self {
        let mut response = answer::turn_away(refusal);
        // The one code with a status of its own here (D-12).
        if refusal.code == Code::TaskNotServed {
            *response.status_mut() = StatusCode::FORBIDDEN;
        }
        Self::new(response)
    }

    /// A challenge, whole: nobody adds to it on its way.
    pub fn challenge(challenge: &Challenge) -> Self {
        Self::new(answer::challenge(challenge))
    }

    /// A no of a policy's, in COAZ's form.
    pub fn policy(refusal: &PolicyRefusal) -> Self {
        Self::new(answer::policy(refusal))
    }

    /// 401: show an access token.
    pub fn bearer(challenge: &BearerChallenge) -> Self {
        Self::new(answer::bearer(challenge))
    }

    /// A fault of the MCP layer.
    pub fn fault(fault: &MessageFault) -> Self {
        Self::new(answer::fault(fault))
    }

    /// Its status, which is an error.
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// The answer.
    pub fn into_response(self) -> Response<Bytes> {
        *self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso_protocol::message::MessageFault;

    // MCP-09
    #[test]
    fn a_status_below_400_becomes_403_and_keeps_its_body() {
        for status in [100, 200, 202, 204, 301, 304, 399, 400, 404, 503] {
            let mut response = Response::new(Bytes::from_static(b"{}"));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            let denial = Denial::new(response);
            assert_eq!(denial.status().as_u16(), if status < 400 { 403 } else { status });
            assert_eq!(denial.into_response().into_body(), "{}");
        }
    }

    // MCP-09, CORE-16, CORE-23
    #[test]
    fn every_refusal_and_every_fault_is_a_no() {
        for code in Code::ALL {
            let denial = Denial::of(&Refusal::new(code, "what to do"));
            let expected = if code == Code::TaskNotServed { 403 } else { code.status() };
            assert_eq!(denial.status().as_u16(), expected, "{}", code.as_str());
            let body: serde_json::Value = serde_json::from_slice(denial.into_response().body()).unwrap();
            assert_eq!(body["error"], code.as_str());
        }
        for status in [200, 403, 404] {
            let fault = MessageFault::not_served(status, None);
            let denial = Denial::fault(&fault);
            assert_eq!(denial.status().as_u16(), if status == 200 { 403 } else { status });
            let body: serde_json::Value = serde_json::from_slice(denial.into_response().body()).unwrap();
            assert!(body.get("result").is_none());
            assert_eq!(body["error"]["data"]["error"], "unknown_method");
        }
    }
}
