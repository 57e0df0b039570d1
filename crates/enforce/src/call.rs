//! The facts of one HTTP request, as its host received them: nothing decoded, nothing normalised.
//!
//! A body is whole or it is truncated, and no host can pass one off as the other (CORE-116). What the request may do is
//! decided elsewhere.

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};

/// A request without its body.
#[derive(Clone)]
pub struct Head {
    /// The method as received.
    pub method: Method,
    /// The request target as received.
    pub target: Uri,
    /// Every header line as received.
    pub headers: HeaderMap,
}

/// What a host has of a body.
#[derive(Clone)]
pub enum Body {
    /// All of it; empty when the request has none.
    Whole(Bytes),
    /// Not all of it, or perhaps not all of it.
    Truncated,
}

/// One request.
#[derive(Clone)]
pub struct Incoming {
    /// Everything before the body.
    pub head: Head,
    /// The body.
    pub body: Body,
}

impl Head {
    /// The path, before percent-decoding.
    pub fn path(&self) -> &str {
        self.target.path()
    }

    /// The query without its `?`; `Some("")` for a bare `?`.
    pub fn query(&self) -> Option<&str> {
        self.target.query()
    }

    /// Whether the request claims to be signed with a grant. A claim only: the engine verifies it.
    pub fn claims_possession(&self) -> bool {
        ["authorization", "signature", "signature-input"].iter().all(|name| self.headers.contains_key(*name))
    }

    /// Every host the request names: that of an absolute target, and each `Host` line. An unreadable one is empty.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        let lines = self.headers.get_all("host").iter().map(|value| value.to_str().unwrap_or_default());
        self.target.authority().map(http::uri::Authority::as_str).into_iter().chain(lines)
    }
}
