//! The mappings of one server, from listings the host makes itself (D-30, D-36).
//!
//! All pages or nothing, kept for as long as the server says and we allow, and made anew when it says that they changed.
//! Not knowing is not the same as nothing declared: where there is no fresh listing there are no mappings. Nothing an
//! agent's traffic brings is ever read here. Time is this process's own, so no step of the clock makes a listing fresh.

use async_trait::async_trait;
use sayso_coaz::{NotAListing, Registry, lifetime};
use sayso_protocol::Json;
use sayso_protocol::message::{Mirror, mirrors};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a listing is used of a server that does not say how long it holds.
const USUAL: Duration = Duration::from_secs(60);
/// How long any listing is used that the server does not say has changed: a call that had it made must not find it over,
/// nor every call make one.
const SHORTEST: Duration = Duration::from_secs(1);
/// How long any listing is used at most, whatever its server says.
const LONGEST: Duration = Duration::from_secs(600);

/// Whoever asks the server for its tools.
#[async_trait]
pub trait Lister: Send + Sync {
    /// Every page of one listing in order, each the result of one `tools/list`; nothing when it is not to be had.
    async fn list(&self) -> Option<Vec<Json>>;

    /// A number that moves on whenever the server says that its tools changed.
    fn changes(&self) -> u64 {
        0
    }
}

/// One listing.
pub(super) struct Listed {
    pub(super) registry: Registry,
    mirrors: BTreeMap<String, Vec<Mirror>>,
    /// What the lister's number was before this was asked for.
    changes: u64,
    fresh_until: i64,
}

impl Listed {
    fn nothing() -> Self {
        let registry = Registry::unlisted();
        Self { registry, mirrors: BTreeMap::new(), changes: 0, fresh_until: i64::MIN }
    }

    /// The headers that repeat arguments of this tool.
    pub(super) fn mirrors(&self, tool: &str) -> &[Mirror] {
        self.mirrors.get(tool).map_or(&[], Vec::as_slice)
    }
}

/// The mappings of one server, always of one listing.
pub struct Mappings {
    began: Instant,
    state: Mutex<State>,
    /// One question at a time, however many calls wait for the answer.
    asking: tokio::sync::Mutex<()>,
    lister: OnceLock<Arc<dyn Lister>>,
}

#[derive(Default)]
struct State {
    listed: Option<Arc<Listed>>,
    /// How often a listing could not be had.
    failures: u64,
}

impl Mappings {
    /// Those of a server that is asked for them, once somebody says how.
    pub fn unknown() -> Self {
        let (state, asking) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { began: Instant::now(), state, asking, lister: OnceLock::new() }
    }

    /// Those of this listing, for ever: of a server that nobody here can ask.
    ///
    /// # Errors
    /// When these are not all the pages of one listing.
    pub fn fixed(pages: &[Json]) -> Result<Self, NotAListing> {
        let mappings = Self::unknown();
        let listed = read(pages, 0)?;
        mappings.state().listed = Some(Arc::new(listed));
        Ok(mappings)
    }

    /// Of a server whose tools declare nothing, because its operator says so.
    pub fn undeclared() -> Self {
        let mappings = Self::unknown();
        let listed = Listed { registry: Registry::undeclared(), fresh_until: i64::MAX, ..Listed::nothing() };
        mappings.state().listed = Some(Arc::new(listed));
        mappings
    }

    /// Says who asks the server. Only the first is heard, and nobody is asked about what is fixed.
    pub fn learn_from(&self, lister: Arc<dyn Lister>) {
        // Somebody else's is as good.
        let _ = self.lister.set(lister);
    }

