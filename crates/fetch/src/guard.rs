//! Which addresses may be reached, however they are spelled (D-33, D-41, D-42).
//! It keeps one table of address classes: IPv6 forms that carry an IPv4 address count as what they carry, and what
//! is in no allowed class is refused. Names are judged by every address they resolve to, at connect time.

#[cfg(test)]
mod tests;

use crate::FetchError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

/// Who named the URL, and so where it may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// A stranger: https on port 443, public addresses.
    Public,
    /// A stranger whose business the user chose to have: https on any port, public addresses.
    PublicAnyPort,
    /// A stranger, where the asking program itself is reached over loopback alone (D-42): https to public addresses on any
    /// port, and this machine.
    Loopback,
    /// The operator or the user: https anywhere, and http to loopback and private addresses.
    Configured,
}

/// What an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Routed on the internet.
    Public,
    /// This machine.
    Loopback,
    /// A network of its own: RFC 1918, RFC 4193, shared address space.
    Private,
    /// Link-local, multicast, documentation, tunnels, reserved: nothing to call.
    Special,
}

impl Class {
    /// The class of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Class {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    /// Whether it is this machine or a private network.
    #[must_use]
    pub fn is_local(self) -> bool {
        matches!(self, Class::Loopback | Class::Private)
    }
}

fn of_v4(address: Ipv4Addr) -> Class {
    match address.octets() {
        [127, ..] => Class::Loopback,
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] | [100, 64..=127, ..] => Class::Private,
        // This network, IETF protocols, documentation, 6to4 relays, benchmarks, link-local, multicast and beyond.
        [0 | 224..=255, ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Class::Special,
        _ => Class::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Class {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        of_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Class::Loopback,
        [0, 0, 0, 0, 0, 0xffff, high, low] => embedded(high, low),
        // NAT64 leads where the IPv4 address inside leads, and inside may be the metadata service of a cloud.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] if embedded(high, low) == Class::Public => Class::Public,
        [0xfc00..=0xfdff, ..] => Class::Private,
        // Teredo and the rest of 2001::/23, documentation, 6to4, documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => Class::Special,
        [0x2000..=0x3fff, ..] => Class::Public,
        _ => Class::Special,
    }
}

impl Reach {
    /// Whether an address of this class may be reached.
    #[must_use]
    pub fn admits(self, class: Class, secure: bool) -> bool {
        match (self, class) {
            (_, Class::Special) => false,
            (Reach::Public | Reach::PublicAnyPort, class) => secure && class == Class::Public,
            (Reach::Configured | Reach::Loopback, Class::Public) => secure,
            (Reach::Configured | Reach::Loopback, Class::Loopback) | (Reach::Configured, Class::Private) => {
                true
            }
            (Reach::Loopback, Class::Private) => false,
        }
    }

    /// Whether a URL may be tried at all; a name in it is judged again once it is resolved.
    ///
    /// # Errors
    /// When its scheme, credentials, port or literal address rule it out.
    pub fn check(self, url: &Url) -> Result<(), FetchError> {
        let secure = is_secure(url)?;
        let plain = url.username().is_empty() && url.password().is_none();
        let port = self != Reach::Public || url.port_or_known_default() == Some(443);
        let host = match url.host() {
            Some(Host::Ipv4(address)) => self.admits(of_v4(address), secure),
            Some(Host::Ipv6(address)) => self.admits(of_v6(address), secure),
            Some(Host::Domain(_)) => secure || matches!(self, Reach::Configured | Reach::Loopback),
            None => false,
        };
        if plain && port && host { Ok(()) } else { Err(FetchError::Refused) }
    }
}

/// Whether the scheme is https; any other than http is refused.
pub(crate) fn is_secure(url: &Url) -> Result<bool, FetchError> {
    match url.scheme() {
        "https" => Ok(true),
        "http" => Ok(false),
        _ => Err(FetchError::Refused),
    }
}

/// Whether a URL leads to this machine or a private network, by every address of its host.
///
/// # Errors
/// When its name cannot be resolved.
pub async fn is_local(url: &Url) -> Result<bool, FetchError> {
    let addresses = match url.host() {
        Some(Host::Ipv4(address)) => vec![IpAddr::V4(address)],
        Some(Host::Ipv6(address)) => vec![IpAddr::V6(address)],
        Some(Host::Domain(name)) => resolve(name).await?,
        None => return Err(FetchError::Refused),
    };
    Ok(addresses.into_iter().all(|address| Class::of(address).is_local()))
}

/// Every address of a name, at least one.
pub(crate) async fn resolve(name: &str) -> Result<Vec<IpAddr>, FetchError> {
    let found = tokio::net::lookup_host((name, 0)).await.map_err(|_| FetchError::Unreachable)?;
    let addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    if addresses.is_empty() { Err(FetchError::Unreachable) } else { Ok(addresses) }
}

/// The addresses of a name, if every one of them may be reached: one that may not is either a mistake or a trap.
pub(crate) fn admit(reach: Reach, secure: bool, addresses: Vec<IpAddr>) -> Result<Vec<IpAddr>, FetchError> {
    let all = addresses.iter().all(|address| reach.admits(Class::of(*address), secure));
    if all { Ok(addresses) } else { Err(FetchError::Refused) }
}
