//! What is issued: the grant's claims, its life, and the receipt.

use super::*;
use crate::decision::Answer;
use sayso_protocol::canon::s256_bytes;
use sayso_protocol::payload::negotiation::TokenReply;
use sayso_protocol::payload::rpt::Rpt;

/// A grant she approved for one trade, with the world it was issued in.
fn traded() -> (World, Step, Rpt) {
    let world = World::trading().approved();
    let step = world.play(&Beat::Present);
    let rpt = world.rpt(&step);
    (world, step, rpt)
}

// CORE-67, CORE-68, CORE-69, CORE-70, CORE-72, CORE-73, CORE-111, TERMS-25, TERMS-43
#[test]
fn the_claims_of_a_grant() {
    let (world, step, rpt) = traded();
    assert_eq!(rpt.iss, "https://as.example");
    assert_eq!(rpt.aud, world.negotiation.client_id);
    assert_eq!(rpt.iat, world.now);
    assert_eq!((&rpt.sub, &rpt.client_id), (&world.handle(), &world.handle()));
    assert_eq!(rpt.cnf.jwk, world.agent.verifying().jwk());
    assert_eq!(rpt.owner, world.negotiation.owner);
    let commitment = world.commitment();
    assert_eq!(rpt.contract, s256_bytes(commitment.agreement_jws.as_bytes()));
    assert_eq!(rpt.consequence, None);

    let grant = step.grant.as_ref().unwrap();
    assert_eq!(grant.kid, world.house.issuer.grants.kid());
    assert_eq!((&grant.family, &grant.unit), (&world.negotiation.id, &commitment.unit));
    assert_eq!((&grant.handle, grant.epoch), (&world.handle(), 0));

    let TokenReply::Granted { access_token, .. } = &step.reply else { panic!("granted") };
    let header = sayso_protocol::b64::decode(access_token.split('.').next().unwrap()).unwrap();
    let header: serde_json::Value = serde_json::from_slice(&header).unwrap();
    assert_eq!(header["typ"], "at+jwt");
    assert_eq!(header["kid"], world.house.issuer.grants.kid());
}

// CORE-68
#[test]
fn every_grant_has_its_own_id() {
    let mut world = World::holdings().connected().proffered();
    let commit = world.commit(json!({}));
    let first = world.rpt(&world.play(&commit)).jti;
    world.draw += 1;
    assert_ne!(world.rpt(&world.play(&commit)).jti, first);
}

// CORE-70: a key with other members than the required ones confirms with the required ones (D-18).
#[test]
fn the_confirmed_key_carries_no_freight() {
    let (_, _, rpt) = traded();
    let jwk = serde_json::to_value(&rpt.cnf.jwk).unwrap();
    let mut members: Vec<&String> = jwk.as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(members, ["crv", "kty", "x"]);
}

// CORE-71, TERMS-28
#[test]
fn permissions_are_what_ticket_and_agreement_both_allow() {
    let scopes = |needed: [&str; 2], agreed: serde_json::Value| {
        let mut world = World::holdings().connected();
        world.negotiation.scopes = needed.map(|scope| scope.parse().unwrap()).to_vec();
        world.resource().resource_scopes = world.negotiation.scopes.clone();
        world = world.proffered();
        let step = world.play(&world.commit(json!({ "scope": agreed })));
        let [permission] = &world.rpt(&step).permissions[..] else { panic!("one permission") };
        assert_eq!(permission.resource_id, world.negotiation.resource);
        permission.resource_scopes.iter().map(|scope| scope.as_str().to_owned()).collect::<Vec<_>>()
    };
    let both = json!(["positions:export", "positions:read"]);
    assert_eq!(
        scopes(["positions:read", "positions:export"], both.clone()),
        ["positions:read", "positions:export"]
    );
    assert_eq!(
        scopes(["positions:read", "positions:export"], json!(["positions:export"])),
        ["positions:export"]
    );
    assert_eq!(scopes(["positions:read", "positions:other"], both), ["positions:read"], "not in the terms");
}

// TERMS-31, D-18, O-27: bounds are measured from her decision, not from the claim.
#[test]
fn a_grant_lives_from_her_decision() {
    for (agreed, token) in [(60, 60), (3599, 3599), (3600, 3600), (3601, 3600), (172_800, 3600)] {
        let mut world = World::holdings().proffered();
        let commit = world.commit(json!({ "expires_in": agreed }));
        world.advance(&commit);
        let decided = START.plus(7200);
        world.now = decided;
        world.decide(Answer::Approved).unwrap();
        world.now = decided.plus(token - 10);
        let rpt = world.rpt(&world.play(&Beat::Present));
        assert_eq!(rpt.exp, decided.plus(token));
        assert_eq!(rpt.permissions[0].exp, Some(decided.plus(agreed)));
        assert_eq!((rpt.iat, rpt.permissions[0].iat), (world.now, Some(world.now)));
    }
}

