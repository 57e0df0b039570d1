//! Where a policy engine is asked: as configured, or as its metadata says, kept for as long as that may be.
//! One looks for it and the others wait; what is known is renewed before it ends, and a good copy outlives a failure to
//! renew it, but not its own end (AZ-07).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::time::Instant;
use url::Url;

use super::ask::Doors;
use super::metadata::{self, NoMetadata};
use super::settings::{Identified, Place};

/// How long after a failure to renew it is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// An address that may be asked.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) url: String,
    pub(super) secure: bool,
    /// Whether it is shown our credentials (AZ-11).
    pub(super) ours: bool,
}

impl Endpoint {
    pub(super) fn new(url: Url, ours: bool) -> Endpoint {
        Endpoint { secure: url.scheme() == "https", url: url.into(), ours }
    }
}

/// The endpoints of a policy engine.
#[derive(Clone)]
pub(super) struct Endpoints {
    pub(super) evaluation: Endpoint,
    /// None when it decides only one at a time.
    pub(super) evaluations: Option<Endpoint>,
    /// Whether nobody said so: they are AuthZEN's default paths.
    pub(super) guessed: bool,
}

pub(super) enum Knowledge {
    Configured(Arc<Endpoints>),
    Discovered(Box<Discovered>),
}

pub(super) struct Discovered {
    engine: Identified,
    state: Mutex<State>,
    looking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    known: Option<Known>,
    /// The last failure, so that those who waited for it need not fail one after the other.
    failed: Option<(Instant, NoMetadata)>,
}

struct Known {
    endpoints: Arc<Endpoints>,
    renew: Instant,
    until: Instant,
}

impl Knowledge {
    pub(super) fn new(place: Place) -> Knowledge {
        match place {
            Place::Configured { evaluation, evaluations } => {
                Knowledge::Configured(Arc::new(Endpoints { evaluation, evaluations, guessed: false }))
            }
            Place::Discovered(engine) => Knowledge::Discovered(Box::new(Discovered {
                engine,
                state: Mutex::default(),
                looking: tokio::sync::Mutex::default(),
            })),
        }
    }

    /// The endpoints, looked for if they are not known.
    pub(super) async fn endpoints(&self, doors: &Doors) -> Result<Arc<Endpoints>, NoMetadata> {
        let discovered = match self {
            Knowledge::Configured(endpoints) => return Ok(endpoints.clone()),
            Knowledge::Discovered(discovered) => discovered,
        };
        if let Some(endpoints) = discovered.known(Instant::now()) {
            return Ok(endpoints);
        }
        let came = Instant::now();
        let _turn = discovered.looking.lock().await;
        if let Some(endpoints) = discovered.known(Instant::now()) {
            return Ok(endpoints);
        }
        let failed = discovered.state().failed;
        match failed {
            Some((at, fault)) if at >= came => Err(fault),
            _ => discovered.look(doors).await,
        }
    }

    /// Whether it is time to renew what is known.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let Knowledge::Discovered(discovered) = self else { return false };
        discovered.state().known.as_ref().is_some_and(|known| now >= known.renew)
    }

    /// Renews it, unless somebody is at it.
    pub(super) async fn renew(&self, doors: &Doors) {
        let Knowledge::Discovered(discovered) = self else { return };
        if let Ok(_turn) = discovered.looking.try_lock()
            && self.is_due(Instant::now())
        {
            let _ = discovered.look(doors).await;
        }
    }

    /// The default path for several decisions does not exist: until the metadata is looked for again, one at a time.
    pub(super) fn one_at_a_time(&self) {
        let Knowledge::Discovered(discovered) = self else { return };
        if let Some(known) = discovered.state().known.as_mut().filter(|known| known.endpoints.guessed) {
            known.endpoints = Arc::new(Endpoints { evaluations: None, ..(*known.endpoints).clone() });
        }
    }
}

impl Discovered {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, now: Instant) -> Option<Arc<Endpoints>> {
        let state = self.state();
        state.known.as_ref().filter(|known| now < known.until).map(|known| known.endpoints.clone())
    }

    /// Asks for the metadata and keeps what comes of it.
    async fn look(&self, doors: &Doors) -> Result<Arc<Endpoints>, NoMetadata> {
        let found = self.metadata(doors).await;
        let now = Instant::now();
        let mut state = self.state();
        match found {
            Ok((endpoints, life)) => {
                let endpoints = Arc::new(endpoints);
                let known =
                    Known { endpoints: endpoints.clone(), renew: now + life * 3 / 4, until: now + life };
                *state = State { known: Some(known), failed: None };
                Ok(endpoints)
            }
            Err(fault) => {
                tracing::warn!(%fault, "pdp.no_metadata");
                state.failed = Some((now, fault));
                match state.known.as_mut().filter(|_| fault.passes()) {
                    Some(known) => known.renew = now + AGAIN,
                    // What it says of itself now is wrong, whatever it said before.
                    None => state.known = None,
                }
                Err(fault)
            }
        }
    }

    async fn metadata(&self, doors: &Doors) -> Result<(Endpoints, Duration), NoMetadata> {
        let answer = doors.get(&self.engine.metadata(), metadata::MAX_METADATA).await;
        let answer = answer.map_err(NoMetadata::Unreachable)?;
        match answer.status() {
            StatusCode::OK => {
                let endpoints = metadata::read(&self.engine, answer.headers(), answer.body())?;
                Ok((endpoints, metadata::lifetime(answer.headers())))
            }
            StatusCode::NOT_FOUND => Ok((self.defaults(), metadata::NONE)),
            other => Err(NoMetadata::Status(other.as_u16())),
        }
    }

    fn defaults(&self) -> Endpoints {
        Endpoints {
            evaluation: self.engine.default_path("/access/v1/evaluation"),
            evaluations: Some(self.engine.default_path("/access/v1/evaluations")),
            guessed: true,
        }
    }
}

/// An answer to a GET or a POST.
pub(super) type Answer = http::Response<Bytes>;
