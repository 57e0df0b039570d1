//! The enforcement engine before a scripted authority: `METHOD TARGET GRANT [sign]`, header lines, an empty line, a
//! body. GRANT says what the authority knows of any token; `sign` has the request signed with the grant's key.
//! Whatever comes, nothing is permitted that the body, the grant and the signature do not carry (CORE-83 to CORE-90).

use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderValue;
use sayso_enforce::resource::ToolSettings;
use sayso_enforce::{
    Authority, Body, Clock, Engine, Head, Incoming, Named, Outlet, Permit, Replay, Resource,
    ResourceSettings, Unavailable, Verdict,
};
use sayso_protocol::json::Limits;
use sayso_protocol::method::{UmaClass, uma_class};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::operation::Operation;
use sayso_protocol::payload::protection::{
    AccessReport, ConsumeReply, Inactive, Introspection, LiveGrant, PermissionFault, PermissionReply,
    PermissionRequest,
};
use sayso_protocol::payload::rpt::{Confirmation, Permission, SCHEME};
use sayso_protocol::sig::{self, Facts, Profile, SignOptions};
use sayso_protocol::{Json, SigningKey, Timestamp, canon};
use serde_json::Value;

use super::{framed, ready};

/// The time of the vectors, and of every check.
pub(crate) const NOW: Timestamp = Timestamp(1_790_000_000);
/// The tool of which one grant lets one call through.
const TRADE: &str = "execute_trade";
/// The arguments of that call.
const ARGUMENTS: &[u8] = br#"{"symbol":"VTI","quantity":3}"#;

/// The body.
pub fn check(bytes: &[u8]) {
    let (line, rest) = framed::first_line(bytes);
    let words: Vec<&str> = line.split(' ').collect();
    let [method, target, grant, sign @ ..] = words.as_slice() else { return };
    let (Ok(method), Ok(target)) = (method.parse(), target.parse()) else { return };
    let (headers, body) = framed::message(rest);
    let mut incoming =
        Incoming { head: Head { method, target, headers }, body: Body::Whole(Bytes::copy_from_slice(body)) };
    if *sign == ["sign"] && shown(&mut incoming, body).is_none() {
        return;
    }
    let authority = Arc::new(Scripted::knowing(grant));
    let asking: Arc<dyn Authority> = authority.clone();
    let clock: Clock = Arc::new(|| NOW);
    let engine = Engine::new(resource(), asking, Arc::new(Replay::new(NOW.plus(-300))), clock);
    let verdict = ready::now(engine.decide(&incoming, &Door));
    let asked = authority.asked();
    let refused_unread = engine.preview(&incoming.head, Named::Nothing).is_err();
    let of_policy = matches!(verdict, Verdict::Policy(_) | Verdict::Bearer(_));
    assert!(!of_policy, "the owner alone is asked here");
    match verdict {
        Verdict::Permit(permit) => {
            assert!(!refused_unread, "the head alone forbids it");
            permitted(permit, &incoming, body, &asked, grant);
        }
        Verdict::Challenge(challenge) => {
            assert_eq!(
                asked.iter().filter(|word| **word == "permission").count(),
                1,
                "one ticket a challenge"
            );
            assert!(!asked.contains(&"consume") && challenge.ticket == "ticket-1");
        }
        Verdict::Refuse(refusal) => {
            assert!(!asked.contains(&"consume") && !refusal.spent, "spent, and refused");
            assert!(refusal.code.status() >= 400);
        }
        Verdict::Policy(_) | Verdict::Bearer(_) => {}
        Verdict::Fault(fault) => {
            assert!(asked.is_empty(), "asked about what is no message");
            assert!(Json::parse(&fault.body(), Limits::default()).is_ok() && fault.http_status >= 200);
        }
    }
}

/// What lets a request through, as another reader of the same bytes sees it.
fn permitted(permit: Permit<()>, incoming: &Incoming, body: &[u8], asked: &[&str], grant: &str) {
    let granted = permit.is_granted();
    let clearance = permit.redeem().expect("a permit given just now");
    assert_eq!(clearance.body, body, "other bytes are forwarded than were judged");
    let Ok(lax) = serde_json::from_slice::<Value>(body) else { return };
    let method = lax.get("method").and_then(Value::as_str).unwrap_or_default();
    if !granted {
        assert!(asked.is_empty());
        return assert_eq!(uma_class(method), UmaClass::Open, "{method} went through without a grant");
    }
    assert_eq!((method, asked.first()), ("tools/call", Some(&"introspect")));
    let tool = lax.pointer("/params/name").and_then(Value::as_str).unwrap_or_default();
    assert_eq!(tool == TRADE, grant == "single", "a grant for one tool lets another through");
    let facts = facts(incoming, body);
    let proof = sig::read(&incoming.head.headers)
        .and_then(|read| read.verify(&facts, key().verifying(), &Profile::default(), NOW));
    assert!(proof.is_ok(), "let through without proof");
    if grant == "single" {
        assert!(asked.ends_with(&["consume"]) && clearance.spent.is_some() && clearance.sender.is_some());
        let arguments = Json::parse(body, Limits::default()).ok();
        let arguments = arguments.as_ref().and_then(|root| root.get("params")?.get("arguments"));
        assert_eq!(
            arguments.map(canon::s256),
            Some(Ok(operation().params_s256)),
            "another call than the approved"
        );
    } else {
        assert!(grant != "dead" && asked.ends_with(&["report"]) && clearance.spent.is_none());
    }
}

