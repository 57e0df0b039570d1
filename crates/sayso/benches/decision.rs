//! What a decision costs with the authority in the same process, beside the cryptography and parsing no design avoids.
//!
//! The owner's record is durable before an authorized call goes on, so that is measured twice: without the record, to
//! compare with the floor, and with it, to compare with one durable write.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot set itself up has failed")]

#[path = "../../../benches/beside.rs"]
mod beside;
#[path = "../../../benches/stage.rs"]
mod stage;

use async_trait::async_trait;
use beside::{Beside, Floor};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use sayso::local::LocalAuthority;
use sayso_authority::keys::Keys;
use sayso_authority::store::SqliteStore;
use sayso_authority::{Authority as Hers, Caller, Config, Egress, ProtectionApi};
use sayso_enforce::resource::ToolSettings;
use sayso_enforce::{
    Authority, Body, Engine, Head, Incoming, Outlet, Replay, Resource, ResourceSettings, Unavailable, Verdict,
};
use sayso_fetch::{Client, Reach};
use sayso_protocol::json::Limits;
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::protection::{
    AccessReport, ConsumeReply, Introspection, PermissionFault, PermissionReply, PermissionRequest,
};
use sayso_protocol::sig::{self, Facts, SignOptions};
use sayso_protocol::{b64, canon, message};
use stage::{GATEWAY, ISSUER, NOW, READ, Stage, TRADE};
use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// The owner's authority, but for her record.
struct Unrecorded(Arc<LocalAuthority>);

#[async_trait]
impl Authority for Unrecorded {
    async fn permission(
        &self,
        request: &PermissionRequest,
    ) -> Result<Result<PermissionReply, PermissionFault>, Unavailable> {
        self.0.permission(request).await
    }

    async fn introspect(&self, token: &str) -> Result<Introspection, Unavailable> {
        self.0.introspect(token).await
    }

    async fn consume(&self, token: &str, attempt: &str) -> Result<ConsumeReply, Unavailable> {
        self.0.consume(token, attempt).await
    }

    async fn report(&self, _: &AccessReport) -> Result<(), Unavailable> {
        Ok(())
    }
}

struct Door;

impl Outlet for Door {
    type Sender = ();

    async fn checkout(&self) -> Result<(), Unavailable> {
        Ok(())
    }
}

fn resource() -> Resource {
    let tool = |id: &str, single_use| {
        let name = id.trim_start_matches("vault/");
        ToolSettings {
            tool: name.parse().unwrap(),
            resource_id: id.parse().unwrap(),
            scopes: vec![format!("{name}:use").parse().unwrap()],
            single_use,
            consequence: None,
            definition: None,
            mirrors: vec![],
            surface: None,
        }
    };
    Resource::new(ResourceSettings {
        url: format!("{GATEWAY}/mcp"),
        realm: "vault".parse().unwrap(),
        as_uri: ISSUER.into(),
        client_id: GATEWAY.parse().unwrap(),
        owner: "alice".parse().unwrap(),
        edition: Edition::default(),
        tools: vec![tool(READ, false), tool(TRADE, true)],
        enforcement: sayso_enforce::Enforcement::Uma,
        open_methods: vec![],
        allowed_origins: vec![],
        hosts: vec!["gw.example".into()],
        accept_uncovered_body: false,
        serve_query: false,
        body_limit: 4 << 20,
        jwks_uri: format!("{GATEWAY}/jwks"),
        owner_resources_endpoint: format!("{GATEWAY}/owner-resources"),
    })
    .unwrap()
}

fn post(method: &str, name: Option<&str>, body: Bytes) -> Incoming {
    let mut headers = HeaderMap::new();
    let length = body.len().to_string();
    let lines = [
        ("host", "gw.example"),
        ("content-type", "application/json"),
        ("content-length", &length),
        ("accept", "application/json, text/event-stream"),
        ("user-agent", "an agent/1.0"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    for (line, value) in lines.into_iter().chain(name.map(|name| ("mcp-name", name))) {
        headers.append(HeaderName::from_static(line), HeaderValue::from_str(value).unwrap());
    }
    let head = Head { method: Method::POST, target: "/mcp".parse().unwrap(), headers };
    Incoming { head, body: Body::Whole(body) }
}

/// A modern message; a call is filled up to 1 KiB.
fn body(method: &str) -> Bytes {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    if method != "tools/call" {
        return format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{"_meta":{meta}}}}}"#)
            .into();
    }
    let accounts: Vec<String> =
        (0..8).map(|n| format!(r#"{{"account":"brokerage-{n}","limit":{n}.5,"currency":"CHF"}}"#)).collect();
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"get_positions","arguments":{{"accounts":[{}],"memo":""}},"_meta":{meta}}}}}"#,
        accounts.join(",")
    );
    call.replace(r#""memo":"""#, &format!(r#""memo":"{}""#, "x".repeat(1024 - call.len()))).into()
}

/// An agent's calls with one grant, each signed afresh.
struct Agent<'a> {
    stage: &'a Stage,
    token: HeaderValue,
    body: Bytes,
}

