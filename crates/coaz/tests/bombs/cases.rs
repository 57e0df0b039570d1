//! The expressions of `vectors/coaz/bombs.json`, and the largest inputs that a declared mapping may have.

use sayso_coaz::{Engine, Fault, Operation, Projection, Registry, Settings, Why};
use sayso_protocol::json::{Json, Limits};
use serde_json::{Value, json};

/// One expression.
pub(crate) struct Bomb {
    pub(crate) name: String,
    pub(crate) source: String,
    /// What is said of it.
    pub(crate) expect: String,
}

impl Bomb {
    /// Whether it is evaluated at all.
    pub(crate) fn runs(&self) -> bool {
        let ran = ["a request", "it takes too many steps", "it cannot be evaluated"];
        ran.contains(&self.expect.as_str())
    }
}

/// All of them.
pub(crate) fn all() -> Vec<Bomb> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/coaz/bombs.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let part = |part: &Value| match part.as_array().map(Vec::as_slice) {
        Some([unit, times]) => text(unit).repeat(usize::try_from(times.as_u64().unwrap()).unwrap()),
        _ => text(part),
    };
    let read = |vector: &Value| Bomb {
        name: text(&vector["name"]),
        source: vector["source"].as_array().unwrap().iter().map(part).collect(),
        expect: text(&vector["expect"]),
    };
    file["vectors"].as_array().unwrap().iter().map(read).collect()
}

/// A mapping whose context has these expressions.
pub(crate) fn mapping(expressions: &[&str]) -> Value {
    let context: serde_json::Map<String, Value> =
        expressions.iter().enumerate().map(|(n, it)| (format!("v{n}"), format!("${it}").into())).collect();
    json!({"evaluation": {"action": {"name": "a"}, "resource": {"type": "r", "id": "1"}, "context": context}})
}

/// A server whose tool `t` declares it.
pub(crate) fn registry(mapping: &Value) -> Registry {
    let listing =
        Json::from(json!({"tools": [{"name": "t", "inputSchema": {"x-authzen-mapping": mapping}}]}));
    Registry::read(&[&listing], i64::MAX).unwrap()
}

/// An engine, and a call of that tool: `params.l` are 5,000 numbers, `params.s` 1,000 texts, `params.t` is a text of
/// 8 KiB and `params.m` a map of 500 members.
pub(crate) struct Stage {
    engine: Engine,
    params: Json,
    token: Json,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        let map: serde_json::Map<String, Value> = (0..500).map(|n| (format!("k{n}"), n.into())).collect();
        let short: Vec<String> = (0..1000).map(|n| format!("s{n}")).collect();
        let numbers: Vec<u32> = (0..5000).collect();
        let params = json!({"name": "t", "l": numbers, "s": short, "t": "a".repeat(8 << 10), "m": map});
        let token = Json::parse(br#"{"sub":"u-ann","roles":["ops"]}"#, Limits::default()).unwrap();
        Stage { engine: Engine::new(Settings::default()).unwrap(), params: Json::from(params), token }
    }

    pub(crate) fn project(&self, registry: &Registry) -> Result<Projection, Fault> {
        let call = Operation { method: "tools/call", params: Some(&self.params), is_request: true };
        self.engine.project(call, registry, 0, &self.token)
    }
}

/// What is said of an outcome.
pub(crate) fn said(outcome: &Result<Projection, Fault>) -> String {
    match outcome {
        Ok(_) => "a request".to_owned(),
        Err(fault) => match &fault.why {
            Why::Expression { fault, .. } => fault.to_string(),
            why => why.to_string(),
        },
    }
}
