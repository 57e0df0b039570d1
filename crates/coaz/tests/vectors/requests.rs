//! Vectors of a message, its token, what the server lists and what becomes of it.

use sayso_coaz::{Engine, Fault, Operation, Projection, Registry, Revision, Sample, Settings, Source, Trust};
use sayso_protocol::Json;

use super::read::{Vector, file, json, same, text};

/// Runs a file of such vectors.
pub(crate) fn run(name: &str) {
    let file = file(name);
    let token = file.get("token").unwrap();
    let shared = file.get("settings").unwrap();
    for vector in file.vectors() {
        let engine = Engine::new(settings(vector.0.get("settings"), shared)).unwrap();
        let token = vector.0.get("token").unwrap_or(token);
        let tools = vector.0.get("tools").map_or("[]".to_owned(), text);
        let listing = json(&format!(r#"{{"tools":{tools}}}"#));
        let registry = Registry::read(&[&listing], 1).unwrap();
        let sample = Sample::read(text(vector.0.get("message").unwrap()).as_bytes()).unwrap();
        let outcome = engine.project(sample.operation(), &registry, 0, token);
        check(&vector, outcome);
    }
}

fn settings(own: Option<&Json>, shared: &Json) -> Settings {
    let said = |name: &str| own.and_then(|own| own.get(name)).or_else(|| shared.get(name));
    let word = |name: &str| said(name).and_then(Json::as_str);
    let claims = said("subject_claims").and_then(Json::as_object).unwrap_or_default();
    let extra = said("extra_defaults").and_then(Json::as_array).unwrap_or_default();
    Settings {
        server: word("server").map(str::to_owned),
        subject_claims: claims
            .iter()
            .map(|(issuer, claim)| (issuer.clone(), claim.as_str().unwrap().to_owned()))
            .collect(),
        trust: if word("trust") == Some("strict") { Trust::Strict } else { Trust::Warn },
        revision: if word("revision").is_some() { Revision::September2026 } else { Revision::July2026 },
        extra_defaults: extra.iter().map(|method| method.as_str().unwrap().to_owned()).collect(),
    }
}

fn check(vector: &Vector, outcome: Result<Projection, Fault>) {
    let (name, expect) = (vector.name(), vector.expect());
    match outcome {
        Ok(Projection::PassThrough) => assert!(expect.get("passes").is_some(), "{name}: passed"),
        Ok(Projection::Ask(asked)) => {
            let body = json(&String::from_utf8(asked.request.body().unwrap()).unwrap());
            let Some(expect) = expect.get("asks") else { panic!("{name}: asks {}", text(&body)) };
            let source = if asked.source == Source::Declared { "declared" } else { "default" };
            assert_eq!(Some(source), expect.get("source").and_then(Json::as_str), "{name}");
            assert_eq!(asked.mapping.is_some(), source == "declared", "{name}");
            assert_eq!(Some(asked.request.api()), expect.get("api").and_then(Json::as_str), "{name}");
            assert!(same(&body, expect.get("request").unwrap()), "{name}: {}", text(&body));
            let warnings: Vec<&str> = asked.warnings.iter().map(|warning| warning.notice.as_str()).collect();
            let expected: Vec<&str> = expect
                .get("warnings")
                .and_then(Json::as_array)
                .unwrap()
                .iter()
                .filter_map(Json::as_str)
                .collect();
            assert_eq!(warnings, expected, "{name}");
        }
        Err(fault) => {
            let Some(expect) = expect.get("fault") else { panic!("{name}: {fault}") };
            let code = fault.category().code();
            assert_eq!(Some(code), expect.get("code").and_then(Json::as_i64), "{name}: {fault}");
            if let Some(path) = expect.get("path").and_then(Json::as_str) {
                assert_eq!(fault.place, path, "{name}: {fault}");
            }
            if let Some(why) = expect.get("why").and_then(Json::as_str) {
                assert!(fault.message().contains(why), "{name}: {fault}");
            }
        }
    }
}

/// Runs the vectors of one value each.
pub(crate) fn values() {
    let file = file("values");
    let token = file.get("token").unwrap();
    let engine = Engine::new(Settings::default()).unwrap();
    for vector in file.vectors() {
        let mapping = |value: &str| {
            format!(
                r#"{{"evaluation":{{"action":{{"name":"a"}},"resource":{{"type":"r","id":"1"}},"context":{{"v":{value}}}}}}}"#
            )
        };
        let mapping = mapping(&text(vector.0.get("value").unwrap()));
        let listing =
            json(&format!(r#"{{"tools":[{{"name":"t","inputSchema":{{"x-authzen-mapping":{mapping}}}}}]}}"#));
        let mut params = vec![("name".to_owned(), Json::String("t".to_owned()))];
        params.extend(vector.0.get("arguments").map(|it| ("arguments".to_owned(), it.clone())));
        let params = Json::Object(params);
        let call = Operation { method: "tools/call", params: Some(&params), is_request: true };
        let token = vector.0.get("token").unwrap_or(token);
        let registry = Registry::read(&[&listing], 1).unwrap();
        value(&vector, engine.project(call, &registry, 0, token));
        if vector.name().starts_with("domain: ") {
            never_a_name(&engine, &vector, call, token);
        }
    }
}

fn value(vector: &Vector, outcome: Result<Projection, Fault>) {
    let (name, expect) = (vector.name(), vector.expect());
    if expect.get("any").is_some() {
        return;
    }
    match outcome {
        Ok(Projection::Ask(asked)) => {
            let body = json(&String::from_utf8(asked.request.body().unwrap()).unwrap());
            let seen = body.get("context").and_then(|context| context.get("v"));
            match (seen, expect.get("value")) {
                (None, None) => assert!(expect.get("absent").is_some(), "{name}: left out"),
                (Some(seen), Some(value)) => assert!(same(seen, value), "{name}: {}", text(seen)),
                (seen, _) => panic!("{name}: {:?}", seen.map(text)),
            }
        }
        Ok(Projection::PassThrough) => panic!("{name}: passed"),
        Err(fault) => {
            assert_eq!(
                Some(fault.category().as_str()),
                expect.get("fault").and_then(Json::as_str),
                "{name}: {fault}"
            );
            let why = expect.get("why").and_then(Json::as_str).unwrap_or_default();
            assert!(fault.message().contains(why), "{name}: {fault}");
        }
    }
}

/// What has no value in the domain of its operation is no name and no id either.
fn never_a_name(engine: &Engine, vector: &Vector, call: Operation<'_>, token: &Json) {
    let value = text(vector.0.get("value").unwrap());
    for (action, id, place) in
        [(value.as_str(), "\"1\"", "action.name"), ("\"a\"", value.as_str(), "resource.id")]
    {
        let mapping = format!(
            r#"{{"evaluation":{{"action":{{"name":{action}}},"resource":{{"type":"r","id":{id}}}}}}}"#
        );
        let listing =
            json(&format!(r#"{{"tools":[{{"name":"t","inputSchema":{{"x-authzen-mapping":{mapping}}}}}]}}"#));
        let registry = Registry::read(&[&listing], 1).unwrap();
        let fault = engine.project(call, &registry, 0, token).unwrap_err();
        assert_eq!((fault.category().code(), fault.place.as_str()), (-32602, place), "{}", vector.name());
    }
}
