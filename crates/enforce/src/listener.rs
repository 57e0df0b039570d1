//! Which hosts a listener is, and which origins may talk to it (D-16).
//!
//! Both are exact lists and compared whole: no prefix, no suffix, no default. A request without an origin is no
//! browser's and is served; one that names no host, or two origins, is not.

use crate::call::Head;
use http::HeaderMap;
use sayso_protocol::payload::refusal::{Code, Refusal};

/// Refuses a request that names another host, or none.
///
/// # Errors
/// 421.
pub fn check_host(hosts: &[String], head: &Head) -> Result<(), Refusal> {
    let served = |host: &str| hosts.iter().any(|known| known.eq_ignore_ascii_case(host));
    let mut named = head.hosts().peekable();
    if named.peek().is_some() && named.all(served) {
        Ok(())
    } else {
        Err(Refusal::new(Code::Misdirected, "this address is not served under that host name"))
    }
}

/// Refuses a request from an origin that is not on the list, `null` included (CORE-20, MCP-28).
///
/// # Errors
/// 403 `invalid_origin`.
pub fn check_origin(origins: &[String], headers: &HeaderMap) -> Result<(), Refusal> {
    let mut lines = headers.get_all("origin").iter();
    let served = match (lines.next(), lines.next()) {
        (None, _) => true,
        (Some(origin), None) => origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()),
        (Some(_), Some(_)) => false,
    };
    if served { Ok(()) } else { Err(Refusal::new(Code::InvalidOrigin, "this origin is not served")) }
}
