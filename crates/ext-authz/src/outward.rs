//! Which headers an allowed request loses before the gateway sends it on (D-10).
//!
//! A list of what may pass, so that no credential, signature or claimed identity of the agent's reaches the server, nor
//! anything else it might act on that neither signature nor approval covers. The gateway removes the rest by name. What
//! frames and routes the message is the gateway's own.

use http::{HeaderMap, HeaderName};
use sayso_enforce::carry::SESSION;

const PASSED: [&str; 3] = ["content-type", "accept", "traceparent"];
const PASSED_PREFIX: &str = "mcp-";

/// Framing and address, which a gateway cannot lose and writes anew.
const KEPT: [&str; 3] = ["host", "content-length", "transfer-encoding"];

/// Removed whether or not the gateway showed them, and never passed by choice: what is the agent's with us, and what asks
/// Envoy to send a call again (D-14). Over HTTP Envoy does not show the latter, since it would heed them for the check.
const NEVER: [&str; 15] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "signature",
    "signature-input",
    "signature-agent",
    "content-digest",
    "x-envoy-retry-on",
    "x-envoy-retry-grpc-on",
    "x-envoy-max-retries",
    "x-envoy-retriable-status-codes",
    "x-envoy-retriable-header-names",
    "x-envoy-hedge-on-per-try-timeout",
    "x-envoy-upstream-rq-timeout-ms",
    "x-envoy-upstream-rq-per-try-timeout-ms",
];

/// What passes: the list, and what an operator adds to it.
#[derive(Debug, Clone, Default)]
pub struct Outward {
    more: Vec<HeaderName>,
}

/// A header that is never passed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("header `{0}` is meant for us or for the gateway, and is never passed on")]
pub struct NeverPasses(HeaderName);

impl Outward {
    /// The list, and these beside it.
    ///
    /// # Errors
    /// When one of them is a credential, a signature or a digest, or has a call sent again.
    pub fn with(more: Vec<HeaderName>) -> Result<Self, NeverPasses> {
        match more.iter().find(|name| NEVER.contains(&name.as_str())) {
            Some(name) => Err(NeverPasses(name.clone())),
            None => Ok(Self { more }),
        }
    }

    /// The headers to be removed from a request with these, in a revision without sessions or in an older one: there a
    /// server might heed a name of a session that the revision does not have.
    pub(crate) fn removed(&self, headers: &HeaderMap, modern: bool) -> Vec<HeaderName> {
        let unseen = NEVER.map(HeaderName::from_static).into_iter();
        let unseen = unseen.filter(|name| !headers.contains_key(name));
        let passes = |name: &HeaderName| self.passes(name) && !(modern && *name == SESSION);
        headers.keys().filter(|name| !passes(name)).cloned().chain(unseen).collect()
    }

    fn passes(&self, name: &HeaderName) -> bool {
        let listed = |list: &[&str]| list.contains(&name.as_str());
        listed(&PASSED)
            || listed(&KEPT)
            || name.as_str().starts_with(PASSED_PREFIX)
            || self.more.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(outward: &Outward, names: &[&'static str]) -> Vec<String> {
        let lines = names.iter().map(|name| (HeaderName::from_static(name), "x".parse().unwrap()));
        let mut removed: Vec<String> =
            outward.removed(&lines.collect(), false).iter().map(ToString::to_string).collect();
        removed.sort_unstable();
        removed
    }

    #[test]
    fn what_is_not_listed_is_removed_and_credentials_always() {
        let mut all: Vec<&str> = NEVER.to_vec();
        all.sort_unstable();
        assert_eq!(removed(&Outward::default(), &[]), all);
        let sent = [
            "authorization",
            "signature",
            "cookie",
            "host",
            "content-length",
            "content-type",
            "accept",
            "mcp-method",
            "mcp-session-id",
            "mcp-param-account",
            "traceparent",
            "x-uma-owner",
            "x-forwarded-host",
            "x-request-id",
        ];
        all.extend(["x-forwarded-host", "x-request-id", "x-uma-owner"]);
        all.sort_unstable();
        assert_eq!(removed(&Outward::default(), &sent), all);
        let more = Outward::with(vec![HeaderName::from_static("x-request-id")]).unwrap();
        all.retain(|name| *name != "x-request-id");
        assert_eq!(removed(&more, &sent), all);
    }

    #[test]
    fn a_credential_cannot_be_let_pass() {
        for name in NEVER {
            assert!(Outward::with(vec![HeaderName::from_static(name)]).is_err(), "{name}");
        }
    }
}
