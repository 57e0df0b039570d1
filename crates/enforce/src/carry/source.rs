//! Where a request came from, as far as its host knows: whose sessions are counted together.
//!
//! An address is a claim about a network, never about who asks; nothing is allowed for it. Who shares one shares its
//! places, so it is used to divide what is scarce and for nothing else.

use std::net::{IpAddr, Ipv6Addr};

/// A source. Requests of which nothing is known are all of one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Source(Option<IpAddr>);

impl From<IpAddr> for Source {
    /// An address; of the sixth version the network, since whoever has one address there has all of it.
    fn from(address: IpAddr) -> Self {
        let network = |address: Ipv6Addr| IpAddr::from((u128::from(address) >> 64 << 64).to_be_bytes());
        Self(Some(match address.to_canonical() {
            IpAddr::V6(address) => network(address),
            v4 => v4,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Source {
        Source::from(text.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn an_address_is_one_source_however_it_is_written() {
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_ne!(of("192.0.2.1"), Source::default());
    }
}
