//! The shared vectors in `vectors/coaz`, run by the engine alone.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot read its vectors has failed")]

mod catalogue;
mod read;
mod requests;

use read::{Vector, file, json, same, text};
use sayso_coaz::answer::{Permitted, Reply, judge};
use sayso_coaz::authzen::Request;
use sayso_coaz::{Category, Fault, NotAListing, Registry, Sample};
use sayso_protocol::Json;

// COAZ-FW-01, COAZ-FW-02, COAZ-FW-03, COAZ-FW-04, COAZ-FW-05, COAZ-FW-06, COAZ-FW-07, COAZ-FW-08, COAZ-FW-09,
// COAZ-FW-23, COAZ-FW-25, COAZ-FW-26, COAZ-FW-27, COAZ-FW-40, COAZ-FW-45, COAZ-MCP-16, COAZ-MCP-19, COAZ-MCP-52,
// COAZ-MCP-55, COAZ-MCP-76
// ERR-01, ERR-02, ERR-03, ERR-04, ERR-05, ENV-01, ENV-02, ENV-03, ENV-04, ENV-05, ENV-06, ENV-07, ENV-08, ENV-09,
// ENV-10, ENV-11, ENV-12, EVS-01, EVS-02, EVS-03, EVS-15, EVS-16, EVS-22
#[test]
fn envelopes() {
    requests::run("envelopes");
}

// COAZ-FW-03, COAZ-FW-11, COAZ-FW-12, COAZ-FW-13, COAZ-FW-14, COAZ-FW-15, COAZ-FW-18, COAZ-FW-19, COAZ-FW-20, COAZ-FW-21,
// COAZ-FW-22, COAZ-FW-24, COAZ-MCP-06, COAZ-MCP-07, COAZ-MCP-12, COAZ-MCP-13, COAZ-MCP-14, COAZ-MCP-71
// EX-01, EX-02, EX-03, EX-04, EX-05, EX-06, EX-07, EX-08, EX-09, EX-10, EX-11, EX-12, EX-13, EX-14, EX-15, EX-16,
// EX-17, EX-18, EX-19, EX-20, EX-21, EX-22, EX-23
#[test]
fn values() {
    requests::values();
}

// COAZ-FW-20, COAZ-FW-32, COAZ-FW-33, COAZ-MCP-01, COAZ-MCP-25, COAZ-MCP-26, COAZ-MCP-27, COAZ-MCP-32, COAZ-MCP-33,
// COAZ-MCP-34, COAZ-MCP-35, COAZ-MCP-36, COAZ-MCP-37, COAZ-MCP-38, COAZ-MCP-39, COAZ-MCP-40, COAZ-MCP-41, COAZ-MCP-42,
// COAZ-MCP-43, COAZ-MCP-44, COAZ-MCP-45, COAZ-MCP-46, COAZ-MCP-47, COAZ-MCP-48, COAZ-MCP-49, COAZ-MCP-51, COAZ-MCP-68,
// COAZ-MCP-69, COAZ-FW-35
// ROW-01, ROW-02, ROW-03, ROW-04, ROW-05, ROW-06, ROW-07, ROW-08, ROW-09, ROW-10, ROW-11, ROW-12, ROW-13, ROW-14,
// ROW-15, ROW-16, ROW-17, ROW-18, ROW-19, ROW-20, ROW-21, ROW-22, ROW-23, CMP-01, CMP-02, ERR-08, MSG-06, MSG-09,
// MSG-11, MSG-14, MSG-15, MSG-19
#[test]
fn methods() {
    requests::run("methods");
}

// COAZ-MCP-27, COAZ-MCP-28, COAZ-MCP-29, COAZ-MCP-30, COAZ-MCP-31
// ERR-06, AUD-01, AUD-02, AUD-03, AUD-04, AUD-05, AUD-06, AUD-07, AUD-08, AUD-09, AUD-10, AUD-11
#[test]
fn audience() {
    requests::run("audience");
}

// COAZ-FW-37, COAZ-FW-38, COAZ-FW-48, COAZ-MCP-08, COAZ-MCP-09, COAZ-MCP-10, COAZ-MCP-11, COAZ-MCP-55, COAZ-MCP-56, COAZ-MCP-57,
// COAZ-MCP-58, COAZ-MCP-59, COAZ-MCP-60, COAZ-MCP-61, COAZ-MCP-62, COAZ-MCP-72, COAZ-MCP-82
// SUB-01, SUB-03, SUB-04, SUB-05, SUB-06, SUB-07, SUB-08, SUB-09, SUB-10, SUB-11, SUB-12, SUB-13, SUB-14, SUB-16
#[test]
fn subject() {
    requests::run("subject");
}

// COAZ-MCP-15, COAZ-MCP-18, COAZ-MCP-23, COAZ-MCP-53, COAZ-MCP-65, COAZ-MCP-66, COAZ-MCP-67, COAZ-MCP-90
#[test]
fn examples() {
    requests::run("examples");
}

