//! Where a decision point listens, and what those who ask must show there.
//!
//! Reachable from elsewhere is what listens off loopback, or is known to others by a name that is not this machine's: then
//! there is TLS, here or ahead, and a secret (D-34, D-42).

use crate::{origin, secret};
use anyhow::{Context as _, bail};
use clap::Args;
use sayso_listen::Tls;
use sayso_pdp::serve::Secret;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::net::TcpListener;
use url::Url;

/// Flags of the listener.
#[derive(Debug, Args)]
pub(super) struct Door {
    /// Listen address; port 0 picks one. Off loopback only with TLS and a secret.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8444")]
    listen: SocketAddr,
    /// The origin others know it by, its identifier [default: the listen address].
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// A further host that a request may name, as HOST or HOST:PORT. May be repeated. One that is not this machine's needs
    /// an https --url and a secret.
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// Chain of certificates in PEM, its own first.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The key of that certificate in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// File (0600) with the bearer token that those who ask must show; drawn when there is no such file.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

/// A listener that may be opened.
pub(super) struct Place {
    listen: SocketAddr,
    url: Option<String>,
    hosts: Vec<String>,
    tls: Option<Tls>,
    secret: Option<Secret>,
}

/// An open one.
pub(super) struct Bound {
    pub(super) listener: TcpListener,
    pub(super) url: String,
    pub(super) hosts: Vec<String>,
    pub(super) tls: Option<Tls>,
    pub(super) secret: Option<Secret>,
}

impl Door {
    /// Refuses what others could reach without TLS or a secret.
    pub(super) fn check(&self) -> anyhow::Result<Place> {
        let here = self.listen.ip().is_loopback();
        if !here && (self.tls_certificate.is_none() || self.secret_file.is_none() || self.url.is_none()) {
            bail!(
                "--listen {} can be reached from elsewhere: give it --tls-certificate, --tls-key, --secret-file and the \
                 --url it is known by, or listen on 127.0.0.1",
                self.listen
            );
        }
        if let Some(url) = &self.url {
            origin::identifier("--url", url)?;
            let secure = url.starts_with("https://");
            if self.tls_certificate.is_some() && !secure {
                bail!("--url is {url}, but TLS is spoken here; write https://");
            }
            if secure && !is_local(url) && self.secret_file.is_none() {
                bail!(
                    "others reach it as {url}: give it a --secret-file, whose content those who ask must show"
                );
            }
        }
        let secure = self.url.as_deref().is_some_and(|url| url.starts_with("https://"));
        if let Some(host) = self.hosts.iter().find(|host| !is_here(host))
            && (!secure || self.secret_file.is_none())
        {
            bail!(
                "others reach it as --host {host}: give it the https --url they know it by, and a --secret-file, whose \
                 content those who ask must show"
            );
        }
        let tls = match (&self.tls_certificate, &self.tls_key) {
            (Some(chain), Some(key)) => Some(tls(chain, key)?),
            _ => None,
        };
        let secret = self.secret_file.as_deref().map(|path| {
            let text = secret::read_or_draw(path)?;
            Secret::new(&text).with_context(|| format!("what {} holds cannot be used", path.display()))
        });
        let secret = secret.transpose()?;
        Ok(Place { listen: self.listen, url: self.url.clone(), hosts: self.hosts.clone(), tls, secret })
    }
}

impl Place {
    /// Listens.
    pub(super) async fn bind(self) -> anyhow::Result<Bound> {
        let listener = TcpListener::bind(self.listen).await.with_context(|| {
            format!("cannot listen on {}; free it or choose another address with --listen", self.listen)
        })?;
        let at = listener.local_addr()?;
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let url = self.url.unwrap_or_else(|| format!("{scheme}://{at}"));
        let mut hosts = self.hosts;
        hosts.extend(named(&url));
        if at.ip().is_loopback() {
            hosts.extend([at.to_string(), format!("localhost:{}", at.port())]);
        }
        Ok(Bound { listener, url, hosts, tls: self.tls, secret: self.secret })
    }
}

fn is_local(url: &str) -> bool {
    // Over plain http an identifier is refused anywhere but on this machine.
    let plain = url.replacen("https://", "http://", 1);
    origin::identifier("", &plain).is_ok()
}

/// Whether a host, as a request names it, is this machine whoever asks.
fn is_here(host: &str) -> bool {
    let url = Url::parse(&format!("http://{host}"));
    url.is_ok_and(|url| origin::identifier("", &url.origin().ascii_serialization()).is_ok())
}

/// The host of an origin, with its port and, where that goes without saying, without.
fn named(url: &str) -> Vec<String> {
    let Ok(url) = Url::parse(url) else { return Vec::new() };
    let Some(host) = url.host_str() else { return Vec::new() };
    let with = url.port_or_known_default().map(|port| format!("{host}:{port}"));
    with.into_iter().chain(url.port().is_none().then(|| host.to_owned())).collect()
}

fn tls(chain: &Path, key: &Path) -> anyhow::Result<Tls> {
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    secret::refuse_open(key)?;
    let (chain_text, key_text) = (read(chain)?, read(key)?);
    Tls::read(&chain_text, &key_text).with_context(|| format!("{} and {}", chain.display(), key.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // D-34
    #[test]
    fn a_host_is_here_or_somewhere_else() {
        for here in [
            "localhost",
            "LOCALHOST:8444",
            "localhost:80",
            "pdp.localhost",
            "127.0.0.1",
            "127.9.9.9:1",
            "[::1]:1",
        ] {
            assert!(is_here(here), "{here}");
        }
        for elsewhere in [
            "pdp.example",
            "pdp.example:8444",
            "10.0.0.1",
            "[::2]",
            "localhost.example",
            "127.0.0.1@pdp.example",
            "",
            "a b",
        ] {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
    }
}
