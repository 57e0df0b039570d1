//! Agreeing: who is asked, who is granted at once, and what a breach leaves behind.

use super::*;
use crate::decision::Answer;
use crate::registry::Standing;
use sayso_protocol::Timestamp;

fn deadline(step: &Step) -> Timestamp {
    match &step.state {
        State::AwaitingOwner { deadline, .. } => *deadline,
        state => panic!("{} does not wait for her", state.word()),
    }
}

fn ask(step: &Step) -> Option<Ask> {
    match &step.state {
        State::AwaitingOwner { ask, .. } => Some(*ask),
        _ => None,
    }
}

// CORE-101, CORE-39
#[test]
fn first_contact_asks_whatever_the_unit_says() {
    for ask_me in [false, true] {
        let mut world = World::holdings();
        world.unit().ask_me = ask_me;
        world = world.proffered();
        let step = world.play(&world.commit(json!({})));
        assert_eq!((step.reply.status(), reply(&step).as_str()), (403, "request_submitted"));
        assert_eq!((ask(&step), kinds(&step)), (Some(Ask::Connection), vec![Kind::Promised]));
        assert!(step.grant.is_none() && step.rotates);
    }
}

// CORE-101
#[test]
fn an_ended_connection_is_first_contact_again() {
    for ask_me in [false, true] {
        let mut world = World::holdings().connected();
        world.unit().ask_me = ask_me;
        world.end();
        world = world.proffered();
        let step = world.play(&world.commit(json!({})));
        assert_eq!((ask(&step), step.grant), (Some(Ask::Connection), None));
    }
}

// CORE-101: a connection of somebody else's is none of this agent's.
#[test]
fn another_agents_connection_does_not_stand_for_this_one() {
    let mut world = World::holdings().connected();
    world.facts.connection.as_mut().unwrap().handle = "jkt:somebody".parse().unwrap();
    world = world.proffered();
    let step = world.play(&world.commit(json!({})));
    assert_eq!((ask(&step), step.grant), (Some(Ask::Connection), None));
}

// POL-05, CORE-65
#[test]
fn a_standing_agent_is_granted_at_once_where_she_is_not_asked() {
    let world = World::holdings().connected().proffered();
    let step = world.play(&world.commit(json!({})));
    assert_eq!((step.reply.status(), ending(&step)), (200, Some(Ending::Issued)));
    assert_eq!(step.reply.body()["token_type"], "PoP");
    // POL-09: a grant made is not an approval given.
    assert_eq!(kinds(&step), [Kind::Promised]);
    assert!(step.grant.is_some() && !step.rotates);
}

// CORE-39
#[test]
fn a_standing_agent_is_asked_about_where_she_wants_to_be() {
    let world = World::trading().connected().proffered();
    let step = world.play(&world.commit(json!({})));
    assert_eq!((reply(&step).as_str(), ask(&step)), ("request_submitted", Some(Ask::Operation)));
    assert!(step.grant.is_none());
}

