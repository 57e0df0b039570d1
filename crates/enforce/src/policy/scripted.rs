//! A decision point that answers by script, tokens that are known by heart, and a server that lists its tools: for the tests
//! of hosts.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot script its policy has failed"
)]

use super::{Denials, Lister, Mappings, Policy, PolicySettings};
use crate::access_token::{AccessTokens, TokenFault};
use crate::enforcement::Policed;
use async_trait::async_trait;
use sayso_coaz::answer::{AnswerFault, Decision, Decisions};
use sayso_coaz::authzen::{Object, Request};
use sayso_coaz::{Deciding, DecisionPoint, Fault, Settings, Trust, Why};
use sayso_protocol::json::Limits;
use sayso_protocol::{Json, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The resource, as tokens name it.
pub const SERVER: &str = "https://gw.example.test/mcp";

/// The issuer of the tokens.
pub const ISSUER: &str = "https://idp.example.test";

/// A value, of its text.
pub fn json(text: &str) -> Json {
    Json::parse(text.as_bytes(), Limits::default()).unwrap()
}

/// What a decision point says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// Yes to everything.
    Yes,
    /// No to everything.
    No,
    /// Yes, with a duty.
    Obliged,
    /// Nothing.
    Nothing,
    /// Fewer decisions than it was asked for.
    TooFew,
    /// Yes to the first of several, no to the others.
    FirstOnly,
    /// No, with words in several places of its context.
    NoSaying,
}

type Meanwhile = Box<dyn Fn() + Send + Sync>;

/// A decision point, and what it was asked.
pub struct Point {
    /// What it says.
    pub says: Mutex<Says>,
    /// The body of each question, and its id.
    pub asked: Mutex<Vec<(String, String)>>,
    /// What happens while it thinks.
    pub meanwhile: Mutex<Option<Meanwhile>>,
}

impl Point {
    /// One that says this.
    pub fn saying(says: Says) -> Arc<Self> {
        Arc::new(Self { says: Mutex::new(says), asked: Mutex::default(), meanwhile: Mutex::default() })
    }

    /// The bodies it was asked.
    pub fn bodies(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(body, _)| body.clone()).collect()
    }

    /// The one body it was asked.
    pub fn only(&self) -> serde_json::Value {
        let [body] = self.bodies().try_into().expect("one question");
        serde_json::from_str(&body).unwrap()
    }
}

impl DecisionPoint for Point {
    fn decide<'a>(&'a self, request: &'a Request, request_id: &'a str) -> Deciding<'a> {
        let body = String::from_utf8(request.body().unwrap()).unwrap();
        self.asked.lock().unwrap().push((body, request_id.to_owned()));
        Box::pin(async move {
            tokio::task::yield_now().await;
            if let Some(meanwhile) = &*self.meanwhile.lock().unwrap() {
                meanwhile();
            }
            let plain = |decision| Decision { decision, context: None };
            let saying =
                |decision, context: &str| vec![Decision { decision, context: Object::of(json(context)) }];
            let all = |answer: bool| (0..request.decisions()).map(|_| plain(answer)).collect::<Vec<_>>();
            let decisions = match *self.says.lock().unwrap() {
                Says::Yes => all(true),
                Says::No => all(false),
                Says::FirstOnly => (0..request.decisions()).map(|nth| plain(nth == 0)).collect(),
                Says::Obliged => saying(true, r#"{"obligations":[{"id":"log"}]}"#),
                Says::NoSaying => {
                    saying(false, r#"{"reason":"R","reason_user":{"en":"not\u202e today\n- ever"}}"#)
                }
                Says::TooFew => vec![],
                Says::Nothing => {
                    return Err(Fault { place: String::new(), why: Why::Answer(AnswerFault::None) });
                }
            };
            Decisions::new(request, decisions)
        })
    }
}

/// Tokens that are known by heart: `ann` and `ann-elsewhere` of one subject, `bob` of another, `nobody` of none, `brief` of
/// the first and for two seconds, `ann-by-7` and `bob-by-7` of one that acts for them; nobody can say of `unheard`, and
/// every other is bad.
pub struct Tokens;

