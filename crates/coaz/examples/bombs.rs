//! What each expression of `vectors/coaz/bombs.json` costs in processor time, the dearest last (D-35: at most 100 ms).
//! Run it optimised: `cargo run --release -p sayso-coaz --example bombs`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a measurement that cannot set itself up has failed"
)]

#[path = "../tests/bombs/cases.rs"]
mod cases;

use cases::{Stage, mapping, registry, said};
use std::time::{Duration, Instant};

/// How long one expression is measured.
const TOGETHER: Duration = Duration::from_millis(100);

/// Milliseconds this thread has been running on a processor, on systems that say so.
fn ran() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or_default() / 1e6
}

fn main() {
    let stage = Stage::new();
    let all = cases::all();
    let mut measured: Vec<(f64, f64, String, String)> = Vec::new();
    let mut measure = |name: String, expressions: &[&str]| {
        let case = mapping(expressions);
        let began = Instant::now();
        let registry = registry(&case);
        let compiled = began.elapsed().as_secs_f64() * 1e3;
        let words = said(&stage.project(&registry));
        // The system counts in ticks, so many are measured together.
        let (began, before, mut times) = (Instant::now(), ran(), 0.0);
        while began.elapsed() < TOGETHER {
            drop(stage.project(&registry));
            times += 1.0;
        }
        measured.push(((ran() - before) / times, compiled, name, words));
    };
    for bomb in &all {
        measure(bomb.name.clone(), &[&bomb.source]);
    }
    let running: Vec<&str> = all.iter().filter(|bomb| bomb.runs()).map(|bomb| bomb.source.as_str()).collect();
    for (nth, twelve) in running.chunks(12).enumerate() {
        measure(format!("twelve of them: {nth}"), twelve);
    }
    measure("the inputs 200 times".to_owned(), &["params"; 200]);
    measure("the numbers 200 times".to_owned(), &["[params.l][0]"; 200]);
    measured.sort_by(|one, other| one.0.total_cmp(&other.0));
    for (took, compiled, name, said) in &measured {
        println!("{took:>8.3} ms CPU  {compiled:>8.3} ms to compile (elapsed)  {name}: {said}");
    }
    let compiled = measured.iter().map(|it| it.1).fold(0.0, f64::max);
    let dearest = measured.last().map_or(0.0, |it| it.0);
    println!("{} measured; dearest {dearest:.3} ms CPU, {compiled:.3} ms to compile", measured.len());
}