// TERMS-33, TERMS-34, TERMS-38, TERMS-39, TERMS-43
#[test]
fn the_promise_is_recorded_as_it_was_made() {
    let digest = sayso_protocol::canon::s256_bytes(b"mission").to_string();
    let world = World::trading().proffered();
    let agreement = world.agreement(json!({
        "reason": "<b>rebalance</b>", "expires_in": 60, "scope": ["trades:execute"],
        "prohibited": ["resale", "marketing", "gossip"],
        "mission": {"approver": "https://m.example", "s256": digest},
    }));
    let step = world.play(&Beat::Commit(Box::new(agreement.clone()), None));
    let [row] = step.records.as_slice() else { panic!("one row") };
    assert_eq!(
        (row.kind, row.handle.as_ref(), &row.author),
        (Kind::Promised, Some(&world.handle()), &Author::Agent)
    );
    assert_eq!(row.entry["reason"], "<b>rebalance</b>");
    assert_eq!(row.entry["mission"]["approver"], "https://m.example");
    assert_eq!(row.entry["agreement"], agreement.digest().to_string());
    assert_eq!(row.entry["terms_uri"], world.proffer().terms_uri);
    assert_eq!(row.entry["expires_in"], 60);
    // D-27: the record holds the digest of the arguments, the agreement the arguments.
    assert_eq!(row.entry["operation"]["tool"], "execute_trade");
    assert!(!row.entry.to_string().contains("VTI"));

    let State::AwaitingOwner { commitment, .. } = step.state else { panic!("asked") };
    assert_eq!(commitment.proffer, world.proffer());
    assert_eq!((commitment.unit.as_str(), commitment.version), ("trading", 3));
    assert_eq!(commitment.agreement_jws, agreement.compact());
    assert_eq!(commitment.agreement, sayso_protocol::canon::s256_bytes(agreement.compact().as_bytes()));
    assert_eq!((&commitment.handle, &commitment.cnf), (&world.handle(), &world.agent.verifying().jwk()));
    assert_eq!(commitment.prohibited, ["resale", "marketing", "gossip"]);
    assert_eq!((commitment.expires_in, commitment.at), (60, world.now));
    assert_eq!(commitment.params, Some(json!({"symbol": "VTI", "quantity": 10})));
    assert_eq!(commitment.mission.unwrap().approver, "https://m.example");
}

// TERMS-09, TERMS-19, TERMS-20, TERMS-26, TERMS-27, TERMS-28, TERMS-29, TERMS-30, TERMS-33, POL-44, POL-45
#[test]
fn a_breach_ends_it_with_a_row_that_names_the_agent() {
    let breaches = [
        json!({"aud": "https://other.example"}),
        json!({"iat": START.0 - 601}),
        json!({"nonce": "other"}),
        json!({"family": "family-2"}),
        json!({"template_id": "ns/trading/v2"}),
        json!({"terms_uri": "https://as.example/terms/other"}),
        json!({"purpose": "many trades"}),
        json!({"expires_in": 0}),
        json!({"expires_in": -1}),
        json!({"expires_in": 901}),
        json!({"scope": ["trades:execute", "admin"]}),
        json!({"scope": []}),
        json!({"prohibited": ["marketing"]}),
        json!({"operation": null}),
        json!({"operation": {"tool": "get_positions", "params": {}}}),
        json!({"reason": "x".repeat(513)}),
    ];
    for over in breaches {
        for world in [World::trading().proffered(), World::trading().connected().proffered()] {
            let step = world.play(&world.commit(over.clone()));
            assert_eq!((step.reply.status(), reply(&step).as_str()), (403, "request_denied"), "{over}");
            assert_eq!((ending(&step), step.rotates), (Some(Ending::Breached), false));
            let [row] = step.records.as_slice() else { panic!("one row") };
            assert_eq!((row.kind, row.handle.as_ref()), (Kind::Refused, Some(&world.handle())));
            assert_eq!(row.author, Author::Policy);
            assert_eq!(row.entry["terms_uri"], world.proffer().terms_uri);
            assert_eq!(row.entry["because"], step.reply.body()["error_description"]);
            assert!(step.grant.is_none());
        }
    }
}

// CORE-71: an agreement without any scope of the ticket grants nothing, so she is not asked about it.
#[test]
fn an_agreement_that_covers_nothing_needed_is_refused() {
    for world in [World::holdings().proffered(), World::holdings().connected().proffered()] {
        let step = world.play(&world.commit(json!({"scope": ["positions:export"]})));
        assert_eq!((ending(&step), kinds(&step)), (Some(Ending::Refused), vec![Kind::Refused]));
        assert_eq!(step.records[0].handle, Some(world.handle()));
        assert!(step.grant.is_none());
    }
    let mut world = World::holdings().connected();
    world.negotiation.scopes.clear();
    world = world.proffered();
    assert_eq!(reply(&world.play(&world.commit(json!({})))), "granted", "nothing was needed");
}

