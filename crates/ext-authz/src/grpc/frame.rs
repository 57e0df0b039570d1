//! gRPC over HTTP/2 for one message each way: a byte that says whether it is compressed, four of length, the message.
//!
//! How a call ended is in the trailers, or in the headers when there is no message (gRPC over HTTP/2, "Responses").
//! What is not exactly one whole plain message is not read.

use axum::body::Body;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body_util::{BodyExt as _, Full};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
/// Bytes ahead of a message.
const AHEAD: usize = 5;

/// How a call ended, or what a decision is called in this vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// A yes.
    Ok,
    /// The caller said something that is no message of this service.
    Invalid,
    /// A no.
    Denied,
    /// There is no room for it.
    Exhausted,
    /// No such method.
    Unimplemented,
    /// A no, because nobody can say now.
    Unavailable,
    /// A no that a grant would cure.
    Unauthenticated,
}

impl Status {
    /// Its number.
    pub(crate) fn code(self) -> i32 {
        match self {
            Status::Ok => 0,
            Status::Invalid => 3,
            Status::Denied => 7,
            Status::Exhausted => 8,
            Status::Unimplemented => 12,
            Status::Unavailable => 14,
            Status::Unauthenticated => 16,
        }
    }
}

/// A call that is not answered with a message; a gateway that does not fail open takes it for a no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault(pub(super) Status, pub(super) &'static str);

impl Fault {
    pub(super) fn answer(self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, GRPC);
        headers.insert(STATUS, self.0.code().into());
        headers.insert(MESSAGE, HeaderValue::from_static(self.1));
        response
    }
}

/// The one message of a body.
pub(super) fn open(mut body: Bytes) -> Result<Bytes, Fault> {
    if body.len() < AHEAD {
        return Err(Fault(Status::Invalid, "there is no message"));
    }
    if body.get_u8() != 0 {
        return Err(Fault(Status::Unimplemented, "send the message without compression"));
    }
    let length = usize::try_from(body.get_u32()).unwrap_or(usize::MAX);
    if length != body.len() {
        return Err(Fault(Status::Invalid, "send one message, whole"));
    }
    Ok(body)
}

/// A message as an answer.
pub(super) fn answer(message: Vec<u8>) -> Response<Body> {
    // INVARIANT: answers of ours are kilobytes.
    let length = u32::try_from(message.len()).unwrap_or_default();
    let mut framed = BytesMut::with_capacity(AHEAD.saturating_add(message.len()));
    framed.put_u8(0);
    framed.put_u32(length);
    framed.extend_from_slice(&message);
    let trailers = HeaderMap::from_iter([(STATUS, HeaderValue::from(Status::Ok.code()))]);
    let body = Full::new(framed.freeze()).with_trailers(async { Some(Ok(trailers)) });
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_one_whole_plain_message() {
        let open = |bytes: &'static [u8]| open(Bytes::from_static(bytes)).map_err(|fault| fault.0);
        assert_eq!(open(b"\0\0\0\0\0").unwrap(), "");
        assert_eq!(open(b"\0\0\0\0\x02ab").unwrap(), "ab");
        for bad in [
            b"" as &[u8],
            b"\0\0\0\0",
            b"\0\0\0\0\x02a",
            b"\0\0\0\0\x02abc",
            b"\0\0\0\0\x01a\0\0\0\0\x01a",
            b"\0\xff\xff\xff\xffab",
        ] {
            assert_eq!(open(bad), Err(Status::Invalid), "{bad:?}");
        }
        assert_eq!(open(b"\x01\0\0\0\x02ab"), Err(Status::Unimplemented));
    }
}
