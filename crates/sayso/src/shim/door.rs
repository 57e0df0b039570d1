//! Where the shim listens when it is not on a pipe, and who may come in (D-34).
//!
//! It acts for whoever reaches it, so it is reached through a socket only its user can open, or on this machine with a
//! secret only its user can read. Anywhere else it wants TLS and the name it is known by beside the secret, or refuses to
//! start.

use crate::{origin, secret, tls};
use anyhow::{Context as _, bail};
use clap::Args;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, StatusCode};
use sayso_listen::Tls;
use sayso_protocol::canon::sha256;
use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, UnixListener};

/// Where to listen, as it is written on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// `unix:PATH`.
    Socket(PathBuf),
    /// An address.
    Address(SocketAddr),
}

impl std::str::FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Place::Socket(path.into()));
        }
        let unreadable = |_| "write unix:PATH, or an address and port, as in 127.0.0.1:8450".to_owned();
        text.parse().map(Place::Address).map_err(unreadable)
    }
}

/// What makes a listener fit for others to reach.
#[derive(Debug, Default, Args)]
pub(super) struct Outside {
    /// With --listen ADDR: chain of certificates in PEM, its own first. Off loopback there is no listening without.
    #[arg(long, value_name = "FILE", requires_all = ["listen", "tls_key"])]
    tls_certificate: Option<PathBuf>,
    /// The key of that certificate in PEM (0600).
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// With --listen ADDR: the origin clients know it by, https://HOST or https://HOST:PORT [default: the address].
    #[arg(long, value_name = "URL", requires = "listen")]
    url: Option<String>,
}

/// A door that is open.
pub(super) enum Bound {
    Socket(UnixListener, Mine),
    Address(TcpListener, Option<Tls>),
}

/// A socket file of ours, gone when we are.
pub(super) struct Mine(PathBuf);

impl Drop for Mine {
    fn drop(&mut self) {
        // Whoever removed it before us was quicker.
        let _ = fs::remove_file(&self.0);
    }
}

/// Who may come in.
pub(super) enum Guard {
    /// Who can open the socket.
    Socket,
    /// Who knows the secret, under one of these names; pages only of these origins.
    Secret { digest: [u8; 32], hosts: Vec<String>, origins: Vec<String> },
}

impl Place {
    /// Opens the door, and says by which origin it is known. On an address the secret in this file is asked for; it is
    /// drawn if there is none.
    pub(super) async fn open(
        &self,
        secret: &Path,
        outside: &Outside,
    ) -> anyhow::Result<(Bound, Guard, String)> {
        match self {
            Place::Socket(_) if outside.is_some() => {
                bail!("a socket of this user's alone has neither --url nor TLS; leave them out")
            }
            Place::Socket(path) => Ok((socket(path)?, Guard::Socket, "http://localhost".into())),
            Place::Address(address) => listener(*address, secret, outside).await,
        }
    }
}

impl Outside {
    fn is_some(&self) -> bool {
        self.url.is_some() || self.tls_certificate.is_some()
    }

    /// What TLS is spoken with at this address, and whether it may be listened at.
    fn check(&self, address: SocketAddr) -> anyhow::Result<Option<Tls>> {
        let tls = match (&self.tls_certificate, &self.tls_key) {
            (Some(chain), Some(key)) => Some(tls::read(chain, key)?),
            _ => None,
        };
        if let Some(url) = &self.url {
            origin::identifier("--url", url)?;
            if tls.is_some() && !url.starts_with("https://") {
                bail!("--url is {url}, but TLS is spoken here; write https://");
            }
        }
        if !address.ip().is_loopback() && (tls.is_none() || self.url.is_none()) {
            bail!(
                "--listen {address} is not on loopback: there the shim needs TLS, with --tls-certificate and --tls-key, and \
                 the --url clients know it by. Or listen on loopback or unix:PATH"
            );
        }
        Ok(tls)
    }
}