// D-18, TERMS-12, TERMS-13: terms that moved on are proffered anew; nothing is promised on the old ones.
#[test]
fn agreeing_to_terms_that_moved_on_is_answered_with_the_new_ones() {
    let edits: [fn(&mut World); 4] = [
        |world| world.unit().version += 1,
        |world| world.unit().id = "other".parse().unwrap(),
        |world| world.unit().terms.prohibited.push("resale".into()),
        |world| world.house.issuer.url = "https://moved.example".into(),
    ];
    for edit in edits {
        let mut world = World::holdings().connected().proffered();
        let (commit, nonce) = (world.commit(json!({})), world.proffer().nonce);
        edit(&mut world);
        let step = world.advance(&commit);
        assert_eq!((reply(&step).as_str(), step.records.len(), step.grant), ("need_info", 0, None));
        assert_ne!(world.proffer().nonce, nonce);
        assert_eq!(reply(&world.play(&world.commit(json!({})))), "granted", "to the new terms");
    }
}

// D-17: waiting is a state no message of the agent's changes, and polling extends nothing.
#[test]
fn no_beat_moves_what_waits_for_her() {
    let mut world = World::trading().asked();
    let waiting = world.negotiation.state.clone();
    let deadline = deadline(&world.play(&Beat::Present));
    assert_eq!(deadline, START.plus(PENDING_SECONDS));
    let other = World::trading().proffered().commit(json!({"reason": "another"}));
    // Policy and connection are not asked either: only she answers.
    world.facts.unit = None;
    world.facts.standing = Some(Standing::Revoked);
    for beat in [&Beat::Present, &other, &Beat::OtherFormat, &Beat::Decline, &Beat::Present] {
        world.now = world.now.plus(PENDING_SECONDS / 6);
        let step = world.advance(beat);
        assert_eq!((&step.state, step.records.len(), step.grant), (&waiting, 0, None));
        assert_eq!(step.state.ticket_expires(world.now), deadline.plus(3600));
        assert!(step.untouched || step.due == world.now.plus(INTERVAL));
    }
}

// D-17: the deadline itself is too late, for the agent's poll and for her answer alike.
#[test]
fn an_unanswered_question_lapses() {
    let mut world = World::holdings().asked();
    world.now = START.plus(PENDING_SECONDS - 1);
    assert_eq!(reply(&world.play(&Beat::Present)), "request_submitted");
    world.now = START.plus(PENDING_SECONDS);
    let step = world.play(&Beat::Present);
    assert_eq!((step.reply.status(), ending(&step)), (403, Some(Ending::Expired)));
    assert!(step.records.is_empty() && !step.rotates);
    assert!(world.decide(Answer::Approved).is_none());
}

// Her no is final: another agreement does not put the question again, and reads no policy.
#[test]
fn a_denial_is_heard_whatever_is_presented() {
    let mut world = World::holdings().asked();
    world.decide(Answer::Denied).unwrap();
    world = world.connected();
    world.facts.unit = None;
    let again = World::holdings().proffered().commit(json!({}));
    for beat in [Beat::Present, again, Beat::OtherFormat] {
        let step = world.play(&beat);
        assert_eq!((step.reply.status(), reply(&step).as_str()), (403, "request_denied"));
        assert_eq!((ending(&step), step.records.len(), step.rotates), (Some(Ending::Denied), 0, false));
        assert_eq!(step.grant, None);
    }
}

// TERMS-25: the handle is the key's, whatever the agent calls itself.
#[test]
fn who_speaks_is_who_signed() {
    let world = World::holdings().connected().proffered();
    let stranger = sayso_protocol::SigningKey::from_seed(&[0x33; 32]).unwrap();
    let mut claims = world.claims();
    claims["iss"] = world.handle().as_str().into();
    let step = world.play(&Beat::Commit(Box::new(signed(&stranger, &claims)), None));
    assert_eq!((ask(&step), step.grant), (Some(Ask::Connection), None));
    assert_ne!(step.records[0].handle, Some(world.handle()));
}
