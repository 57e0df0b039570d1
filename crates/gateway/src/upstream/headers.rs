//! Which headers of a request reach the upstream (D-10): a list of what may pass, so that no credential, signature or
//! forwarded identity of the agent's does. What of its answer passes is the core's.

use http::{HeaderMap, HeaderName};

const FORWARDED: [&str; 4] = ["content-type", "accept", "last-event-id", "traceparent"];
const FORWARDED_PREFIX: &str = "mcp-";

/// The headers of a request that reach the upstream.
pub(super) fn outbound(headers: &HeaderMap) -> HeaderMap {
    let passes =
        |name: &HeaderName| FORWARDED.contains(&name.as_str()) || name.as_str().starts_with(FORWARDED_PREFIX);
    headers
        .iter()
        .filter(|(name, _)| passes(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_what_is_listed_goes_out() {
        let sent = map(&[
            ("authorization", "PoP x"),
            ("signature", "x"),
            ("signature-input", "x"),
            ("content-digest", "x"),
            ("cookie", "x"),
            ("x-uma-owner", "bob"),
            ("x_uma_owner", "bob"),
            ("x-forwarded-host", "evil.example"),
            ("forwarded", "host=evil.example"),
            ("accept-encoding", "gzip"),
            ("connection", "mcp-method"),
            ("host", "gw.example"),
            ("accept", "a"),
            ("accept", "b"),
            ("mcp-method", "tools/list"),
            ("mcp-param-account", "1"),
            ("traceparent", "00"),
        ]);
        let passed = outbound(&sent);
        let mut names: Vec<&str> = passed.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "mcp-method", "mcp-param-account", "traceparent"]);
        assert_eq!(passed.get_all("accept").iter().count(), 2);
    }
}
