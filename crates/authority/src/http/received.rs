//! A request with its whole body, bounded in size and time, of the content type its route takes.
//!
//! The body is read once; what is parsed, what is hashed for a signature, and what is decided on are the same bytes.

use super::answer::Fault;
use crate::PublicUrl;
use axum::body::Body;
use axum::extract::Request;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, StatusCode, Uri};
use http_body_util::BodyExt as _;
use sayso_protocol::json::{self, Limits};
use sayso_protocol::sig;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a client may take over its body.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the rest of a body that is too large is read and thrown away.
const DRAIN: Duration = Duration::from_secs(1);
/// Deepest JSON read from anybody.
const DEPTH: usize = 16;

/// What a route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Takes {
    /// The content type, needed as soon as there is a body.
    pub(crate) content_type: &'static str,
    /// The largest body, in bytes.
    pub(crate) bytes: usize,
}

impl Takes {
    pub(crate) const fn form(bytes: usize) -> Self {
        Self { content_type: "application/x-www-form-urlencoded", bytes }
    }

    pub(crate) const fn json(bytes: usize) -> Self {
        Self { content_type: "application/json", bytes }
    }
}

/// A request as received. Holds secrets, so it has no `Debug`.
pub(crate) struct Received {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Received {
    /// Reads the whole request.
    pub(crate) async fn read(request: Request, takes: Takes) -> Result<Self, Fault> {
        let (parts, body) = request.into_parts();
        if parts.headers.get_all(CONTENT_ENCODING).iter().any(|coding| coding != "identity") {
            return Err(unsupported("send the body without a content coding"));
        }
        let body = whole(body, takes.bytes).await?;
        if !body.is_empty() && !is(&parts.headers, takes.content_type) {
            let description = format!("send the body as {}", takes.content_type);
            return Err(Fault::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                description,
            ));
        }
        Ok(Self { method: parts.method, uri: parts.uri, headers: parts.headers, body })
    }

    /// The request as its signature is checked: the authority is our configured one (CORE-59).
    pub(crate) fn facts<'a>(&'a self, public: &'a PublicUrl) -> sig::Facts<'a> {
        sig::Facts {
            method: self.method.as_str(),
            scheme: &public.scheme,
            authority: &public.authority,
            path: self.uri.path(),
            query: self.uri.query(),
            headers: &self.headers,
            body: sig::Body::Whole(&self.body),
        }
    }

    /// The body as strict JSON of this shape.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        let limits = Limits { bytes: self.body.len(), depth: DEPTH };
        json::strict(&self.body, limits)
            .map_err(|fault| Fault::invalid(format!("the body is not the JSON expected here: {fault}")))
    }

    /// The body as a form, each member once.
    pub(crate) fn form(&self) -> Result<BTreeMap<String, String>, Fault> {
        if std::str::from_utf8(&self.body).is_err() {
            return Err(Fault::invalid("the form is not UTF-8"));
        }
        let mut members = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(&self.body) {
            if members.insert(name.into_owned(), value.into_owned()).is_some() {
                return Err(Fault::invalid("the form names a member twice"));
            }
        }
        Ok(members)
    }
}

async fn whole(body: Body, most: usize) -> Result<Bytes, Fault> {
    match tokio::time::timeout(PATIENCE, gather(body, most)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(Cut::TooLarge(rest))) => {
            // A client that is still sending would not see an answer on a connection that is reset under it.
            let _ = tokio::time::timeout(DRAIN, discard(rest)).await;
            let description = format!("the body is larger than the {most} bytes read here");
            Err(Fault::new(StatusCode::PAYLOAD_TOO_LARGE, "request_body_too_large", description))
        }
        Ok(Err(Cut::Broken)) => Err(Fault::invalid("the body could not be read to its end")),
        Err(_) => Err(Fault::new(
            StatusCode::REQUEST_TIMEOUT,
            "request_timeout",
            "the body did not arrive in time; send it again",
        )),
    }
}

/// Why a body is not read to its end.
enum Cut {
    TooLarge(Body),
    Broken,
}

async fn gather(mut body: Body, most: usize) -> Result<Bytes, Cut> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Cut::Broken)?.into_data() else { continue };
        if data.len() > most.saturating_sub(bytes.len()) {
            return Err(Cut::TooLarge(body));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

async fn discard(mut body: Body) {
    while let Some(Ok(_)) = body.frame().await {}
}

fn is(headers: &HeaderMap, content_type: &str) -> bool {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return false };
    let essence = line.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(content_type)
}

fn unsupported(description: &'static str) -> Fault {
    Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", description)
}
