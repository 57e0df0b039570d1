//! The keys an authority publishes, for verifying what it signs (FED-10).
//!
//! Held for a short while, and looked for again by one caller at a time and at most every few seconds, so that a
//! stranger's signatures cannot make us ask. Who verifies by keys at hand waits for nobody (FED-19).

use super::Unavailable;
use crate::engine::Clock;
use async_trait::async_trait;
use sayso_fetch::{Fetch, Limits, get};
use sayso_protocol::json;
use sayso_protocol::payload::metadata::{AUTHORITY_PATHS, AuthorityMetadata, KeySet};
use sayso_protocol::{Timestamp, VerifyingKey};
use std::sync::{Arc, Mutex, PoisonError};

/// How long keys are believed, in seconds.
const KEPT: i64 = 60;
/// How soon they may be looked for again, in seconds.
const PAUSE: i64 = 5;
/// How soon after they could not be had.
const FAILED: i64 = 1;

/// Where the keys of an authority come from.
#[async_trait]
pub trait AuthorityKeys: Send + Sync {
    /// The published keys. `anew` says that none of those at hand fits.
    async fn keys(&self, anew: bool) -> Result<Vec<VerifyingKey>, Unavailable>;
}

/// Keys that are known because the authority runs in this process.
pub struct KnownKeys(pub Vec<VerifyingKey>);

#[async_trait]
impl AuthorityKeys for KnownKeys {
    async fn keys(&self, _anew: bool) -> Result<Vec<VerifyingKey>, Unavailable> {
        Ok(self.0.clone())
    }
}

/// What the authority's keys were when they were last read.
type Held = Option<(Timestamp, Result<Vec<VerifyingKey>, Unavailable>)>;

/// Keys read from the authority's `jwks_uri`.
pub struct HttpKeys {
    fetch: Arc<dyn Fetch>,
    issuer: String,
    clock: Clock,
    held: Mutex<Held>,
    asking: tokio::sync::Mutex<()>,
}

impl HttpKeys {
    /// The keys of this issuer. Nothing is asked yet.
    pub fn new(fetch: Arc<dyn Fetch>, issuer: impl Into<String>, clock: Clock) -> Self {
        let (held, asking) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { fetch, issuer: issuer.into(), clock, held, asking }
    }

    /// What was learnt, if that is recent enough for who asks.
    fn held(&self, anew: bool) -> Option<Result<Vec<VerifyingKey>, Unavailable>> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, learnt) = held.as_ref()?;
        let most = match learnt {
            Ok(_) if anew => PAUSE,
            Ok(_) => KEPT,
            Err(_) => FAILED,
        };
        (0..most).contains(&(self.clock)().since(*at)).then(|| learnt.clone())
    }

    async fn learn(&self) -> Result<Vec<VerifyingKey>, Unavailable> {
        let jwks_uri = discover(self.fetch.as_ref(), &self.issuer).await?.jwks_uri;
        let set: KeySet = document(self.fetch.as_ref(), &jwks_uri).await?;
        Ok(set.keys().into_iter().map(|(_, key)| key).collect())
    }
}

#[async_trait]
impl AuthorityKeys for HttpKeys {
    async fn keys(&self, anew: bool) -> Result<Vec<VerifyingKey>, Unavailable> {
        if let Some(learnt) = self.held(anew) {
            return learnt;
        }
        let _one_at_a_time = self.asking.lock().await;
        // Whoever waited takes what the one before it learnt.
        if let Some(learnt) = self.held(anew) {
            return learnt;
        }
        let learnt = self.learn().await;
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(((self.clock)(), learnt.clone()));
        learnt
    }
}

/// The metadata of an issuer, which must name itself byte for byte.
pub(super) async fn discover(fetch: &dyn Fetch, issuer: &str) -> Result<AuthorityMetadata, Unavailable> {
    let [path, ..] = AUTHORITY_PATHS;
    let url = format!("{}{path}", issuer.trim_end_matches('/'));
    let metadata: AuthorityMetadata = document(fetch, &url).await?;
    if metadata.issuer == issuer { Ok(metadata) } else { Err(Unavailable::Unreachable) }
}

/// A public document. Reading one changes nothing, so a failure to is always a failure to ask.
async fn document<T: serde::de::DeserializeOwned>(fetch: &dyn Fetch, url: &str) -> Result<T, Unavailable> {
    let body = get(fetch, url, Limits::DOCUMENT).await.map_err(|_| Unavailable::Unreachable)?;
    // A document that is not what it should be was not an answer to act on, and nothing was done by asking for it.
    json::strict(&body, json::Limits::default()).map_err(|_| Unavailable::Unreachable)
}

#[cfg(test)]
mod tests;
