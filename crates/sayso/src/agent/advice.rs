//! What to do about it, where a person can do something: behind the sentence that says what went wrong.
//!
//! The sentences are the agent library's, which does not know how it was called; how to find the right address, the
//! right tool or the right quotes is said here.

use crate::terminal::{plain, shell};
use sayso_agent::fault::{BadServer, Party};
use sayso_agent::{Fault, Refused};
use sayso_fetch::FetchError;
use url::Url;

/// How arguments are written.
const EXAMPLE: &str = r#"write it in single quotes, as in --args '{"symbol":"VTI","quantity":3}'"#;

/// What to do where a credential is not accepted.
pub(crate) const DOUBTED: &str = "nothing was asked of her; show another --credential, or go on under the bare key with \
                                  --or-bare";
/// What to do where a provider's word is wanted.
pub(crate) const UNNAMED: &str = "give --assertion FILE, or --provider URL and --subject-token FILE";

/// What to do about a fault met on the way to this resource.
pub(crate) fn of(fault: &Fault, resource: &str) -> Option<String> {
    match fault {
        Fault::Arguments(_) => Some(EXAMPLE.to_owned()),
        Fault::Server(BadServer::Absent | BadServer::Misdirected) | Fault::Resource => {
            Some(address(resource))
        }
        Fault::Unavailable { who: Party::Resource, why: FetchError::Unreachable | FetchError::TimedOut } => {
            Some(format!(
                "nothing answers at {}: does `sayso up` run, and is this the address it printed?",
                plain(resource)
            ))
        }
        _ => None,
    }
}

/// Where the right address is to be found, and what is unusual about this one.
fn address(resource: &str) -> String {
    let printed = "`sayso up` prints the address as `agents call …`";
    let Ok(mut url) = Url::parse(resource) else { return printed.to_owned() };
    let mut odd = vec![];
    if url.host_str() == Some("localhost") {
        odd.push("it goes by 127.0.0.1, not localhost");
        // What cannot be set stays as it was written, and is said all the same.
        let _ = url.set_host(Some("127.0.0.1"));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if path != url.path() || path.is_empty() {
        odd.push("its path is usually /mcp, without a slash behind");
        url.set_path(if path.is_empty() { "/mcp" } else { &path });
    }
    if odd.is_empty() {
        return printed.to_owned();
    }
    format!("{printed}; {}: try {}", odd.join(", and "), plain(url.as_str()))
}

/// What to do about a refusal.
pub(crate) fn of_refusal(refused: &Refused, resource: &str) -> Option<String> {
    match refused.code.as_deref() {
        Some("unknown_tool") => {
            Some(format!("`sayso agent tools {}` lists what there is", shell(&plain(resource))))
        }
        Some("access_revoked") => Some("the same call, made again, asks her anew".to_owned()),
        Some("tool_changed") => Some("she has to look at the change first".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_almost_right_is_put_right() {
        for (written, right) in [
            ("http://localhost:8441/mcp", "try http://127.0.0.1:8441/mcp"),
            ("http://127.0.0.1:8441", "try http://127.0.0.1:8441/mcp"),
            ("http://127.0.0.1:8441/mcp/", "try http://127.0.0.1:8441/mcp"),
            ("http://localhost:8441/", "try http://127.0.0.1:8441/mcp"),
        ] {
            let said = address(written);
            assert!(said.ends_with(right) && said.contains("agents call"), "{said}");
        }
        assert!(!address("http://127.0.0.1:8441/other").contains("try"));
        assert!(!address("nonsense").contains("try"));
    }
}
