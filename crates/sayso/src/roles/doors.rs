//! Where an authority listens, and where her page is (D-26).
//!
//! A page under `localhost` is asked for on both loopback addresses, whichever a browser tries first: the port is ours on
//! both or there is no page. Elsewhere TLS is ahead and this is one listener.

use super::Address;
use crate::home::Home;
use crate::settings::Settings;
use anyhow::{Context as _, bail};
use sayso_authority::Portal;
use sayso_protocol::b64;
use sayso_protocol::payload::assertion::is_provider;
use sayso_protocol::payload::credential::is_issuer;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::TcpListener;
use url::{Host, Url};

const URL: &str = "authority.portal_url";
const ISSUERS: &str = "authority.trusted_agent_issuers";
pub(super) const PROVIDERS: &str = "authority.identity_providers";
/// Where the path of her page is kept, beside the store.
const PLACE: &str = "portal";
/// How often a free port is looked for that is free on both addresses.
const TRIES: usize = 16;
const EAFNOSUPPORT: i32 = 97;

/// An authority's listeners, its issuer URL, and where her page is.
pub(crate) struct Doors {
    pub(crate) listeners: Vec<TcpListener>,
    pub(crate) issuer: String,
    pub(crate) portal: Option<Portal>,
}

/// Why the port is not ours on both addresses.
enum Half {
    /// Somebody else has it on the other one.
    Taken(SocketAddr),
    /// The system has no such address.
    Missing(SocketAddr),
}

/// Refuses a portal URL that cannot be one, and an issuer of agent credentials that can be none.
///
/// # Errors
/// When an issuer is no https origin, or the portal URL is set and is not an https origin under a name, or an http one under `localhost`.
pub(crate) fn check(settings: &Settings) -> anyhow::Result<()> {
    for issuer in settings.list(ISSUERS) {
        if !is_issuer(&issuer) {
            bail!(
                "`{ISSUERS}` cannot hold `{issuer}`: write an https origin with nothing after it, https://people.example"
            );
        }
    }
    for provider in settings.list(PROVIDERS) {
        if !is_provider(&provider) {
            bail!(
                "`{PROVIDERS}` cannot hold `{provider}`: write an https URL without query, fragment or slash at its end, \
                 https://login.example/tenant"
            );
        }
    }
    let Some(url) = settings.text(URL) else { return Ok(()) };
    Portal::at(url, &[0; 16]).with_context(|| format!("`{URL}` cannot be `{url}`"))?;
    Ok(())
}

impl Doors {
    /// Listens. Where no portal URL is set, `local` asks for one under `localhost`.
    ///
    /// # Errors
    /// When an address cannot be had, or another program would be asked in our place.
    pub(crate) async fn open(
        address: &Address,
        settings: &Settings,
        home: &Home,
        local: bool,
    ) -> anyhow::Result<Self> {
        check(settings)?;
        let set = settings.text(URL);
        for _ in 0..TRIES {
            let (listener, issuer) = address.bind("authority").await?;
            let port = listener.local_addr()?.port();
            let url = match set {
                Some(url) => url.to_owned(),
                None if local && !is_local(&issuer) => format!("http://localhost:{port}"),
                None => return Ok(Self { listeners: vec![listener], issuer, portal: None }),
            };
            if !is_local(&url) {
                let portal = Portal::at(&url, &[0; 16])?;
                return Ok(Self { listeners: vec![listener], issuer, portal: Some(portal) });
            }
            match both(&listener).await? {
                Ok(others) => {
                    let portal = Some(Portal::at(&url, &place(home)?)?);
                    let listeners = std::iter::once(listener).chain(others).collect();
                    return Ok(Self { listeners, issuer, portal });
                }
                Err(Half::Missing(other)) => {
                    tracing::warn!(address = %other, "portal.none: this machine has no such address, so `localhost` \
                                                      could become another program's; answer with `sayso owner`");
                    return Ok(Self { listeners: vec![listener], issuer, portal: None });
                }
                Err(Half::Taken(_)) if address.listen.port() == 0 => {}
                Err(Half::Taken(other)) => bail!(
                    "another program listens on {other}, where a browser would take it for your page; free it or \
                     choose another port for the authority"
                ),
            }
        }
        bail!("no port is free on both 127.0.0.1 and [::1]; name one for the authority")
    }
}

