//! Every spelling of an address that must not be reached, and the edges of every range.

use super::*;

fn class(text: &str) -> Class {
    Class::of(text.parse().unwrap())
}

fn check(reach: Reach, url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| reach.check(&url).is_ok())
}

const LOOPBACK: &str = "127.0.0.0 127.0.0.1 127.255.255.255";
const PRIVATE: &str = "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 100.64.0.0 \
                       100.127.255.255";
const SPECIAL: &str = "0.0.0.0 0.255.255.255 169.254.0.0 169.254.169.254 192.0.0.1 192.0.2.1 192.88.99.1 198.18.0.1 \
                       198.19.255.255 198.51.100.7 203.0.113.7 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255";
const PUBLIC: &str = "1.1.1.1 9.255.255.255 11.0.0.0 126.255.255.255 128.0.0.0 100.63.255.255 100.128.0.0 \
                      169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 \
                      192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255";

#[test]
fn ipv4_ranges_end_where_they_end() {
    for (of_range, addresses) in [
        (Class::Loopback, LOOPBACK),
        (Class::Private, PRIVATE),
        (Class::Special, SPECIAL),
        (Class::Public, PUBLIC),
    ] {
        for address in addresses.split_whitespace() {
            assert_eq!(class(address), of_range, "{address}");
        }
    }
}

#[test]
fn ipv6_counts_as_what_it_carries() {
    for (class_of_range, addresses) in [
        (Class::Loopback, &["::1", "::ffff:127.0.0.1", "::ffff:7f00:1"][..]),
        (Class::Private, &["fc00::1", "fd00::1", "fdff:ffff::1", "::ffff:10.0.0.1", "::ffff:100.64.0.1"]),
        (
            Class::Special,
            &[
                "::",
                "::127.0.0.1",
                "::8.8.8.8",
                "::ffff:0:127.0.0.1",
                "::ffff:169.254.169.254",
                "64:ff9b::127.0.0.1",
                "64:ff9b::7f00:1",
                "64:ff9b::10.0.0.1",
                "64:ff9b::a9fe:a9fe",
                "64:ff9b:1::8.8.8.8",
                "100::1",
                "2001::1",
                "2001:1ff::1",
                "2001:db8::1",
                "2002:7f00:1::",
                "2002:808:808::",
                "3fff::1",
                "3fff:fff::1",
                "5f00::1",
                "fe80::1",
                "febf::1",
                "fec0::1",
                "ff02::1",
                "4000::1",
                "1fff::1",
            ],
        ),
        (
            Class::Public,
            &[
                "2001:200::1",
                "2606:4700::1111",
                "3ffe::1",
                "3fff:1000::1",
                "::ffff:8.8.8.8",
                "64:ff9b::8.8.8.8",
            ],
        ),
    ] {
        for address in addresses {
            assert_eq!(class(address), class_of_range, "{address}");
        }
    }
}

#[test]
fn a_stranger_reaches_https_on_443_and_public_addresses() {
    for url in [
        "http://agents.example.test/agent.json",
        "https://127.0.0.1/a",
        "https://2130706433/a",
        "https://0x7f000001/a",
        "https://0177.0.0.1/a",
        "https://127.1/a",
        "https://[::1]/a",
        "https://[::ffff:127.0.0.1]/a",
        "https://[::ffff:7f00:1]/a",
        "https://[64:ff9b::7f00:1]/a",
        "https://169.254.169.254/latest/meta-data/",
        "https://10.0.0.1/a",
        "https://100.64.0.1/a",
        "https://0.0.0.0/a",
        "https://[fe80::1]/a",
        "https://[fd00::1]/a",
        "https://192.0.2.1/a",
        "https://agents.example.test:22/a",
        "https://user:pw@agents.example.test/a",
        "https://user@agents.example.test/a",
        "file:///etc/passwd",
        "gopher://agents.example.test/a",
        "ftp://agents.example.test/a",
        "data:text/plain,x",
    ] {
        assert!(!check(Reach::Public, url), "{url}");
    }
    assert!(check(Reach::Public, "https://agents.example.test/agent.json"));
    assert!(check(Reach::Public, "https://1.1.1.1/"));
    assert!(check(Reach::PublicAnyPort, "https://agents.example.test:8440/token"));
    assert!(!check(Reach::PublicAnyPort, "https://192.168.1.1:8440/token"));
    assert!(!check(Reach::PublicAnyPort, "http://agents.example.test:8440/token"));
}

