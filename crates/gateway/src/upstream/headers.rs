//! Which headers cross the gateway (D-10).
//!
//! Towards the upstream: a list of what may pass, so that no credential, signature or forwarded identity of the agent's
//! does. From it: all but what would speak for the gateway, set state at its origin, or belongs to one connection.

use http::{HeaderMap, HeaderName};

const FORWARDED: [&str; 4] = ["content-type", "accept", "last-event-id", "traceparent"];
const FORWARDED_PREFIX: &str = "mcp-";

const WITHHELD: [&str; 15] = [
    "www-authenticate",
    "set-cookie",
    "strict-transport-security",
    "alt-svc",
    "clear-site-data",
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
const WITHHELD_PREFIX: &str = "access-control-";

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

/// Strips a response of the headers that do not reach the agent.
pub(super) fn strip(headers: &mut HeaderMap) {
    let listed: Vec<String> = headers
        .get_all("connection")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let withheld: Vec<HeaderName> = headers
        .keys()
        .filter(|name| {
            let name = name.as_str();
            WITHHELD.contains(&name)
                || name.starts_with(WITHHELD_PREFIX)
                || listed.iter().any(|listed| listed == name)
        })
        .cloned()
        .collect();
    // A length beside chunks is not the length of what was read (RFC 9112 section 6.3).
    if headers.contains_key("transfer-encoding") {
        headers.remove("content-length");
    }
    for name in withheld {
        headers.remove(name);
    }
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

    #[test]
    fn what_speaks_for_the_gateway_stays_behind() {
        let mut headers = map(&[
            ("www-authenticate", "Bearer"),
            ("www-authenticate", "UMA ticket=x"),
            ("set-cookie", "a=b"),
            ("access-control-allow-origin", "*"),
            ("connection", "close, X-Internal"),
            ("x-internal", "1"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("content-length", "5"),
            ("alt-svc", "h2=\"evil.example:443\""),
            ("strict-transport-security", "max-age=1"),
            ("clear-site-data", "*"),
            ("content-type", "text/event-stream"),
            ("mcp-session-id", "s"),
            ("x-accel-buffering", "no"),
        ]);
        strip(&mut headers);
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-type", "mcp-session-id", "x-accel-buffering"]);
    }
}
