//! One corpus through every host: each `vectors/verdict/*.json` comes to its verdict at every host that can see what it
//! turns on, with one stubbed ticket and one public URL, and the remediation of a challenge is the same bytes.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot set up its stage has failed"
)]

#[path = "hosts/asked.rs"]
mod asked;
#[path = "hosts/authority.rs"]
mod authority;
#[path = "hosts/carried.rs"]
mod carried;
#[path = "hosts/guard.rs"]
mod guard;
#[path = "hosts/hostile.rs"]
mod hostile;
#[path = "hosts/layer.rs"]
mod layer;
#[path = "hosts/listening.rs"]
mod listening;
#[path = "hosts/methods.rs"]
mod methods;
#[path = "hosts/pinned.rs"]
mod pinned;
#[path = "hosts/pipe.rs"]
mod pipe;
#[path = "hosts/places.rs"]
mod places;
#[path = "hosts/policed.rs"]
mod policed;
#[path = "hosts/policy.rs"]
mod policy;
#[path = "hosts/proofs.rs"]
mod proofs;
#[path = "hosts/proxy.rs"]
mod proxy;
#[path = "hosts/rounds.rs"]
mod rounds;
#[path = "hosts/standing.rs"]
mod standing;
#[path = "hosts/told.rs"]
mod told;
#[path = "hosts/vectors.rs"]
mod vectors;

use async_trait::async_trait;
use authority::Stub;
use sayso_protocol::canon;
use sayso_protocol::json::{Json, Limits};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::protection::AccessReport;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use told::Told;
use vectors::{AS_URI, PUBLIC, Vector};

/// A host of the resource of the vectors.
#[async_trait]
trait Host {
    /// What it is called when it is wrong.
    fn name(&self) -> &'static str;

    /// Whether it can see what the vector turns on.
    fn sees(&self, vector: &Vector) -> bool;

    /// The vector's verdict as this host words it.
    fn wanted(&self, vector: &Vector) -> Value {
        vector.verdict()
    }

    /// What it says to the vector's request, before this authority.
    async fn judge(&self, vector: &Vector, edition: Edition, authority: Arc<Stub>) -> Told;
}

/// Every host there is.
fn hosts() -> Vec<Box<dyn Host>> {
    vec![
        Box::new(proxy::Proxy),
        Box::new(layer::OverHttp),
        Box::new(guard::InJsonRpc),
        Box::new(asked::Gateway::OverHttp),
        Box::new(asked::Gateway::OverGrpc),
        Box::new(pipe::Pipe),
    ]
}

/// The challenge that a call of the vector has to be met with, out of the registry and nothing else.
fn challenge(vector: &Vector, edition: Edition) -> Option<Value> {
    let verdict = vector.verdict();
    let (scope, id) = (verdict["scope"].as_str()?.to_owned(), verdict["resource_id"].as_str()?.to_owned());
    let tool = id.strip_prefix("vault/").unwrap();
    let kind = match edition {
        Edition::Sept11 => "urn:uma4agents:authorization-details:tool-call",
        Edition::Sept15 => "https://u4a.ai/spec/core/1.0#tool-call",
    };
    let details = json!([{
        "type": kind, "locations": [PUBLIC], "identifier": id, "actions": [tool], "datatypes": [scope],
    }]);
    let read = Json::parse(details.to_string().as_bytes(), Limits::default()).unwrap();
    Some(json!({
        "error": "insufficient_authorization", "realm": "vault", "as_uri": AS_URI, "ticket": "ticket-1",
        "resource_metadata": format!("{PUBLIC}/.well-known/oauth-protected-resource/mcp"), "scope": scope,
        "authorization_remediation": {
            "authorization_details": details, "authorization_reference": canon::s256(&read).unwrap(),
            "authorization_server": AS_URI, "ticket": "ticket-1",
        },
    }))
}

/// What was reported names the negotiation and what was reached, and nobody.
fn is_reported(report: &AccessReport, vector: &Vector) {
    let report = serde_json::to_value(report).unwrap();
    assert_eq!(report["family"], vector.introspection["family"]);
    let reached = format!("vault/{}", report["tool"].as_str().unwrap());
    assert_eq!(vector.introspection["permissions"][0]["resource_id"], reached);
    let known = ["family", "tool", "params_s256", "summary"];
    assert!(report.as_object().unwrap().keys().all(|member| known.contains(&member.as_str())), "{report}");
}

