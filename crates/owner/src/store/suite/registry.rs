//! The registry: replaced whole for one owner and server, and heeded by what is under way.

use super::Place;
use super::race::{CALLERS, PAIRS, both, race, wait};
use super::stage::{BOBS, LOOK, NOW, OTHER, SERVER, Said, Stage, TRADE, herself, published};
use crate::step::Beat;
use crate::store::Found;
use sayso_protocol::OwnerName;
use sayso_protocol::payload::negotiation::TokenError;
use sayso_protocol::payload::protection::Inactive;

fn pull(stage: &Stage, caller: usize, owner: &OwnerName, server: &str, ids: &[&str]) {
    let listing: Vec<_> = ids.iter().map(|id| published(id)).collect();
    wait(stage.any(caller).pull(owner, &server.parse().unwrap(), &listing, NOW)).unwrap();
}

fn ids(stage: &Stage, owner: &OwnerName) -> Vec<(String, String, Option<String>)> {
    let all = wait(stage.any(1).resources(owner)).unwrap().into_iter();
    all.map(|entry| {
        let unit = entry.unit.map(|unit| unit.to_string());
        (entry.client_id.to_string(), entry.resource.id.to_string(), unit)
    })
    .collect()
}

fn entry(server: &str, id: &str, unit: Option<&str>) -> (String, String, Option<String>) {
    (server.into(), id.into(), unit.map(Into::into))
}

/// A pull replaces one owner's entries at one server and no others.
pub fn a_pull_replaces_what_is_there(place: &dyn Place) {
    let stage = Stage::set(place);
    pull(&stage, 0, &stage.alice, OTHER, &["vault/else"]);
    pull(&stage, 1, &stage.alice, SERVER, &[LOOK, "vault/new"]);
    assert_eq!(
        ids(&stage, &stage.alice),
        [
            entry(SERVER, LOOK, Some("reading")),
            entry(SERVER, "vault/new", None),
            entry(OTHER, "vault/else", None),
        ]
    );
    assert_eq!(ids(&stage, &stage.bob), [entry(SERVER, BOBS, Some("reading"))]);
    let gone = wait(stage.any(0).registered(&stage.alice, &stage.server, &Stage::resource(TRADE))).unwrap();
    assert_eq!(gone, None);

    // What comes back is under its unit as before; the same id at another server is not.
    pull(&stage, 0, &stage.alice, SERVER, &[LOOK, TRADE]);
    pull(&stage, 0, &stage.alice, OTHER, &[TRADE]);
    assert_eq!(
        ids(&stage, &stage.alice),
        [
            entry(SERVER, LOOK, Some("reading")),
            entry(SERVER, TRADE, Some("trading")),
            entry(OTHER, TRADE, None),
        ]
    );
}

/// Racing pulls leave one of the listings, never a mixture.
pub fn pulls_do_not_mix(place: &dyn Place) {
    let stage = Stage::set(place);
    race(CALLERS, |caller| {
        let (left, right) = (format!("vault/l{caller}"), format!("vault/r{caller}"));
        pull(&stage, caller, &stage.alice, SERVER, &[&left, &right]);
    });
    let left = ids(&stage, &stage.alice);
    let [(_, first, _), (_, second, _)] = &left[..] else { panic!("two resources, got {}", left.len()) };
    assert_eq!(first.strip_prefix("vault/l"), second.strip_prefix("vault/r"));
}

/// What a server no longer publishes ends its grants, also one being claimed; coming back wakes none.
pub fn no_claim_outlives_its_resource(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    let (_, reading) = stage.reusable(&agent);
    for _ in 0..PAIRS {
        let (_, held) = stage.single_use(&agent);
        let (_, ticket) = stage.approved(&agent, TRADE);
        let (said, ()) = both(|| stage.poll(0, &ticket), || pull(&stage, 1, &stage.alice, SERVER, &[LOOK]));
        let dead = Found::Dead(Inactive::Revoked);
        assert_eq!(stage.found(0, &held), dead);
        match &said {
            Said::Granted(token) => assert_eq!(stage.found(0, token), dead),
            Said::Refused(TokenError::RequestDenied) => {}
            other => panic!("{}", other.word()),
        }
        pull(&stage, 0, &stage.alice, SERVER, &[LOOK, TRADE]);
        assert_eq!(stage.found(1, &held), dead, "it stays dead");
        assert!(matches!(stage.found(0, &reading), Found::Live(..)), "the other resource is not touched");
    }
}

