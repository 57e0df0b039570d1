//! An issuer's keys, as it publishes them: found from its identifier, kept as long as the answer says, asked for again
//! when a token names one that is not there, and for a while still believed when it cannot be reached.
//! INVARIANT: what an issuer published last is all there is; a key it took away is gone at the next look.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use sayso_fetch::{Fetch, FetchError, Limits};
use sayso_protocol::{Json, Timestamp, json};
use url::Url;

use super::keys::{Algorithm, Key};
use super::settings::url;

/// Seconds between two looks: tokens that name keys nobody has are free to make.
const GAP: i64 = 10;
/// Seconds that keys are kept when nothing is said; at least; and at most.
const USUAL: i64 = 3600;
const SHORTEST: i64 = 60;
const LONGEST: i64 = 24 * 3600;
/// Seconds that keys are still believed when new ones cannot be had.
const STALE: i64 = 3600;
/// Longest wait for all of it.
const WAIT: Duration = Duration::from_secs(5);
/// How much of each document is read.
const DOCUMENT: Limits = Limits { bytes: 256 << 10, seconds: 5 };
/// Keys of one issuer that are kept, and of one name that are tried.
const MOST: usize = 64;
const TRIED: usize = 4;

/// Why an issuer's keys are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoKeys {
    /// No answer.
    #[error("the issuer cannot be reached: {0}")]
    Unreachable(FetchError),
    /// Not JSON, or without the member it is for.
    #[error("what the issuer publishes is not what it should be; check its address")]
    Form,
    /// Metadata of another issuer.
    #[error("the metadata found there is another issuer's; write `issuer` exactly as the metadata does")]
    Issuer,
    /// A `jwks_uri` that may not be fetched.
    #[error("the issuer's jwks_uri is not an https URL")]
    Jwks,
}

/// Keys that may have signed a token.
pub(super) enum Found {
    Keys(Vec<Arc<Key>>),
    /// The issuer publishes no such key.
    Unknown,
    /// Nobody can say.
    Unavailable,
}

pub(super) struct Issuer {
    name: String,
    source: Source,
    development: bool,
    fetch: Arc<dyn Fetch>,
    state: Mutex<State>,
    looking: tokio::sync::Mutex<()>,
}

enum Source {
    Jwks(String),
    /// The places of its metadata, in the order in which they are tried.
    Metadata(Vec<String>),
}

#[derive(Default)]
struct State {
    held: Option<Held>,
    tried: Option<Timestamp>,
    failed: bool,
}

#[derive(Clone)]
struct Held {
    keys: Arc<[Arc<Key>]>,
    fresh: Timestamp,
}

