//! A gateway's message as the request it is about.
//!
//! Where a message can say one thing twice, both have to agree, and what would be read in two ways is refused: the
//! gateway acts on the request, not on the message. Pseudo headers are left out, since their content has fields of its
//! own.

use super::message::{CheckRequest, Entry, HttpRequest, Line};
use crate::passed;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use sayso_enforce::{Body, Head, Incoming};
use sayso_protocol::payload::refusal::{Code, Refusal};

/// Most header lines of a request.
const LINES: usize = 200;
/// Most bytes of them together.
const BYTES: usize = 64 << 10;

/// The request.
pub(super) fn read(request: CheckRequest) -> Result<Incoming, Refusal> {
    let http = request.attributes.and_then(|it| it.request).and_then(|it| it.http);
    let http = http.ok_or_else(|| unreadable("the gateway passed on no request"))?;
    let method = Method::from_bytes(&http.method).map_err(|_| unreadable("the method cannot be read"))?;
    let target = target(&http)?;
    let mut headers = headers(&http)?;
    name_host(&mut headers, &http.host)?;
    let body = body(&http)?;
    Ok(Incoming { head: Head { method, target, headers }, body })
}

fn unreadable(text: &'static str) -> Refusal {
    Refusal::new(Code::InvalidRequest, text)
}

fn target(http: &HttpRequest) -> Result<Uri, Refusal> {
    let target = passed::target(&http.path).filter(|_| http.fragment.is_empty());
    let target = target.ok_or_else(|| unreadable("the target is no path with a query"))?;
    let query = target.query().unwrap_or_default();
    if http.query.is_empty() || http.query == query {
        Ok(target)
    } else {
        Err(unreadable("there are two queries"))
    }
}

fn headers(http: &HttpRequest) -> Result<HeaderMap, Refusal> {
    let lines = http.header_map.as_ref().map(|map| map.headers.as_slice()).unwrap_or_default();
    let mut headers = Headers::default();
    if lines.is_empty() {
        let joined = http.headers.iter().any(|entry| passed::may_be_joined(&entry.key, &entry.value));
        if joined {
            return Err(passed::joined());
        }
        http.headers.iter().try_for_each(|Entry { key, value }| headers.add(key, value))?;
    } else {
        lines.iter().try_for_each(|line| headers.add(&line.key, value(line)?))?;
        // Whether the body was cut may be said beside the lines.
        let cut = http.headers.iter().filter(|entry| entry.key.eq_ignore_ascii_case(passed::CUT.as_bytes()));
        cut.into_iter().try_for_each(|Entry { key, value }| headers.add(key, value))?;
    }
    Ok(headers.map)
}

fn value(line: &Line) -> Result<&Bytes, Refusal> {
    match (line.value.is_empty(), line.raw_value.is_empty()) {
        (_, true) => Ok(&line.value),
        (true, false) => Ok(&line.raw_value),
        (false, false) if line.value == line.raw_value => Ok(&line.value),
        (false, false) => Err(unreadable("a header has two values in one line")),
    }
}

#[derive(Default)]
struct Headers {
    map: HeaderMap,
    bytes: usize,
}

impl Headers {
    fn add(&mut self, name: &Bytes, value: &Bytes) -> Result<(), Refusal> {
        if name.starts_with(b":") {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(name.len()).saturating_add(value.len());
        if self.bytes > BYTES || self.map.len() >= LINES {
            return Err(unreadable("there are too many headers"));
        }
        let line = HeaderName::from_bytes(name).ok().zip(HeaderValue::from_bytes(value).ok());
        let (name, value) = line.ok_or_else(|| unreadable("a header cannot be read"))?;
        self.map.try_append(name, value).map_err(|_| unreadable("there are too many headers"))?;
        Ok(())
    }
}

/// The host has a field of its own; where a header names one too, both are looked at.
fn name_host(headers: &mut HeaderMap, host: &Bytes) -> Result<(), Refusal> {
    if host.is_empty() || headers.get_all("host").iter().any(|line| line.as_bytes() == host) {
        return Ok(());
    }
    let host = HeaderValue::from_bytes(host).map_err(|_| unreadable("the host cannot be read"))?;
    headers.try_append("host", host).map_err(|_| unreadable("there are too many headers"))?;
    Ok(())
}

/// Bytes before text; a gateway that has seen more than it passed on has cut it.
fn body(http: &HttpRequest) -> Result<Body, Refusal> {
    let bytes = match (http.body.is_empty(), http.raw_body.is_empty()) {
        (_, true) => &http.body,
        (true, false) => &http.raw_body,
        (false, false) if http.body == http.raw_body => &http.raw_body,
        (false, false) => return Err(unreadable("the gateway passed on two bodies")),
    };
    let more = usize::try_from(http.size).is_ok_and(|seen| seen > bytes.len());
    Ok(if more { Body::Truncated } else { Body::Whole(bytes.clone()) })
}