/// The vector at one host, by itself. Gives the remediation, where there is one.
async fn has_its_verdict(vector: &Vector, host: &dyn Host, edition: Edition) -> Option<String> {
    let what = format!("{} at {} in {edition:?}", vector.name, host.name());
    let authority = Stub::of(vector);
    let told = host.judge(vector, edition, Arc::clone(&authority)).await;
    assert_eq!(told.verdict, host.wanted(vector), "{what}");
    assert_eq!(authority.asked(), vector.asked, "{what}");
    assert_eq!(told.reached > 0, vector.passes(), "{what}: {} got there", told.reached);
    assert_eq!(told.challenge, challenge(vector, edition), "{what}");
    if let Some(id) = told.id {
        // What is no message has no id that could be trusted.
        let unread = [-32700, -32600].map(Value::from).contains(&told.verdict["jsonrpc"]);
        assert_eq!(id, vector.id().filter(|_| !unread).unwrap_or_else(|| "null".to_owned()), "{what}");
    }
    authority.reports().iter().for_each(|report| is_reported(report, vector));
    told.remediation
}

// CORE-06, CORE-07, CORE-08, CORE-10, CORE-12, CORE-13, CORE-14, CORE-15, CORE-16, CORE-17, CORE-23, CORE-24, CORE-25,
// CORE-26, CORE-27, CORE-28, CORE-29, CORE-82, CORE-83, CORE-84, CORE-90, CORE-98, CORE-115, FED-40, FED-42, FED-48, FED-49,
// MCP-05, MCP-06, MCP-07, MCP-08, MCP-09, MCP-10, MCP-11, MCP-12, MCP-13, MCP-14, MCP-19, MCP-20
#[tokio::test]
async fn every_vector_has_its_verdict_at_every_host_that_sees_it() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for edition in Edition::ALL {
        for vector in vectors::all() {
            let mut remediation = None;
            for host in hosts().iter().filter(|host| host.sees(&vector)) {
                *seen.entry(host.name()).or_default() += 1;
                if let Some(said) = has_its_verdict(&vector, host.as_ref(), edition).await {
                    let one = remediation.get_or_insert_with(|| said.clone());
                    assert_eq!(one, &said, "{} at {}", vector.name, host.name());
                }
            }
        }
    }
    let all = Edition::ALL.len() * vectors::all().len();
    assert!(all > 150, "{all}");
    for whole in ["proxy", "layer", "guard", "checked over http", "checked over grpc"] {
        assert_eq!(seen[whole], all, "{whole}");
    }
    assert!(seen["pipe"] > 16, "{seen:?}");
}

/// What a host says where a policy is asked, and that nothing gets through beside it.
async fn judged(host: &dyn Host, vector: &Vector) {
    let what = format!("{} at {}", vector.name, host.name());
    let authority = Stub::of(vector);
    let told = host.judge(vector, Edition::default(), Arc::clone(&authority)).await;
    assert_eq!(told.verdict, host.wanted(vector), "{what}");
    assert_eq!(authority.asked(), vector.asked, "{what}");
    assert_eq!(told.reached > 0, vector.passes(), "{what}: {} got there", told.reached);
    assert_eq!(vector.policy.as_ref().unwrap().asked(), vector.consulted, "{what}");
}

fn carrying() -> Vec<Box<dyn Host>> {
    hosts().into_iter().filter(|host| host.name() != "pipe").collect()
}

// COAZ-FW-32, COAZ-FW-33, COAZ-FW-40, COAZ-FW-41, COAZ-FW-42, COAZ-FW-43, COAZ-MCP-01, COAZ-MCP-02, COAZ-MCP-05, COAZ-MCP-70,
// COAZ-MCP-74, COAZ-MCP-75, COAZ-MCP-77, COAZ-MCP-81, COAZ-MCP-85, COAZ-MCP-87, MCP-09
// ERR-08, MSG-01, MSG-05, MSG-08, MSG-09, MSG-13, TOK-01, TOK-02, TOK-10
#[tokio::test]
async fn a_policy_alone_has_its_verdict_at_every_host() {
    for vector in vectors::policed() {
        for host in &carrying() {
            judged(host.as_ref(), &vector).await;
        }
    }
}

// D-5, D-6, COAZ-MCP-03: beside the owner a policy decides about what her grants are for, and about nothing else.
#[tokio::test]
async fn a_policy_beside_the_owner_takes_away_and_gives_nothing() {
    for says in ["yes", "no"] {
        for vector in vectors::beside_a_policy(says) {
            for host in &carrying() {
                judged(host.as_ref(), &vector).await;
            }
        }
    }
}

// CORE-115, MCP-16: the agent's grant is for the resource, whichever host told it where to negotiate.
#[tokio::test]
async fn one_grant_is_accepted_by_every_host_that_can_see_one() {
    let honest = vectors::all().into_iter().find(|vector| vector.name == "an honest single call").unwrap();
    let mut accepting = Vec::new();
    for host in hosts().iter().filter(|host| host.sees(&honest)) {
        let told = host.judge(&honest, Edition::default(), Stub::of(&honest)).await;
        assert_eq!((&told.verdict["kind"], told.reached), (&"passes".into(), 1), "{}", host.name());
        accepting.push(host.name());
    }
    assert_eq!(accepting, ["proxy", "layer", "guard", "checked over http", "checked over grpc"]);
}
