//! Which headers pass (D-10). To the server a list of what may: no credential, signature or claimed identity of the agent's
//! does, nor anything else a server might act on that neither signature nor approval covers. To the agent all but what
//! would speak for the enforcement point, set state at its origin, or belongs to one connection.

use http::{HeaderMap, HeaderName};

const INWARD: [&str; 4] = ["content-type", "accept", "last-event-id", "traceparent"];
const INWARD_PREFIX: &str = "mcp-";

/// Whether a header of a request reaches the server behind a host that carries its answer.
pub fn goes_inward(name: &HeaderName) -> bool {
    INWARD.contains(&name.as_str()) || name.as_str().starts_with(INWARD_PREFIX)
}

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
    fn what_speaks_for_the_enforcement_point_stays_behind() {
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
