//! What the one strict parse of a message costs, beside a reader that lets pass what it must refuse.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot set itself up has failed")]

#[path = "../../../benches/beside.rs"]
mod beside;

use beside::{Beside, Floor};
use sayso_protocol::canon;
use sayso_protocol::json::{Json, Limits};
use sayso_protocol::message::parse;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A call of 1 KiB as a modern client sends it.
fn call() -> Vec<u8> {
    let lines: Vec<String> = (0..8)
        .map(|n| format!(r#"{{"symbol":"VTI{n}","side":"buy","quantity":{n},"limit":{n}.25,"note":"r\u00e9vision {n}"}}"#))
        .collect();
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let empty = format!(
        r#"{{"jsonrpc":"2.0","id":41,"method":"tools/call","params":{{"name":"execute_trades","arguments":{{"account":"brokerage-main","orders":[{}],"memo":""}},"_meta":{meta}}}}}"#,
        lines.join(",")
    );
    empty.replace(r#""memo":"""#, &format!(r#""memo":"{}""#, "x".repeat(1024 - empty.len()))).into_bytes()
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

fn main() {
    let body = call();
    assert_eq!(body.len(), 1024);
    let value = || serde_json::from_slice::<serde_json::Value>(black_box(&body)).unwrap();
    let lax = || Floor { what: "serde_json into a Value", timed: often(value) };
    let mut beside = Beside::new();
    let strict = || parse(black_box(&body), Limits::default()).unwrap();
    beside.measure("parse/message, 1 KiB", lax(), often(strict));
    beside.measure(
        "parse/value, 1 KiB",
        lax(),
        often(|| Json::parse(black_box(&body), Limits::default()).unwrap()),
    );
    let json = Json::parse(&body, Limits::default()).unwrap();
    let hash = Floor { what: "SHA-256 of 1 KiB", timed: often(|| canon::sha256(black_box(&body))) };
    beside.measure("parse/canonical digest, 1 KiB", hash, often(|| canon::s256(black_box(&json)).unwrap()));
    beside.show();
}
