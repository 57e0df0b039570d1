//! An authority for the tests of hosts: it knows its tokens by their names, can fail and be slow on command, and counts.
//!
//! For tests alone. `reader` and `other` are for many calls of `get_positions`, of one key and another; `unbound` is for
//! many of `execute_trade`; `trade…` each for the one [`TRADE`], once, and `trade-asks…` with rounds; any other token is
//! dead, for its name.

#![expect(clippy::unwrap_used, reason = "a test that cannot script its authority has failed")]

use super::{Authority, Unavailable};
use async_trait::async_trait;
use sayso_protocol::canon::{S256, s256_bytes};
use sayso_protocol::json::Limits;
use sayso_protocol::payload::operation::Operation;
use sayso_protocol::payload::protection::{
    AccessReport, ConsumeReply, Continuation, Inactive, Introspection, LiveGrant, PermissionFault,
    PermissionReply, PermissionRequest, UNKNOWN_CONTINUATION,
};
use sayso_protocol::payload::rpt::{Confirmation, Permission, SCHEME};
use sayso_protocol::{Json, SigningKey, Timestamp};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};

/// When everything happens.
pub const NOW: Timestamp = Timestamp(1_790_000_000);
/// The origin of the resource.
pub const PUBLIC: &str = "http://gw.example.test";
/// Its host.
pub const HOST: &str = "gw.example.test";
/// Its authority.
pub const AS_URI: &str = "https://as.example.test";
/// The arguments of the trade that was approved.
pub const TRADE: &str = r#"{"symbol":"VTI","quantity":3}"#;
/// The key of the agent whose tokens these are.
pub const AGENT: u8 = 0x22;
/// That of the other.
pub const OTHER: u8 = 0x33;

/// The key of this seed.
pub fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

/// A grant for many calls of one tool.
pub fn grant(tool: &str, scope: &str, seed: u8) -> LiveGrant {
    LiveGrant {
        iss: AS_URI.into(),
        aud: PUBLIC.parse().unwrap(),
        owner: "alice".parse().unwrap(),
        iat: NOW.plus(-10),
        exp: NOW.plus(600),
        token_type: SCHEME.into(),
        cnf: Confirmation { jwk: key(seed).verifying().jwk() },
        permissions: vec![Permission {
            resource_id: format!("vault/{tool}").parse().unwrap(),
            resource_scopes: vec![scope.parse().unwrap()],
            exp: None,
            iat: None,
            nbf: None,
            definition: None,
        }],
        contract: s256_bytes(b"agreement"),
        family: "family-1".parse().unwrap(),
        sub: Some("pw:agent".to_owned()),
        client_id: Some("pw:agent".to_owned()),
        consequence: None,
        single_use: false,
        operation: None,
        bind: false,
        continuation: None,
    }
}

/// The authority.
#[derive(Default)]
pub struct Scripted {
    /// It cannot be reached.
    pub gone: AtomicBool,
    /// It has another registry.
    pub stale: AtomicBool,
    /// It does not answer who spends.
    pub silent_consume: AtomicBool,
    /// It takes no report.
    pub no_reports: AtomicBool,
    /// How long it takes to say what a token is.
    pub slow_introspect: Mutex<Duration>,
    /// How long it takes to say that something was spent.
    pub slow_consume: Mutex<Duration>,
    /// What it waits for before it says that something was spent.
    pub gate: Mutex<Option<Arc<Semaphore>>>,
    /// The question, `introspect` or `consume`, at which it takes its time until it is told to go on.
    pub held: Mutex<Option<&'static str>>,
    /// Tells it to.
    pub go_on: Notify,
    /// Why every token is dead, once it is.
    pub ended: Mutex<Option<&'static str>>,
    /// Questions of any kind.
    pub asked: AtomicU64,
    /// Questions about a token.
    pub introspected: AtomicU64,
    /// Tickets given.
    pub tickets: AtomicU64,
    /// Tokens that somebody tried to spend.
    pub spent: Mutex<Vec<String>>,
    /// What her record was told.
    pub reports: Mutex<Vec<AccessReport>>,
    /// Rounds that calls were asked for.
    pub offered: Mutex<Vec<S256>>,
    /// Rounds that were taken.
    pub rounds: Mutex<Vec<Continuation>>,
}

impl Scripted {
    /// How many tickets it gave.
    pub fn tickets(&self) -> u64 {
        self.tickets.load(Ordering::SeqCst)
    }

    /// What her record was told became of calls.
    pub fn told(&self) -> Vec<String> {
        self.reports.lock().unwrap().iter().filter_map(|report| report.summary.clone()).collect()
    }

    /// Nothing was spent or taken, and her record was told nothing.
    pub fn assert_untouched(&self, what: &str) {
        assert!(self.spent.lock().unwrap().is_empty(), "{what}: spent");
        assert!(self.rounds.lock().unwrap().is_empty(), "{what}: taken");
        assert!(self.reports.lock().unwrap().is_empty(), "{what}: reported");
    }

