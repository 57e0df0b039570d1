//! A mapping over a message: an object of `mapping`, `params` and `token`, or anything else as one expression.
//! Whatever comes of it comes of it again, is a request that can be read, keeps the subject where nobody is trusted,
//! and repeats no claim in a fault.

use sayso_coaz::authzen::{Evaluation, Evaluations, Request};
use sayso_coaz::{Engine, Fault, MAX_ENTRIES, MAX_SOURCE, Operation, Projection, Registry, Settings, Trust};
use sayso_protocol::Json;
use sayso_protocol::json::Limits;
use std::sync::LazyLock;

use super::same;

const LIMITS: Limits = Limits { bytes: 64 * 1024, depth: 64 };
/// A claim no input says by chance.
const SECRET: &str = "kX9-fuzz-claim-4Wq";

static ENGINES: LazyLock<[Engine; 2]> = LazyLock::new(|| {
    [Trust::Warn, Trust::Strict]
        .map(|trust| Engine::new(Settings { trust, ..Settings::default() }).expect("the defaults compile"))
});

/// The body.
pub fn check(bytes: &[u8]) {
    let Some((mapping, params, token)) = input(bytes) else { return };
    let tool = Json::Object(vec![
        ("name".to_owned(), Json::String("t".to_owned())),
        ("inputSchema".to_owned(), Json::Object(vec![(sayso_coaz::MEMBER.to_owned(), mapping)])),
    ]);
    let listing = Json::Object(vec![("tools".to_owned(), Json::Array(vec![tool]))]);
    sayso_coaz::lint::lint(&listing).expect("it is a listing");
    let registry = Registry::read(&[&listing], 1).expect("it is a complete listing");
    let operation = Operation { method: "tools/call", params: Some(&params), is_request: true };
    let [lenient, strict] = &*ENGINES;
    let seen = lenient.project(operation, &registry, 0, &token);
    assert_eq!(seen, lenient.project(operation, &registry, 0, &token), "the same inputs, another outcome");
    told(&seen, bytes);
    if let Ok(Projection::Ask(asked)) = &seen {
        readable(&asked.request);
    }
    let kept = strict.project(operation, &registry, 0, &token);
    told(&kept, bytes);
    if let Ok(Projection::Ask(asked)) = &kept {
        let subject = match &asked.request {
            Request::Evaluation(one) => Some(&one.subject.id),
            Request::Evaluations(several) => several.defaults.subject.as_ref().map(|subject| &subject.id),
        };
        assert_eq!(subject.map(String::as_str), token.get("sub").and_then(Json::as_str), "another subject");
    }
}

/// The mapping, the parameters and the claims.
fn input(bytes: &[u8]) -> Option<(Json, Json, Json)> {
    let object = Json::parse(bytes, LIMITS).ok().filter(|json| json.get("mapping").is_some());
    let (mapping, params, claims) = match &object {
        Some(json) => (json.get("mapping")?.clone(), json.get("params").cloned(), json.get("token").cloned()),
        None => (one_expression(std::str::from_utf8(bytes).ok()?)?, None, None),
    };
    let mut params = members(params, r#"{"arguments":{"n":5,"l":[1,2,3],"s":"abc","m":{"a":{"b":null}}}}"#)?;
    params.retain(|(name, _)| name != "name");
    params.push(("name".to_owned(), Json::String("t".to_owned())));
    let mut claims = members(claims, r#"{"sub":"u-ann","roles":["ops"]}"#)?;
    claims.retain(|(name, _)| name != "secret");
    claims.push(("secret".to_owned(), Json::String(SECRET.to_owned())));
    Some((mapping, Json::Object(params), Json::Object(claims)))
}

fn members(json: Option<Json>, otherwise: &str) -> Option<Vec<(String, Json)>> {
    let json = json.or_else(|| Json::parse(otherwise.as_bytes(), LIMITS).ok())?;
    json.as_object().map(<[_]>::to_vec)
}

fn one_expression(source: &str) -> Option<Json> {
    if source.len() > MAX_SOURCE {
        return None;
    }
    let text = serde_json::json!({"evaluation": {
        "action": {"name": "a"}, "resource": {"type": "r", "id": "1"}, "context": {"v": format!("${source}")}}});
    Some(Json::from(text))
}

/// A fault says words of ours and of the expression, never a claim.
fn told(outcome: &Result<Projection, Fault>, input: &[u8]) {
    let Err(fault) = outcome else { return };
    let body = String::from_utf8(fault.body(None)).expect("a body is text");
    let written = String::from_utf8_lossy(input).contains(SECRET);
    assert!(written || !body.contains(SECRET), "{body}");
    serde_json::from_str::<serde_json::Value>(&body).expect("a body is JSON");
}

fn readable(request: &Request) {
    let body = request.body().expect("what was projected can be written");
    let json = Json::parse(&body, Limits { bytes: 16 << 20, depth: 128 }).expect("and read");
    let again = match request {
        Request::Evaluation(_) => {
            Request::Evaluation(Box::new(Evaluation::read(&json).expect("one request")))
        }
        Request::Evaluations(_) => Request::Evaluations(Box::new(Evaluations::read(&json).expect("several"))),
    };
    let body = again.body().expect("what was read can be written");
    let again = Json::parse(&body, Limits { bytes: 16 << 20, depth: 128 }).expect("and read again");
    assert!(same::meaning(&json, &again));
    assert!((1..=MAX_ENTRIES).contains(&request.decisions()));
}
