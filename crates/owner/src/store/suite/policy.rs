//! Units and terms: saved whole or not at all, never the same version twice, and heeded by what is under way.

use super::Place;
use super::agent::ISSUER;
use super::race::{CALLERS, PAIRS, ROUNDS, both, race, wait};
use super::stage::{BOBS, LOOK, NOW, Said, Stage, TRADE, herself, published, unit};
use crate::decision::Answer;
use crate::ledger::Kind;
use crate::negotiation::STEP_SECONDS;
use crate::step::Beat;
use crate::store::{Edit, Found, Saved, Unsaved};
use crate::unit::{TermsEdit, Unfit, Unit};
use sayso_protocol::payload::negotiation::TokenError;
use sayso_protocol::payload::protection::Inactive;
use sayso_protocol::{ResourceId, TemplateId};

fn create(stage: &Stage, caller: usize, unit: &Unit) -> Saved<Unit> {
    wait(stage.any(caller).create_unit(&stage.alice, unit, ISSUER, &herself(), NOW)).unwrap()
}

fn edit(stage: &Stage, caller: usize, id: &str, edit: &Edit) -> Saved<Unit> {
    wait(stage.any(caller).edit_unit(&stage.alice, &id.parse().unwrap(), edit, ISSUER, &herself(), NOW))
        .unwrap()
}

fn delete(stage: &Stage, caller: usize, id: &str) -> Saved<Vec<ResourceId>> {
    wait(stage.any(caller).delete_unit(&stage.alice, &id.parse().unwrap(), &herself(), NOW)).unwrap()
}

fn template(text: &str) -> TemplateId {
    text.parse().unwrap()
}

/// Publishes one more resource of Alice's for each of these ids.
fn publish(stage: &Stage, more: &[&str]) {
    let listing: Vec<_> = [LOOK, TRADE].iter().chain(more).map(|id| published(id)).collect();
    wait(stage.any(0).pull(&stage.alice, &stage.server, &listing, NOW)).unwrap();
}

/// Racing creations of one unit, and of many units over one resource: one stands.
pub fn a_unit_is_created_once(place: &dyn Place) {
    let stage = Stage::set(place);
    for round in 0..ROUNDS {
        let [first, second] = [format!("vault/a{round}"), format!("vault/b{round}")];
        publish(&stage, &[&first, &second]);
        let same = unit(&format!("same-{round}"), &first, false);
        let saved = race(CALLERS, |caller| create(&stage, caller, &same));
        assert_eq!(saved.iter().filter(|saved| saved.is_ok()).count(), 1);
        let taken = Err(Unsaved::Unfit(Unfit::Taken(same.id.clone())));
        assert_eq!(saved.iter().filter(|saved| **saved == taken).count(), CALLERS - 1);

        let other = |caller| unit(&format!("unit-{round}-{caller}"), &second, false);
        let saved = race(CALLERS, |caller| create(&stage, caller, &other(caller)));
        let winner = saved.iter().position(Result::is_ok).unwrap();
        let resource = Stage::resource(&second);
        for (caller, saved) in saved.into_iter().enumerate().filter(|(caller, _)| *caller != winner) {
            let governed = Unfit::Governed(resource.clone(), other(winner).id);
            assert_eq!(saved, Err(governed.into()), "{caller}");
        }
        // A loser left nothing behind: its name is free, and its terms were never published.
        let loser = format!("ns-alice/{}/v1", other((winner + 1) % CALLERS).id);
        assert_eq!(wait(stage.any(0).terms(&template(&loser))).unwrap(), None);
    }
    assert_eq!(wait(stage.any(1).units(&stage.alice)).unwrap().len(), 2 + 2 * ROUNDS);
}

