//! Addresses a stranger names: a URL as text, or the 4 or 16 bytes of an address. What the guard lets a stranger
//! reach is https on the public internet, by the standard library's own opinion of addresses too (D-41, D-42).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sayso_fetch::Reach;
use sayso_fetch::guard::Class;
use url::{Host, Url};

/// The body.
pub fn check(bytes: &[u8]) {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        public_is_public(Ipv4Addr::from(bytes).into());
    }
    if let Ok(bytes) = <[u8; 16]>::try_from(bytes) {
        public_is_public(Ipv6Addr::from(bytes).into());
    }
    let Some(url) = std::str::from_utf8(bytes).ok().and_then(|text| Url::parse(text).ok()) else { return };
    let admitted = |reach: Reach| reach.check(&url).is_ok();
    if admitted(Reach::Public) {
        assert_eq!(url.port_or_known_default(), Some(443));
        assert!(admitted(Reach::PublicAnyPort), "the narrower reach goes further");
    }
    if admitted(Reach::PublicAnyPort) {
        assert_eq!(url.scheme(), "https");
        assert!(admitted(Reach::Loopback) && admitted(Reach::Configured));
        match url.host() {
            Some(Host::Ipv4(address)) => assert_eq!(Class::of(address.into()), Class::Public),
            Some(Host::Ipv6(address)) => assert_eq!(Class::of(address.into()), Class::Public),
            // A name that is an address in another spelling never gets here: the URL standard reads it as one.
            Some(Host::Domain(name)) => assert!(name.parse::<IpAddr>().is_err()),
            None => assert!(url.host().is_some(), "admitted without a host"),
        }
    }
    if admitted(Reach::Loopback) {
        assert!(admitted(Reach::Configured), "the narrower reach goes further");
        let private = |address: IpAddr| Class::of(address) == Class::Private;
        match url.host() {
            Some(Host::Ipv4(address)) => assert!(!private(address.into())),
            Some(Host::Ipv6(address)) => assert!(!private(address.into())),
            _ => {}
        }
    }
    if admitted(Reach::Configured) {
        assert!(
            url.username().is_empty() && url.password().is_none() && matches!(url.scheme(), "http" | "https")
        );
    }
    match url.host() {
        Some(Host::Ipv4(address)) => public_is_public(address.into()),
        Some(Host::Ipv6(address)) => public_is_public(address.into()),
        _ => {}
    }
}

fn public_is_public(address: IpAddr) {
    if Class::of(address) != Class::Public {
        return;
    }
    let inside = match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(address) => {
            let unusual = address.is_loopback() || address.is_unspecified() || address.is_multicast();
            assert!(!unusual && !address.is_unique_local() && !address.is_unicast_link_local(), "{address}");
            let [.., high, low] = address.segments();
            let nat64 = address.segments().starts_with(&[0x64, 0xff9b]);
            let embedded = Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
            address.to_ipv4().or(nat64.then_some(embedded))
        }
    };
    let Some(address) = inside else { return };
    let local = address.is_loopback() || address.is_private() || address.is_link_local();
    let special = address.is_unspecified() || address.is_broadcast() || address.is_multicast();
    assert!(!local && !special && !address.is_documentation(), "{address}");
}
