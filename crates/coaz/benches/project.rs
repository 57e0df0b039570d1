//! What it costs to make a request of a message: mapping, expressions, and the body that is sent; beside writing that
//! body alone, which no mapping can avoid.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot set itself up has failed")]

#[path = "../../../benches/beside.rs"]
mod beside;

use beside::{Beside, Floor};
use sayso_coaz::authzen::Request;
use sayso_coaz::{Engine, Mapping, Operation, Projection, Registry, Settings};
use sayso_protocol::json::{Json, Limits};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The binding's worked examples.
const EXAMPLES: &str = include_str!("../../../vectors/coaz/examples.json");

struct Case {
    what: &'static str,
    message: Json,
    token: Json,
    registry: Registry,
}

fn examples() -> Vec<Case> {
    let file = Json::parse(EXAMPLES.as_bytes(), Limits::default()).unwrap();
    let vectors = file.get("vectors").and_then(Json::as_array).unwrap();
    let case = |what: &'static str, name: &str| {
        let named = |it: &&Json| it.get("name").and_then(Json::as_str) == Some(name);
        let vector = vectors.iter().find(named).unwrap();
        let listing = Json::Object(vec![("tools".to_owned(), vector.get("tools").unwrap().clone())]);
        let part = |name: &str| vector.get(name).unwrap().clone();
        Case {
            what,
            message: part("message"),
            token: part("token"),
            registry: Registry::read(&[&listing], i64::MAX).unwrap(),
        }
    };
    vec![
        case("project/default mapping", "8.1 a tool beside it"),
        case("project/get_customer, no CEL", "8.1 get_customer"),
        case("project/copy_object, two decisions", "8.2 copy_object"),
        case("project/transfer_funds, the largest", "8.3 transfer_funds 20000"),
    ]
}

fn often<T>(mut work: impl FnMut() -> T) -> impl FnMut(u64) -> Duration {
    move |times| {
        let began = Instant::now();
        for _ in 0..times {
            black_box(work());
        }
        began.elapsed()
    }
}

fn request(engine: &Engine, case: &Case) -> Request {
    let params = case.message.get("params");
    let operation = Operation { method: "tools/call", params, is_request: true };
    let Ok(Projection::Ask(asked)) = engine.project(operation, &case.registry, 0, &case.token) else {
        panic!("{}", case.what)
    };
    asked.request
}

fn main() {
    let engine = Engine::new(Settings::default()).unwrap();
    let mut beside = Beside::new();
    for case in examples() {
        let ready = request(&engine, &case);
        let floor = Floor { what: "the body, written", timed: often(|| black_box(&ready).body().unwrap()) };
        beside.measure(case.what, floor, often(|| request(&engine, black_box(&case)).body().unwrap()));
    }
    let file = Json::parse(EXAMPLES.as_bytes(), Limits::default()).unwrap();
    let largest = file.get("vectors").and_then(Json::as_array).unwrap().iter().find_map(|vector| {
        let tool = vector.get("tools")?.as_array()?.first()?;
        let mapping = tool.get("inputSchema")?.get(sayso_coaz::MEMBER)?;
        (tool.get("name")?.as_str()? == "transfer_funds").then(|| mapping.clone())
    });
    let largest = largest.unwrap();
    let thread = Floor {
        what: "a thread, started and ended",
        timed: often(|| std::thread::spawn(|| ()).join().unwrap()),
    };
    beside.measure("compile/transfer_funds", thread, often(|| Mapping::parse(black_box(&largest)).unwrap()));
    beside.show();
}
