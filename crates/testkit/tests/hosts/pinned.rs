//! What is declared of a tool today against what she agreed to, and an authority that is away for a while: at every host
//! that sees HTTP.

use super::authority::Stub;
use super::standing::{self, Standing, call, reading, signed, signed_by, with};
use super::vectors::{self, PUBLIC, STAGE, Stage};
use bytes::Bytes;
use http::Request;
use sayso_enforce::Authority;
use sayso_enforce::consequence::Consequence;
use sayso_protocol::envelope::rfc9728;
use sayso_protocol::payload::metadata::KeySet;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const PIN: &str = "s256:RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o";
const ANOTHER: &str = "s256:_i7eQ0NszGGy1GytJ1ixwfZIjeFht4nSt1ca4ejRBbw";

async fn hosts(stage: &Stage, introspection: &Value) -> (Arc<Stub>, Vec<Standing>) {
    let authority = Stub::granting(introspection);
    let hosts = standing::all(stage, &(Arc::clone(&authority) as Arc<dyn Authority>)).await;
    (authority, hosts)
}

/// A grant that was given when this was declared.
fn given(class: Option<&str>, pin: Option<&str>) -> Value {
    let mut grant = reading();
    class.into_iter().for_each(|class| grant["consequence"] = class.into());
    pin.into_iter().for_each(|pin| grant["permissions"][0]["definition"] = pin.into());
    grant
}

// CORE-76, CORE-77, CORE-16, D-30
#[tokio::test]
async fn what_became_graver_or_another_thing_is_refused_at_every_host() {
    let stage = Stage { declared: Some((Consequence::ForwardRecoverable, PIN)), ..STAGE };
    for (class, pin, refused) in [
        (Some("reversible"), Some(PIN), Some("consequence_changed")),
        (Some("compensatable"), Some(PIN), Some("consequence_changed")),
        (Some("forward_recoverable"), Some(PIN), None),
        (Some("irreversible"), Some(PIN), None),
        (None, Some(PIN), None),
        (Some("irreversible"), Some(ANOTHER), Some("tool_changed")),
        (None, Some(ANOTHER), Some("tool_changed")),
        (None, None, None),
    ] {
        let (authority, hosts) = hosts(&stage, &given(class, pin)).await;
        for host in &hosts {
            let answer = host.send(signed(call("get_positions", "{}", ""))).await;
            let what = format!("{class:?} and {pin:?} at {}: {answer:?}", host.name);
            assert_eq!(host.reached(), usize::from(refused.is_none()), "{what}");
            let asked = authority.forget();
            if let Some(word) = refused {
                assert_eq!((answer.error(), answer.refused_with()), (word.into(), 403), "{what}");
                assert!(answer.headers.get("www-authenticate").is_none(), "{what}");
                assert_eq!(asked, ["introspect"], "{what}");
            }
        }
    }
}

// CORE-22: whoever could not be answered sends the very same again.
#[tokio::test]
async fn after_an_outage_the_same_request_is_good_at_every_host() {
    let (authority, hosts) = hosts(&STAGE, &reading()).await;
    for host in &hosts {
        let (plain, proven) = (call("get_positions", "{}", ""), signed(call("get_positions", "{}", "")));
        authority.gone.store(true, Ordering::SeqCst);
        for request in [plain.clone(), proven.clone(), proven.clone()] {
            let answer = host.send(request).await;
            let said = (answer.error(), answer.refused_with(), host.reached());
            assert_eq!(said, ("temporarily_unavailable".into(), 503, 0), "{}: {answer:?}", host.name);
            assert!(answer.headers.get("www-authenticate").is_none(), "{}", host.name);
        }
        authority.gone.store(false, Ordering::SeqCst);
        assert_eq!(host.send(plain).await.refused_with(), 401, "{}", host.name);
        host.send(proven.clone()).await;
        assert_eq!(host.reached(), 1, "{}", host.name);
        let again = host.send(proven).await;
        assert_eq!((again.error(), host.reached()), ("invalid_token".into(), 1), "{}", host.name);
    }
}

// FED-03, FED-04, FED-12, D-30: what is declared stands in the public document, in its signed copy and in her listing, at every
// host that publishes, and is what the host decides by.
#[tokio::test]
async fn a_declared_class_is_published_where_it_is_decided_by() {
    for class in Consequence::ALL {
        let stage = Stage { declared: Some((class, PIN)), ..STAGE };
        let (_, hosts) = hosts(&stage, &reading()).await;
        for host in hosts.iter().filter(|host| host.name != "checked over grpc") {
            let asked = |path: &str| {
                let mut request = Request::new(Bytes::new());
                *request.uri_mut() = path.parse().unwrap();
                with(&mut request, "host", "gw.example.test");
                request
            };
            let keys = host.send(asked("/jwks")).await;
            let keys: KeySet = serde_json::from_slice(&keys.body).unwrap();
            let published = host.send(asked("/.well-known/oauth-protected-resource/mcp")).await;
            let url = format!("{PUBLIC}/mcp");
            let signed =
                rfc9728::read(&published.body, &url).unwrap().trust(&keys.keys(), STAGE.now).unwrap();
            let plain = published.json()["tool_surfaces"].clone();
            assert_eq!(
                serde_json::to_value(&signed.metadata().unwrap().tool_surfaces).unwrap(),
                plain,
                "{}",
                host.name
            );
            let query = signed_by(asked("/owner-resources"), &vectors::authority_key(), None);
            let listed = host.send(query).await.json()["resources"].clone();
            for (said, what) in [(&plain, "document"), (&listed, "listing")] {
                let said = said.as_array().unwrap();
                assert_eq!(said.len(), 2, "{what} at {}", host.name);
                assert!(
                    said.iter().all(|one| one["consequence"] == class.as_str()),
                    "{what} at {}",
                    host.name
                );
            }
            assert!(listed.as_array().unwrap().iter().all(|one| one["definition"] == PIN), "{}", host.name);
        }
    }
}