// COAZ-FW-41, COAZ-FW-42, COAZ-FW-43, COAZ-MCP-74, COAZ-MCP-78, COAZ-MCP-80, COAZ-MCP-85
// ERR-07, ERR-10, ERR-11, ERR-12, ERR-13, ERR-14, ERR-15, ERR-16, ERR-17, ERR-19, ERR-20, ERR-21, ERR-22, ERR-23,
// EVS-02, EVS-04, EVS-05, EVS-06, EVS-07, EVS-08, EVS-09, EVS-10, EVS-11, EVS-12, EVS-13, EVS-14, AZ-17, AZ-18, AZ-19
#[test]
fn answers() {
    for vector in file("answers").vectors() {
        let asked = asked(&vector);
        let media_type = match vector.0.get("media_type") {
            None => Some("application/json"),
            Some(said) => said.as_str(),
        };
        let status =
            vector.0.get("status").and_then(Json::as_u64).map_or(200, |status| status.try_into().unwrap());
        let reply = Reply { status, media_type, body: vector.text("body").as_bytes() };
        let outcome = judge(&asked, reply);
        let fault = outcome.as_ref().err().map(Fault::category);
        assert_eq!(fault.map_or("permit", Category::as_str), vector.text("expect"), "{}", vector.name());
        if let Err(fault) = outcome {
            let body = String::from_utf8(fault.body(None)).unwrap();
            let code = if fault.category() == Category::Denied { "-32001" } else { "-32603" };
            assert!(
                body.contains(code) && !body.contains("reason") && !body.contains("binding_token"),
                "{body}"
            );
        }
    }
}

/// A request for as many decisions as a vector says.
fn asked(vector: &Vector) -> Request {
    let one =
        json(r#"{"subject":{"type":"t","id":"u"},"action":{"name":"a"},"resource":{"type":"r","id":"1"}}"#);
    let count = vector.0.get("asked").and_then(Json::as_u64).unwrap();
    let semantic = vector.0.get("semantic").and_then(Json::as_str);
    if count == 1 && semantic.is_none() {
        return Request::Evaluation(Box::new(sayso_coaz::authzen::Evaluation::read(&one).unwrap()));
    }
    let entries = vec![text(&one); usize::try_from(count).unwrap()].join(",");
    let options =
        semantic.map(|name| format!(r#","options":{{"evaluations_semantic":"{name}"}}"#)).unwrap_or_default();
    let several = json(&format!(r#"{{"evaluations":[{entries}]{options}}}"#));
    Request::Evaluations(Box::new(sayso_coaz::authzen::Evaluations::read(&several).unwrap()))
}

// COAZ-FW-34, COAZ-FW-39, COAZ-FW-47, COAZ-MCP-04, COAZ-MCP-23, COAZ-MCP-53
// LST-01, LST-02, LST-04, LST-05, LST-06, LST-07, LST-17, MSG-19
#[test]
fn listing() {
    for vector in file("listing").vectors() {
        let pages: Vec<&Json> = vector.0.get("pages").and_then(Json::as_array).unwrap().iter().collect();
        let number = |name: &str| vector.0.get(name).and_then(Json::as_i64).unwrap();
        let registry = Registry::read(&pages, number("fresh_until"));
        let seen = match &registry {
            Err(NotAListing::Incomplete) => "incomplete",
            Err(NotAListing::TooLarge) => "too_large",
            Err(NotAListing::Shape) => "shape",
            Ok(registry) => match registry.declared(vector.text("tool"), number("now")) {
                Ok(Some(_)) => "declared",
                Ok(None) => "default",
                Err(fault) => fault.category().as_str(),
            },
        };
        assert_eq!(seen, vector.text("expect"), "{}", vector.name());
    }
}

// MSG-01, MSG-02, MSG-03, MSG-04, MSG-05, MSG-07
#[test]
fn shapes() {
    for vector in file("shape").vectors() {
        let code = Sample::read(vector.text("body").as_bytes()).map_or_else(|fault| fault.code(), |_| 0);
        assert_eq!(Some(code), vector.0.get("expect").and_then(Json::as_i64), "{}", vector.name());
    }
}

#[test]
fn what_is_written_is_read_again() {
    let mut seen = 0;
    for name in ["envelopes", "methods", "subject", "examples"] {
        for vector in file(name).vectors() {
            let Some(asks) = vector.expect().get("asks") else { continue };
            let body = asks.get("request").unwrap();
            let request = match asks.get("api").and_then(Json::as_str).unwrap() {
                "evaluation" => {
                    Request::Evaluation(Box::new(sayso_coaz::authzen::Evaluation::read(body).unwrap()))
                }
                _ => Request::Evaluations(Box::new(sayso_coaz::authzen::Evaluations::read(body).unwrap())),
            };
            let written = String::from_utf8(request.body().unwrap()).unwrap();
            assert!(same(&json(&written), body), "{}: {written}", vector.name());
            seen += 1;
        }
    }
    assert!(seen > 60);
}

#[test]
fn a_permit_is_only_had_from_an_answer() {
    let asked = asked(&Vector(json(r#"{"asked":1}"#)));
    let reply = Reply { status: 200, media_type: Some("application/json"), body: br#"{"decision":true}"# };
    let permitted: Permitted = judge(&asked, reply).unwrap();
    assert_eq!(format!("{permitted:?}"), "Permitted(())");
}
