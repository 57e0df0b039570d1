//! A policy that answers what a vector says, and tokens known by heart.

use async_trait::async_trait;
use sayso_coaz::answer::{AnswerFault, Decision, Decisions};
use sayso_coaz::authzen::{Object, Request};
use sayso_coaz::{Deciding, DecisionPoint, Fault, Settings, Why};
use sayso_enforce::policy::{Denials, Mappings, Policy, PolicySettings};
use sayso_enforce::{AccessTokens, Enforcement, Policed, TokenFault};
use sayso_protocol::json::Limits;
use sayso_protocol::{Json, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The resource, as tokens name it.
const SERVER: &str = "https://gw.example.test/mcp";

pub(crate) struct Scripted {
    says: String,
    alone: bool,
    asked: AtomicU64,
}

impl Scripted {
    pub(crate) fn alone(says: &str) -> Arc<Self> {
        Arc::new(Self { says: says.to_owned(), alone: true, asked: AtomicU64::new(0) })
    }

    pub(crate) fn beside_her(says: &str) -> Arc<Self> {
        Arc::new(Self { says: says.to_owned(), alone: false, asked: AtomicU64::new(0) })
    }

    /// How often it was asked since somebody looked.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.swap(0, Ordering::SeqCst)
    }

    pub(crate) fn enforcement(self: &Arc<Self>) -> Enforcement {
        let settings = PolicySettings {
            mapping: Settings {
                server: Some(SERVER.to_owned()),
                extra_defaults: ["subscriptions/listen".to_owned()].into(),
                ..Settings::default()
            },
            mappings: Mappings::undeclared(),
            point: self.clone(),
            filter_lists: false,
            audit_arguments: false,
            denials: Denials::default(),
        };
        let policy = Arc::new(Policy::new(settings).unwrap());
        match self.alone {
            true => Enforcement::Coaz(Policed { policy, tokens: Arc::new(Tokens) }),
            false => Enforcement::UmaAndCoaz(policy),
        }
    }

    fn decision(&self) -> Option<Decision> {
        let plain = |decision| Some(Decision { decision, context: None });
        match self.says.as_str() {
            "yes" => plain(true),
            "no" => plain(false),
            "obliged" => {
                let context = Object::of(json(r#"{"obligations":["log"]}"#));
                Some(Decision { decision: true, context })
            }
            _ => None,
        }
    }
}

impl DecisionPoint for Scripted {
    fn decide<'a>(&'a self, request: &'a Request, _request_id: &'a str) -> Deciding<'a> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let none = || Fault { place: String::new(), why: Why::Answer(AnswerFault::None) };
        let answer = self.decision().ok_or_else(none);
        Box::pin(async move { Decisions::new(request, vec![answer?]) })
    }
}

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes(), Limits::default()).unwrap()
}

struct Tokens;

#[async_trait]
impl AccessTokens for Tokens {
    async fn validate(&self, token: &str, _now: Timestamp) -> Result<Json, TokenFault> {
        let iss = "https://idp.example.test";
        match token {
            "ann" => Ok(json(&format!(
                r#"{{"iss":"{iss}","sub":"u-ann","client_id":"agent-7","aud":"{SERVER}"}}"#
            ))),
            "nobody" => Ok(json(&format!(r#"{{"iss":"{iss}","aud":"{SERVER}"}}"#))),
            "unheard" => Err(TokenFault::Unavailable),
            _ => Err(TokenFault::Invalid("the token is not good here")),
        }
    }

    fn issuers(&self) -> &[String] {
        &[]
    }
}
