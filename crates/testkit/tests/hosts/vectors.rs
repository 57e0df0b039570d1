//! The vectors, and the resource they are about.

use super::policy::Scripted;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use sayso_embed::{Hers, Site, SiteConfig, ToolSettings};
use sayso_enforce::authority::keys::KnownKeys;
use sayso_enforce::consequence::Consequence;
use sayso_enforce::listing::Reader;
use sayso_enforce::{Authority, Clock, Enforcement, ServerResource};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::{SigningKey, Timestamp};
use sayso_testkit::source;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) const NOW: Timestamp = Timestamp(1_790_000_000);
pub(crate) const PUBLIC: &str = "https://gw.example.test";
pub(crate) const AS_URI: &str = "https://as.example.test";
pub(crate) const ORIGIN: &str = "https://app.example.test";

/// Where and when: the origin that the resource is dialled at, and the time there; and how it is set up.
pub(crate) struct Stage {
    pub(crate) public: &'static str,
    pub(crate) now: Timestamp,
    pub(crate) edition: Edition,
    pub(crate) enforcement: Enforcement,
    pub(crate) origins: &'static [&'static str],
    /// Further paths of the resource, where a host can be told of them.
    pub(crate) aliases: &'static [&'static str],
    /// Whether a query is served, where a host can be told to.
    pub(crate) serve_query: bool,
    /// What is declared of each tool: its class, and the pin of its definition.
    pub(crate) declared: Option<(Consequence, &'static str)>,
}

/// That of the vectors here.
pub(crate) const STAGE: Stage = Stage {
    public: PUBLIC,
    now: NOW,
    edition: Edition::Sept11,
    enforcement: Enforcement::Uma,
    origins: &[ORIGIN],
    aliases: &[],
    serve_query: false,
    declared: None,
};

/// One request, and what must come of it.
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) introspection: Value,
    pub(crate) permission: Value,
    pub(crate) consume: Value,
    pub(crate) asked: Vec<String>,
    /// The policy that is asked too, or instead.
    pub(crate) policy: Option<Arc<Scripted>>,
    /// How often it is.
    pub(crate) consulted: u64,
    request: Value,
    verdict: Value,
}

/// Every vector of every file.
pub(crate) fn all() -> Vec<Vector> {
    within("vectors/verdict")
}

/// The same where a policy is asked as well, and says this.
pub(crate) fn beside_a_policy(says: &str) -> Vec<Vector> {
    let mut all = all();
    for vector in &mut all {
        vector.policy = Some(Scripted::beside_her(says));
        if vector.introspection["active"] == true {
            vector.introspection["sub"] = "pw:agent".into();
        }
        if vector.verdict["kind"] != "permit" {
            // What ends with the last answer got past the policy.
            if !vector.asked.contains(&"consume".to_owned()) {
                continue;
            }
            if says == "yes" {
                vector.consulted = 1;
                continue;
            }
        }
        vector.consulted = 1;
        if says == "yes" {
            let spent = vector.asked.iter().position(|asked| asked == "report");
            spent.into_iter().for_each(|at| vector.asked.insert(at, "introspect".to_owned()));
        } else {
            vector.asked = vec!["introspect".to_owned()];
            vector.verdict =
                json!({ "kind": "policy", "jsonrpc": -32001, "category": "denied", "status": 200 });
        }
    }
    all
}

/// Those about a resource that a policy alone protects.
pub(crate) fn policed() -> Vec<Vector> {
    within("vectors/policed")
}

fn within(folder: &str) -> Vec<Vector> {
    let folder = source::root().join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files = paths.iter().map(|path| std::fs::read(path).unwrap());
    files.flat_map(|file| of(&serde_json::from_slice(&file).unwrap())).collect()
}

fn of(file: &Value) -> Vec<Vector> {
    assert_eq!(file["now"], NOW.0);
    let read = |vector: &Value| Vector {
        name: vector["name"].as_str().unwrap().to_owned(),
        introspection: vector["introspection"].clone(),
        permission: vector["permission"].clone(),
        consume: vector["consume"].clone(),
        asked: serde_json::from_value(vector["asked"].clone()).unwrap_or_default(),
        policy: vector["says"].as_str().map(Scripted::alone),
        consulted: vector["consulted"].as_u64().unwrap_or_default(),
        request: vector["request"].clone(),
        verdict: vector["verdict"].clone(),
    };
    file["vectors"].as_array().unwrap().iter().map(read).collect()
}

impl Vector {
    fn enforcement(&self) -> Enforcement {
        self.policy.as_ref().map_or(Enforcement::Uma, Scripted::enforcement)
    }

    /// The verdict as it shows from outside, where what is open and what is permitted look the same.
    pub(crate) fn verdict(&self) -> Value {
        if self.passes() { json!({ "kind": "passes" }) } else { self.verdict.clone() }
    }