impl Agent<'_> {
    fn signed(&self, times: u64) -> Vec<Incoming> {
        (0..times).map(|nonce| self.sign(&nonce.to_string())).collect()
    }

    fn sign(&self, nonce: &str) -> Incoming {
        let mut incoming = post("tools/call", Some("get_positions"), self.body.clone());
        incoming.head.headers.insert("authorization", self.token.clone());
        let facts = Facts {
            method: "POST",
            scheme: "https",
            authority: "gw.example",
            path: "/mcp",
            query: None,
            headers: &incoming.head.headers,
            body: sig::Body::Whole(&self.body),
        };
        let options = SignOptions { nonce: Some(nonce), ..SignOptions::default() };
        let signature = sig::sign(&facts, &self.stage.agent, NOW, &options).unwrap();
        signature.insert_into(&mut incoming.head.headers);
        incoming
    }
}

/// Decides about each once, by an engine that remembers no signature yet.
fn decide(runtime: &Runtime, engine: &dyn Fn() -> Engine, calls: &[Incoming]) -> Duration {
    let engine = engine();
    runtime.block_on(async {
        let began = Instant::now();
        for incoming in calls {
            match engine.decide(incoming, &Door).await {
                Verdict::Permit(permit) => drop(black_box(permit.redeem().ok())),
                Verdict::Refuse(refusal) => panic!("{refusal:?}"),
                _ => panic!("no permit"),
            }
        }
        began.elapsed()
    })
}

/// What its signature is over (RFC 9421 section 2.5).
fn signed_text(incoming: &Incoming) -> String {
    let field = |name: &str| incoming.head.headers.get(name).map_or("", |value| value.to_str().unwrap());
    let params = field("signature-input").trim_start_matches("sig1=");
    let covered = params.trim_start_matches('(').split(')').next().unwrap().replace('"', "");
    let line = |name: &str| {
        let value = match name {
            "@method" => "POST",
            "@authority" => "gw.example",
            "@path" => "/mcp",
            name => field(name),
        };
        format!("\"{name}\": {value}\n")
    };
    covered.split(' ').map(line).collect::<String>() + &format!("\"@signature-params\": {params}")
}

/// One Ed25519 verification of what is signed with the key parsed, one strict parse, one SHA-256 of the body.
fn floor(stage: &Stage, call: &Incoming) -> impl FnMut(u64) -> Duration + use<> {
    let (text, key) = (signed_text(call), stage.agent.verifying().clone());
    let field = call.head.headers.get("signature").unwrap().to_str().unwrap();
    let signature = b64::decode_standard(field.trim_start_matches("sig1=").trim_matches(':')).unwrap();
    let Body::Whole(body) = call.body.clone() else { panic!("a call has its body") };
    move |times| {
        let began = Instant::now();
        for _ in 0..times {
            key.verify(black_box(text.as_bytes()), black_box(&signature)).unwrap();
            black_box(message::parse(black_box(&body), Limits::default()).unwrap());
            black_box(canon::sha256(black_box(&body)));
        }
        began.elapsed()
    }
}

/// One page written and made durable.
fn durable_page(folder: &Path) -> impl FnMut(u64) -> Duration + use<> {
    let mut file = File::create(folder.join("page")).unwrap();
    move |times| {
        let began = Instant::now();
        for _ in 0..times {
            file.write_all(&[7; 4096]).unwrap();
            file.sync_data().unwrap();
        }
        began.elapsed()
    }
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (stage, local) = runtime.block_on(async {
        let store = Arc::new(SqliteStore::open(&folder.path().join("sayso.db")).unwrap());
        let stage = Stage::set(store.clone()).await;
        let keys = Keys::open_or_create(folder.path()).unwrap();
        let fetch = Arc::new(Client::new(Reach::Configured));
        let egress = Egress { configured: fetch.clone(), strangers: fetch };
        let hers = Hers::open(Config::at(ISSUER), keys, store, egress, Arc::new(|| NOW)).await.unwrap();
        let caller = Caller { owner: stage.alice.clone(), client_id: stage.server.clone() };
        (stage, Arc::new(LocalAuthority::new(ProtectionApi::new(hers), caller)))
    });
    let resource = Arc::new(resource());
    let before = |authority: Arc<dyn Authority>| {
        Engine::new(Arc::clone(&resource), authority, Arc::new(Replay::new(NOW)), Arc::new(|| NOW))
    };
    let unrecorded = || before(Arc::new(Unrecorded(Arc::clone(&local))));
    let recorded = || before(local.clone());
    let token = runtime.block_on(stage.grant(READ));
    let token = HeaderValue::from_str(&format!("PoP {token}")).unwrap();
    let agent = Agent { stage: &stage, token, body: body("tools/call") };
    assert_eq!(agent.body.len(), 1024);
    let mut beside = Beside::new();

    let open = vec![post("tools/list", None, body("tools/list"))];
    let parse = |body: Bytes| {
        move |times| {
            let began = Instant::now();
            for _ in 0..times {
                black_box(message::parse(black_box(&body), Limits::default()).unwrap());
            }
            began.elapsed()
        }
    };
    let listing = Floor { what: "strict parse", timed: parse(body("tools/list")) };
    beside.measure("decision/open method", listing, |times| {
        (0..times).map(|_| decide(&runtime, &unrecorded, &open)).sum()
    });

    let crypto = || Floor {
        what: "Ed25519 verify + strict parse + SHA-256",
        timed: floor(&stage, &agent.sign("floor")),
    };
    beside.measure("decision/authorized, before its record", crypto(), |times| {
        decide(&runtime, &unrecorded, &agent.signed(times))
    });
    let page = Floor { what: "4 KiB written and synced", timed: durable_page(folder.path()) };
    beside.measure("decision/authorized, recorded", page, |times| {
        decide(&runtime, &recorded, &agent.signed(times))
    });
    beside.show();
}
