//! Terms as a rights expression: an ODRL offer in JSON-LD (TERMS-16).
//!
//! It says what the JSON says and nothing more; words of the owner's stay literals.

use sayso_protocol::payload::terms::Terms;
use serde_json::{Value, json};

/// The offer at `uri`.
pub(super) fn offer(terms: &Terms, uri: &str) -> Value {
    let permission = |scope: &sayso_protocol::Scope| {
        json!({
            "odrl:action": scope.as_str(),
            "odrl:constraint": {
                "odrl:leftOperand": { "@id": "odrl:elapsedTime" },
                "odrl:operator": { "@id": "odrl:lteq" },
                "odrl:rightOperand": {
                    "@type": "http://www.w3.org/2001/XMLSchema#duration",
                    "@value": format!("PT{}S", terms.expires_in),
                },
            },
        })
    };
    let permissions: Vec<Value> = terms.scope.iter().map(permission).collect();
    let prohibitions: Vec<Value> =
        terms.prohibited.iter().map(|promise| json!({ "odrl:action": promise })).collect();
    json!({
        "@context": { "odrl": "http://www.w3.org/ns/odrl/2/", "dcterms": "http://purl.org/dc/terms/" },
        "@type": "odrl:Offer",
        "@id": uri,
        "odrl:assigner": { "@id": terms.proffered_by },
        "dcterms:identifier": terms.template_id,
        "dcterms:description": terms.purpose,
        "odrl:permission": permissions,
        "odrl:prohibition": prohibitions,
    })
}
