//! The settings of a policy engine asked over HTTPS, checked once: what is left afterwards can be asked.
//! Every fault says what to write instead; none repeats a credential.

use std::time::Duration;

use http::HeaderValue;
use sayso_fetch::{BadTls, Tls};
use url::{Host, Origin, Url};

use super::knowledge::Endpoint;

/// A policy engine and how it is asked. Has no `Debug`: there are credentials in it.
#[derive(Clone)]
pub struct RemoteSettings {
    /// Its identifier: an https URL without query or fragment. Its metadata, found from there, has to repeat it byte for
    /// byte, and names its endpoints (AuthZEN section 9).
    pub pdp: Option<String>,
    /// Where to ask for one decision, instead of `pdp`. Nothing is discovered then.
    pub evaluation_endpoint: Option<String>,
    /// Where to ask for several, beside `evaluation_endpoint`. Without it they are asked for one by one.
    pub evaluations_endpoint: Option<String>,
    /// A bearer token of ours for the policy engine. Never one of the caller's.
    pub bearer: Option<String>,
    /// Origins that are shown our credentials although only the metadata names them. That of `pdp` always is.
    pub credential_origins: Vec<String>,
    /// The only roots to trust, as PEM; the system's if there is none.
    pub roots: Option<Vec<u8>>,
    /// A client certificate to show.
    pub identity: Option<Identity>,
    /// Longest wait for an answer, however many exchanges it takes.
    pub time_limit: Duration,
    /// Most decisions that are asked for one by one.
    pub most_singles: usize,
    /// How many of them at once.
    pub singles_at_once: usize,
    /// After so many requests in a row without an answer, nobody is asked for a while.
    pub faults: u32,
    /// How long.
    pub pause: Duration,
    /// Development: plain http, on loopback alone (D-42).
    pub development: bool,
}

/// A client certificate.
#[derive(Clone)]
pub struct Identity {
    /// The chain, as PEM, one's own first.
    pub chain: Vec<u8>,
    /// Its private key, as PEM.
    pub key: Vec<u8>,
}

impl Default for RemoteSettings {
    fn default() -> Self {
        RemoteSettings {
            pdp: None,
            evaluation_endpoint: None,
            evaluations_endpoint: None,
            bearer: None,
            credential_origins: Vec::new(),
            roots: None,
            identity: None,
            time_limit: Duration::from_secs(2),
            most_singles: 64,
            singles_at_once: 4,
            faults: 5,
            pause: Duration::from_secs(5),
            development: false,
        }
    }
}

