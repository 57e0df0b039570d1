//! Her answer: once, in time, with its author, and what it admits.

use super::*;
use crate::connection::Identity;
use crate::negotiation::{Ending, PENDING_SECONDS};
use crate::step::Beat;
use crate::step::fixture::{START, World};
use serde_json::json;

fn hers() -> Author {
    Author::Owner("her-phone".into())
}

fn decided(world: &World, answer: Answer) -> Option<Decision> {
    decide(&world.negotiation, world.facts.connection.as_ref(), answer, &hers(), world.now)
}

fn kinds(decision: &Decision) -> Vec<Kind> {
    decision.records.iter().map(|record| record.kind).collect()
}

// CORE-102, O-39, POL-11
#[test]
fn approving_first_contact_admits_the_agent_and_answers_the_request() {
    let mut world = World::trading().asked();
    world.now = START.plus(3000);
    let decision = decided(&world, Answer::Approved).unwrap();
    let expected = Connection {
        handle: world.handle(),
        identity: Identity::Pseudonymous,
        status: Status::Active,
        epoch: 0,
        // First contact was the agreement, not the answer to it.
        first_seen: START,
        last_access: None,
        revocations: 0,
    };
    assert_eq!(decision.admits, Some(expected));
    assert_eq!(kinds(&decision), [Kind::Connected, Kind::Approved]);
    let State::Approved { commitment, decided } = decision.state else { panic!("approved") };
    assert_eq!(*commitment, world.commitment());
    assert_eq!(decided, Decided { at: world.now, by: hers(), epoch: 0 });
}

// CORE-104, CORE-105
#[test]
fn readmission_keeps_the_epoch_and_the_count_of_endings() {
    let mut world = World::trading().connected();
    world.facts.connection.as_mut().unwrap().last_access = Some(START);
    world.end();
    let ended = world.facts.connection.clone().unwrap();
    world = world.asked();
    world.now = START.plus(50);
    let decision = decided(&world, Answer::Approved).unwrap();
    assert_eq!(decision.admits, Some(Connection { status: Status::Active, ..ended }));
    assert_eq!(decision.admits.as_ref().map(|it| (it.epoch, it.revocations)), Some((1, 1)));
    let State::Approved { decided, .. } = decision.state else { panic!("approved") };
    assert_eq!(decided.epoch, 1);
}

// CORE-39
#[test]
fn an_answer_about_an_operation_admits_nobody() {
    let world = World::trading().connected().asked();
    let decision = decided(&world, Answer::Approved).unwrap();
    assert_eq!((decision.admits.as_ref(), kinds(&decision)), (None, vec![Kind::Approved]));
    assert!(matches!(decision.state, State::Approved { .. }));
}

// CORE-101: not even where the connection was ended while the question stood.
#[test]
fn an_answer_about_an_operation_does_not_revive_a_connection() {
    let mut world = World::trading().connected().asked();
    world.end();
    let decision = world.decide(Answer::Approved).unwrap();
    assert_eq!((decision.admits.as_ref(), kinds(&decision)), (None, vec![Kind::Approved]));
    let step = world.play(&Beat::Present);
    assert_eq!(step.state, State::Closed { ending: Ending::Revoked });
    assert!(step.grant.is_none());
}

// Two first contacts of one agent: the second yes finds it admitted.
#[test]
fn an_agent_is_admitted_once() {
    let world = World::trading().asked().connected();
    let decision = decided(&world, Answer::Approved).unwrap();
    assert_eq!((decision.admits.as_ref(), kinds(&decision)), (None, vec![Kind::Approved]));
}

// OWN-08
#[test]
fn a_denial_admits_nobody_and_keeps_its_author() {
    for world in [World::trading().asked(), World::trading().connected().asked()] {
        let decision = decided(&world, Answer::Denied).unwrap();
        assert_eq!((decision.admits.as_ref(), kinds(&decision)), (None, vec![Kind::Denied]));
        let by = Decided { at: world.now, by: hers(), epoch: 0 };
        assert_eq!(decision.state, State::Denied { decided: by });
    }
}

// OWN-08, POL-12: what does not wait for her cannot be decided, so nothing is decided twice.
#[test]
fn only_what_waits_can_be_decided() {
    let answers = [Answer::Approved, Answer::Denied];
    for first in answers {
        let mut world = World::trading().asked();
        world.decide(first).unwrap();
        let state = world.negotiation.state.clone();
        assert!(answers.iter().all(|second| decided(&world, *second).is_none()));
        assert_eq!(world.negotiation.state, state);
    }
    let mut issued = World::trading().approved();
    issued.advance(&Beat::Present);
    let mut ended = World::trading().asked();
    ended.negotiation.state = State::Closed { ending: Ending::Revoked };
    for world in [World::trading(), World::trading().proffered(), issued, ended] {
        assert!(answers.iter().all(|answer| decided(&world, *answer).is_none()));
    }
}

// D-17: polls in between extend nothing.
#[test]
fn a_question_that_lapsed_cannot_be_answered() {
    let mut world = World::trading().asked();
    for hour in 1..24 {
        world.now = START.plus(hour * 3600);
        world.advance(&Beat::Present);
    }
    world.now = START.plus(PENDING_SECONDS - 1);
    assert!(decided(&world, Answer::Approved).is_some());
    world.now = START.plus(PENDING_SECONDS);
    assert!(decided(&world, Answer::Approved).is_none());
    assert!(decided(&world, Answer::Denied).is_none());
}

// POL-09, POL-11, POL-44, POL-45
#[test]
fn her_rows_name_the_agent_the_terms_and_who_decided() {
    for (answer, ask) in [(Answer::Approved, "connection"), (Answer::Denied, "connection")] {
        let world = World::trading().asked();
        let commitment = world.commitment();
        for row in decided(&world, answer).unwrap().records {
            assert_eq!(
                (row.family.as_ref(), row.handle),
                (Some(&world.negotiation.id), Some(world.handle()))
            );
            assert_eq!(row.author, hers());
            assert_eq!(row.entry["resource_id"], world.negotiation.resource.as_str());
            assert_eq!(row.entry["ask"], ask);
            assert_eq!(row.entry["terms_uri"], commitment.proffer.terms_uri);
            assert_eq!(row.entry["agreement"], commitment.agreement.to_string());
            // D-27: of the arguments the record keeps the digest.
            assert_eq!(row.entry["operation"], json!(commitment.operation));
            assert!(!row.entry.to_string().contains("VTI"));
        }
    }
}

// POL-10: a decision somebody else's authority took is not hers.
#[test]
fn the_author_is_who_decided_and_nobody_else() {
    let world = World::trading().asked();
    let decision = decide(&world.negotiation, None, Answer::Approved, &Author::Policy, world.now).unwrap();
    assert!(decision.records.iter().all(|row| row.author == Author::Policy));
    let State::Approved { decided, .. } = decision.state else { panic!("approved") };
    assert_eq!(decided.by, Author::Policy);
}
