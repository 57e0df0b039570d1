//! The vectors, and the resource they are about.

use super::policy::Scripted;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use sayso_embed::{Hers, Site, SiteConfig, ToolSettings};
use sayso_enforce::authority::keys::KnownKeys;
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

/// Where and when: the origin that the resource is dialled at, and the time there.
pub(crate) struct Stage {
    pub(crate) public: &'static str,
    pub(crate) now: Timestamp,
    pub(crate) enforcement: Enforcement,
}

/// That of the vectors here.
pub(crate) const STAGE: Stage = Stage { public: PUBLIC, now: NOW, enforcement: Enforcement::Uma };

/// One request, and what must come of it.
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) introspection: Value,
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
    pub(crate) fn stage(&self) -> Stage {
        Stage { enforcement: self.enforcement(), ..STAGE }
    }

    pub(crate) fn passes(&self) -> bool {
        self.verdict["kind"] == "open" || self.verdict["kind"] == "permit"
    }

    pub(crate) fn body(&self) -> &str {
        self.request["body"].as_str().unwrap()
    }

    pub(crate) fn has_header(&self, name: &str) -> bool {
        self.request["headers"].as_array().unwrap().iter().any(|line| line[0] == name)
    }

    pub(crate) fn is_post(&self) -> bool {
        self.request["method"] == "POST"
    }

    pub(crate) fn request(&self) -> Request<Bytes> {
        let mut request = Request::new(Bytes::from(self.body().to_owned()));
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

pub(crate) fn reader() -> Reader {
    Reader { issuer: AS_URI.into(), keys: Arc::new(KnownKeys(Vec::new())) }
}

pub(crate) fn tools() -> Vec<ToolSettings> {
    let tool = |name: &str, scope: &str| {
        let id = format!("vault/{name}").parse().unwrap();
        ToolSettings::new(name.parse().unwrap(), id, vec![scope.parse().unwrap()])
    };
    let trade = ToolSettings { single_use: true, ..tool("execute_trade", "trades:execute") };
    vec![tool("get_positions", "positions:read"), trade]
}

/// The resource, as a host ahead of its server has it.
pub(crate) fn resource(stage: &Stage, authority: Arc<dyn Authority>) -> ServerResource {
    ServerResource {
        path: "/mcp".into(),
        aliases: Vec::new(),
        realm: "vault".parse().unwrap(),
        owner: "alice".parse().unwrap(),
        as_uri: AS_URI.into(),
        authority,
        edition: Edition::default(),
        tools: tools(),
        enforcement: stage.enforcement.clone(),
        open_methods: Vec::new(),
        allowed_origins: vec![ORIGIN.into()],
        accept_uncovered_body: false,
        serve_query: false,
    }
}

/// The resource, guarded from inside.
pub(crate) fn site(stage: &Stage, authority: Arc<dyn Authority>) -> Site {
    let hers = Hers { issuer: AS_URI.into(), authority, reader: reader() };
    let config =
        SiteConfig::new(stage.public, "vault".parse().unwrap(), "alice".parse().unwrap(), hers, key());
    let config = SiteConfig {
        tools: tools(),
        enforcement: stage.enforcement.clone(),
        allowed_origins: vec![ORIGIN.into()],
        body_limit: 1 << 20,
        ..config
    };
    Site::new(config, clock(stage)).unwrap()
}