#[async_trait]
impl AccessTokens for Tokens {
    async fn validate(&self, token: &str, _now: Timestamp) -> Result<Json, TokenFault> {
        let claims = |sub: &str, client: &str, expires: i64| {
            json(&format!(
                r#"{{"iss":"{ISSUER}","sub":"{sub}","client_id":"{client}","aud":["https://other.test","{SERVER}"],"exp":{expires}}}"#
            ))
        };
        match token {
            "ann" => Ok(claims("u-ann", "agent-7", 1_790_000_600)),
            "brief" => Ok(claims("u-ann", "agent-7", 1_790_000_002)),
            "ann-elsewhere" => Ok(claims("u-ann", "agent-8", 1_790_000_600)),
            "bob" => Ok(claims("u-bob", "agent-7", 1_790_000_600)),
            "ann-by-7" | "bob-by-7" => {
                let by = token.strip_suffix("-by-7").unwrap_or_default();
                Ok(json(&format!(
                    r#"{{"iss":"{ISSUER}","sub":"agent-7","obo":"u-{by}","client_id":"c","aud":"{SERVER}"}}"#
                )))
            }
            "nobody" => Ok(json(&format!(r#"{{"iss":"{ISSUER}","aud":"{SERVER}"}}"#))),
            "unheard" => Err(TokenFault::Unavailable),
            _ => Err(TokenFault::Invalid("the token is not good here")),
        }
    }

    fn issuers(&self) -> &[String] {
        static ISSUERS: OnceLock<Vec<String>> = OnceLock::new();
        ISSUERS.get_or_init(|| vec![ISSUER.to_owned()])
    }
}

/// A server that lists what it is told to, or nothing.
pub struct Lists {
    /// What it lists.
    pub pages: Mutex<Option<Vec<Json>>>,
    /// How often it said that that changed.
    pub changes: AtomicU64,
    asked: AtomicU64,
}

impl Lists {
    /// One that lists these pages.
    pub fn these(pages: &[&str]) -> Arc<Self> {
        let pages = Mutex::new(Some(pages.iter().map(|page| json(page)).collect()));
        Arc::new(Self { pages, changes: AtomicU64::new(0), asked: AtomicU64::new(0) })
    }

    /// How often it was asked.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Lister for Lists {
    async fn list(&self) -> Option<Vec<Json>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.pages.lock().unwrap().clone()
    }

    fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }
}

/// What a policy is like beside what it says.
pub struct Script {
    /// The mappings of its server.
    pub mappings: Mappings,
    /// Methods mapped beyond the binding.
    pub extra: Vec<String>,
    /// Whether lists are cut.
    pub filter_lists: bool,
    /// How a no is told.
    pub denials: Denials,
    /// How far its server's words are taken.
    pub trust: Trust,
    /// The claim that is designated for the subject.
    pub subject_claim: Option<String>,
}

impl Default for Script {
    /// Of a server whose tools declare nothing.
    fn default() -> Self {
        let (mappings, trust) = (Mappings::undeclared(), Trust::Warn);
        let (denials, subject_claim) = (Denials::default(), None);
        Self { mappings, extra: vec![], filter_lists: false, denials, trust, subject_claim }
    }
}

impl Script {
    /// Of a server with this one tool, whose mapping takes the subject from an argument.
    pub fn unanchored(tool: &str, trust: Trust) -> Self {
        let page = format!(
            r#"{{"tools":[{{"name":"{tool}","inputSchema":{{"x-authzen-mapping":{{"evaluation":{{
            "subject":{{"type":"identity","id":"$params.arguments.who"}},"action":{{"name":"look"}},
            "resource":{{"type":"w","id":"1"}},"context":{{"agent":"$token.client_id"}}}}}}}}}}]}}"#
        );
        let mappings = Mappings::fixed(&[json(&page)]).unwrap();
        Self { mappings, trust, ..Self::default() }
    }

    /// The policy that this decision point decides.
    pub fn by(self, point: &Arc<Point>) -> Arc<Policy> {
        let mapping = Settings {
            server: Some(SERVER.to_owned()),
            subject_claims: self.subject_claim.map(|claim| (ISSUER.to_owned(), claim)).into_iter().collect(),
            extra_defaults: self.extra.into_iter().collect(),
            trust: self.trust,
            ..Settings::default()
        };
        let settings = PolicySettings {
            mapping,
            mappings: self.mappings,
            point: Arc::clone(point) as Arc<dyn DecisionPoint>,
            filter_lists: self.filter_lists,
            audit_arguments: false,
            denials: self.denials,
        };
        Arc::new(Policy::new(settings).unwrap())
    }

    /// The same, and these tokens.
    pub fn policed(self, point: &Arc<Point>) -> Policed {
        Policed { policy: self.by(point), tokens: Arc::new(Tokens) }
    }
}
