//! A policy alone around a server that guards itself.

use super::cast::{HOST, House, Inside, NOW, PUBLIC, Turn, key};
use super::request::{Answer, Call};
use crate::{Layered, Site, SiteConfig};
use http_body_util::BodyExt;
use sayso_enforce::policy::Denials;
use sayso_enforce::policy::scripted::{Point, Says, Script};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tower::ServiceExt;
use tower_layer::Layer;

fn config(point: &Arc<Point>, script: Script) -> SiteConfig {
    SiteConfig::policed(PUBLIC, script.policed(point), key(0x44)).unwrap()
}

fn open(says: Says, script: Script) -> (House, Arc<Point>) {
    let point = Point::saying(says);
    let policed = config(&point, script);
    (House::with(|config| *config = policed), point)
}

fn by(token: &str, call: Call) -> Call {
    call.with("authorization", &format!("Bearer {token}"))
}

fn look() -> Call {
    Call::tool("look", "{}")
}

// COAZ-MCP-75, D-3: the layer answers the client, in both its manners.
#[tokio::test]
async fn a_no_is_an_answer_with_status_200() {
    for (says, code) in [(Says::No, -32001), (Says::Nothing, -32603)] {
        let (house, _) = open(says, Script::default());
        let plain = house.send(&by("ann", look())).await;
        let spoken = house.site.layer().in_json_rpc().layer(house.inside.clone());
        let spoken = spoken.oneshot(by("ann", look()).request()).await.unwrap();
        for answer in [plain, Answer::read(spoken).await] {
            assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (200, &json!(code)));
            assert_eq!((&answer.json()["id"], answer.header("www-authenticate")), (&json!(1), None));
        }
        house.assert_untouched("denied");
    }
    let (house, point) = open(Says::Yes, Script::default());
    assert_eq!(house.send(&by("ann", look())).await.status, 200);
    assert_eq!((house.inside.count(), point.bodies().len()), (1, 1));
    assert!(house.inside.got.lock().unwrap()[0].headers().get("authorization").is_none());
}

// COAZ-MCP-81
#[tokio::test]
async fn who_shows_no_good_token_is_told_where_one_is_to_be_had() {
    let (house, point) = open(Says::Yes, Script::default());
    let at = format!("Bearer resource_metadata=\"http://{HOST}/.well-known/oauth-protected-resource/mcp\"");
    let bare = house.send(&look()).await;
    assert_eq!((bare.status.as_u16(), bare.header("www-authenticate")), (401, Some(at.as_str())));
    let bad = house.send(&by("eve", look())).await;
    assert!(bad.status == 401 && bad.header("www-authenticate").unwrap().contains("error=\"invalid_token\""));
    assert_eq!(house.send(&look().signed("reader")).await.status, 401, "an owner's grant is nothing here");
    assert!(point.bodies().is_empty());
    house.assert_untouched("without a token");
}

// COAZ-MCP-79
#[tokio::test]
async fn a_call_may_be_denied_by_a_result() {
    let denials = Denials { words: Some("reason".parse().unwrap()), as_result: true };
    let (house, _) = open(Says::NoSaying, Script { denials, ..Script::default() });
    let answer = house.send(&by("ann", look())).await.json();
    assert_eq!((&answer["result"]["isError"], answer.get("error")), (&json!(true), None));
    assert_eq!(answer["result"]["content"][0]["text"], "Access denied: R");
    house.assert_untouched("denied");
}

/// A layer whose clock goes with the test's.
fn ticking(point: &Arc<Point>) -> (Layered<Inside>, Inside) {
    let (began, inside) = (Instant::now(), Inside::default());
    let clock = move || NOW.plus(i64::try_from(began.elapsed().as_secs()).unwrap());
    let site = Site::new(config(point, Script::default()), Arc::new(clock)).unwrap();
    (site.layer().layer(inside.clone()), inside)
}

// D-13: what an access token opened ends with it.
#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_the_token_that_opened_it_does() {
    for (token, lasts) in [("brief", Duration::from_secs(2)), ("ann", Duration::from_secs(600))] {
        let (layered, inside) = ticking(&Point::saying(Says::Yes));
        let (told, pieces) = mpsc::channel(4);
        inside.next(Turn::Stream(pieces));
        let mut body = layered.oneshot(by(token, look()).request()).await.unwrap().into_body();
        told.send("data: {}\n\n").await.unwrap();
        assert!(body.frame().await.unwrap().is_ok());
        let since = Instant::now();
        assert!(body.frame().await.is_none(), "the end of its events, and no fault");
        let took = since.elapsed();
        assert!(
            took >= lasts - Duration::from_secs(1) && took <= lasts + Duration::from_secs(1),
            "{token}: {took:?}"
        );
        assert!(told.is_closed(), "its server is not listened to any more");
    }
}
