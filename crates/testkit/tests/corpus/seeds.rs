//! What the fuzzer starts from: the vectors of the repository in the forms the targets read, and for the other
//! targets what our own encoders write, whole, so that a change of one byte already leads somewhere.

use std::fs;

use sayso_protocol::json::Limits;
use sayso_protocol::{Json, b64};
use sayso_testkit::source;
use serde_json::Value;

#[path = "asked.rs"]
mod asked;
#[path = "bearer.rs"]
mod bearer;
#[path = "introduced.rs"]
mod introduced;
#[path = "written.rs"]
mod written;

/// A seed: the name of its target, and the input.
pub(crate) type Seed = (&'static str, Vec<u8>);

/// Every seed of every target.
pub(crate) fn all() -> Vec<Seed> {
    let mut seeds = Vec::new();
    canon(&mut seeds);
    messages(&mut seeds);
    signatures(&mut seeds);
    verdicts(&mut seeds);
    seeds.extend(asked::all());
    seeds.extend(bearer::all());
    seeds.extend(introduced::all());
    mappings(&mut seeds);
    seeds.extend(written::all());
    seeds.retain(|(_, input)| input.len() <= super::LONGEST);
    seeds
}

fn vectors(folder: &str) -> Vec<Value> {
    let folder = source::root().join("vectors").join(folder);
    let mut all = Vec::new();
    for name in super::names(&folder) {
        let text = fs::read_to_string(folder.join(name)).expect("a file of vectors");
        let file: Value = serde_json::from_str(&text).expect("vectors are JSON");
        all.extend(file["vectors"].as_array().expect("a list of vectors").iter().cloned());
    }
    all
}

fn canon(seeds: &mut Vec<Seed>) {
    for vector in vectors("canon") {
        for text in [&vector["input"]["text"], &vector["expect"]["text"]] {
            seeds.extend(text.as_str().map(|text| ("json", text.into())));
        }
    }
}

fn messages(seeds: &mut Vec<Seed>) {
    for vector in vectors("message") {
        let input = &vector["input"];
        let encoded = input["body_base64"].as_str().and_then(|text| b64::decode_standard(text).ok());
        let Some(body) = input["body"].as_str().map(|text| text.as_bytes().to_vec()).or(encoded) else {
            continue;
        };
        seeds.push(("message", framed(String::new(), &input["headers"], &body)));
    }
}

fn signatures(seeds: &mut Vec<Seed>) {
    for vector in vectors("sig") {
        let request = &vector["request"];
        let text = |name: &str| request[name].as_str().unwrap_or_default();
        let query = request["query"].as_str().map(|query| format!("?{query}")).unwrap_or_default();
        let line =
            format!("{} {}{query} {} {}\n", text("method"), text("path"), text("authority"), text("scheme"));
        seeds.push(("sig_fields", framed(line, &request["headers"], text("body").as_bytes())));
    }
}

fn verdicts(seeds: &mut Vec<Seed>) {
    for vector in vectors("verdict") {
        let request = &vector["request"];
        let body = request["body"].as_str().unwrap_or_default();
        seeds.push(("message", framed(String::new(), &request["headers"], body.as_bytes())));
        let text = |name: &str| request[name].as_str().unwrap_or_default();
        let introspection = &vector["introspection"];
        let grant = match (introspection["active"].as_bool(), introspection["single_use"].as_bool()) {
            (Some(true), Some(true)) => "single",
            (Some(true), _) => "reusable",
            _ => "dead",
        };
        for sign in ["", " sign"] {
            let line = format!("{} {} {grant}{sign}\n", text("method"), text("target"));
            seeds.push(("engine", framed(line, &request["headers"], body.as_bytes())));
            for way in ["", " joined"] {
                let flag = "x-envoy-auth-partial-body: false";
                let line = format!("{} {} {grant}{sign}{way}\n{flag}\n", text("method"), text("target"));
                seeds.push(("ext_authz", framed(line, &request["headers"], body.as_bytes())));
            }
        }
        for answer in [&vector["introspection"], &vector["consume"]] {
            if answer.is_object() {
                seeds.push(("introspection", answer.to_string().into()));
            }
        }
    }
}

/// What tools declare, over the message and token of the case; single values as expressions. These files hold numbers
/// that only a reader of exact text can read.
fn mappings(seeds: &mut Vec<Seed>) {
    let folder = source::root().join("vectors/coaz");
    for name in super::names(&folder) {
        let text = fs::read(folder.join(name)).expect("a file of vectors");
        let file = Json::parse(&text, Limits { bytes: 4 << 20, depth: 128 }).expect("vectors are JSON");
        for vector in file.get("vectors").and_then(Json::as_array).unwrap_or_default() {
            seeds.extend(declared(vector).map(|input| ("coaz", input.into_bytes())));
            let value = vector.get("value").and_then(Json::as_str).and_then(|it| it.strip_prefix('$'));
            seeds.extend(value.map(|source| ("coaz", source.into())));
            seeds.extend(bomb(vector).map(|source| ("coaz", source.into_bytes())));
        }
    }
}

/// An expression written to hurt: its parts, some of them several times.
fn bomb(vector: &Json) -> Option<String> {
    let part = |part: &Json| match part.as_array() {
        Some([unit, times]) => Some(unit.as_str()?.repeat(usize::try_from(times.as_u64()?).ok()?)),
        _ => part.as_str().map(str::to_owned),
    };
    vector.get("source")?.as_array()?.iter().map(part).collect()
}

fn declared(vector: &Json) -> Option<String> {
    let tool = vector.get("tools")?.as_array()?.first()?;
    let mapping = tool.get("inputSchema")?.get("x-authzen-mapping")?;
    let mut input = vec![
        ("mapping".to_owned(), mapping.clone()),
        ("params".to_owned(), vector.get("message")?.get("params")?.clone()),
    ];
    input.extend(vector.get("token").map(|token| ("token".to_owned(), token.clone())));
    serde_json::to_string(&Json::Object(input)).ok()
}

fn framed(mut head: String, headers: &Value, body: &[u8]) -> Vec<u8> {
    for header in headers.as_array().map(Vec::as_slice).unwrap_or_default() {
        let text = |index: usize| header[index].as_str().unwrap_or_default();
        head.push_str(&format!("{}: {}\n", text(0), text(1)));
    }
    [head.as_bytes(), b"\n", body].concat()
}
