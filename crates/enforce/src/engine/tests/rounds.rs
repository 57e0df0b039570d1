//! Further rounds of a call (D-11): judged as the call was, then taken at the authority, and never in its place.

use super::*;
use crate::scripted::{Scripted, body_of};
use sayso_protocol::payload::protection::{Continuation, LiveGrant, UNKNOWN_CONTINUATION};
use sayso_protocol::{S256, canon};

const STATE: &str = r#""requestState":"one","#;
const BOTH: &str = r#""requestState":"one","inputResponses":{"sure":{"action":"accept"}},"#;

/// The call with these members beside its name.
fn said(tool: &str, arguments: &str, members: &str) -> Incoming {
    let body = call_body(tool, arguments).replace(r#""name""#, &format!(r#"{members}"name""#));
    post(body, "tools/call", Some(tool))
}

fn signed_round(members: &str) -> Incoming {
    sign(said("execute_trade", ARGUMENTS, members), &key(0x22), NOW, "gw.example.test")
}

fn state() -> S256 {
    canon::s256_bytes(b"one")
}

/// The grant as its authority tells the round that was asked for.
fn resuming() -> LiveGrant {
    LiveGrant { bind: true, continuation: Some(state()), ..single_use() }
}

fn round(scene: &Scene) -> Option<Continuation> {
    let asked = scene.authority.asked.lock().unwrap();
    asked.iter().find_map(|asked| if let Asked::Resume(round) = asked { Some(round.clone()) } else { None })
}

// D-11
#[tokio::test]
async fn a_round_is_judged_as_its_call_was_and_then_taken() {
    let scene = Scene::with(resuming());
    let incoming = signed_round(BOTH);
    let Verdict::Permit(permit) = scene.decide(&incoming).await else { panic!("no permit") };
    assert_eq!(scene.authority.names(), ["round", "resume"]);
    let taken = round(&scene).unwrap();
    assert_eq!((taken.state, Some(taken.operation)), (state(), single_use().operation));
    let answers = canon::s256_bytes(br#"{"sure":{"action":"accept"}}"#);
    assert_eq!((taken.answers, taken.key), (Some(answers), key(0x22).verifying().thumbprint()));
    let clearance = permit.redeem().unwrap();
    assert!(clearance.asks && clearance.sender.is_some());
    assert_eq!(clearance.body, body_of(&incoming));

    let scene = Scene::with(resuming());
    assert_eq!(told(&scene.decide(&signed_round(STATE)).await), "permit");
    assert_eq!(round(&scene).unwrap().answers, None, "a state alone is a round too");
}

// D-11
#[tokio::test]
async fn only_a_call_whose_owner_allows_rounds_is_listened_to() {
    for (grant, asks) in [(single_use(), false), (LiveGrant { bind: true, ..single_use() }, true)] {
        let Verdict::Permit(permit) = Scene::with(grant).decide(&trade()).await else { panic!("no permit") };
        assert_eq!(permit.redeem().unwrap().asks, asks);
    }
    let scene = Scene::with(reusable());
    let Verdict::Permit(permit) = scene.decide(&signed("get_positions", "{}")).await else { panic!() };
    assert!(!permit.redeem().unwrap().asks);
}

/// What is refused as a round, and that nothing was taken or spent for it.
async fn is_refused(grant: LiveGrant, incoming: Incoming, code: Code, what: &str) {
    let scene = Scene::with(grant);
    assert_eq!(scene.code(&incoming).await, code, "{what}");
    assert_eq!((round(&scene), scene.authority.consumed()), (None, 0), "{what}");
    assert_eq!(scene.door.checked_out.load(std::sync::atomic::Ordering::SeqCst), 0, "{what}");
}

// CORE-87, CORE-91, D-11
#[tokio::test]
async fn every_other_round_is_refused_and_takes_nothing() {
    let refused = Code::ContinuationRefused;
    let first = LiveGrant { bind: true, ..single_use() };
    is_refused(first, signed_round(BOTH), refused, "the call itself is not made yet").await;
    is_refused(single_use(), signed_round(BOTH), refused, "no rounds are allowed").await;
    let other = LiveGrant { continuation: Some(canon::s256_bytes(b"two")), ..resuming() };
    is_refused(other, signed_round(BOTH), refused, "another state").await;
    let unsigned = said("execute_trade", ARGUMENTS, BOTH);
    is_refused(resuming(), unsigned, refused, "nothing shown").await;

    let thief = sign(said("execute_trade", ARGUMENTS, BOTH), &key(0x33), NOW, "gw.example.test");
    is_refused(resuming(), thief, Code::InvalidToken, "another key").await;
    let more = sign(said("execute_trade", r#"{"symbol":"VTI"}"#, BOTH), &key(0x22), NOW, "gw.example.test");
    is_refused(resuming(), more, Code::OperationMismatch, "other arguments").await;
    for (members, what) in [
        (r#""inputResponses":{},"#, "answers to nothing"),
        (r#""requestState":7,"inputResponses":{},"#, "a state that is no text"),
        (r#""requestState":"one","inputResponses":[],"#, "answers that are no object"),
        (
            r#""requestState":"one","inputResponses":{"n":123456789012345678901},"#,
            "answers without a canonical form",
        ),
        (r#""requestState":"one","note":1,"#, "something else beside"),
    ] {
        is_refused(resuming(), signed_round(members), Code::InvalidRequest, what).await;
    }
}

// D-11
#[tokio::test]
async fn a_round_that_is_no_longer_there_has_one_word() {
    for (reason, code) in
        [("already_consumed", Code::ContinuationRefused), ("connection_revoked", Code::AccessRevoked)]
    {
        let scene = Scene::with(resuming());
        dead(&scene, reason);
        assert_eq!(scene.code(&signed_round(BOTH)).await, code);
        assert_eq!(scene.authority.names(), ["round"]);
    }
    for (reason, code) in [
        (Some("already_consumed"), Code::ContinuationRefused),
        (Some(UNKNOWN_CONTINUATION), Code::ContinuationRefused),
        (Some("connection_revoked"), Code::AccessRevoked),
        (None, Code::ContinuationRefused),
    ] {
        let scene = Scene::with(resuming());
        let lost = ConsumeReply { consumed: false, error: reason.map(str::to_owned) };
        *scene.authority.consume.lock().unwrap() = Some(Ok(lost));
        assert_eq!(scene.code(&signed_round(BOTH)).await, code, "{reason:?}");
    }
    let scene = Scene::with(resuming());
    *scene.authority.consume.lock().unwrap() = Some(Err(Unavailable::Interrupted));
    let refusal = scene.refused(&signed_round(BOTH)).await;
    assert_eq!((refusal.code, refusal.spent), (Code::TemporarilyUnavailable, true));
}

// D-11
#[tokio::test]
async fn racing_rounds_have_one_winner() {
    let scene = Scene::with(resuming());
    let rounds: Vec<Incoming> = (0..16).map(|_| signed_round(BOTH)).collect();
    let verdicts = futures_of(&scene, &rounds).await;
    assert_eq!(verdicts.iter().filter(|told| *told == "permit").count(), 1);
    assert_eq!(verdicts.iter().filter(|told| *told == "continuation_refused").count(), 15);
}

async fn futures_of(scene: &Scene, rounds: &[Incoming]) -> Vec<String> {
    let mut verdicts = Vec::new();
    let mut running: Vec<_> = rounds.iter().map(|one| Box::pin(scene.decide(one))).collect();
    std::future::poll_fn(|context| {
        running.retain_mut(|one| match one.as_mut().poll(context) {
            std::task::Poll::Ready(verdict) => {
                verdicts.push(told(&verdict));
                false
            }
            std::task::Poll::Pending => true,
        });
        if running.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    verdicts
}

// D-11: under a grant for many calls every round is an ordinary call.
#[tokio::test]
async fn rounds_under_a_grant_for_many_calls_are_calls() {
    let scene = Scene::with(reusable());
    for members in [BOTH, STATE, r#""inputResponses":{},"#] {
        let incoming = sign(said("get_positions", "{}", members), &key(0x22), NOW, "gw.example.test");
        assert_eq!(told(&scene.decide(&incoming).await), "permit");
    }
    assert_eq!(scene.authority.consumed(), 0);
    let unsigned = said("get_positions", "{}", BOTH);
    assert_eq!(told(&scene.decide(&unsigned).await), "challenge");
}

/// An authority that knows of no rounds.
struct Older(std::sync::Arc<Scripted>);

#[async_trait::async_trait]
impl Authority for Older {
    async fn permission(
        &self,
        request: &sayso_protocol::payload::protection::PermissionRequest,
    ) -> Result<Result<sayso_protocol::payload::protection::PermissionReply, PermissionFault>, Unavailable>
    {
        self.0.permission(request).await
    }

    async fn introspect(&self, token: &str) -> Result<Introspection, Unavailable> {
        self.0.introspect(token).await
    }

    async fn consume(&self, token: &str, attempt: &str) -> Result<ConsumeReply, Unavailable> {
        self.0.consume(token, attempt).await
    }

    async fn report(&self, report: &AccessReport) -> Result<(), Unavailable> {
        self.0.report(report).await
    }
}

// D-11
#[tokio::test]
async fn an_authority_that_knows_of_no_rounds_gives_none() {
    for grant in [single_use(), resuming()] {
        let scene = Scene::with(grant.clone());
        let older: std::sync::Arc<dyn Authority> = std::sync::Arc::new(Older(scene.authority.clone()));
        let replay = std::sync::Arc::new(Replay::new(NOW.plus(-300)));
        let engine = Engine::new(scene.engine.resource(), older, replay, std::sync::Arc::new(|| NOW));
        let verdict = engine.decide(&signed_round(BOTH), &scene.door).await;
        assert_eq!(told(&verdict), "continuation_refused");
        assert_eq!(scene.authority.consumed(), 0);
    }
}
