//! For whom an agent acts: asked before the terms, never a way in, and kept with what is agreed.

use super::*;
use crate::likeness::Speaker;
use sayso_protocol::payload::assertion::Asserted;
use sayso_protocol::payload::negotiation::TokenReply;

const PROVIDER: &str = "https://idp.example";

fn asked(mut world: World) -> World {
    world.house.providers = vec![PROVIDER.into()];
    world
}

fn word(world: &World, subject: &str) -> Asserted {
    let jkt = Some(world.agent.verifying().thumbprint().to_string());
    Asserted { issuer: PROVIDER.into(), subject: subject.into(), client_id: "c".into(), jkt }
}

fn identify(world: &World) -> Beat {
    Beat::Identify(word(world, "kim"))
}

// CORE-35, CORE-36, CORE-38
#[test]
fn an_identity_is_asked_for_before_terms_and_gives_nothing() {
    let mut world = asked(World::holdings().connected());
    for beat in [Beat::Present, Beat::OtherFormat, Beat::Present] {
        let step = world.advance(&beat);
        assert!(matches!(step.reply, TokenReply::Identify { .. }) && step.records.is_empty());
        let body = step.reply.body();
        let demand = &body["required_claims"][0];
        assert!(demand.get("terms_template").is_none(), "no terms before a name: {body}");
        assert_eq!(demand["issuer"], json!([PROVIDER]));
        assert_eq!(
            (&demand["resource"], &demand["scope"]),
            (&json!("https://gw.example"), &json!("positions:read"))
        );
    }
    let beat = identify(&world);
    let step = world.advance(&beat);
    assert_eq!((reply(&step).as_str(), step.grant.is_some()), ("need_info", false));
    let commit = world.commit(json!({}));
    let step = world.advance(&commit);
    assert_eq!(reply(&step), "granted");
    assert_eq!(step.records[0].entry["evidence"]["asserted"]["subject"], "kim");
}

// CORE-36
#[test]
fn a_name_lets_no_stranger_in() {
    let mut world = asked(World::holdings());
    world.advance(&Beat::Present);
    let beat = identify(&world);
    world.advance(&beat);
    let commit = world.commit(json!({}));
    assert_eq!(reply(&world.advance(&commit)), "request_submitted");
    assert_eq!(world.commitment().evidence.asserted, Some(word(&world, "kim")));
}

// CORE-38
#[test]
fn nothing_takes_the_place_of_a_name() {
    let mut world = asked(World::holdings().connected().proffered());
    let commit = world.commit(json!({}));
    let step = world.advance(&commit);
    assert!(matches!(step.reply, TokenReply::Identify { .. }) && step.grant.is_none());
    // And terms that were shown before it was asked for are shown again, on another nonce.
    let beat = identify(&world);
    assert_eq!(reply(&world.advance(&beat)), "need_info");
    assert_eq!(ending(&world.play(&commit)), Some(Ending::Breached), "the nonce of before");
}

#[test]
fn whoever_agrees_is_whom_the_assertion_is_about() {
    let mut world = asked(World::holdings().connected());
    world.advance(&Beat::Present);
    let another = Asserted { jkt: Some("another".into()), ..word(&world, "kim") };
    world.advance(&Beat::Identify(another));
    let commit = world.commit(json!({}));
    let step = world.play(&commit);
    assert_eq!(ending(&step), Some(Ending::Breached));
    assert!(step.grant.is_none() && kinds(&step) == [Kind::Refused]);
    let by_handle = Asserted { jkt: None, client_id: world.handle().to_string(), ..word(&world, "kim") };
    let mut world = asked(World::holdings().connected());
    world.advance(&Beat::Identify(by_handle));
    let commit = world.commit(json!({}));
    assert_eq!(reply(&world.advance(&commit)), "granted");
}

// CORE-38
#[test]
fn a_name_is_asked_once_a_negotiation() {
    let mut world = asked(World::holdings());
    let beat = identify(&world);
    world.advance(&beat);
    // Terms that moved on are shown anew, to the same name.
    world.unit().version += 1;
    let commit = world.commit(json!({}));
    assert_eq!(reply(&world.advance(&commit)), "need_info");
    assert_eq!(world.negotiation.asserted(), Some(&word(&world, "kim")));
    // A second word changes nothing, also where it names somebody else.
    let other = Beat::Identify(word(&world, "lee"));
    assert_eq!(reply(&world.advance(&other)), "need_info");
    assert_eq!(world.negotiation.asserted(), Some(&word(&world, "kim")));
}

// D-19
#[test]
fn the_same_agreement_for_somebody_else_is_another_question() {
    let world = World::holdings().proffered();
    let agreement = world.agreement(json!({}));
    let of = |asserted: Option<&Asserted>| Speaker::of(&agreement, asserted).likeness;
    let (kim, lee) = (word(&world, "kim"), word(&world, "lee"));
    assert_ne!(of(Some(&kim)), of(Some(&lee)));
    assert_ne!(of(None), of(Some(&kim)));
    assert_eq!(of(Some(&kim)), of(Some(&Asserted { jkt: None, ..kim.clone() })));
}