    /// The stage it is about.
    pub(crate) fn stage(&self, edition: Edition) -> Stage {
        Stage { edition, enforcement: self.enforcement(), ..STAGE }
    }

    /// The id of the request, as it is written there.
    pub(crate) fn id(&self) -> Option<String> {
        #[derive(serde::Deserialize)]
        struct Addressed {
            id: Box<serde_json::value::RawValue>,
            #[serde(rename = "method")]
            _method: String,
        }
        let read: Addressed = serde_json::from_slice(&self.body()).ok()?;
        Some(read.id.get().to_owned())
    }

    pub(crate) fn passes(&self) -> bool {
        self.verdict["kind"] == "open" || self.verdict["kind"] == "permit"
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        match self.request["body_base64"].as_str() {
            Some(text) => sayso_protocol::b64::decode_standard(text).unwrap(),
            None => self.request["body"].as_str().unwrap().as_bytes().to_vec(),
        }
    }

    pub(crate) fn has_header(&self, name: &str) -> bool {
        self.request["headers"].as_array().unwrap().iter().any(|line| line[0] == name)
    }

    pub(crate) fn is_post(&self) -> bool {
        self.request["method"] == "POST"
    }

    pub(crate) fn request(&self) -> Request<Bytes> {
        let mut request = Request::new(Bytes::from(self.body()));
        *request.method_mut() = self.request["method"].as_str().unwrap().parse().unwrap();
        *request.uri_mut() = self.request["target"].as_str().unwrap().parse().unwrap();
        for line in self.request["headers"].as_array().unwrap() {
            let name = HeaderName::try_from(line[0].as_str().unwrap()).unwrap();
            request.headers_mut().append(name, HeaderValue::from_str(line[1].as_str().unwrap()).unwrap());
        }
        request
    }
}

/// Stands still; the replay cache alone began to remember a little earlier.
pub(crate) fn clock(stage: &Stage) -> Clock {
    let (now, begun) = (stage.now, AtomicBool::new(false));
    Arc::new(move || if begun.swap(true, Ordering::SeqCst) { now } else { now.plus(-300) })
}

pub(crate) fn key() -> SigningKey {
    SigningKey::from_seed(&[0x44; 32]).unwrap()
}

/// The key her authority signs its questions with.
pub(crate) fn authority_key() -> SigningKey {
    SigningKey::from_seed(&[0x11; 32]).unwrap()
}

pub(crate) fn reader() -> Reader {
    Reader { issuer: AS_URI.into(), keys: Arc::new(KnownKeys(vec![authority_key().verifying().clone()])) }
}

pub(crate) fn tools(stage: &Stage) -> Vec<ToolSettings> {
    let tool = |name: &str, scope: &str| {
        let id = format!("vault/{name}").parse().unwrap();
        let tool = ToolSettings::new(name.parse().unwrap(), id, vec![scope.parse().unwrap()]);
        let Some((class, pin)) = &stage.declared else { return tool };
        ToolSettings { consequence: Some(*class), definition: Some(pin.parse().unwrap()), ..tool }
    };
    let trade = ToolSettings { single_use: true, ..tool("execute_trade", "trades:execute") };
    vec![tool("get_positions", "positions:read"), trade]
}

fn texts(given: &[&str]) -> Vec<String> {
    given.iter().map(ToString::to_string).collect()
}

/// The resource, as a host ahead of its server has it.
pub(crate) fn resource(stage: &Stage, authority: Arc<dyn Authority>) -> ServerResource {
    ServerResource {
        path: "/mcp".into(),
        aliases: texts(stage.aliases),
        realm: "vault".parse().unwrap(),
        owner: "alice".parse().unwrap(),
        as_uri: AS_URI.into(),
        authority,
        edition: stage.edition,
        tools: tools(stage),
        enforcement: stage.enforcement.clone(),
        open_methods: Vec::new(),
        allowed_origins: texts(stage.origins),
        accept_uncovered_body: false,
        serve_query: stage.serve_query,
    }
}

/// The resource, guarded from inside.
pub(crate) fn site(stage: &Stage, authority: Arc<dyn Authority>) -> Site {
    let hers = Hers { issuer: AS_URI.into(), authority, reader: reader() };
    let config =
        SiteConfig::new(stage.public, "vault".parse().unwrap(), "alice".parse().unwrap(), hers, key());
    let config = SiteConfig {
        edition: stage.edition,
        tools: tools(stage),
        enforcement: stage.enforcement.clone(),
        allowed_origins: texts(stage.origins),
        body_limit: 1 << 20,
        ..config
    };
    Site::new(config, clock(stage)).unwrap()
}
