//! Endings of a connection against everything that lives by it.
//!
//! Whoever comes first: once she has been told that it is over, no grant of it is alive, spendable, or still to be
//! claimed, and letting the agent in again wakes nothing.

use super::Place;
use super::agent::Agent;
use super::grants::{refused, report, spent};
use super::race::{CALLERS, PAIRS, ROUNDS, both, race, wait};
use super::stage::{LOOK, NOW, Said, Stage, TRADE, herself};
use crate::connection::{Connection, Ended};
use crate::decision::Answer;
use crate::ledger::Kind;
use crate::negotiation::Ask;
use crate::store::Found;
use sayso_protocol::payload::protection::Inactive;

fn revoke(stage: &Stage, caller: usize, agent: &Agent) -> Option<Ended> {
    wait(stage.any(caller).revoke(&stage.alice, &agent.handle(), &herself(), NOW)).unwrap()
}

fn connection(stage: &Stage, agent: &Agent) -> Connection {
    let all = wait(stage.any(0).connections(&stage.alice)).unwrap();
    all.into_iter().find(|connection| connection.handle == agent.handle()).unwrap()
}

fn readmit(stage: &Stage, agent: &Agent) -> String {
    let (_, ticket) = stage.approved(agent, LOOK);
    stage.poll(0, &ticket).granted()
}

const OVER: Found = Found::Dead(Inactive::ConnectionRevoked);

/// Ending a connection ends its grants, its unclaimed approvals and its waiting requests, and counts them.
pub fn an_ending_ends_everything(place: &dyn Place) {
    let stage = Stage::set(place);
    let (agent, bystander) = (stage.admitted(), stage.admitted());
    let tokens = [stage.reusable(&agent).1, stage.single_use(&agent).1];
    let (_, used) = stage.single_use(&agent);
    assert_eq!(stage.consume(0, &used, "try"), spent());
    let (_, unclaimed) = stage.approved(&agent, TRADE);
    let (family, waiting) = stage.ask(&agent, TRADE);
    let waiting = waiting.waits();
    let (_, theirs) = stage.reusable(&bystander);

    // Two, and not the spent one; the grant of first contact, which nobody heard of, was issued again (D-19).
    assert_eq!(revoke(&stage, 1, &agent), Some(Ended { rpts_deactivated: 2, connections_revoked: 1 }));
    assert!(tokens.iter().all(|token| stage.found(0, token) == OVER));
    assert!(matches!(stage.poll(0, &unclaimed), Said::Lost | Said::Refused(_)));
    assert!(matches!(stage.poll(0, &waiting), Said::Lost | Said::Refused(_)));
    assert_eq!(stage.decide(0, &family, Answer::Approved), None);
    assert!(wait(stage.any(0).pending(&stage.alice, NOW)).unwrap().is_empty());
    assert!(matches!(stage.found(1, &theirs), Found::Live(..)));
    let row = stage.rows(&stage.alice).pop().unwrap().record;
    assert_eq!((row.kind, row.handle, row.author), (Kind::Revoked, Some(agent.handle()), herself()));
    assert_eq!(revoke(&stage, 0, &stage.stranger()), None);
}

/// Letting an agent in again wakes nothing, and does not forget.
pub fn readmission_revives_nothing(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    let old = [stage.reusable(&agent).1, stage.single_use(&agent).1];
    let (_, unclaimed) = stage.approved(&agent, TRADE);
    revoke(&stage, 0, &agent).unwrap();
    let (family, said) = stage.ask(&agent, LOOK);
    let ticket = said.waits();
    let waiting = wait(stage.any(0).pending(&stage.alice, NOW)).unwrap();
    assert_eq!((&waiting[0].family, waiting[0].ask), (&family, Ask::Connection));
    assert_eq!(waiting[0].connection.as_ref().unwrap().revocations, 1);
    assert_eq!(stage.decide(1, &family, Answer::Approved), Some(()));
    let new = stage.poll(0, &ticket).granted();

    assert!(matches!(stage.found(0, &new), Found::Live(..)));
    assert!(old.iter().all(|token| stage.found(1, token) == Found::Dead(Inactive::Revoked)));
    assert_eq!(stage.consume(0, &old[1], "try"), refused("revoked"));
    assert!(matches!(stage.poll(0, &unclaimed), Said::Lost | Said::Refused(_)));
    let connection = connection(&stage, &agent);
    assert!(connection.is_active());
    assert_eq!((connection.revocations, connection.epoch, connection.first_seen), (1, 1, NOW));
}

/// Racing endings: one ends it, the others find it ended.
pub fn a_connection_ends_once(place: &dyn Place) {
    let stage = Stage::set(place);
    for _ in 0..ROUNDS {
        let agent = stage.admitted();
        let ended = race(CALLERS, |caller| revoke(&stage, caller, &agent).unwrap());
        let sum: i64 = ended.iter().map(|ended| ended.connections_revoked).sum();
        let dead: i64 = ended.iter().map(|ended| ended.rpts_deactivated).sum();
        assert_eq!((sum, dead), (1, 1));
        let connection = connection(&stage, &agent);
        assert_eq!((connection.epoch, connection.revocations), (1, 1));
        let hers = wait(stage.any(0).ledger(&stage.alice, Some(&agent.handle()), 0, 100)).unwrap();
        assert_eq!(hers.iter().filter(|row| row.record.kind == Kind::Revoked).count(), 1);
    }
}