/// The same port on the loopback addresses that are not this listener's.
async fn both(listener: &TcpListener) -> anyhow::Result<Result<Vec<TcpListener>, Half>> {
    let ours = listener.local_addr()?;
    let mut others = vec![];
    for address in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
        let other = SocketAddr::new(address, ours.port());
        if other == ours {
            continue;
        }
        match TcpListener::bind(other).await {
            Ok(listener) => others.push(listener),
            Err(fault) if is_missing(&fault) => return Ok(Err(Half::Missing(other))),
            Err(fault) if fault.kind() == io::ErrorKind::AddrInUse => return Ok(Err(Half::Taken(other))),
            Err(fault) => return Err(fault).with_context(|| format!("cannot listen on {other}")),
        }
    }
    Ok(Ok(others))
}

fn is_missing(fault: &io::Error) -> bool {
    fault.kind() == io::ErrorKind::AddrNotAvailable || fault.raw_os_error() == Some(EAFNOSUPPORT)
}

/// Whether an origin is under `localhost`.
fn is_local(url: &str) -> bool {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host);
    matches!(host, Some(Host::Domain(name)) if name == "localhost" || name.ends_with(".localhost"))
}

/// The path of her page, drawn at first use and kept, so that a page that is open survives a restart.
fn place(home: &Home) -> anyhow::Result<[u8; 16]> {
    let kept = std::fs::read_to_string(home.path(PLACE)).ok();
    let kept = kept.and_then(|text| <[u8; 16]>::try_from(b64::decode(text.trim()).ok()?).ok());
    if let Some(place) = kept {
        return Ok(place);
    }
    let place = crate::clock::draw::<16>()?;
    home.replace(PLACE, b64::encode(place).as_bytes())?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(portal: &str, listen: &str) -> Settings {
        let flags = [(URL, Some(portal.to_owned())), ("authority.listen", Some(listen.to_owned()))];
        Settings::load(None, [], &flags).unwrap()
    }

    async fn open(portal: &str, listen: &str, local: bool) -> anyhow::Result<Doors> {
        let dir = tempfile::tempdir()?;
        let home = Home::open(&dir.path().join("data"))?;
        let settings = settings(portal, listen);
        let address = Address::read(&settings, "authority")?;
        let first = Doors::open(&address, &settings, &home, local).await?;
        let (one, two) = (place(&home)?, place(&home)?);
        assert_eq!(one, two, "the path is kept");
        Ok(first)
    }

    #[tokio::test]
    async fn a_local_page_has_the_port_on_every_loopback_address_or_is_none() {
        let doors = open("", "127.0.0.1:0", true).await.unwrap();
        let has_v6 = TcpListener::bind("[::1]:0").await.is_ok();
        assert_eq!(
            (doors.portal.is_some(), doors.listeners.len()),
            if has_v6 { (true, 2) } else { (false, 1) }
        );
        let addresses: Vec<SocketAddr> = doors.listeners.iter().map(|it| it.local_addr().unwrap()).collect();
        assert!(addresses.iter().all(|one| one.port() == addresses[0].port()));
        if has_v6 {
            // A program that is on the other address already would be asked in our place.
            let taken = addresses[1];
            drop(doors);
            let _held = TcpListener::bind(taken).await.unwrap();
            let fault =
                open("", &format!("127.0.0.1:{}", taken.port()), true).await.err().unwrap().to_string();
            assert!(fault.contains("[::1]") && fault.contains("your page"), "{fault}");
        }
    }

    #[tokio::test]
    async fn elsewhere_there_is_one_listener() {
        let doors = open("https://portal.example", "127.0.0.1:0", false).await.unwrap();
        assert_eq!((doors.portal.is_some(), doors.listeners.len()), (true, 1));
        let doors = open("", "127.0.0.1:0", false).await.unwrap();
        assert_eq!((doors.portal.is_some(), doors.listeners.len()), (false, 1));
        let fault = open("http://127.0.0.1:1", "127.0.0.1:0", true).await.err().unwrap().to_string();
        assert!(fault.contains("`authority.portal_url` cannot be"), "{fault}");
    }
}