/// What cannot stand is refused with its reason, and nothing of it is kept.
pub fn unfit_units_leave_nothing(place: &dyn Place) {
    let stage = Stage::set(place);
    let before = wait(stage.any(0).units(&stage.alice)).unwrap();
    let nowhere = unit("new", "vault/nowhere", false);
    let unregistered = Unfit::Unregistered(Stage::resource("vault/nowhere"));
    assert_eq!(create(&stage, 0, &nowhere), Err(unregistered.into()));
    let bobs = Unfit::Unregistered(Stage::resource(BOBS));
    assert_eq!(create(&stage, 0, &unit("new", BOBS, false)), Err(bobs.into()), "another owner's resource");
    let governed = Unfit::Governed(Stage::resource(LOOK), "reading".parse().unwrap());
    assert_eq!(create(&stage, 1, &unit("new", LOOK, false)), Err(governed.into()));
    let taken = Unfit::Taken("reading".parse().unwrap());
    assert_eq!(create(&stage, 1, &unit("reading", LOOK, false)), Err(taken.into()));
    let mut endless = unit("new", LOOK, false);
    endless.terms.expires_in = 0;
    assert_eq!(create(&stage, 0, &endless), Err(Unfit::Expiry.into()));
    let scopeless = TermsEdit { scope: Some(vec![]), ..TermsEdit::default() };
    let scopeless = Edit { terms: scopeless, ..Edit::default() };
    assert_eq!(edit(&stage, 0, "reading", &scopeless), Err(Unfit::Scopes.into()));
    assert_eq!(edit(&stage, 0, "nothing", &Edit::default()), Err(Unsaved::Unknown));
    assert_eq!(delete(&stage, 0, "nothing"), Err(Unsaved::Unknown));
    assert_eq!(wait(stage.any(0).units(&stage.alice)).unwrap(), before);
    assert_eq!(wait(stage.any(0).terms(&template("ns-alice/new/v1"))).unwrap(), None);
    assert_eq!(wait(stage.any(0).terms(&template("ns-alice/reading/v2"))).unwrap(), None);
}

/// Every edit is a version of its own, also when edits race; what was published stays as it was.
pub fn every_edit_is_a_version(place: &dyn Place) {
    let stage = Stage::set(place);
    let first = wait(stage.any(0).terms(&template("ns-alice/reading/v1"))).unwrap().unwrap();
    let saved = race(CALLERS, |caller| {
        let terms = TermsEdit { purpose: Some(format!("purpose {caller}")), ..TermsEdit::default() };
        edit(&stage, caller, "reading", &Edit { ask_me: Some(caller % 2 == 0), terms, ..Edit::default() })
            .unwrap()
    });
    let mut versions: Vec<i64> = saved.iter().map(|unit| unit.version).collect();
    versions.sort_unstable();
    assert_eq!(versions, (2..).take(CALLERS).collect::<Vec<i64>>());
    for unit in &saved {
        let id = template(&format!("ns-alice/reading/v{}", unit.version));
        let terms = wait(stage.any(1).terms(&id)).unwrap().unwrap();
        assert_eq!((&terms.template_id, &terms.purpose), (&id, &unit.terms.purpose));
    }
    let again = wait(stage.any(0).terms(&template("ns-alice/reading/v1"))).unwrap();
    assert_eq!(again, Some(first));
    let newest = saved.iter().max_by_key(|unit| unit.version).unwrap();
    assert!(wait(stage.any(0).units(&stage.alice)).unwrap().contains(newest));
    let roster = wait(stage.any(0).roster()).unwrap();
    let current = ["ns-alice/reading/v33", "ns-alice/trading/v1", "ns-bob/reading/v1"].map(template);
    assert_eq!(roster, current);
}

/// Deleting a unit names what it leaves ungoverned; its terms stay, its numbers are not used again.
pub fn a_version_is_never_used_again(place: &dyn Place) {
    let stage = Stage::set(place);
    let first = wait(stage.any(0).terms(&template("ns-alice/reading/v1"))).unwrap();
    assert_eq!(delete(&stage, 0, "reading"), Ok(vec![Stage::resource(LOOK)]));
    let entry = wait(stage.any(1).registered(&stage.alice, &stage.server, &Stage::resource(LOOK))).unwrap();
    assert_eq!(entry.unwrap().unit, None);
    assert_eq!(wait(stage.any(1).terms(&template("ns-alice/reading/v1"))).unwrap(), first);
    let row = stage.rows(&stage.alice).pop().unwrap().record;
    assert_eq!(
        (row.kind, row.author, row.entry["unit"].clone()),
        (Kind::Revoked, herself(), "reading".into())
    );
    let refused = stage.open(0, &stage.attempt(LOOK), Beat::Present, NOW);
    assert!(matches!(refused, Said::Refused(TokenError::RequestDenied)), "ungoverned");

    assert_eq!(create(&stage, 1, &unit("reading", LOOK, false)).unwrap().version, 2);
    assert_eq!(stage.terms(LOOK).1.terms.template_id, template("ns-alice/reading/v2"));
    assert_eq!(wait(stage.any(0).terms(&template("ns-alice/reading/v1"))).unwrap(), first);
}