    fn there(&self) -> Result<(), Unavailable> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.gone.load(Ordering::SeqCst) { Err(Unavailable::Unreachable) } else { Ok(()) }
    }

    async fn hold(&self, at: &str) {
        if self.held.lock().unwrap().is_some_and(|held| held == at) {
            self.go_on.notified().await;
        }
        tokio::task::yield_now().await;
    }

    async fn answer_spender(&self, error: Option<&str>) -> Result<ConsumeReply, Unavailable> {
        self.hold("consume").await;
        let slow = *self.slow_consume.lock().unwrap();
        tokio::time::sleep(slow).await;
        let gate = self.gate.lock().unwrap().clone();
        if let Some(gate) = gate {
            drop(gate.acquire().await);
        }
        Ok(ConsumeReply { consumed: error.is_none(), error: error.map(str::to_owned) })
    }

    fn is_spent(&self, token: &str) -> bool {
        self.spent.lock().unwrap().iter().any(|spent| spent == token)
    }

    fn waits(&self, state: &S256) -> bool {
        let taken = self.rounds.lock().unwrap().iter().any(|round| round.state == *state);
        self.offered.lock().unwrap().contains(state) && !taken
    }
}

/// What a token of this name is.
fn named(token: &str) -> Introspection {
    let grant = match token {
        "reader" => grant("get_positions", "positions:read", AGENT),
        "other" => grant("get_positions", "positions:read", OTHER),
        "unbound" => grant("execute_trade", "trades:execute", AGENT),
        trade if trade.starts_with("trade") => {
            let arguments = Json::parse(TRADE.as_bytes(), Limits::default()).unwrap();
            LiveGrant {
                single_use: true,
                operation: Some(Operation::of("execute_trade".parse().unwrap(), &arguments).unwrap()),
                bind: trade.starts_with("trade-asks"),
                ..grant("execute_trade", "trades:execute", AGENT)
            }
        }
        reason => return Introspection::Dead(reason.to_owned().into()),
    };
    Introspection::Live(Box::new(grant))
}

#[async_trait]
impl Authority for Scripted {
    async fn permission(
        &self,
        _request: &PermissionRequest,
    ) -> Result<Result<PermissionReply, PermissionFault>, Unavailable> {
        self.there()?;
        if self.stale.load(Ordering::SeqCst) {
            return Ok(Err(PermissionFault::InvalidScope));
        }
        let nth = self.tickets.fetch_add(1, Ordering::SeqCst);
        Ok(Ok(format!("ticket-{nth}").into()))
    }

    async fn introspect(&self, token: &str) -> Result<Introspection, Unavailable> {
        self.there()?;
        self.hold("introspect").await;
        let slow = *self.slow_introspect.lock().unwrap();
        tokio::time::sleep(slow).await;
        self.introspected.fetch_add(1, Ordering::SeqCst);
        Ok(match *self.ended.lock().unwrap() {
            Some(reason) => Introspection::Dead(reason.to_owned().into()),
            None => named(token),
        })
    }

    async fn consume(&self, token: &str, _attempt: &str) -> Result<ConsumeReply, Unavailable> {
        self.there()?;
        if self.silent_consume.load(Ordering::SeqCst) {
            return Err(Unavailable::Interrupted);
        }
        let lost = self.is_spent(token).then_some("already_consumed");
        self.spent.lock().unwrap().push(token.to_owned());
        self.answer_spender(lost).await
    }

    async fn introspect_round(&self, token: &str, state: &S256) -> Result<Introspection, Unavailable> {
        Ok(match self.introspect(token).await? {
            Introspection::Live(grant) if grant.single_use && self.is_spent(token) => {
                match grant.bind && self.waits(state) {
                    true => Introspection::Live(Box::new(LiveGrant {
                        continuation: Some(state.clone()),
                        ..*grant
                    })),
                    false => Introspection::Dead(Inactive::AlreadyConsumed),
                }
            }
            other => other,
        })
    }

    async fn resume(
        &self,
        _token: &str,
        _attempt: &str,
        round: &Continuation,
    ) -> Result<ConsumeReply, Unavailable> {
        self.there()?;
        let lost = (!self.waits(&round.state)).then_some(UNKNOWN_CONTINUATION);
        if lost.is_none() {
            self.rounds.lock().unwrap().push(round.clone());
        }
        self.answer_spender(lost).await
    }

    async fn report(&self, report: &AccessReport) -> Result<(), Unavailable> {
        if self.no_reports.load(Ordering::SeqCst) {
            return Err(Unavailable::Unreachable);
        }
        match &report.continuation {
            Some(state) => self.offered.lock().unwrap().push(state.clone()),
            None => self.reports.lock().unwrap().push(report.clone()),
        }
        self.there()
    }
}