impl Issuer {
    pub(super) fn new(
        name: &str,
        at: &Url,
        jwks: Option<String>,
        development: bool,
        fetch: Arc<dyn Fetch>,
    ) -> Issuer {
        let source = jwks.map_or_else(|| Source::Metadata(places(at)), Source::Jwks);
        Issuer {
            name: name.to_owned(),
            source,
            development,
            fetch,
            state: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) async fn prepare(&self, now: Timestamp) -> Result<(), NoKeys> {
        let _turn = self.looking.lock().await;
        self.look(now).await
    }

    /// The keys that a token with this header may be signed by.
    pub(super) async fn keys_for(
        self: &Arc<Self>,
        kid: Option<&str>,
        algorithm: Algorithm,
        now: Timestamp,
    ) -> Found {
        if let Some(keys) = self.fresh(kid, algorithm, now) {
            return Found::Keys(keys);
        }
        // A task of its own: whoever asked may leave in the middle, and others need what it finds.
        let (issuer, name) = (self.clone(), kid.map(str::to_owned));
        let look = tokio::spawn(async move { issuer.look_for(name.as_deref(), algorithm, now).await });
        if look.await.is_err() {
            return Found::Unavailable;
        }
        let failed = self.state().failed;
        match self.held(now).map(|held| held.candidates(kid, algorithm)) {
            Some(keys) if !keys.is_empty() => Found::Keys(keys),
            Some(_) if !failed => Found::Unknown,
            _ => Found::Unavailable,
        }
    }

    /// Looks for such a key, unless somebody just has.
    async fn look_for(&self, kid: Option<&str>, algorithm: Algorithm, now: Timestamp) {
        let _turn = self.looking.lock().await;
        if self.fresh(kid, algorithm, now).is_none() && self.may_look(now) {
            let _ = self.look(now).await;
        }
    }

    fn fresh(&self, kid: Option<&str>, algorithm: Algorithm, now: Timestamp) -> Option<Vec<Arc<Key>>> {
        let held = self.held(now).filter(|held| now < held.fresh)?;
        Some(held.candidates(kid, algorithm)).filter(|keys| !keys.is_empty())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self, now: Timestamp) -> Option<Held> {
        self.state().held.clone().filter(|held| now < held.fresh.plus(STALE))
    }

    fn may_look(&self, now: Timestamp) -> bool {
        // A clock that went back must not keep anybody from looking.
        self.state().tried.is_none_or(|tried| now.since(tried) >= GAP || now < tried)
    }

    async fn look(&self, now: Timestamp) -> Result<(), NoKeys> {
        self.state().tried = Some(now);
        let found = tokio::time::timeout(WAIT, self.published()).await;
        let found = found.unwrap_or(Err(NoKeys::Unreachable(FetchError::TimedOut)));
        match found {
            Ok((keys, life)) => {
                let held = Held { keys, fresh: now.plus(life) };
                let mut state = self.state();
                (state.held, state.failed) = (Some(held), false);
                Ok(())
            }
            Err(fault) => {
                self.state().failed = true;
                tracing::warn!(issuer = self.name, %fault, "issuer.no_keys");
                Err(fault)
            }
        }
    }

    async fn published(&self) -> Result<(Arc<[Arc<Key>]>, i64), NoKeys> {
        let uri = match &self.source {
            Source::Jwks(uri) => uri.clone(),
            Source::Metadata(places) => self.discovered(places).await?,
        };
        let (headers, body) = self.document(&uri).await?;
        let keys = body.get("keys").and_then(Json::as_array).ok_or(NoKeys::Form)?;
        let keys = keys.iter().filter_map(Key::read).take(MOST).map(Arc::new).collect();
        let stated = sayso_fetch::freshness(&headers).map(|stated| i64::try_from(stated.as_secs()));
        let life = stated.map_or(USUAL, |stated| stated.unwrap_or(LONGEST)).clamp(SHORTEST, LONGEST);
        Ok((keys, life))
    }

    /// The `jwks_uri` of the first metadata that is this issuer's.
    async fn discovered(&self, places: &[String]) -> Result<String, NoKeys> {
        let mut told = None;
        for place in places {
            match self.metadata(place).await {
                Ok(uri) => return Ok(uri),
                // What another place says is worth more than that there is nothing at this one.
                Err(fault @ NoKeys::Unreachable(FetchError::Status(_))) => told = told.or(Some(fault)),
                // They are all at one host.
                Err(fault @ NoKeys::Unreachable(_)) => return Err(fault),
                Err(fault) => told = Some(fault),
            }
        }
        Err(told.unwrap_or(NoKeys::Form))
    }

    async fn metadata(&self, place: &str) -> Result<String, NoKeys> {
        let (_, document) = self.document(place).await?;
        let text = |name: &str| document.get(name).and_then(Json::as_str);
        if text("issuer") != Some(&self.name) {
            return Err(NoKeys::Issuer);
        }
        let uri = text("jwks_uri").ok_or(NoKeys::Form)?;
        url(uri, self.development).map(String::from).ok_or(NoKeys::Jwks)
    }

    async fn document(&self, place: &str) -> Result<(HeaderMap, Json), NoKeys> {
        let request = Request::get(place).header(header::ACCEPT, "application/json").body(Bytes::new());
        let request = request.map_err(|_| NoKeys::Unreachable(FetchError::Refused))?;
        let answer = self.fetch.send(request, DOCUMENT).await.map_err(NoKeys::Unreachable)?;
        if answer.status() != StatusCode::OK {
            return Err(NoKeys::Unreachable(FetchError::Status(answer.status().as_u16())));
        }
        let (parts, body) = answer.into_parts();
        let limits = json::Limits { bytes: DOCUMENT.bytes, ..json::Limits::default() };
        Ok((parts.headers, Json::parse(&body, limits).map_err(|_| NoKeys::Form)?))
    }
}

impl Held {
    /// The keys of this name that fit; of a token that names none, the only one that fits.
    fn candidates(&self, kid: Option<&str>, algorithm: Algorithm) -> Vec<Arc<Key>> {
        let fitting = self.keys.iter().filter(|key| key.fits(algorithm));
        match kid {
            Some(kid) => fitting.filter(|key| key.kid() == Some(kid)).take(TRIED).cloned().collect(),
            None => {
                let fitting: Vec<_> = fitting.cloned().collect();
                if fitting.len() == 1 { fitting } else { Vec::new() }
            }
        }
    }
}

/// Where an issuer's metadata may be: RFC 8414 section 3, then OpenID's twice, as MCP's authorization lists them.
fn places(issuer: &Url) -> Vec<String> {
    let path = issuer.path();
    let path = path.strip_suffix('/').unwrap_or(path);
    let at = |path: String| {
        let mut place = issuer.clone();
        place.set_path(&path);
        String::from(place)
    };
    let mut places = vec![
        at(format!("/.well-known/oauth-authorization-server{path}")),
        at(format!("/.well-known/openid-configuration{path}")),
        at(format!("{path}/.well-known/openid-configuration")),
    ];
    places.dedup();
    places
}
