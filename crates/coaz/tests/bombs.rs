//! Expressions written to hurt: each is refused or stopped, within the memory and the processor time that D-35 allows,
//! and the next message is served. Run this with every upgrade of the CEL library.
//!
//! One test: the measured memory is that of the whole process.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use peak_alloc::PeakAlloc;
use sayso_coaz::{Engine, Operation, Projection, Registry, Settings, Why};
use sayso_protocol::json::{Json, Limits};
use serde_json::json;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Bytes a message's mapping may take at its peak, beyond what was held before.
const MEMORY_MOST: usize = 4 << 20;
/// Processor time in milliseconds; what is not optimised takes longer, which says nothing.
const TIME_MOST: f64 = if cfg!(debug_assertions) { 1000.0 } else { 100.0 };

/// Milliseconds this thread has been running on a processor, on systems that say so.
fn ran() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or_default() / 1e6
}

fn nest(open: &str, times: usize, core: &str, close: &str) -> String {
    format!("{}{core}{}", open.repeat(times), close.repeat(times))
}

/// Expressions over `params.l` (10,000 numbers), `params.s` (2,000 texts), `params.t` (one text of 8 KiB) and
/// `params.m` (a map of 1,000 members).
fn bombs() -> Vec<String> {
    let ten = "[0,1,2,3,4,5,6,7,8,9]";
    let mut bombs = vec![
        format!("[\"a\"]{}", ".map(x,x+x)".repeat(14)),
        format!("[[1]]{}", ".map(x,x+x)".repeat(14)),
        format!("[\"a\"]{}", ".map(x,[x,x])".repeat(14)),
        format!("[\"a\"]{}", ".map(x,{1:x,2:x})".repeat(14)),
        format!("[1]{}", ".map(x,[x,x,x,x,x,x,x,x])".repeat(9)),
        format!("[\"aaaaaaaa\"]{}", ".map(x,x+x+x+x+x+x+x+x)".repeat(9)),
        "params.l.all(x, params.l.all(y, true))".into(),
        "params.l.all(x, params.l.all(y, params.l.all(z, true)))".into(),
        "params.l.map(x, params.l)".into(),
        "params.l.map(x, params.l.map(y, params.l))".into(),
        "params.s.map(s, params)".into(),
        "params.s.map(s, params.m)".into(),
        "params.s.map(s, {'a': params.t})".into(),
        "params.l.map(x, params.t + params.t)".into(),
        "params.l.map(x, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')"
            .into(),
        "params.s.all(s, !s.matches('\\\\w{200}\\\\d'))".into(),
        "params.s.all(s, !params.t.matches('(a|aa|aaa)+$'))".into(),
        "params.s.all(s, !params.t.matches('(x+x+)+y'))".into(),
        "params.t.matches('(.?){100}b')".into(),
        "params.t.matches('([a-z]?){60}[a-z]{60}b')".into(),
        "'x'.matches('\\\\w{900}')".into(),
        "'x'.matches('(\\\\pL{50}){50}')".into(),
        "params.t.matches('^(a+)+$')".into(),
        "params.s.all(s, params.t.contains('b'))".into(),
        "params.s.exists(s, params.l == params.l)".into(),
        "params.s.all(s, 7777777 in params.l || true)".into(),
        "params.l.exists_one(x, params.l.exists_one(y, y == x))".into(),
        "params.l.filter(x, params.l.filter(y, y == x) != [])".into(),
        "params.l.all(x, has(params.m.k1) || has(params.m.k2) || params.m.k3 == x || params.m.k4 == x)"
            .into(),
        "params.?l.optMap(l, l.map(x, l)).orValue([])".into(),
        "params.s.map(s, string(params.t))".into(),
        "params.s.map(s, bytes(params.t))".into(),
        "params.s.map(s, params.l.map(x, timestamp('2026-01-01T00:00:00Z').getFullYear()))".into(),
        "params.s.map(s, optional.of(params.l).orValue([]))".into(),
        "params.s.map(s, optional.of(optional.of(params.l)))".into(),
        "params.s.map(s, [?params.?l])".into(),
        "params.s.map(s, params[?'l'].value())".into(),
        "params.s.map(s, true ? params.l : [])".into(),
        "params.s.map(s, dyn(params.l))".into(),
        "params.m.map(k, params.m.map(j, {k: params.m}))".into(),
        "params.s.map(token, params.s.map(params, token))".into(),
        "params.s.all(s, params.l.all(x, x / 0 == 1)) || true".into(),
        "params.s.map(s, params.l.exists(x, x / 0 == 1) || true)".into(),
        format!("params.s.all(s, {} || true)", nest(&format!("{ten}.all(x, "), 6, "false", ")")),
        nest(&format!("{ten}.all(x, "), 8, "true", ")"),
        nest("[1].map(x,", 20, "x", ")"),
        nest("[", 25, "params", "]"),
    ];
    bombs.extend(shapes());
    bombs.extend(faulty());
    bombs
}