/// Why settings name no policy engine that can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRemote {
    /// Nothing says where it is.
    #[error(
        "no policy engine is named: set `pdp` to its identifier, or `evaluation_endpoint` to its endpoint"
    )]
    Nowhere,
    /// Two things say where it is.
    #[error("`pdp` discovers the endpoints: set either `pdp` or `evaluation_endpoint`, not both")]
    Twice,
    /// The endpoint for several decisions without that for one.
    #[error("`evaluations_endpoint` needs `evaluation_endpoint` beside it")]
    Alone,
    /// Not a URL that can be asked.
    #[error("`{0}` is not an https URL without credentials or fragment; write it out in full")]
    Url(&'static str),
    /// An identifier with a query.
    #[error("`pdp` is an identifier and has no query; write it as the policy engine's metadata does")]
    Query,
    /// Plain http where it may not be.
    #[error(
        "`{0}` is plain http: use https; only in development may it be http, and then on 127.0.0.1 or localhost"
    )]
    Plain(&'static str),
    /// A credential that fits no header.
    #[error(
        "`bearer` holds characters that no header can carry; put the bare token there, without a line's end"
    )]
    Bearer,
    /// Something that is no origin.
    #[error("`credential_origins` lists https origins such as https://pdp.example:8443, without a path")]
    CredentialOrigins,
    /// A bound of zero.
    #[error("`{0}` must be more than zero")]
    Zero(&'static str),
    /// A file for TLS.
    #[error(transparent)]
    Tls(#[from] BadTls),
}

/// A policy engine by its identifier.
pub(super) struct Identified {
    pub(super) identifier: String,
    url: Url,
    credentials: Vec<Origin>,
    development: bool,
}

/// Where the endpoints come from.
pub(super) enum Place {
    Discovered(Identified),
    Configured { evaluation: Endpoint, evaluations: Option<Endpoint> },
}

impl RemoteSettings {
    pub(super) fn place(&self) -> Result<Place, BadRemote> {
        let several = self.evaluations_endpoint.as_deref();
        match (&self.pdp, self.evaluation_endpoint.as_deref()) {
            (None, None) if several.is_some() => Err(BadRemote::Alone),
            (None, None) => Err(BadRemote::Nowhere),
            (Some(_), Some(_)) => Err(BadRemote::Twice),
            (Some(_), None) if several.is_some() => Err(BadRemote::Twice),
            (Some(pdp), None) => Ok(Place::Discovered(self.identified(pdp)?)),
            (None, Some(one)) => {
                let configured =
                    |which, text| url(which, text, self.development).map(|url| Endpoint::new(url, true));
                let evaluation = configured("evaluation_endpoint", one)?;
                let evaluations = several.map(|text| configured("evaluations_endpoint", text)).transpose()?;
                Ok(Place::Configured { evaluation, evaluations })
            }
        }
    }

    fn identified(&self, identifier: &str) -> Result<Identified, BadRemote> {
        let url = url("pdp", identifier, self.development)?;
        if url.query().is_some() {
            return Err(BadRemote::Query);
        }
        let mut credentials = vec![url.origin()];
        for origin in &self.credential_origins {
            let named = self::url("credential_origins", origin, self.development)
                .map_err(|_| BadRemote::CredentialOrigins)?;
            if named.path() != "/" || named.query().is_some() {
                return Err(BadRemote::CredentialOrigins);
            }
            credentials.push(named.origin());
        }
        let identifier = identifier.to_owned();
        Ok(Identified { identifier, url, credentials, development: self.development })
    }

    pub(super) fn authorization(&self) -> Result<Option<HeaderValue>, BadRemote> {
        let Some(bearer) = &self.bearer else { return Ok(None) };
        let visible = !bearer.is_empty() && bearer.bytes().all(|byte| byte.is_ascii_graphic());
        let value = HeaderValue::try_from(format!("Bearer {bearer}")).ok().filter(|_| visible);
        let mut value = value.ok_or(BadRemote::Bearer)?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    pub(super) fn tls(&self) -> Result<Tls, BadRemote> {
        let mut tls = Tls::system();
        if let Some(roots) = &self.roots {
            tls = tls.trusting(roots)?;
        }
        if let Some(identity) = &self.identity {
            tls = tls.showing(&identity.chain, &identity.key)?;
        }
        Ok(tls)
    }

    pub(super) fn bounded(&self) -> Result<(), BadRemote> {
        let zero = [
            ("time_limit", self.time_limit.is_zero()),
            ("most_singles", self.most_singles == 0),
            ("singles_at_once", self.singles_at_once == 0),
            ("faults", self.faults == 0),
            ("pause", self.pause.is_zero()),
        ];
        zero.iter().find(|(_, is)| *is).map_or(Ok(()), |(name, _)| Err(BadRemote::Zero(name)))
    }
}

impl Identified {
    /// Where its metadata is: the well-known part between host and path, a slash at the end left away.
    pub(super) fn metadata(&self) -> Endpoint {
        self.at(&format!("/.well-known/authzen-configuration{}", self.path()))
    }

    /// An endpoint of AuthZEN's own choosing, for an engine without metadata.
    pub(super) fn default_path(&self, path: &str) -> Endpoint {
        self.at(&format!("{}{path}", self.path()))
    }

    /// An endpoint that its metadata names.
    pub(super) fn named(&self, text: &str) -> Result<Endpoint, BadRemote> {
        let url = url("endpoint", text, self.development)?;
        let ours = self.credentials.contains(&url.origin());
        Ok(Endpoint::new(url, ours))
    }

    fn path(&self) -> &str {
        let path = self.url.path();
        path.strip_suffix('/').unwrap_or(path)
    }

    fn at(&self, path: &str) -> Endpoint {
        let mut url = self.url.clone();
        url.set_path(path);
        Endpoint::new(url, true)
    }
}

/// A URL that may be asked. `http` is for this machine, in development.
fn url(which: &'static str, text: &str, development: bool) -> Result<Url, BadRemote> {
    let url = Url::parse(text).map_err(|_| BadRemote::Url(which))?;
    let bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    let here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => return Err(BadRemote::Url(which)),
    };
    match url.scheme() {
        "https" | "http" if !bare => Err(BadRemote::Url(which)),
        "https" => Ok(url),
        "http" if development && here => Ok(url),
        "http" => Err(BadRemote::Plain(which)),
        _ => Err(BadRemote::Url(which)),
    }
}
