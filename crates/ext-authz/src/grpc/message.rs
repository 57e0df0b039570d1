//! The messages of `envoy.service.auth.v3.Authorization/Check`, as much of them as is read or written here.
//!
//! Written by hand from the published field numbers; fields that are not named are skipped. Text that a stranger chose
//! is bytes here, so that a message is never unreadable for what he put into a header, and maps are lists of entries,
//! so that what is there twice is seen twice. Nothing in a message is printed: it holds tokens and arguments.

use super::frame::Status;
use bytes::Bytes;
use http::StatusCode;
use prost::{Message, Oneof};
use std::fmt;

/// What a gateway asks.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct CheckRequest {
    /// What it knows.
    #[prost(message, optional, tag = "1")]
    pub attributes: Option<Attributes>,
}

/// What a gateway knows of a request; of the rest nothing matters here.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct Attributes {
    /// The request.
    #[prost(message, optional, tag = "4")]
    pub request: Option<Request>,
}

/// A request of some protocol.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct Request {
    /// One of HTTP.
    #[prost(message, optional, tag = "2")]
    pub http: Option<HttpRequest>,
}

/// An HTTP request.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct HttpRequest {
    /// Its method.
    #[prost(bytes = "bytes", tag = "2")]
    pub method: Bytes,
    /// Its headers, lines of one name joined by commas; not every byte of a value survives this.
    #[prost(message, repeated, tag = "3")]
    pub headers: Vec<Entry>,
    /// Its path and query, as they were sent.
    #[prost(bytes = "bytes", tag = "4")]
    pub path: Bytes,
    /// The host it names.
    #[prost(bytes = "bytes", tag = "5")]
    pub host: Bytes,
    /// A query that is not in the path; gateways leave it empty.
    #[prost(bytes = "bytes", tag = "7")]
    pub query: Bytes,
    /// A fragment; gateways leave it empty.
    #[prost(bytes = "bytes", tag = "8")]
    pub fragment: Bytes,
    /// How many bytes the gateway has seen of its body; negative when it does not know.
    #[prost(int64, tag = "9")]
    pub size: i64,
    /// Its body, as text.
    #[prost(bytes = "bytes", tag = "11")]
    pub body: Bytes,
    /// Its body.
    #[prost(bytes = "bytes", tag = "12")]
    pub raw_body: Bytes,
    /// Its headers, line by line, instead of `headers`.
    #[prost(message, optional, tag = "13")]
    pub header_map: Option<HeaderList>,
}

/// One entry of a map.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct Entry {
    /// Its key.
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    /// Its value.
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

/// Header lines in their order.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct HeaderList {
    /// The lines.
    #[prost(message, repeated, tag = "1")]
    pub headers: Vec<Line>,
}

/// One header line.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct Line {
    /// Its name.
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    /// Its value, as text.
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
    /// Its value, instead of `value`.
    #[prost(bytes = "bytes", tag = "3")]
    pub raw_value: Bytes,
}

/// What a gateway is told.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct CheckResponse {
    /// Yes or no. INVARIANT: always there, and a yes if and only if `told` is [`Told::Ok`].
    #[prost(message, optional, tag = "1")]
    pub status: Option<RpcStatus>,
    /// What to do.
    #[prost(oneof = "Told", tags = "2, 3")]
    pub told: Option<Told>,
}

/// What a gateway has to do.
#[derive(Clone, PartialEq, Oneof)]
#[prost(skip_debug)]
pub enum Told {
    /// Answer this.
    #[prost(message, tag = "2")]
    Denied(DeniedHttpResponse),
    /// Let it through.
    #[prost(message, tag = "3")]
    Ok(OkHttpResponse),
}

/// A status in gRPC's numbers.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct RpcStatus {
    /// The number.
    #[prost(int32, tag = "1")]
    pub code: i32,
}

/// The answer to whoever sent the request.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct DeniedHttpResponse {
    /// Its status.
    #[prost(message, optional, tag = "1")]
    pub status: Option<HttpStatus>,
    /// Its headers.
    #[prost(message, repeated, tag = "2")]
    pub headers: Vec<HeaderOption>,
    /// Its body.
    #[prost(string, tag = "3")]
    pub body: String,
}

/// How a request is let through.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct OkHttpResponse {
    /// Headers it loses.
    #[prost(string, repeated, tag = "5")]
    pub headers_to_remove: Vec<String>,
}

/// An HTTP status.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct HttpStatus {
    /// Its number.
    #[prost(int32, tag = "1")]
    pub code: i32,
}

/// A header, and what to do where there is one of its name.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct HeaderOption {
    /// The header.
    #[prost(message, optional, tag = "1")]
    pub header: Option<Line>,
    /// One of Envoy's actions.
    #[prost(int32, tag = "3")]
    pub append_action: i32,
}

/// Overwrite what is there, or add.
const OVERWRITE: i32 = 2;

impl CheckResponse {
    /// A yes, without these headers.
    pub(crate) fn allow(removed: impl Iterator<Item = String>) -> Self {
        let told = Told::Ok(OkHttpResponse { headers_to_remove: removed.collect() });
        Self { status: Some(RpcStatus { code: Status::Ok.code() }), told: Some(told) }
    }

    /// A no, and what to answer.
    pub(crate) fn deny<'a>(
        status: Status,
        answer: StatusCode,
        lines: impl Iterator<Item = (&'a str, &'a str)>,
        body: String,
    ) -> Self {
        let header = |(name, value): (&str, &str)| HeaderOption {
            header: Some(Line {
                key: Bytes::copy_from_slice(name.as_bytes()),
                value: Bytes::copy_from_slice(value.as_bytes()),
                raw_value: Bytes::new(),
            }),
            append_action: OVERWRITE,
        };
        let told = Told::Denied(DeniedHttpResponse {
            status: Some(HttpStatus { code: answer.as_u16().into() }),
            headers: lines.map(header).collect(),
            body,
        });
        Self { status: Some(RpcStatus { code: status.code() }), told: Some(told) }
    }
}

/// Each prints its name and nothing that is in it.
macro_rules! say_nothing {
    ($($name:ident),*) => {
        $(impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        })*
    };
}

say_nothing!(
    CheckRequest,
    Attributes,
    Request,
    HttpRequest,
    Entry,
    HeaderList,
    Line,
    CheckResponse,
    Told,
    RpcStatus,
    DeniedHttpResponse,
    OkHttpResponse,
    HttpStatus,
    HeaderOption
);
