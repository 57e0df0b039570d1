//! Seeds of what a served decision point is asked: whole requests, and parts that are taken from the top.

use serde_json::{Value, json};

use super::Seed;

pub(super) fn all() -> Vec<Seed> {
    let one = json!({
        "subject": { "type": "user", "id": "ann", "properties": { "a": [1, null, 2.5] } }, "action": { "name": "read" },
        "resource": { "type": "record", "id": "r" }, "context": { "c": { "d": "\u{e9}" } }, "future": 1,
    });
    let with = |more: Value| {
        let mut body = one.clone();
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        body
    };
    let entries = json!([
        {}, { "resource": { "id": "s" } }, { "action": { "name": "write", "properties": { "p": 1 } } }, "x", { "context": 5 },
        { "subject": { "id": "bob" }, "context": {} }, { "resource": "r" }, { "resource": { "type": ["record"] } },
    ]);
    let semantic =
        |name: &str| with(json!({ "evaluations": entries, "options": { "evaluations_semantic": name } }));
    let several = [
        with(json!({ "evaluations": entries })),
        with(json!({ "evaluations": [] })),
        with(json!({ "evaluations": entries, "resource": { "type": "record" } })),
        with(json!({ "evaluations": vec![json!({}); 256], "context": { "x": vec![0; 300] } })),
        with(json!({ "evaluations": vec![json!({}); 257] })),
        json!({ "evaluations": [one.clone(), one.clone()] }),
        semantic("execute_all"),
        semantic("deny_on_first_deny"),
        semantic("permit_on_first_permit"),
        semantic("no such thing"),
    ];
    let single = [one.clone(), json!({}), with(json!({ "subject": "ann" })), with(json!({ "context": [] }))];
    let line = |line: &str, body: &Value| ("asked", format!("{line}\n{body}").into_bytes());
    let several = several.iter().map(|body| line("several", body));
    several.chain(single.iter().map(|body| line("one", body))).collect()
}
