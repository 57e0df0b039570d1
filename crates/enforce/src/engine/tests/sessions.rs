//! What a session adds to the order, by what the authority was asked.

use crate::admit::TurnedAway;
use crate::call::Incoming;
use crate::scripted::{ARGUMENTS, NOW, Scene, call, key, post, reusable, sign, signed, single_use, told};
use crate::session::{Named, Session};
use crate::verdict::Verdict;
use http::{HeaderValue, Method};
use sayso_protocol::payload::refusal::Code;
use std::sync::Arc;

fn older(mut incoming: Incoming) -> Incoming {
    incoming.head.headers.insert("mcp-protocol-version", HeaderValue::from_static("2025-11-25"));
    incoming.head.headers.remove("mcp-method");
    incoming
}

fn said(method: &str) -> Incoming {
    older(post(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#), method, None))
}

async fn verdict(scene: &Scene, session: &Arc<Session>, incoming: &Incoming) -> String {
    told(&scene.engine.decide_within(Some(session), incoming, &scene.door).await)
}

async fn bind(scene: &Scene) -> Arc<Session> {
    let session = Arc::new(Session::default());
    let call = signed("get_positions", "{}");
    let Verdict::Permit(permit) = scene.engine.decide_within(Some(&session), &call, &scene.door).await else {
        panic!("refused")
    };
    assert!(!session.is_bound(), "a permit is no forwarding");
    assert!(permit.redeem().is_ok_and(|clearance| clearance.closing.is_some() && clearance.token.is_some()));
    assert!(session.is_bound());
    session
}

// D-5, D-13: whose session it is, is known before anything is spent or reported.
#[tokio::test]
async fn another_keys_call_spends_nothing() {
    let scene = Scene::with(single_use());
    let theirs = Arc::new(Session::default());
    let stranger = sayso_protocol::SigningKey::from_seed(&[9; 32]).unwrap();
    let tie = theirs.tie(stranger.verifying(), "another").ok().unwrap();
    tie.keep();
    assert_eq!(
        verdict(&scene, &theirs, &signed("execute_trade", ARGUMENTS)).await,
        Code::SessionBound.as_str()
    );
    assert_eq!(scene.authority.names(), ["introspect"]);
    let own = Arc::new(Session::default());
    assert_eq!(verdict(&scene, &own, &signed("execute_trade", ARGUMENTS)).await, "permit");
    // The permit was dropped, so nothing was forwarded and the session is nobody's, though the grant is spent.
    assert!(!own.is_bound() && scene.authority.consumed() == 1);
}

#[tokio::test]
async fn what_is_said_in_a_bound_session_asks_the_authority_nothing_unless_it_touches_a_call() {
    let scene = Scene::with(reusable());
    let session = bind(&scene).await;
    let asked = scene.authority.names().len();
    for method in ["tools/list", "ping", "no/such"] {
        assert_eq!(verdict(&scene, &session, &said(method)).await, "invalid_token", "{method}");
    }
    assert_eq!(verdict(&scene, &session, &call("get_positions", "{}")).await, "challenge");
    let mine = |incoming| sign(incoming, &key(0x22), NOW, "gw.example.test");
    assert_eq!(verdict(&scene, &session, &mine(said("tools/list"))).await, "open");
    assert_eq!(verdict(&scene, &session, &mine(said("no/such"))).await, "unknown_method");
    assert_eq!(scene.authority.names()[asked..], ["permission"]);
    let mut listen = said("ping");
    listen.head.method = Method::GET;
    listen.body = crate::Body::Whole(bytes::Bytes::new());
    let signed = {
        let mut signed = listen.clone();
        signed.head.headers.remove("content-type");
        mine(signed)
    };
    assert_eq!(verdict(&scene, &session, &listen).await, "invalid_token");
    assert_eq!(verdict(&scene, &session, &signed).await, "open");
    assert_eq!(scene.authority.names()[asked..], ["permission", "introspect"]);
    assert_eq!(verdict(&scene, &session, &signed).await, "invalid_token", "a replay");
}

#[tokio::test]
async fn a_session_is_named_or_it_is_not() {
    let scene = Scene::with(reusable());
    let mut head = said("ping").head;
    head.method = Method::GET;
    let code = |named| scene.engine.preview(&head, named).err().map(|refusal| refusal.code);
    let session = Arc::new(Session::default());
    assert_eq!(code(Named::Nothing), Some(Code::MethodNotAllowed));
    assert_eq!(code(Named::Unknown), Some(Code::SessionNotFound));
    assert_eq!(code(Named::Known(&session)), None);
    let outside = crate::admit::admit(&scene.engine.resource(), &said("no/such"), false, false).err();
    assert!(matches!(outside, Some(TurnedAway::Fault(fault)) if fault.http_status == 403));
}
