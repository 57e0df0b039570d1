//! Claiming what she approved: only while it is what she approved.

use super::*;
use crate::decision::Answer;
use crate::negotiation::Negotiation;
use crate::registry::Standing;
use sayso_protocol::canon::s256_bytes;

// CORE-101, CORE-103, O-39: one yes admits the agent and answers the request it came with, once.
#[test]
fn her_yes_is_claimed_by_the_next_poll_once() {
    let mut world = World::trading().approved();
    assert!(world.facts.connection.as_ref().unwrap().is_active());
    let step = world.advance(&Beat::Present);
    assert_eq!((step.reply.status(), ending(&step)), (200, Some(Ending::Issued)));
    assert!(step.records.is_empty(), "the promise and the approval are rows already");
    assert_eq!(step.grant.unwrap().epoch, 0);
    let again = world.play(&Beat::Present);
    assert_eq!((again.reply.status(), reply(&again).as_str()), (400, "invalid_grant"));
    assert!(again.grant.is_none() && again.untouched);
}

// D-18: an approval is worth min(1 h, agreement) from her decision, to the second.
#[test]
fn an_approval_lapses() {
    for (over, life) in [(json!({}), 900), (json!({"expires_in": 60}), 60)] {
        let mut world = World::trading().proffered();
        let commit = world.commit(over);
        world.advance(&commit);
        world.now = START.plus(100_000);
        world.decide(Answer::Approved).unwrap();
        let decided = world.now;
        world.now = decided.plus(life - 1);
        assert_eq!(reply(&world.play(&Beat::Present)), "granted");
        world.now = decided.plus(life);
        let step = world.play(&Beat::Present);
        assert_eq!((step.reply.status(), ending(&step)), (403, Some(Ending::Expired)));
        assert!(step.grant.is_none() && step.records.is_empty());
    }
    let mut world = World::holdings().approved();
    world.now = START.plus(3600);
    assert_eq!(
        ending(&world.play(&Beat::Present)),
        Some(Ending::Expired),
        "an hour, though agreed to two days"
    );
}

// D-21: an approval nobody claimed does not outlive the connection, nor come back with it.
#[test]
fn an_ending_voids_an_unclaimed_approval_for_good() {
    let mut world = World::trading().approved();
    world.end();
    for _ in 0..2 {
        let step = world.play(&Beat::Present);
        assert_eq!((step.reply.status(), ending(&step)), (403, Some(Ending::Revoked)));
        assert!(step.grant.is_none() && step.records.is_empty() && !step.rotates);
        world.readmit();
    }
    world.facts.connection = None;
    assert_eq!(ending(&world.play(&Beat::Present)), Some(Ending::Revoked));
}

// CORE-105: approved after an ending, a grant carries the epoch the ending left.
#[test]
fn an_approval_after_an_ending_is_of_the_new_epoch() {
    let mut world = World::trading().connected();
    world.end();
    world = world.approved();
    let step = world.play(&Beat::Present);
    assert_eq!(step.grant.unwrap().epoch, 1);
}

// D-21: a claim that speaks for another, standing agent does not lend its connection to this approval.
#[test]
fn another_agents_connection_claims_nothing() {
    let mut world = World::trading().approved();
    world.facts.connection.as_mut().unwrap().handle = "jkt:accomplice".parse().unwrap();
    let step = world.play(&World::trading().proffered().commit(json!({})));
    assert_eq!((ending(&step), step.grant), (Some(Ending::Revoked), None));
}

// D-18: terms that moved on since are proffered anew, and she is asked again.
#[test]
fn a_claim_after_an_edit_is_answered_with_the_new_terms() {
    let edits: [fn(&mut World); 5] = [
        |world| world.unit().version += 1,
        |world| world.unit().id = "other".parse().unwrap(),
        |world| world.unit().terms.expires_in = 600,
        |world| world.resource().definition = Some(s256_bytes(b"another tool under the same name")),
        |world| world.unit().terms.per_operation = false,
    ];
    for edit in edits {
        let mut world = World::trading().approved();
        edit(&mut world);
        let step = world.advance(&Beat::Present);
        assert_eq!((reply(&step).as_str(), step.rotates, step.records.len()), ("need_info", true, 0));
        assert!(step.grant.is_none());
        let step = world.play(&world.commit(json!({})));
        assert!(matches!(step.state, State::AwaitingOwner { ask: Ask::Operation, .. }), "asked again");
    }
}

