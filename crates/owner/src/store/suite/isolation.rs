//! Owners and servers are strangers to one another: with another's artifact in hand, there is nothing to be had.

use super::Place;
use super::agent::ISSUER;
use super::grants::{refused, report};
use super::race::wait;
use super::stage::{BOBS, LOOK, NOW, OTHER, Stage, TRADE, herself};
use crate::decision::Answer;
use crate::negotiation::Ask;
use crate::registry::Standing;
use crate::store::{Digest, Edit, Found, Store, Unsaved};
use sayso_protocol::ClientId;

/// Another owner can neither see, answer, spend, report nor end what is Alice's.
pub fn owners_are_strangers(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    let (family, token) = stage.single_use(&agent);
    let (waiting, said) = stage.ask(&agent, TRADE);
    let ticket = said.waits();
    let rows = stage.rows(&stage.alice);
    let (store, bob) = (stage.any(1), &stage.bob);

    assert!(wait(store.pending(bob, NOW)).unwrap().is_empty());
    assert_eq!(wait(store.decide(bob, &waiting, &Answer::Denied.into(), &herself(), NOW)).unwrap(), None);
    assert!(wait(store.connections(bob)).unwrap().is_empty());
    assert_eq!(wait(store.revoke(bob, &agent.handle(), &herself(), NOW)).unwrap(), None);
    assert!(wait(store.ledger(bob, Some(&agent.handle()), 0, 100)).unwrap().is_empty());
    assert_eq!(stage.rows(bob).len(), 1, "his set-up");
    artifacts_are_worthless(store, bob, &stage.server, &token, &family);

    let reading = "reading".parse().unwrap();
    let trading = "trading".parse().unwrap();
    assert_eq!(wait(store.units(bob)).unwrap().len(), 1);
    assert_eq!(
        wait(store.edit_unit(bob, &trading, &Edit::default(), ISSUER, &herself(), NOW)).unwrap(),
        Err(Unsaved::Unknown)
    );
    assert_eq!(wait(store.delete_unit(bob, &trading, &herself(), NOW)).unwrap(), Err(Unsaved::Unknown));
    assert_eq!(wait(store.registered(bob, &stage.server, &Stage::resource(LOOK))).unwrap(), None);
    let other: ClientId = OTHER.parse().unwrap();
    let judged = wait(store.judge_resource_server(bob, &other, Standing::Revoked, &herself(), NOW));
    assert_eq!(judged.unwrap(), None);

    // What he does to his own of the same name and at the same server is his alone.
    wait(store.delete_unit(bob, &reading, &herself(), NOW)).unwrap().unwrap();
    wait(store.pull(bob, &stage.server, &[], NOW)).unwrap();
    let his = wait(store.judge_resource_server(bob, &stage.server, Standing::Revoked, &herself(), NOW));
    assert_eq!(his.unwrap(), Some(()));

    assert_eq!(stage.rows(&stage.alice), rows);
    assert_eq!(wait(store.resources(&stage.alice)).unwrap().len(), 2);
    assert_eq!(stage.decide(0, &waiting, Answer::Approved), Some(()));
    stage.poll(0, &ticket).granted();
    assert!(stage.consume(0, &token, "try").consumed);
}

/// Another server of the same owner has no business with a grant of this one.
pub fn servers_are_strangers(place: &dyn Place) {
    let stage = Stage::set(place);
    let (family, token) = stage.single_use(&stage.admitted());
    let other: ClientId = OTHER.parse().unwrap();
    artifacts_are_worthless(stage.any(0), &stage.alice, &other, &token, &family);
    assert!(stage.consume(1, &token, "try").consumed);
    artifacts_are_worthless(stage.any(0), &stage.alice, &other, &token, &family);
}

/// A grant is as unknown as an invented one, dead or alive.
fn artifacts_are_worthless(
    store: &dyn Store,
    owner: &sayso_protocol::OwnerName,
    server: &ClientId,
    token: &str,
    family: &sayso_protocol::NegotiationId,
) {
    let digest = Digest::of(token);
    assert_eq!(wait(store.introspect(owner, server, digest, NOW)).unwrap(), Found::Unknown);
    let reply = wait(store.consume(owner, server, digest, "try", NOW)).unwrap();
    assert_eq!(reply, refused("unknown_token"));
    assert!(!wait(store.report(owner, server, &report(family), NOW)).unwrap());
}

/// A dead grant of another owner looks like no grant at all.
pub fn the_dead_are_not_told_apart(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    let (family, token) = stage.single_use(&agent);
    assert!(stage.consume(0, &token, "try").consumed);
    wait(stage.any(0).revoke(&stage.alice, &agent.handle(), &herself(), NOW)).unwrap().unwrap();
    artifacts_are_worthless(stage.any(1), &stage.bob, &stage.server, &token, &family);
}

/// Knowing an agent is each owner's own affair.
pub fn a_connection_is_one_owners(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    let (_, said) = stage.ask(&agent, BOBS);
    said.waits();
    let waiting = wait(stage.any(0).pending(&stage.bob, NOW)).unwrap();
    assert_eq!((waiting[0].ask, &waiting[0].connection), (Ask::Connection, &None));
    assert!(wait(stage.any(0).pending(&stage.alice, NOW)).unwrap().is_empty());
}

/// A PAT acts for the owner and server it was drawn for.
pub fn a_pat_is_one_owners(place: &dyn Place) {
    let stage = Stage::set(place);
    let (digest, expires) = (Digest::of("pat"), NOW.plus(600));
    wait(stage.any(0).grant_pat(digest, &stage.bob, &stage.server, expires)).unwrap();
    let pat = wait(stage.any(1).pat(digest, NOW)).unwrap().unwrap();
    assert_eq!((pat.owner, pat.client_id), (stage.bob.clone(), stage.server.clone()));
    let wrong = Digest::of("his server is not that one");
    wait(stage.any(0).grant_pat(wrong, &stage.bob, &OTHER.parse().unwrap(), expires)).unwrap();
    assert_eq!(wait(stage.any(0).pat(wrong, NOW)).unwrap(), None);
}
