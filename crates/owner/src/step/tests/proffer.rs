//! Proffering and declining: which terms, on which nonce, and what ends before anything was agreed.

use super::*;
use sayso_protocol::payload::agreement::Breach;
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::negotiation::TokenReply;

// TERMS-17, TERMS-18, TERMS-20
#[test]
fn the_demand_is_one_set_of_terms_for_this_negotiation() {
    for edition in Edition::ALL {
        let mut world = World::trading();
        world.house.edition = edition;
        let step = world.advance(&Beat::Present);
        assert_eq!(step.reply.status(), 403);
        let body = step.reply.body();
        let claims = body["required_claims"].as_array().unwrap();
        assert_eq!(claims.len(), 1);
        assert_eq!(claims[0]["claim_type"], edition.claim_type());
        assert_eq!(claims[0]["claim_token_format"][0], edition.claim_format());
        let template = &claims[0]["terms_template"];
        assert_eq!(template["template_id"], "ns/trading/v3");
        assert_eq!(template["terms_uri"], "https://as.example/terms/ns/trading/v3");
        assert_eq!(template["proffered_by"], "https://as.example");
        assert_eq!(template["purpose"], "one trade");
        assert_eq!(template["expires_in"], 900);
        assert_eq!(template["per_operation"], true);
        assert_eq!(template["family"], "family-1");
        assert_eq!(template["resource_id"], "vault/execute_trade");
        // TERMS-46: no further than the resource id says.
        assert!(!body.to_string().contains("alice"));
    }
}

// TERMS-18, TERMS-19, CORE-33
#[test]
fn a_repeated_demand_has_a_fresh_nonce_and_the_same_family() {
    let mut world = World::holdings().proffered();
    let mut seen = vec![world.proffer()];
    for beat in [Beat::Present, Beat::OtherFormat, Beat::Present] {
        let step = world.advance(&beat);
        assert_eq!((reply(&step).as_str(), step.records.len()), ("need_info", 0));
        let next = world.proffer();
        assert!(seen.iter().all(|earlier| earlier.nonce != next.nonce && earlier.family == next.family));
        seen.push(next);
    }
}

// TERMS-19
#[test]
fn an_agreement_to_an_earlier_nonce_is_a_breach() {
    let mut world = World::holdings().connected().proffered();
    let stale = world.commit(json!({}));
    world.advance(&Beat::Present);
    let step = world.play(&stale);
    assert_eq!(ending(&step), Some(Ending::Breached));
    assert!(step.grant.is_none());
}

// O-25: an unreadable claim ends the negotiation, and there is nobody to hold it against.
#[test]
fn an_unreadable_claim_ends_it_without_a_row() {
    for breach in
        [Breach::Form, Breach::Key, Breach::Credential, Breach::Signature, Breach::Claims, Breach::Operation]
    {
        let step = World::holdings().connected().proffered().play(&Beat::Unreadable(breach));
        assert_eq!((step.reply.status(), reply(&step).as_str()), (403, "request_denied"));
        assert_eq!(step.reply.body()["error_description"], breach.to_string());
        assert_eq!((ending(&step), step.records.len(), step.rotates), (Some(Ending::Breached), 0, false));
    }
}

// TERMS-40, TERMS-41, TERMS-42, POL-46
#[test]
fn declining_ends_it_and_is_held_against_the_terms_alone() {
    let world = World::holdings().connected().proffered();
    let step = world.play(&Beat::Decline);
    assert_eq!((step.reply.status(), reply(&step).as_str()), (403, "request_denied"));
    assert_eq!((ending(&step), step.rotates, step.untouched), (Some(Ending::Declined), false, false));
    let [row] = step.records.as_slice() else { panic!("one row") };
    assert_eq!((row.kind, row.handle.as_ref(), &row.author), (Kind::Refused, None, &Author::Agent));
    assert_eq!(row.entry["terms_uri"], world.proffer().terms_uri);
    let text = serde_json::to_string(row).unwrap();
    assert!(!text.contains(world.handle().as_str()) && !text.contains("jkt:"));
}

// TERMS-40, O-9
#[test]
fn there_is_nothing_to_decline_where_no_claim_is_awaited() {
    for world in [World::holdings(), World::holdings().asked(), World::holdings().approved()] {
        let step = world.play(&Beat::Decline);
        assert_eq!((step.reply.status(), reply(&step).as_str()), (400, "invalid_request"));
        assert!(step.untouched && step.state == world.negotiation.state && step.records.is_empty());
    }
}

// POL-03, POL-44, POL-45: why she shares nothing is said; a row needs somebody to name.
#[test]
fn what_nobody_governs_is_refused() {
    type Change = fn(&mut World);
    let gone: [(&str, Change); 6] = [
        ("does not trust", |world| world.facts.standing = None),
        ("no longer registered", |world| world.facts.registered = None),
        ("scope of this request is no longer", |world| world.resource().resource_scopes.clear()),
        ("has not decided about this tool yet", |world| world.facts.unit = None),
        ("offer no scope", |world| world.unit().terms.scope = vec!["other:scope".parse().unwrap()]),
        ("no owner", |world| world.facts.owner = None),
    ];
    for (why, change) in gone {
        let mut world = World::holdings().connected().proffered();
        let commit = world.commit(json!({}));
        change(&mut world);
        for (beat, named) in [(&Beat::Present, false), (&commit, true)] {
            let step = world.play(beat);
            assert_eq!((step.reply.status(), ending(&step)), (403, Some(Ending::Refused)));
            assert!(step.reply.body()["error_description"].as_str().unwrap().contains(why), "{why}");
            assert_eq!(kinds(&step), if named { vec![Kind::Refused] } else { vec![] });
            assert!(step.records.iter().all(|row| row.handle == Some(world.handle())));
            assert!(step.grant.is_none() && !step.rotates);
        }
    }
}

#[test]
fn terms_whose_id_would_be_too_long_refuse() {
    let mut world = World::holdings();
    world.facts.owner.as_mut().unwrap().namespace = "n".repeat(600);
    assert_eq!(ending(&world.play(&Beat::Present)), Some(Ending::Refused));
}

// D-17: between steps a ticket is good for 300 s, and the next poll is due at once.
#[test]
fn a_proffer_is_good_for_one_step() {
    let mut world = World::holdings();
    let step = world.advance(&Beat::Present);
    assert!(matches!(step.reply, TokenReply::NeedInfo { .. }));
    assert_eq!(step.due, START);
    assert_eq!(step.state.ticket_expires(START), START.plus(STEP_SECONDS));
}
