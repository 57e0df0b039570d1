//! Several decisions from one mapping: how many there may be, and what they cost together. Whoever declares a mapping chooses
//! how many entries it has, and every one of them takes what stands at the top.
//!
//! One test measures: the measured memory is that of the whole process.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use peak_alloc::PeakAlloc;
use sayso_coaz::authzen::Request;
use sayso_coaz::{Engine, Fault, MAX_ENTRIES, Operation, Projection, Registry, Settings, Why};
use sayso_protocol::Json;
use serde_json::{Value, json};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Bytes that all decisions of one message may take at their peak, beyond what was held before.
const MEMORY_MOST: usize = 16 << 20;

fn mapping(entries: usize) -> Value {
    json!({"evaluations": {"action": {"name": "a"}, "resource": {"type": "r", "id": "1"},
        "context": {"p": "$params.arguments"}, "evaluations": vec![json!({}); entries]}})
}

fn asked(entries: usize) -> Result<Option<Request>, Fault> {
    let engine = Engine::new(Settings::default()).unwrap();
    let tools = json!({"tools": [{"name": "t", "inputSchema": {"x-authzen-mapping": mapping(entries)}}]});
    let registry = Registry::read(&[&Json::from(tools)], 1).unwrap();
    let params = Json::from(json!({"name": "t", "arguments": {"x": vec![0; 30_000]}}));
    let token = Json::from(json!({"sub": "u-ann"}));
    let operation = Operation { method: "tools/call", params: Some(&params), is_request: true };
    let projection = engine.project(operation, &registry, 0, &token)?;
    Ok(if let Projection::Ask(asked) = projection { Some(asked.request) } else { None })
}

// D-35, COAZ-MCP-22, COAZ-MCP-85: whatever number a server writes out, a call costs what it may cost.
#[test]
fn as_many_decisions_as_may_be_and_no_more() {
    for entries in [MAX_ENTRIES + 1, 400, 20_000] {
        let fault = asked(entries).unwrap_err();
        assert_eq!((fault.place.as_str(), &fault.why), ("evaluations", &Why::TooManyEntries), "{entries}");
        assert_eq!(fault.category().code(), -32602);
    }
    let request = asked(MAX_ENTRIES).unwrap();
    let Some(Request::Evaluations(several)) = &request else { panic!("several") };
    let held = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let all: Vec<_> = several.singles().unwrap().collect();
    assert_eq!(all.len(), MAX_ENTRIES);
    assert!(all.iter().all(|one| one.context == all[0].context));
    let peak = MEMORY.peak_usage().saturating_sub(held);
    assert!(peak < MEMORY_MOST, "{peak} bytes");
}
