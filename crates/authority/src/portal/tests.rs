//! Where a portal may be, and what its cookie says.

use super::*;

#[test]
fn a_portal_has_a_name_and_https_or_a_path_of_its_own() {
    let place = [7; 16];
    let local = Portal::at("http://localhost:8440", &place).unwrap();
    assert_eq!((local.host.as_str(), local.base.len()), ("localhost:8440", 3 + 22));
    let cookie = local.cookie("v", "").unwrap();
    assert_eq!(cookie, format!("sayso=v; Path={}/; HttpOnly; SameSite=Lax", local.base));
    assert!(!format!("{local:?}").contains(&local.base));
    let public = Portal::at("https://portal.example", &place).unwrap();
    assert_eq!((public.host.as_str(), public.base.as_str()), ("portal.example", ""));
    let cookie = public.cookie("v", "; Max-Age=0").unwrap();
    assert_eq!(cookie, "__Host-sayso=v; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0");
    assert!(local.shares_name("LOCALHOST:1") && !local.shares_name("127.0.0.1:8440"));
    assert!(public.shares_name("portal.example") && !public.shares_name("as.example"));
    for odd in [
        "http://127.0.0.1:8440",
        "http://[::1]:8440",
        "https://192.0.2.1",
        "http://portal.example",
        "https://portal.example/",
        "https://portal.example/x",
        "https://Portal.example",
        "https://u@portal.example",
        "ftp://localhost",
        "",
    ] {
        assert_eq!(Portal::at(odd, &place).err(), Some(SetUp::PortalUrl), "{odd}");
    }
}
