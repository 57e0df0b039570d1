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
#[path = "hosts/guard.rs"]
mod guard;
#[path = "hosts/hostile.rs"]
mod hostile;
#[path = "hosts/layer.rs"]
mod layer;
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
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use told::Told;
use vectors::Vector;

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
    async fn judge(&self, vector: &Vector, authority: Arc<Stub>) -> Told;
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

// CORE-13, CORE-14, CORE-83, CORE-84, CORE-115, MCP-05, MCP-06, MCP-10, MCP-11, MCP-12, MCP-13, MCP-14, MCP-19
#[tokio::test]
async fn every_vector_has_its_verdict_at_every_host_that_sees_it() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for vector in vectors::all() {
        let mut remediation = None;
        for host in hosts().iter().filter(|host| host.sees(&vector)) {
            let what = format!("{} at {}", vector.name, host.name());
            *seen.entry(host.name()).or_default() += 1;
            let authority = Stub::of(&vector);
            let told = host.judge(&vector, Arc::clone(&authority)).await;
            assert_eq!(told.verdict, host.wanted(&vector), "{what}");
            assert_eq!(authority.asked(), vector.asked, "{what}");
            assert_eq!(told.reached > 0, vector.passes(), "{what}: {} got there", told.reached);
            assert_eq!(told.remediation.is_some(), vector.verdict()["kind"] == "challenge", "{what}");
            if let Some(said) = told.remediation {
                assert_eq!(remediation.get_or_insert_with(|| said.clone()), &said, "{what}");
            }
        }
    }
    let all = vectors::all().len();
    for whole in ["proxy", "layer", "guard", "checked over http", "checked over grpc"] {
        assert_eq!(seen[whole], all, "{whole}");
    }
    assert!(seen["pipe"] > 8, "{seen:?}");
}

/// What a host says where a policy is asked, and that nothing gets through beside it.
async fn judged(host: &dyn Host, vector: &Vector) {
    let what = format!("{} at {}", vector.name, host.name());
    let authority = Stub::of(vector);
    let told = host.judge(vector, Arc::clone(&authority)).await;
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
        let told = host.judge(&honest, Stub::of(&honest)).await;
        assert_eq!((&told.verdict["kind"], told.reached), (&"passes".into(), 1), "{}", host.name());
        accepting.push(host.name());
    }
    assert_eq!(accepting, ["proxy", "layer", "guard", "checked over http", "checked over grpc"]);
}