/// Faults that a loop swallows at every turn: what the library puts into a fault must be paid for, too.
fn faulty() -> Vec<String> {
    vec![
        "params.l.exists(x, params.l[1.5] == 1 || true)".into(),
        "params.l.exists(x, params.l[?1.5].orValue(1) == 1 && false)".into(),
        "params.l.exists(x, params.m[params.t] == 1 || true)".into(),
        "params.l.exists(x, params.m[?params.t].orValue(1) == 2)".into(),
        "params.l.exists(x, params.m + 1 == 1 || true)".into(),
        "params.l.exists(x, params.l < 1 || true)".into(),
        "params.l.exists(x, params.l || x < 0)".into(),
        "params.l.exists(x, {params.l: 1} == {} || true)".into(),
        "params.l.exists(x, -params.l == 1 || !params.m || true)".into(),
        "params.l.exists(x, size(params.m.k1) == 1 || true)".into(),
        "params.l.exists(x, int(params.t) == 1 || true)".into(),
        "params.l.exists(x, timestamp(params.t) == timestamp(x) || true)".into(),
    ]
}

/// Sources that are long, deep or no expressions at all.
fn shapes() -> Vec<String> {
    let chain = |link: &str, times: usize| format!("1{}", link.repeat(times));
    let mut bombs =
        vec![chain("+1", 1000), chain("==1", 600), "!".repeat(2000) + "a", "-".repeat(2000) + "1"];
    bombs.extend([".a", ".?b", "[0]", ".f()", ".map(x,x)"].map(|link| format!("params{}", link.repeat(200))));
    bombs.extend([nest("(", 1000, "1", ")"), nest("[", 1000, "1", "]"), nest("{1:", 500, "1", "}")]);
    bombs.extend([
        "a?b:".repeat(500) + "c",
        "params||".repeat(250) + "true",
        "1,".repeat(1000),
        "\"".repeat(2000),
    ]);
    bombs.extend([
        "x.matches(".repeat(200),
        "🙂".repeat(500),
        "\\u{110000}".into(),
        "'\\ud800'".into(),
        "1e999".into(),
    ]);
    bombs
}

fn params() -> Json {
    let text = "a".repeat(8 << 10);
    let map: serde_json::Map<String, serde_json::Value> =
        (0..500).map(|n| (format!("k{n}"), n.into())).collect();
    let short: Vec<String> = (0..1000).map(|n| format!("s{n}")).collect();
    Json::from(json!({"name": "t", "l": (0..5000).collect::<Vec<_>>(), "s": short, "t": text, "m": map}))
}

fn mapping(expressions: &[&str]) -> serde_json::Value {
    let context: serde_json::Map<String, serde_json::Value> =
        expressions.iter().enumerate().map(|(n, it)| (format!("v{n}"), format!("${it}").into())).collect();
    json!({"evaluation": {"action": {"name": "a"}, "resource": {"type": "r", "id": "1"}, "context": context}})
}

fn registry(mapping: &serde_json::Value) -> Registry {
    let listing =
        Json::from(json!({"tools": [{"name": "t", "inputSchema": {"x-authzen-mapping": mapping}}]}));
    Registry::read(&[&listing], i64::MAX).unwrap()
}

// COAZ-MCP-16, COAZ-FW-18
#[test]
fn every_bomb_is_stopped_in_time_and_in_memory() {
    let engine = Engine::new(Settings::default()).unwrap();
    let params = params();
    let token = Json::parse(br#"{"sub":"u-ann","roles":["ops"]}"#, Limits::default()).unwrap();
    let operation = Operation { method: "tools/call", params: Some(&params), is_request: true };
    let project = |registry: &Registry| engine.project(operation, registry, 0, &token);
    let mut faults = Vec::new();
    let many: Vec<String> = bombs();
    let whole: Vec<&str> = many.iter().map(String::as_str).filter(|it| it.len() < 400).collect();
    let mut cases: Vec<serde_json::Value> = many.iter().map(|bomb| mapping(&[bomb])).collect();
    cases.extend(whole.chunks(12).map(mapping));
    // 200 fields that each copy the largest thing there is.
    cases.push(mapping(&["params"; 200]));
    cases.push(mapping(&["[params.l][0]"; 200]));
    for case in &cases {
        MEMORY.reset_peak_usage();
        let (held, began) = (MEMORY.current_usage(), ran());
        let registry = registry(case);
        let compiled = ran();
        let outcome = project(&registry);
        let (took, peak) = (ran() - compiled, MEMORY.peak_usage() - held);
        let shown = format!("{case:.160}");
        println!(
            "{:>7.2} ms {:>7} KiB  compiled {:>7.2} ms  {}  {shown}",
            took,
            peak >> 10,
            compiled - began,
            said(&outcome)
        );
        if took > TIME_MOST || peak > MEMORY_MOST {
            faults.push(format!("{took} ms, {peak} bytes: {shown}"));
        }
        drop(outcome);
        let fine = self::registry(&mapping(&["token.roles.exists(r, r == 'ops')"]));
        assert!(matches!(project(&fine), Ok(Projection::Ask(_))), "after {shown}");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn said(outcome: &Result<Projection, sayso_coaz::Fault>) -> String {
    match outcome {
        Ok(_) => "a request".to_owned(),
        Err(fault) => match &fault.why {
            Why::Expression { fault, .. } => fault.to_string(),
            why => why.to_string(),
        },
    }
}