// TERMS-31, D-18: from commit where she is not asked.
#[test]
fn an_automatic_grant_lives_from_its_commit() {
    for (agreed, token) in [(1, 1), (60, 60), (172_800, 3600)] {
        let mut world = World::holdings().connected().proffered();
        world.now = START.plus(200);
        let step = world.play(&world.commit(json!({ "expires_in": agreed })));
        let rpt = world.rpt(&step);
        assert_eq!(rpt.exp, world.now.plus(token));
        assert_eq!(rpt.permissions[0].exp, Some(world.now.plus(agreed)));
        assert_eq!(step.reply.body()["expires_in"], token);
    }
}

// CORE-78, CORE-79, CORE-80, TERMS-09
#[test]
fn approving_one_operation_binds_the_grant_to_it() {
    let (_, _, rpt) = traded();
    assert!(rpt.single_use);
    let operation = rpt.operation.unwrap();
    assert_eq!(operation.tool.as_str(), "execute_trade");
    let known = sayso_protocol::Json::from(json!({"quantity": 10, "symbol": "VTI"}));
    assert_eq!(operation.params_s256, sayso_protocol::canon::s256(&known).unwrap());
}

// CORE-80: one digest for one number, however it is written.
#[test]
fn number_forms_bind_to_one_digest() {
    let digest = |quantity: serde_json::Value| {
        let mut world = World::trading().proffered();
        let params = json!({"symbol": "VTI", "quantity": quantity});
        let commit = world.commit(json!({"operation": {"tool": "execute_trade", "params": params}}));
        world.advance(&commit);
        world.decide(Answer::Approved).unwrap();
        world.rpt(&world.play(&Beat::Present)).operation.unwrap().params_s256
    };
    assert_eq!(digest(json!(10)), digest(json!(10.0)));
    assert_ne!(digest(json!(10)), digest(json!(11)));
}

// TERMS-32: an operation named where the terms bind to none is kept and binds nothing.
#[test]
fn a_reusable_grant_is_bound_to_no_operation() {
    let world = World::holdings().connected().proffered();
    let operation = json!({"tool": "get_positions", "params": {"account": "main"}});
    let step = world.play(&world.commit(json!({ "operation": operation })));
    let rpt = world.rpt(&step);
    assert_eq!((rpt.single_use, rpt.operation), (false, None));
    assert_eq!(step.records[0].entry["operation"]["tool"], "get_positions");
}

// A per-operation unit that asks nobody binds all the same.
#[test]
fn an_automatic_grant_of_a_per_operation_unit_is_bound() {
    let mut world = World::trading().connected();
    world.unit().ask_me = false;
    world = world.proffered();
    let rpt = world.rpt(&world.play(&world.commit(json!({}))));
    assert!(rpt.single_use && rpt.operation.is_some());
}

// CORE-74: the class declared at issue rides along; undeclared is absent.
#[test]
fn a_declared_consequence_rides_along() {
    let mut world = World::trading();
    world = world.approved();
    world.resource().consequence = Some("irreversible".into());
    assert_eq!(world.rpt(&world.play(&Beat::Present)).consequence.as_deref(), Some("irreversible"));
}

// TERMS-36, TERMS-37, TERMS-38, TERMS-39, CORE-73
#[test]
fn the_receipt_counter_signs_the_agreement_as_received() {
    let mut world = World::trading().proffered();
    let agreement = world.agreement(json!({"reason": "because"}));
    world.advance(&Beat::Commit(Box::new(agreement.clone()), None));
    let terms = world.commitment().proffer;
    world.now = START.plus(30);
    world.decide(Answer::Approved).unwrap();
    world.now = START.plus(60);
    let step = world.play(&Beat::Present);
    let receipt = world.receipt(&step);
    assert_eq!(receipt.iss, "https://as.example");
    assert_eq!((&receipt.sub, receipt.iat), (&world.handle(), world.now));
    assert_eq!((&receipt.terms_uri, &receipt.template_id), (&terms.terms_uri, &terms.terms.template_id));
    assert_eq!(receipt.agreement_jws, agreement.compact());
    assert_eq!(receipt.agreement, agreement.digest());
    assert_eq!(receipt.agreement, world.rpt(&step).contract);
    assert_eq!(receipt.family, world.negotiation.id);
    assert_eq!(step.grant.unwrap().receipt, step.reply.body()["receipt"].as_str().unwrap());
}