/// Opening a negotiation while its resource goes: terms from before lead nowhere.
pub fn an_opening_heeds_a_pull(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    for _ in 0..PAIRS {
        let attempt = stage.attempt(LOOK);
        let open = || stage.open(0, &attempt, Beat::Present, NOW);
        let (said, ()) = both(open, || pull(&stage, 1, &stage.alice, SERVER, &[TRADE]));
        match said {
            Said::Terms(ticket, proffer) => {
                let late = stage.commit(0, &agent, &ticket, &proffer);
                assert!(matches!(late, Said::Refused(TokenError::RequestDenied)));
            }
            Said::Refused(TokenError::RequestDenied) => {}
            other => panic!("{}", other.word()),
        }
        pull(&stage, 0, &stage.alice, SERVER, &[LOOK, TRADE]);
    }
}

/// A governed tool that changed is suspended until she has seen exactly what it is now: unclaimed approvals with it,
/// and a tool that is again what she knew is not.
pub fn a_changed_tool_waits_for_her(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    let pin = |text: &str| sayso_protocol::canon::s256_bytes(text.as_bytes());
    let change = |caller: usize, definition: Option<&str>| {
        let mut listing = [published(LOOK), published(TRADE)];
        listing[1].definition = definition.map(pin);
        wait(stage.any(caller).pull(&stage.alice, &stage.server, &listing, NOW)).unwrap();
    };
    let accept = |caller: usize, text: &str| {
        let (store, trade) = (stage.any(caller), Stage::resource(TRADE));
        wait(store.accept(&stage.alice, &stage.server, &trade, &pin(text), &herself(), NOW)).unwrap()
    };
    let changed = |id: &str| {
        let entry = wait(stage.any(0).registered(&stage.alice, &stage.server, &Stage::resource(id))).unwrap();
        entry.unwrap().changed
    };
    let refused =
        |said: Said| assert!(matches!(said, Said::Refused(TokenError::RequestDenied)), "{}", said.word());

    let (_, unclaimed) = stage.approved(&agent, TRADE);
    change(0, Some("second"));
    assert!(changed(TRADE) && !changed(LOOK));
    refused(stage.open(0, &stage.attempt(TRADE), Beat::Present, NOW));
    refused(stage.poll(1, &unclaimed));
    stage.reusable(&agent);
    assert_eq!(accept(0, "something else"), None);
    let before = stage.rows(&stage.alice).len();
    let accepted = race(CALLERS, |caller| accept(caller, "second"));
    assert_eq!(accepted.iter().flatten().count(), 1);
    assert_eq!(stage.rows(&stage.alice).len(), before + 1);
    assert!(!changed(TRADE));
    stage.ask(&agent, TRADE).1.waits();

    change(1, Some("third"));
    assert!(changed(TRADE));
    change(0, Some("second"));
    assert!(!changed(TRADE));
    stage.ask(&agent, TRADE).1.waits();
}

/// A tool that says the same in other words is shown so until she has seen them, and can be used all the while.
pub fn other_words_are_shown_and_suspend_nothing(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    let pin = sayso_protocol::canon::s256_bytes(b"first");
    let say = |words: &str| {
        let mut listing = [published(LOOK), published(TRADE)];
        listing[1].definition = Some(pin.clone());
        listing[1].surface = Some(serde_json::json!({ "description": words }));
        wait(stage.any(0).pull(&stage.alice, &stage.server, &listing, NOW)).unwrap();
    };
    let entry = || {
        wait(stage.any(0).registered(&stage.alice, &stage.server, &Stage::resource(TRADE))).unwrap().unwrap()
    };
    let accept = |caller: usize| {
        let (store, trade) = (stage.any(caller), Stage::resource(TRADE));
        wait(store.accept(&stage.alice, &stage.server, &trade, &pin, &herself(), NOW)).unwrap()
    };
    say("one thing");
    accept(0).unwrap();
    assert_eq!((entry().changed, entry().accepted), (false, None));
    say("another");
    let seen = entry();
    assert!(!seen.changed);
    assert_eq!(seen.accepted, Some(serde_json::json!({ "description": "one thing" })));
    stage.ask(&agent, TRADE).1.waits();
    let accepted = race(CALLERS, accept);
    assert_eq!(accepted.iter().flatten().count(), 1);
    assert_eq!((entry().changed, entry().accepted), (false, None));
    assert_eq!(accept(0), None);
}