/// Claiming an approval while it is ended: no grant is alive once she has been told.
pub fn no_claim_outlives_an_ending(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    for _ in 0..PAIRS {
        let (_, ticket) = stage.approved(&agent, TRADE);
        let (claimed, ended) = both(|| stage.poll(0, &ticket), || revoke(&stage, 1, &agent));
        assert_eq!(ended.unwrap().connections_revoked, 1);
        if let Said::Granted(token) = &claimed {
            assert_eq!(stage.found(0, token), OVER);
            assert_eq!(stage.consume(0, token, "try"), refused("connection_revoked"));
        }
        readmit(&stage, &agent);
        if let Said::Granted(token) = &claimed {
            assert_eq!(stage.found(1, token), Found::Dead(Inactive::Revoked));
        }
    }
}

/// An automatic grant while the connection is ended.
pub fn no_automatic_grant_outlives_an_ending(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    for _ in 0..PAIRS {
        let (ticket, proffer) = stage.terms(LOOK);
        let (said, ended) = both(|| stage.commit(0, &agent, &ticket, &proffer), || revoke(&stage, 1, &agent));
        assert_eq!(ended.unwrap().connections_revoked, 1);
        match said {
            Said::Granted(token) => assert_eq!(stage.found(0, &token), OVER),
            // It came after the ending, so it is first contact again and waits for her.
            Said::Waits(_) => assert!(stage.decide(0, &proffer.family, Answer::Denied).is_some()),
            other => panic!("{}", other.word()),
        }
        readmit(&stage, &agent);
    }
}

/// Her decision while the connection is ended: an approval given before is void.
pub fn no_decision_outlives_an_ending(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    for _ in 0..PAIRS {
        let (family, said) = stage.ask(&agent, TRADE);
        let ticket = said.waits();
        let (_, ended) = both(|| stage.decide(0, &family, Answer::Approved), || revoke(&stage, 1, &agent));
        assert_eq!(ended.unwrap().connections_revoked, 1);
        assert!(matches!(stage.poll(0, &ticket), Said::Lost | Said::Refused(_)));
        assert!(!connection(&stage, &agent).is_active());
        readmit(&stage, &agent);
        assert!(matches!(stage.poll(0, &ticket), Said::Lost | Said::Refused(_)));
    }
}

/// Spending a grant while its connection is ended: it was spent before, or not at all.
pub fn no_spend_follows_an_ending(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    for _ in 0..PAIRS {
        let (family, token) = stage.single_use(&agent);
        let (reply, ended) = both(|| stage.consume(0, &token, "try"), || revoke(&stage, 1, &agent));
        assert_eq!(ended.unwrap().connections_revoked, 1);
        let rows = stage.rows(&stage.alice);
        let touched = rows
            .iter()
            .find(|row| row.record.family.as_ref() == Some(&family) && row.record.kind == Kind::Touched);
        let over = rows.iter().rfind(|row| row.record.kind == Kind::Revoked).unwrap();
        if reply.consumed {
            assert!(touched.unwrap().seq < over.seq);
        } else {
            assert_eq!(reply, refused("connection_revoked"));
            assert!(touched.is_none());
        }
        assert_eq!(stage.consume(1, &token, "try"), refused("connection_revoked"));
        readmit(&stage, &agent);
    }
}

/// A report of an allowed call is recorded, whether the ending came before or after it.
pub fn a_report_survives_an_ending(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    for _ in 0..PAIRS {
        let (family, _) = stage.reusable(&agent);
        let told = || wait(stage.any(0).report(&stage.alice, &stage.server, &report(&family), NOW)).unwrap();
        let (told, ended) = both(told, || revoke(&stage, 1, &agent));
        assert!(told);
        assert_eq!(ended.unwrap().connections_revoked, 1);
        assert_eq!(stage.kinds(&family), [Kind::Promised, Kind::Touched]);
        readmit(&stage, &agent);
    }
}

/// Whoever looks while it is ended sees a live grant before, a dead one after, and never a live one again.
pub fn an_ending_is_seen_at_once(place: &dyn Place) {
    let stage = Stage::set(place);
    for _ in 0..PAIRS {
        let agent = stage.admitted();
        let (_, token) = stage.reusable(&agent);
        let look = || {
            let seen: Vec<bool> =
                (0..200).map(|caller| matches!(stage.found(caller, &token), Found::Live(..))).collect();
            assert!(seen.is_sorted_by(|before, after| before >= after), "a dead grant came alive");
        };
        let end = || {
            revoke(&stage, 1, &agent).unwrap();
            assert_eq!(stage.found(0, &token), OVER);
        };
        both(look, end);
    }
}