async fn listener(
    address: SocketAddr,
    secret: &Path,
    outside: &Outside,
) -> anyhow::Result<(Bound, Guard, String)> {
    let tls = outside.check(address)?;
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
    let at = listener.local_addr()?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut hosts = match at.ip().is_loopback() {
        true => vec![at.to_string(), format!("localhost:{}", at.port())],
        false => vec![],
    };
    let mut origins: Vec<String> = hosts.iter().map(|host| format!("{scheme}://{host}")).collect();
    if let Some(url) = &outside.url {
        hosts.extend(origin::hosts(url));
        origins.push(url.clone());
    }
    let known = outside.url.clone().unwrap_or_else(|| format!("{scheme}://{at}"));
    let digest = sha256(secret::read_or_draw(secret)?.as_bytes());
    Ok((Bound::Address(listener, tls), Guard::Secret { digest, hosts, origins }, known))
}

fn socket(path: &Path) -> anyhow::Result<Bound> {
    if let Ok(facts) = fs::symlink_metadata(path) {
        if !facts.file_type().is_socket() || std::os::unix::net::UnixStream::connect(path).is_ok() {
            bail!("{} is there already, and in use or no socket", path.display());
        }
        // Left by one that was killed.
        fs::remove_file(path)?;
    }
    // Made where nobody else can look, and moved to its place once nobody else can open it.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let draft = parent.join(format!(".{}", crate::clock::name()?));
    fs::DirBuilder::new().create(&draft).with_context(|| format!("cannot write in {}", parent.display()))?;
    fs::set_permissions(&draft, Permissions::from_mode(0o700))?;
    let inside = draft.join("s");
    let bound = UnixListener::bind(&inside).and_then(|listener| {
        fs::set_permissions(&inside, Permissions::from_mode(0o600))?;
        fs::rename(&inside, path)?;
        Ok(listener)
    });
    let _ = fs::remove_file(&inside);
    fs::remove_dir(&draft)?;
    let listener = bound.with_context(|| format!("cannot listen on {}", path.display()))?;
    Ok(Bound::Socket(listener, Mine(path.to_owned())))
}

/// Why somebody does not come in.
pub(super) type Refused = (StatusCode, &'static str, &'static str);

impl Guard {
    /// Whether a request with these headers may come in.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let one = |name| {
            let mut all = headers.get_all(name).iter();
            let first = all.next().and_then(|value| value.to_str().ok()).unwrap_or_default();
            if all.next().is_none() { first } else { "" }
        };
        let origin = headers.contains_key(ORIGIN).then(|| one(ORIGIN));
        let foreign = (StatusCode::FORBIDDEN, "invalid_origin", "pages are not served here");
        match self {
            // No page can open a socket in the file system; one that claims to be elsewhere than here is not served.
            Guard::Socket => {
                let here = |origin: &str| {
                    let url = url::Url::parse(origin).ok();
                    url.is_some_and(|url| matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")))
                };
                if origin.is_some_and(|origin| !here(origin)) { Err(foreign) } else { Ok(()) }
            }
            Guard::Secret { digest, hosts, origins } => {
                if !hosts.iter().any(|host| host == one(HOST)) {
                    let words = "this is not the name the shim listens under";
                    return Err((StatusCode::MISDIRECTED_REQUEST, "invalid_host", words));
                }
                let own = |origin: &str| origins.iter().any(|known| known == origin);
                if origin.is_some_and(|origin| !own(origin)) {
                    return Err(foreign);
                }
                // Digests are compared, so how long it takes says nothing about the secret.
                let shown =
                    one(AUTHORIZATION).strip_prefix("Bearer ").map(|secret| sha256(secret.as_bytes()));
                if shown.as_ref() == Some(digest) {
                    return Ok(());
                }
                Err((
                    StatusCode::UNAUTHORIZED,
                    "unauthorized",
                    "send the secret of --secret-file as a bearer token",
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests;
