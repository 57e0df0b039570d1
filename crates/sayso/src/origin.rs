//! Origins as an operator writes them, checked where they are read: identifiers are compared as text, so every one has
//! one spelling. Plain http is for loopback alone (D-42).

use anyhow::bail;
use url::{Host, Url};

/// Refuses what is not an identifier of one of our parties: an https origin, or an http one on loopback.
///
/// # Errors
/// When it is anything else; `what` names the setting.
pub(crate) fn identifier(what: &str, text: &str) -> anyhow::Result<()> {
    let url = parse(what, text)?;
    let loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if url.scheme() == "http" && !loopback {
        bail!("`{what}` is {text}: plain http is for loopback only; use https");
    }
    Ok(())
}

/// Refuses what is not the origin of a page.
///
/// # Errors
/// When it is anything else; `what` names the setting.
pub(crate) fn of_page(what: &str, text: &str) -> anyhow::Result<()> {
    parse(what, text).map(drop)
}

/// The host of an origin as requests name it: with its port and, where that goes without saying, without.
pub(crate) fn hosts(origin: &str) -> Vec<String> {
    let Ok(url) = Url::parse(origin) else { return Vec::new() };
    let Some(host) = url.host_str() else { return Vec::new() };
    let with = url.port_or_known_default().map(|port| format!("{host}:{port}"));
    with.into_iter().chain(url.port().is_none().then(|| host.to_owned())).collect()
}

fn parse(what: &str, text: &str) -> anyhow::Result<Url> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.origin().ascii_serialization() == text => {
            Ok(url)
        }
        _ => bail!(
            "`{what}` cannot be `{text}`: write an origin, as in https://sayso.example or \
             http://127.0.0.1:8440, in lower case and without path or trailing slash"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_and_https_off_loopback() {
        for good in ["https://as.example", "http://127.0.0.1:8440", "http://[::1]:1", "http://localhost:3"] {
            identifier("x", good).unwrap();
        }
        for bad in [
            "",
            "x",
            "https://as.example/",
            "https://as.example/x",
            "https://AS.example",
            "https://u@as.example",
        ] {
            assert!(identifier("x", bad).unwrap_err().to_string().starts_with("`x` cannot be"), "{bad}");
        }
        let plain = identifier("x", "http://as.example").unwrap_err().to_string();
        assert!(plain.contains("https"), "{plain}");
        of_page("x", "http://intranet.example").unwrap();
    }
}
