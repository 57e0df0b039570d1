//! What a gateway passed on of a request: its target as it was sent, and whether its body is all of it.
//!
//! Nothing of a target is decoded, merged or stripped, so every other spelling of a resource is nothing. A body is whole
//! only if the gateway says so, where it is known to, or its declared length does; what may have been cut is truncated
//! (CORE-116, MCP-29).

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Uri};
use sayso_enforce::Body;
use sayso_protocol::payload::refusal::{Code, Refusal};

/// Where Envoy says whether it cut the body.
pub(crate) const CUT: &str = "x-envoy-auth-partial-body";

/// Who says of a body that it is all there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whole {
    /// Its `Content-Length` alone. A flag that says so may be the client's own; one that says that it was cut counts.
    ByLength,
    /// The gateway that asks, in `x-envoy-auth-partial-body`: it is known to set that header itself, whatever a client
    /// sent. Where it is absent, the length.
    ByFlag,
}

/// What the headers begin with that say what a message is about.
const ROUTING: &[u8] = b"mcp-";

/// The target a path and query make, if it is one and none of it would be read differently.
pub(crate) fn target(text: &[u8]) -> Option<Uri> {
    let target = PathAndQuery::try_from(text).ok()?;
    (text.starts_with(b"/") && target.as_str().as_bytes() == text).then(|| Uri::from(target))
}

/// Whether a line may be several that a gateway joined, of a header that is one line or none. Envoy joins all lines of
/// a name by commas unless it is told not to, and passes them on to the server apart, which may heed but the first.
pub(crate) fn may_be_joined(name: &[u8], value: &[u8]) -> bool {
    let routes = name.get(..ROUTING.len()).is_some_and(|start| start.eq_ignore_ascii_case(ROUTING));
    routes && value.contains(&b',')
}

/// The refusal of one.
pub(crate) fn joined() -> Refusal {
    let text =
        "a header of MCP's came with a comma: send it once, in its base64 form if the comma belongs there";
    Refusal::new(Code::InvalidRequest, text)
}

/// The body, as far as one can know that it is all of it. `ceiling` is the length at which gateways cut; one that is as
/// long may have been longer.
pub(crate) fn body(headers: &HeaderMap, bytes: Bytes, ceiling: usize, whole: Whole) -> Body {
    if bytes.len() < ceiling && is_whole(headers, bytes.len(), whole) {
        Body::Whole(bytes)
    } else {
        Body::Truncated
    }
}

fn is_whole(headers: &HeaderMap, length: usize, whole: Whole) -> bool {
    // Nobody vouches for it but its length; and an empty body is none that a gateway passed on.
    let by_length = || length > 0 && declared(headers).is_some_and(|declared| declared == length);
    let mut flags = headers.get_all(CUT).iter();
    match (flags.next(), flags.next()) {
        (None, _) => by_length(),
        (Some(flag), None) if flag.as_bytes() == b"false" => match whole {
            // A declared length is compared by the core.
            Whole::ByFlag => true,
            Whole::ByLength => by_length(),
        },
        (Some(_), None) => false,
        (Some(_), Some(_)) => false,
    }
}

fn declared(headers: &HeaderMap) -> Option<usize> {
    let mut lines = headers.get_all("content-length").iter().map(HeaderValue::to_str);
    match (lines.next(), lines.next()) {
        (Some(Ok(line)), None) if line.bytes().all(|byte| byte.is_ascii_digit()) => line.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_cut(lines: &[(&'static str, &'static str)], body: &'static str) -> bool {
        is_cut_by(Whole::ByFlag, lines, body)
    }

    fn is_cut_by(whole: Whole, lines: &[(&'static str, &'static str)], body: &'static str) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        matches!(super::body(&headers, Bytes::from_static(body.as_bytes()), 10, whole), Body::Truncated)
    }

    // CORE-116, MCP-29, CORE-21
    #[test]
    fn a_body_is_whole_only_where_somebody_vouches_for_it() {
        assert!(!is_cut(&[(CUT, "false")], "{}"));
        assert!(!is_cut(&[(CUT, "false")], ""));
        assert!(!is_cut(&[("content-length", "2")], "{}"));
        assert!(!is_cut(&[(CUT, "false"), ("content-length", "2")], "{}"));
        for lines in [
            &[] as &[_],
            &[(CUT, "true")],
            &[(CUT, "")],
            &[(CUT, "False")],
            &[(CUT, "false,true")],
            &[(CUT, "false, false")],
            &[(CUT, "false"), (CUT, "false")],
            &[(CUT, "true"), ("content-length", "2")],
            &[("transfer-encoding", "chunked")],
            &[("content-length", "3")],
            &[("content-length", "1")],
            &[("content-length", "2"), ("content-length", "2")],
            &[("content-length", "two")],
            &[("content-length", "+2")],
        ] {
            assert!(is_cut(lines, "{}"), "{lines:?}");
        }
        assert!(is_cut(&[("content-length", "0")], ""), "no body was passed on");
        // At the ceiling nobody knows.
        assert!(!is_cut(&[(CUT, "false")], "{\"a\":123}"));
        assert!(is_cut(&[(CUT, "false")], "{\"a\":1234}"));
        assert!(is_cut(&[("content-length", "10")], "{\"a\":1234}"));
    }

    // CORE-116, MCP-29
    #[test]
    fn a_clients_own_flag_makes_no_body_whole() {
        let is_cut = |lines: &[_], body| is_cut_by(Whole::ByLength, lines, body);
        assert!(!is_cut(&[("content-length", "2")], "{}"));
        assert!(!is_cut(&[(CUT, "false"), ("content-length", "2")], "{}"));
        for lines in [
            &[(CUT, "false")] as &[_],
            &[(CUT, "false"), ("transfer-encoding", "chunked")],
            &[(CUT, "false"), ("content-length", "3")],
            &[(CUT, "true"), ("content-length", "2")],
            &[(CUT, "false"), (CUT, "false"), ("content-length", "2")],
            &[],
        ] {
            assert!(is_cut(lines, "{}"), "{lines:?}");
        }
        assert!(is_cut(&[(CUT, "false")], ""));
        assert!(is_cut(&[(CUT, "false"), ("content-length", "0")], ""));
    }

    #[test]
    fn a_target_is_what_was_sent() {
        for good in ["/mcp", "//mcp", "/%6dcp", "/mcp;x=1", "/x/../mcp", "/mcp?x=1", "/mcp?", "/MCP", "/"] {
            let target = target(good.as_bytes()).unwrap();
            assert_eq!(target.path_and_query().unwrap().as_str(), good);
            assert!(target.authority().is_none());
        }
        for bad in ["", "*", "mcp", "/mcp#f", "/mcp#", "http://gw.example.test/mcp", "/m p", "/m\np", "/m\0p"]
        {
            assert!(target(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