/// An edit while an agent agrees or claims: what it gets is from before, or it is asked to agree anew.
pub fn an_edit_is_heeded_by_what_is_under_way(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    let loosened = Edit { ask_me: Some(true), ..Edit::default() };
    let version = |number: i64| template(&format!("ns-alice/trading/v{number}"));
    for _ in 0..PAIRS {
        let (ticket, old) = stage.terms(TRADE);
        let commit = || stage.commit(0, &agent, &ticket, &old);
        let (said, edited) = both(commit, || edit(&stage, 1, "trading", &loosened).unwrap());
        let (ticket, agreed) = match said {
            Said::Waits(ticket) => (ticket, old.terms.template_id),
            Said::Terms(ticket, new) => {
                assert_eq!(new.terms.template_id, version(edited.version));
                assert_ne!(new.nonce, old.nonce);
                (stage.commit(0, &agent, &ticket, &new).waits(), new.terms.template_id)
            }
            other => panic!("{}", other.word()),
        };
        assert_eq!(stage.decide(1, &old.family, Answer::Approved), Some(()));
        let (said, edited) =
            both(|| stage.poll(0, &ticket), || edit(&stage, 1, "trading", &loosened).unwrap());
        match said {
            // It came before the edit, and what was agreed to was current.
            Said::Granted(_) => assert_eq!(agreed, version(edited.version - 1)),
            // What is current now is not what was agreed to: she is asked again.
            Said::Terms(ticket, new) => {
                let current = [version(edited.version - 1), version(edited.version)];
                assert!(current.contains(&new.terms.template_id) && new.terms.template_id != agreed);
                let said = stage.commit(0, &agent, &ticket, &new);
                assert!(matches!(said, Said::Waits(_) | Said::Terms(..)), "{}", said.word());
            }
            other => panic!("{}", other.word()),
        }
    }
    // Not a race: an approval of terms that moved on is no grant, and its next ticket is short-lived.
    let (_, ticket) = stage.approved(&agent, TRADE);
    edit(&stage, 0, "trading", &loosened).unwrap();
    let (ticket, _) = stage.poll(1, &ticket).terms();
    let late = stage.advance(0, &ticket, Beat::Present, NOW.plus(STEP_SECONDS));
    assert!(matches!(late, Said::Lost));
}

/// Deleting a unit while an approval under it is claimed: no live grant is left.
pub fn no_claim_outlives_its_unit(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    for _ in 0..PAIRS {
        let (_, held) = stage.single_use(&agent);
        let (_, ticket) = stage.approved(&agent, TRADE);
        let (said, deleted) = both(|| stage.poll(0, &ticket), || delete(&stage, 1, "trading"));
        assert_eq!(deleted, Ok(vec![Stage::resource(TRADE)]));
        assert_eq!(stage.found(0, &held), Found::Dead(Inactive::Revoked));
        match &said {
            Said::Granted(token) => {
                assert_eq!(stage.found(0, token), Found::Dead(Inactive::Revoked));
                assert!(!stage.consume(1, token, "try").consumed);
            }
            Said::Refused(TokenError::RequestDenied) => {}
            other => panic!("{}", other.word()),
        }
        create(&stage, 0, &unit("trading", TRADE, true)).unwrap();
        assert_eq!(stage.found(0, &held), Found::Dead(Inactive::Revoked), "a new unit wakes nothing");
    }
}
