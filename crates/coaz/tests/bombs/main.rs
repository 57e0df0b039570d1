//! Expressions written to hurt: each is refused or stopped, within the memory and the steps that D-35 allows, and the
//! next message is served. Run this with every upgrade of the CEL library; what they cost in time is printed by the
//! example `bombs`.
//!
//! One test: the measured memory is that of the whole process.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot set itself up has failed"
)]

mod cases;

use cases::{Bomb, Stage, mapping, registry, said};
use peak_alloc::PeakAlloc;
use sayso_coaz::{BUDGET, ExpressionFault, Projection, Why};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Bytes a message's mapping may take at its peak, beyond what was held before.
const MEMORY_MOST: usize = 4 << 20;

/// What is wrong with what became of a mapping, if anything.
fn fault(stage: &Stage, case: &serde_json::Value, expect: Option<&str>) -> Option<String> {
    MEMORY.reset_peak_usage();
    let held = MEMORY.current_usage();
    let registry = registry(case);
    let compiled = MEMORY.peak_usage() - held;
    MEMORY.reset_peak_usage();
    let held = MEMORY.current_usage();
    let outcome = stage.project(&registry);
    let peak = MEMORY.peak_usage() - held;
    let said = said(&outcome);
    println!("{:>6} KiB, {:>6} KiB to compile: {said}", peak >> 10, compiled >> 10);
    if peak > MEMORY_MOST || compiled > MEMORY_MOST {
        return Some(format!("{peak} bytes, {compiled} to compile"));
    }
    match &outcome {
        Ok(Projection::Ask(asked)) if asked.steps > BUDGET => return Some(format!("{} steps", asked.steps)),
        Ok(Projection::PassThrough) => return Some("passed".to_owned()),
        Err(fault) if fault.category().code() != -32602 => return Some(fault.to_string()),
        _ => {}
    }
    expect.filter(|expect| *expect != said).map(|expect| format!("{said}, and not: {expect}"))
}

// COAZ-MCP-16, COAZ-FW-18, EX-22, EX-23
#[test]
fn every_bomb_is_stopped_within_its_memory_and_its_steps() {
    let stage = Stage::new();
    let all = cases::all();
    assert!(all.len() > 100, "{}", all.len());
    let mut cases: Vec<(String, serde_json::Value, Option<String>)> = Vec::new();
    for Bomb { name, source, expect } in &all {
        cases.push((name.clone(), mapping(&[source]), Some(expect.clone())));
    }
    let running: Vec<&str> = all.iter().filter(|bomb| bomb.runs()).map(|bomb| bomb.source.as_str()).collect();
    for (nth, twelve) in running.chunks(12).enumerate() {
        cases.push((format!("twelve of them: {nth}"), mapping(twelve), None));
    }
    // 200 fields that each copy the largest thing there is.
    cases.push(("the inputs 200 times".to_owned(), mapping(&["params"; 200]), None));
    cases.push(("the numbers 200 times".to_owned(), mapping(&["[params.l][0]"; 200]), None));
    let mut faults = Vec::new();
    for (name, case, expect) in &cases {
        println!("{name}");
        faults.extend(fault(&stage, case, expect.as_deref()).map(|fault| format!("{name}: {fault}")));
        let fine = registry(&mapping(&["token.roles.exists(r, r == 'ops')"]));
        assert!(matches!(stage.project(&fine), Ok(Projection::Ask(_))), "after {name}");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    budget(&stage);
}

/// One step too many is one too many, wherever it is taken, and the fields of one request share what there is.
fn budget(stage: &Stage) {
    let steps = |expressions: &[&str]| match stage.project(&registry(&mapping(expressions))) {
        Ok(Projection::Ask(asked)) => Some(asked.steps),
        Err(fault) if matches!(&fault.why, Why::Expression { fault: ExpressionFault::Budget, .. }) => None,
        other => panic!("{other:?}"),
    };
    let loops = "params.l.all(x, x >= 0)";
    let one = steps(&[loops]).unwrap();
    assert!((5000..BUDGET).contains(&one), "{one}: every turn counts");
    let most = usize::try_from(BUDGET / one).unwrap();
    let many = steps(&vec![loops; most]).unwrap();
    assert!(many <= BUDGET && many >= one * BUDGET / one - one, "{many}");
    assert_eq!(steps(&vec![loops; most + 1]), None, "they share it");
    let hidden = "params.l.all(x, params.l.all(y, true)) || true";
    assert_eq!(steps(&[hidden]), None, "and no alternative hides that it is spent");
}