// D-30: the definition she was asked about is the one fixed in the grant.
#[test]
fn the_pin_of_the_tool_is_the_one_she_accepted() {
    let pin = s256_bytes(b"the tool as she saw it");
    let mut world = World::trading();
    world.resource().definition = Some(pin.clone());
    world = world.approved();
    assert_eq!(world.commitment().definition, Some(pin.clone()));
    let step = world.play(&Beat::Present);
    assert_eq!(world.rpt(&step).permissions[0].definition, Some(pin));
}

// D-18, POL-03, POL-45
#[test]
fn a_claim_on_something_gone_is_refused_by_name() {
    let gone: [fn(&mut World); 7] = [
        |world| world.facts.standing = None,
        |world| world.facts.standing = Some(Standing::Pending),
        |world| world.facts.standing = Some(Standing::Revoked),
        |world| world.facts.registered = None,
        |world| world.resource().resource_scopes.clear(),
        |world| world.facts.unit = None,
        |world| world.facts.owner = None,
    ];
    for change in gone {
        let mut world = World::trading().approved();
        change(&mut world);
        let step = world.play(&Beat::Present);
        assert_eq!((step.reply.status(), reply(&step).as_str()), (403, "request_denied"));
        assert_eq!((ending(&step), kinds(&step)), (Some(Ending::Refused), vec![Kind::Refused]));
        assert_eq!(step.records[0].handle, Some(world.handle()));
        assert_eq!(step.records[0].author, Author::Policy);
        assert!(step.grant.is_none() && !step.rotates);
    }
}

// What else is presented with the claiming ticket is not read: the approval is for what was agreed.
#[test]
fn a_claim_issues_what_was_approved_and_nothing_newer() {
    let world = World::trading().approved();
    let other = World::trading().proffered().commit(json!({
        "operation": {"tool": "execute_trade", "params": {"symbol": "VTI", "quantity": 1_000_000}},
    }));
    let step = world.play(&other);
    let rpt = world.rpt(&step);
    assert_eq!(rpt.contract, world.commitment().agreement);
    assert_eq!(rpt.operation, world.commitment().operation);
}

// D-18: a state that went through the store and back issues the same grant.
#[test]
fn a_stored_negotiation_is_the_same_negotiation() {
    for world in [World::trading().proffered(), World::trading().asked(), World::trading().approved()] {
        let text = serde_json::to_string(&world.negotiation.state).unwrap();
        let state: State = serde_json::from_str(&text).unwrap();
        assert_eq!(state, world.negotiation.state);
        let step = world.play(&Beat::Present);
        let stored = World { negotiation: Negotiation { state, ..world.negotiation.clone() }, ..world };
        assert_eq!(stored.play(&Beat::Present).reply.body(), step.reply.body());
    }
}

// What she ended while it waited, or left unanswered, is told to the one who still holds the ticket.
#[test]
fn a_negotiation_closed_from_her_side_says_how() {
    for (closed, status, error) in [
        (Ending::Revoked, 403, "request_denied"),
        (Ending::Withdrawn, 403, "request_denied"),
        (Ending::Expired, 403, "request_denied"),
        (Ending::Issued, 400, "invalid_grant"),
        (Ending::Denied, 400, "invalid_grant"),
        (Ending::Declined, 400, "invalid_grant"),
    ] {
        let mut world = World::trading();
        world.negotiation.state = State::Closed { ending: closed };
        let step = world.play(&Beat::Present);
        assert_eq!(
            (step.reply.status(), reply(&step).as_str(), ending(&step)),
            (status, error, Some(closed))
        );
        assert!(step.grant.is_none() && !step.rotates && step.records.is_empty());
    }
}
