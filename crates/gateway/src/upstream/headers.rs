//! The headers of a request as its upstream gets them (D-10); which pass is the core's to say.

use http::HeaderMap;
use sayso_enforce::carry::goes_inward;

/// The headers of a request that reach the upstream.
pub(super) fn outbound(headers: &HeaderMap) -> HeaderMap {
    let passed = headers.iter().filter(|(name, _)| goes_inward(name));
    passed.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

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
