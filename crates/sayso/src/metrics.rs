//! What this process counts, for Prometheus (design 4.6).
//!
//! Enforcement and authority tell what happened in words of ours through two small traits; only here do the words become
//! numbers. No label holds text of anybody else's, so neither a secret nor a stranger's megabyte can be among them.

mod listener;

pub(crate) use listener::{Listening, serve};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use sayso_authority::Observed;
use sayso_enforce::Outcome;
use sayso_owner::store::Store;
use std::sync::Arc;
use std::time::Duration;

/// Upper bounds of every histogram, in seconds: from a decision in memory to a store that hangs.
const BOUNDS: [f64; 17] = [
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1,
    0.25, 0.5, 1.0, 5.0,
];

type Label = (&'static str, &'static str);
type Timed = Family<[Label; 1], Histogram, fn() -> Histogram>;

/// Everything counted here. What a role does not do is not shown.
pub(crate) struct Metrics {
    registry: Registry,
    waiting: Option<Waiting>,
}

/// How many requests wait for their owners, asked when somebody looks.
struct Waiting {
    store: Arc<dyn Store>,
    /// Without a sample while the store does not answer.
    gauge: Family<[Label; 0], Gauge>,
}

struct Decisions {
    counted: Family<[Label; 2], Counter>,
    timed: Histogram,
    /// What policy engines said.
    consulted: Family<[Label; 1], Counter>,
    waited: Timed,
    /// Mappings that somebody should know of.
    warned: Family<[Label; 1], Counter>,
}

#[cfg(feature = "cedar")]
struct PolicyDecisions {
    counted: Family<[Label; 1], Counter>,
    timed: Histogram,
}

struct Negotiations {
    counted: Family<[Label; 1], Counter>,
    timed: Timed,
}

impl Metrics {
    /// The program's own facts, and nothing counted yet.
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("sayso");
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The program", build);
        Self { registry, waiting: None }
    }

    /// Counts decisions of an enforcement point.
    pub(crate) fn decisions(&mut self) -> Arc<dyn sayso_enforce::Observer> {
        let counted = Family::default();
        let timed = Histogram::new(BOUNDS);
        self.registry.register("decisions", "Requests decided", counted.clone());
        let help = "From the whole request to its verdict";
        self.registry.register_with_unit("decision", help, Unit::Seconds, timed.clone());
        let consulted = Family::default();
        let waited = Timed::new_with_constructor(|| Histogram::new(BOUNDS));
        self.registry.register("policy_decisions", "What a policy engine said", consulted.clone());
        let help = "From a question to a policy engine to its answer";
        self.registry.register_with_unit("policy_decision", help, Unit::Seconds, waited.clone());
        let warned = Family::default();
        let help = "Mappings whose word about a subject is their author's";
        self.registry.register("mapping_warnings", help, warned.clone());
        Arc::new(Decisions { counted, timed, consulted, waited, warned })
    }

    /// Counts presentations at an authority, and times its store.
    pub(crate) fn negotiations(&mut self) -> Observed {
        let counted = Family::default();
        let timed = Timed::new_with_constructor(|| Histogram::new(BOUNDS));
        let help = "Presentations of a ticket, by where they took the negotiation";
        self.registry.register("negotiations", help, counted.clone());
        let help = "Reads, and writes until they are durable";
        self.registry.register_with_unit("store", help, Unit::Seconds, timed.clone());
        Observed::by(Arc::new(Negotiations { counted, timed }))
    }

    /// Counts decisions of a policy decision point.
    #[cfg(feature = "cedar")]
    pub(crate) fn policy_decisions(&mut self) -> Arc<dyn sayso_pdp::serve::Observer> {
        let counted = Family::default();
        let timed = Histogram::new(BOUNDS);
        self.registry.register("pdp_decisions", "Decisions on requests of others", counted.clone());
        let help = "From the request to its decision";
        self.registry.register_with_unit("pdp_decision", help, Unit::Seconds, timed.clone());
        Arc::new(PolicyDecisions { counted, timed })
    }

    /// Shows how many requests wait in this store.
    pub(crate) fn pending(&mut self, store: Arc<dyn Store>) {
        let gauge = Family::default();
        self.registry.register("pending", "Requests that wait for their owner", gauge.clone());
        self.waiting = Some(Waiting { store, gauge });
    }

    /// All of it as OpenMetrics text.
    async fn text(&self) -> String {
        if let Some(waiting) = &self.waiting {
            waiting.ask().await;
        }
        let mut text = String::new();
        // INVARIANT: writing to a string does not fail, and everything registered here has a text form.
        let _written = encode(&mut text, &self.registry);
        text
    }
}

impl Waiting {
    async fn ask(&self) {
        match self.store.waiting(crate::clock::now()).await {
            Ok(count) => drop(self.gauge.get_or_create(&[]).set(count)),
            Err(_) => self.gauge.clear(),
        }
    }
}

impl sayso_enforce::Observer for Decisions {
    fn decided(&self, outcome: Outcome, reason: &'static str, took: Duration) {
        self.counted.get_or_create(&[("outcome", outcome.as_str()), ("reason", reason)]).inc();
        self.timed.observe(took.as_secs_f64());
    }

    fn consulted(&self, decision: &'static str, took: Duration) {
        self.consulted.get_or_create(&[("decision", decision)]).inc();
        self.waited.get_or_create(&[("decision", decision)]).observe(took.as_secs_f64());
    }

    fn warned(&self, notice: &'static str) {
        self.warned.get_or_create(&[("notice", notice)]).inc();
    }
}

#[cfg(feature = "cedar")]
impl sayso_pdp::serve::Observer for PolicyDecisions {
    fn decided(&self, result: &'static str, took: Duration) {
        self.counted.get_or_create(&[("result", result)]).inc();
        self.timed.observe(took.as_secs_f64());
    }
}

impl sayso_authority::Observer for Negotiations {
    fn presented(&self, result: &'static str) {
        self.counted.get_or_create(&[("result", result)]).inc();
    }

    fn stored(&self, op: &'static str, took: Duration) {
        self.timed.get_or_create(&[("op", op)]).observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_told_is_counted_under_the_documented_names() {
        let mut metrics = Metrics::new();
        let decisions = metrics.decisions();
        decisions.decided(Outcome::Denied, "invalid_token", Duration::from_micros(80));
        decisions.decided(Outcome::Denied, "invalid_token", Duration::from_secs(60));
        decisions.consulted("deny", Duration::from_millis(2));
        decisions.warned("subject_unverified");
        let text = metrics.text().await;
        for line in [
            "sayso_policy_decisions_total{decision=\"deny\"} 1".to_owned(),
            "sayso_mapping_warnings_total{notice=\"subject_unverified\"} 1".into(),
            "sayso_policy_decision_seconds_count{decision=\"deny\"} 1".into(),
            format!("sayso_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")),
            "sayso_decisions_total{outcome=\"denied\",reason=\"invalid_token\"} 2".into(),
            "sayso_decision_seconds_bucket{le=\"0.0001\"} 1".into(),
            "sayso_decision_seconds_bucket{le=\"+Inf\"} 2".into(),
            "sayso_decision_seconds_count 2".into(),
            "# EOF".into(),
        ] {
            assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("sayso_store") && !text.contains("sayso_pending"), "{text}");
    }
}
