//! The cast of tests about policies: a decision point that answers by script, tokens, and a server that lists its tools.

#![cfg(feature = "coaz")]

use crate::access_token::{AccessTokens, TokenFault};
use crate::call::Incoming;
use crate::enforcement::{Enforcement, Policed};
use crate::policy::{Filter, Lister, Mappings, Policy, PolicySettings, Question};
use crate::resource::ResourceSettings;
use crate::scripted::{post, settings};
use async_trait::async_trait;
use http::HeaderValue;
use sayso_coaz::answer::{AnswerFault, Decision, Decisions};
use sayso_coaz::authzen::{Object, Request};
use sayso_coaz::{Deciding, DecisionPoint, Fault, Settings, Why};
use sayso_protocol::json::Limits;
use sayso_protocol::method::Revision;
use sayso_protocol::{Json, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The resource of the scripted settings.
pub(crate) const SERVER: &str = "https://gw.example.test/mcp";

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.as_bytes(), Limits::default()).unwrap()
}

/// What a decision point says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    Yes,
    No,
    Obliged,
    Nothing,
    TooFew,
    /// Yes to the first of several, no to the others.
    FirstOnly,
}

type Meanwhile = Box<dyn Fn() + Send + Sync>;

/// A decision point, and what it was asked.
pub(crate) struct Point {
    pub(crate) says: Mutex<Says>,
    pub(crate) asked: Mutex<Vec<(String, String)>>,
    /// What happens while it thinks.
    pub(crate) meanwhile: Mutex<Option<Meanwhile>>,
}

impl Point {
    pub(crate) fn saying(says: Says) -> Arc<Self> {
        Arc::new(Self { says: Mutex::new(says), asked: Mutex::default(), meanwhile: Mutex::default() })
    }