// D-42
#[test]
fn plain_http_stays_near() {
    for (url, may) in [
        ("http://127.0.0.1:8440/token", true),
        ("http://[::1]:8440/token", true),
        ("http://localhost:8440/token", true),
        ("http://192.168.1.2/", true),
        ("http://1.1.1.1/", false),
        ("http://169.254.169.254/", false),
        ("http://user:pw@127.0.0.1/", false),
        ("https://10.0.0.1:9000/", true),
        ("https://as.example.test:8443/", true),
        ("https://169.254.169.254/", false),
        ("https://224.0.0.1/", false),
    ] {
        assert_eq!(check(Reach::Configured, url), may, "{url}");
    }
}

// D-41, D-42
#[test]
fn a_stranger_of_a_program_on_loopback_reaches_no_private_network() {
    for (url, may) in [
        ("http://127.0.0.1:8441/mcp", true),
        ("https://[::1]:8441/mcp", true),
        ("http://localhost:8441/mcp", true),
        ("https://rs.example.test:8443/mcp", true),
        ("http://1.1.1.1/", false),
        ("http://192.168.1.2/", false),
        ("https://10.0.0.1:9000/", false),
        ("https://[fd00::1]/", false),
        ("https://169.254.169.254/", false),
        ("http://user:pw@127.0.0.1/", false),
    ] {
        assert_eq!(check(Reach::Loopback, url), may, "{url}");
    }
    let near = |list: &[&str]| list.iter().map(|address| address.parse().unwrap()).collect::<Vec<IpAddr>>();
    assert!(admit(Reach::Loopback, false, near(&["127.0.0.1", "::1"])).is_ok());
    for (secure, list) in
        [(false, &["127.0.0.1", "192.168.0.1"][..]), (true, &["10.0.0.1"]), (false, &["1.1.1.1"])]
    {
        assert_eq!(admit(Reach::Loopback, secure, near(list)), Err(FetchError::Refused));
    }
}

#[test]
fn one_bad_address_condemns_a_name() {
    let addresses =
        |list: &[&str]| list.iter().map(|address| address.parse().unwrap()).collect::<Vec<IpAddr>>();
    let public = addresses(&["1.1.1.1", "2606:4700::1111"]);
    assert!(admit(Reach::Public, true, public.clone()).is_ok());
    assert!(admit(Reach::Configured, true, public.clone()).is_ok());
    assert_eq!(admit(Reach::Configured, false, public), Err(FetchError::Refused));
    for list in [&["1.1.1.1", "10.0.0.1"][..], &["1.1.1.1", "::1"], &["169.254.169.254"]] {
        assert_eq!(admit(Reach::Public, true, addresses(list)), Err(FetchError::Refused));
    }
    assert!(admit(Reach::Configured, false, addresses(&["127.0.0.1", "::1"])).is_ok());
    assert_eq!(
        admit(Reach::Configured, false, addresses(&["127.0.0.1", "8.8.8.8"])),
        Err(FetchError::Refused)
    );
}

#[tokio::test]
async fn locality_is_judged_by_address() {
    for (url, local) in [
        ("http://127.1:8441/mcp", true),
        ("http://localhost/mcp", true),
        ("https://[fd00::1]/mcp", true),
        ("https://1.1.1.1/mcp", false),
        ("https://169.254.169.254/mcp", false),
    ] {
        assert_eq!(is_local(&Url::parse(url).unwrap()).await, Ok(local), "{url}");
    }
}