    /// Milliseconds on the clock of freshness.
    pub(super) fn now(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// The mappings as they are known, whether or not they are fresh.
    pub(super) fn known(&self) -> Arc<Listed> {
        self.state().listed.clone().unwrap_or_else(|| Arc::new(Listed::nothing()))
    }

    /// The mappings as the server has them now, asking it if need be; nothing is mapped by what comes back if it cannot
    /// be asked.
    pub(super) async fn current(&self) -> Arc<Listed> {
        let failures = self.state().failures;
        if let Some(fresh) = self.fresh() {
            return fresh;
        }
        let Some(lister) = self.lister.get() else { return Arc::new(Listed::nothing()) };
        let _alone = self.asking.lock().await;
        if let Some(fresh) = self.fresh() {
            return fresh;
        }
        // Whoever asked while this one waited had no answer, and there will be none for it either.
        if self.state().failures != failures {
            return Arc::new(Listed::nothing());
        }
        let changes = lister.changes();
        let Some(pages) = lister.list().await else {
            tracing::warn!("mappings.unknown: the server does not list its tools");
            return self.fail();
        };
        match read(&pages, changes) {
            // From when it can be used: what it declares was compiled meanwhile.
            Ok(listed) => self.keep(Listed { fresh_until: self.until(&pages), ..listed }),
            Err(fault) => {
                tracing::warn!("mappings.unknown: what the server lists is no listing: {fault}");
                self.fail()
            }
        }
    }

    /// The listing, if nothing speaks against it.
    fn fresh(&self) -> Option<Arc<Listed>> {
        let changes = self.lister.get().map(|lister| lister.changes());
        let state = self.state();
        let listed = state.listed.as_ref()?;
        let unchanged = listed.fresh_until == i64::MAX || changes.is_none_or(|now| now == listed.changes);
        (unchanged && self.now() < listed.fresh_until).then(|| Arc::clone(listed))
    }

    /// Until when pages that came now hold: the one that holds shortest counts.
    fn until(&self, pages: &[Json]) -> i64 {
        let milliseconds = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let (usual, longest) = (milliseconds(USUAL), milliseconds(LONGEST));
        let holds = pages.iter().map(|page| lifetime(page, usual, longest)).min().unwrap_or(usual);
        self.now().saturating_add(holds.max(milliseconds(SHORTEST)))
    }

    fn keep(&self, listed: Listed) -> Arc<Listed> {
        let before = self.known();
        for change in listed.registry.changes_since(&before.registry) {
            let (was, is) = (change.before.as_ref(), change.after.as_ref());
            let gone = was.is_some() && is.is_none();
            // The server's own word for a tool, but one that is a name.
            let Ok(tool) = sayso_protocol::ToolName::parse(change.tool) else { continue };
            let shown = |digest: Option<&sayso_protocol::S256>| digest.map(ToString::to_string);
            let (was, is) = (shown(was), shown(is));
            tracing::info!(tool = tool.as_str(), was, is, gone, "mapping.changed");
        }
        let malformed =
            listed.registry.tools().filter(|tool| listed.registry.declared(tool, self.now()).is_err());
        let malformed = malformed.count();
        if malformed > 0 {
            tracing::warn!(
                tools = malformed,
                "mapping.malformed: calls of these tools are refused; see `sayso coaz lint`"
            );
        }
        let listed = Arc::new(listed);
        self.state().listed = Some(Arc::clone(&listed));
        listed
    }

    fn fail(&self) -> Arc<Listed> {
        let mut state = self.state();
        state.failures = state.failures.wrapping_add(1);
        drop(state);
        Arc::new(Listed::nothing())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // INVARIANT: every change under the lock is one assignment, so a panic leaves it true.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listing that holds for ever. When it is over is asked before it is used, so that it is not over halfway through a call;
/// after a permit it is asked again.
fn read(pages: &[Json], changes: u64) -> Result<Listed, NotAListing> {
    let registry = Registry::read(&pages.iter().collect::<Vec<_>>(), i64::MAX)?;
    let tools = pages.iter().filter_map(|page| page.get("tools").and_then(Json::as_array)).flatten();
    let mirrored = tools.filter_map(|tool| {
        let name = tool.get("name").and_then(Json::as_str)?;
        // A schema that breaks the rules of mirroring names no header that a client would send.
        Some((name.to_owned(), mirrors(tool.get("inputSchema")?).ok()?))
    });
    Ok(Listed { registry, mirrors: mirrored.collect(), changes, fresh_until: i64::MAX })
}