    /// The bodies it was asked, and the API of each.
    pub(crate) fn bodies(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(body, _)| body.clone()).collect()
    }

    pub(crate) fn only(&self) -> serde_json::Value {
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
            let decision = |decision| Decision { decision, context: None };
            let all = |answer: bool| (0..request.decisions()).map(|_| decision(answer)).collect::<Vec<_>>();
            let decisions = match *self.says.lock().unwrap() {
                Says::Yes => all(true),
                Says::No => all(false),
                Says::FirstOnly => (0..request.decisions()).map(|nth| decision(nth == 0)).collect(),
                Says::Obliged => {
                    let context = Object::of(json(r#"{"obligations":[{"id":"log"}]}"#));
                    vec![Decision { decision: true, context }]
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

/// Tokens that are known by heart.
pub(crate) struct Tokens;

#[async_trait]
impl AccessTokens for Tokens {
    async fn validate(&self, token: &str, _now: Timestamp) -> Result<Json, TokenFault> {
        let claims = |sub: &str, client: &str| {
            json(&format!(
                r#"{{"iss":"https://idp.example.test","sub":"{sub}","client_id":"{client}","aud":["https://other.test","{SERVER}"],"exp":1790000600}}"#
            ))
        };
        match token {
            "ann" => Ok(claims("u-ann", "agent-7")),
            "ann-elsewhere" => Ok(claims("u-ann", "agent-8")),
            "bob" => Ok(claims("u-bob", "agent-7")),
            "ann-by-7" | "bob-by-7" => {
                let by = token.strip_suffix("-by-7").unwrap_or_default();
                Ok(json(&format!(
                    r#"{{"iss":"https://idp.example.test","sub":"agent-7","obo":"u-{by}","client_id":"c","aud":"{SERVER}"}}"#
                )))
            }
            "nobody" => Ok(json(&format!(r#"{{"iss":"https://idp.example.test","aud":"{SERVER}"}}"#))),
            "unheard" => Err(TokenFault::Unavailable),
            _ => Err(TokenFault::Invalid("the token is not good here")),
        }
    }

    fn issuers(&self) -> &[String] {
        static ISSUERS: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
        ISSUERS.get_or_init(|| vec!["https://idp.example.test".to_owned()])
    }
}

/// A server that lists what it is told to, or nothing.
pub(crate) struct Lists {
    pub(crate) pages: Mutex<Option<Vec<Json>>>,
    pub(crate) changes: AtomicU64,
    pub(crate) asked: AtomicU64,
}

impl Lists {
    pub(crate) fn these(pages: &[&str]) -> Arc<Self> {
        let pages = pages.iter().map(|page| json(page)).collect();
        Arc::new(Self {
            pages: Mutex::new(Some(pages)),
            changes: AtomicU64::new(0),
            asked: AtomicU64::new(0),
        })
    }

    pub(crate) fn asked(&self) -> u64 {
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

pub(crate) fn policy(
    point: &Arc<Point>,
    mappings: Mappings,
    extra: &[&str],
    filter_lists: bool,
) -> Arc<Policy> {
    let mapping = Settings {
        server: Some(SERVER.to_owned()),
        extra_defaults: extra.iter().map(|method| (*method).to_owned()).collect(),
        ..Settings::default()
    };
    let point: Arc<dyn DecisionPoint> = point.clone();
    let settings = PolicySettings { mapping, mappings, point, filter_lists, audit_arguments: false };
    Arc::new(Policy::new(settings).unwrap())
}

/// The same where another claim is designated for the subject.
pub(crate) fn claiming(point: &Arc<Point>, claim: &str) -> Arc<Policy> {
    let mapping = Settings {
        server: Some(SERVER.to_owned()),
        subject_claims: [("https://idp.example.test".to_owned(), claim.to_owned())].into(),
        ..Settings::default()
    };
    let (point, mappings): (Arc<dyn DecisionPoint>, _) = (point.clone(), Mappings::undeclared());
    let settings = PolicySettings { mapping, mappings, point, filter_lists: false, audit_arguments: false };
    Arc::new(Policy::new(settings).unwrap())
}

/// The scripted resource before a policy alone.
pub(crate) fn policed(policy: Arc<Policy>) -> ResourceSettings {
    let enforcement = Enforcement::Coaz(Policed { policy, tokens: Arc::new(Tokens) });
    ResourceSettings { enforcement, tools: vec![], ..settings() }
}

/// How the answer to a `tools/list` is cut by what this point says, where one tool declares a mapping.
pub(crate) fn filtering(point: &Arc<Point>) -> Filter {
    let page = r#"{"tools":[{"name":"b","inputSchema":{"x-authzen-mapping":{"evaluation":{
        "action":{"name":"pay"},"resource":{"type":"account","id":"$params.arguments.account"}}}}}]}"#;
    filtering_by(point, Mappings::fixed(&[json(page)]).unwrap())
}

/// The same by these mappings.
pub(crate) fn filtering_by(point: &Arc<Point>, mappings: Mappings) -> Filter {
    let body = br#"{"jsonrpc":"2.0","id":"x","method":"tools/list"}"#;
    let message = sayso_protocol::message::parse(body, Limits::default()).unwrap();
    let token = json(r#"{"sub":"u-ann","client_id":"agent-7"}"#);
    let (headers, revision) = (http::HeaderMap::new(), Revision::V20260728);
    let question = Question { message: &message, headers: &headers, revision, token: &token, observer: None };
    policy(point, mappings, &[], true).filter(&question).unwrap()
}

/// The same request, by whoever holds this token.
pub(crate) fn by(mut incoming: Incoming, token: &str) -> Incoming {
    let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
    incoming.head.headers.insert("authorization", value);
    incoming
}

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A modern request of any method.
pub(crate) fn asks(method: &str, name: Option<&str>, params: &str) -> Incoming {
    let params = if params.is_empty() { String::new() } else { format!("{params},") };
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}"_meta":{META}}}}}"#);
    post(body, method, name)
}