/// Shows a token and signs; `None` when the request cannot be signed.
pub(crate) fn shown(incoming: &mut Incoming, body: &[u8]) -> Option<()> {
    let token = HeaderValue::from_static("PoP header.claims.signature");
    incoming.head.headers.insert("authorization", token);
    let signed = sig::sign(&facts(incoming, body), &key(), NOW, &SignOptions::default()).ok()?;
    signed.insert_into(&mut incoming.head.headers);
    Some(())
}

fn facts<'a>(incoming: &'a Incoming, body: &'a [u8]) -> Facts<'a> {
    Facts {
        method: incoming.head.method.as_str(),
        scheme: "https",
        authority: "gw.example.test",
        path: incoming.head.path(),
        query: incoming.head.query(),
        headers: &incoming.head.headers,
        body: sig::Body::Whole(body),
    }
}

pub(crate) fn key() -> SigningKey {
    SigningKey::from_seed(&[0x22; 32]).expect("the vectors' key")
}

fn operation() -> Operation {
    let arguments = Json::parse(ARGUMENTS, Limits::default()).expect("fixed arguments");
    Operation::of(TRADE.parse().expect("a tool"), &arguments).expect("a fixed operation")
}

/// The tools of the vectors.
pub(crate) fn tools() -> Vec<ToolSettings> {
    let tool = |name: &str, scope: &str| ToolSettings {
        tool: name.parse().expect("a tool"),
        resource_id: format!("vault/{name}").parse().expect("an id"),
        scopes: vec![scope.parse().expect("a scope")],
        single_use: name == TRADE,
        consequence: None,
        definition: None,
        mirrors: Vec::new(),
        surface: None,
    };
    vec![tool("get_positions", "positions:read"), tool(TRADE, "trades:execute")]
}

/// The resource of the vectors.
pub(crate) fn resource() -> Arc<Resource> {
    static RESOURCE: OnceLock<Arc<Resource>> = OnceLock::new();
    let settings = || ResourceSettings {
        url: "https://gw.example.test/mcp".into(),
        realm: "vault".parse().expect("a realm"),
        as_uri: "https://as.example.test".into(),
        client_id: "https://gw.example.test".parse().expect("an id"),
        owner: "alice".parse().expect("an owner"),
        edition: Edition::default(),
        tools: tools(),
        enforcement: sayso_enforce::Enforcement::Uma,
        open_methods: Vec::new(),
        allowed_origins: vec!["https://app.example.test".into()],
        hosts: vec!["gw.example.test".into()],
        accept_uncovered_body: false,
        serve_query: false,
        body_limit: 64 * 1024,
        jwks_uri: "https://gw.example.test/jwks".into(),
        owner_resources_endpoint: "https://gw.example.test/owner-resources".into(),
    };
    RESOURCE.get_or_init(|| Arc::new(Resource::new(settings()).expect("a fixed resource"))).clone()
}

/// An authority that knows one grant, or none, whatever the token; and what it was asked, in order.
pub(crate) struct Scripted {
    dead: bool,
    single: bool,
    asked: Mutex<Vec<&'static str>>,
}

impl Scripted {
    /// One that knows this grant of any token: `reusable`, `single`, or `dead`.
    pub(crate) fn knowing(grant: &str) -> Self {
        Self { dead: grant == "dead", single: grant == "single", asked: Mutex::default() }
    }

    fn note(&self, word: &'static str) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(word);
    }

    pub(crate) fn asked(&self) -> Vec<&'static str> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn grant(&self) -> LiveGrant {
        let (tool, scope) =
            if self.single { (TRADE, "trades:execute") } else { ("get_positions", "positions:read") };
        LiveGrant {
            iss: "https://as.example.test".into(),
            aud: "https://gw.example.test".parse().expect("an id"),
            owner: "alice".parse().expect("an owner"),
            iat: NOW.plus(-10),
            exp: NOW.plus(600),
            token_type: SCHEME.into(),
            cnf: Confirmation { jwk: key().verifying().jwk() },
            permissions: vec![Permission {
                resource_id: format!("vault/{tool}").parse().expect("an id"),
                resource_scopes: vec![scope.parse().expect("a scope")],
                exp: None,
                iat: None,
                nbf: None,
                definition: None,
            }],
            contract: canon::s256_bytes(b"agreement"),
            family: "family-1".parse().expect("an id"),
            consequence: None,
            single_use: self.single,
            operation: self.single.then(operation),
            bind: false,
            continuation: None,
            sub: None,
            client_id: None,
        }
    }
}

#[async_trait]
impl Authority for Scripted {
    async fn permission(
        &self,
        _: &PermissionRequest,
    ) -> Result<Result<PermissionReply, PermissionFault>, Unavailable> {
        self.note("permission");
        Ok(Ok(String::from("ticket-1").into()))
    }

    async fn introspect(&self, _: &str) -> Result<Introspection, Unavailable> {
        self.note("introspect");
        if self.dead {
            return Ok(Introspection::Dead(Inactive::Expired));
        }
        Ok(Introspection::Live(Box::new(self.grant())))
    }

    async fn consume(&self, _: &str, _: &str) -> Result<ConsumeReply, Unavailable> {
        self.note("consume");
        Ok(ConsumeReply { consumed: true, error: None })
    }

    async fn report(&self, _: &AccessReport) -> Result<(), Unavailable> {
        self.note("report");
        Ok(())
    }
}

/// An upstream that can always be had.
pub(crate) struct Door;

impl Outlet for Door {
    type Sender = ();

    fn checkout(&self) -> impl Future<Output = Result<(), Unavailable>> + Send {
        std::future::ready(Ok(()))
    }
}
