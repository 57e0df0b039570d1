//! One key in another's place: once, by her hand, and against everything that lives by the old one.

use super::Place;
use super::agent::Agent;
use super::race::{CALLERS, PAIRS, ROUNDS, both, race, wait};
use super::stage::{LOOK, NOW, Said, Stage, TRADE, herself};
use crate::connection::{Connection, Ended, Relinked};
use crate::ledger::Kind;
use crate::store::Found;
use sayso_protocol::payload::protection::Inactive;

fn relink(stage: &Stage, caller: usize, from: &Agent, to: &Agent) -> Relinked {
    let (from, to) = (from.handle(), to.handle());
    wait(stage.any(caller).relink(&stage.alice, &from, &to, &herself(), NOW)).unwrap()
}

fn connection(stage: &Stage, agent: &Agent) -> Option<Connection> {
    let all = wait(stage.any(0).connections(&stage.alice)).unwrap();
    all.into_iter().find(|connection| connection.handle == agent.handle())
}

const OVER: Found = Found::Dead(Inactive::ConnectionRevoked);

/// The new key stands as the old one did; the old one, its grants, approvals and requests are over.
pub fn a_new_key_takes_the_place_of_the_old(place: &dyn Place) {
    let stage = Stage::set(place);
    let (old, new) = (stage.admitted(), stage.stranger());
    let (_, token) = stage.reusable(&old);
    let (_, unclaimed) = stage.approved(&old, TRADE);
    let (_, waiting) = stage.ask(&old, TRADE);
    let waiting = waiting.waits();
    let before = connection(&stage, &old).unwrap();
    assert!(matches!(relink(&stage, 1, &old, &new), Relinked::Done(Ended { connections_revoked: 1, .. })));
    assert_eq!(stage.found(0, &token), OVER);
    for ticket in [unclaimed, waiting] {
        assert!(matches!(stage.poll(0, &ticket), Said::Lost | Said::Refused(_)));
    }
    let (gone, here) = (connection(&stage, &old).unwrap(), connection(&stage, &new).unwrap());
    assert!(!gone.is_active() && here.is_active());
    assert_eq!((here.first_seen, here.revocations), (before.first_seen, before.revocations));
    let rows = stage.rows(&stage.alice);
    let last: Vec<_> =
        rows.iter().rev().take(2).map(|row| (row.record.kind, row.record.handle.clone())).collect();
    assert_eq!(last, [(Kind::Connected, Some(new.handle())), (Kind::Revoked, Some(old.handle()))]);
    // Where she is not asked about an agent she let in, she is not asked about the new key, and about the old one she is.
    assert!(matches!(stage.ask(&new, LOOK).1, Said::Granted(_)));
    assert!(matches!(stage.ask(&old, LOOK).1, Said::Waits(_)));
    assert_eq!(relink(&stage, 0, &old, &stage.stranger()), Relinked::Over, "a statement is good once");
}

/// What is unknown, over or taken is not relinked, and nothing is written.
pub fn only_a_standing_key_gives_its_place_and_only_to_a_new_one(place: &dyn Place) {
    let stage = Stage::set(place);
    let (standing, other, ended) = (stage.admitted(), stage.admitted(), stage.admitted());
    wait(stage.any(0).revoke(&stage.alice, &ended.handle(), &herself(), NOW)).unwrap().unwrap();
    let rows = stage.rows(&stage.alice).len();
    assert_eq!(relink(&stage, 0, &stage.stranger(), &stage.stranger()), Relinked::Unknown);
    assert_eq!(relink(&stage, 0, &ended, &stage.stranger()), Relinked::Over);
    assert_eq!(relink(&stage, 0, &standing, &other), Relinked::Taken);
    assert_eq!(relink(&stage, 0, &standing, &ended), Relinked::Taken, "what she ended does not come back so");
    assert_eq!(relink(&stage, 0, &standing, &standing), Relinked::Taken);
    let (from, to) = (standing.handle(), stage.stranger().handle());
    let his = wait(stage.any(0).relink(&stage.bob, &from, &to, &herself(), NOW)).unwrap();
    assert_eq!(his, Relinked::Unknown, "another owner's agents are not his");
    assert_eq!(stage.rows(&stage.alice).len(), rows);
    assert!(connection(&stage, &standing).unwrap().is_active());
}

/// Racing relinks of one key: it has one successor.
pub fn a_key_has_one_successor(place: &dyn Place) {
    let stage = Stage::set(place);
    for _ in 0..ROUNDS {
        let old = stage.admitted();
        let heirs: Vec<Agent> = (0..CALLERS).map(|_| stage.stranger()).collect();
        let done = race(CALLERS, |caller| relink(&stage, caller, &old, &heirs[caller]));
        assert_eq!(done.iter().filter(|one| matches!(one, Relinked::Done(_))).count(), 1);
        assert!(done.iter().all(|one| matches!(one, Relinked::Done(_) | Relinked::Over)));
        assert_eq!(heirs.iter().filter(|heir| connection(&stage, heir).is_some()).count(), 1);
        assert_eq!(connection(&stage, &old).unwrap().epoch, 1);
    }
}

/// A relink while she ends the old key: one of the two, and what she ended has no successor.
pub fn no_successor_outlives_an_ending(place: &dyn Place) {
    let stage = Stage::set(place);
    for _ in 0..PAIRS {
        let (old, new) = (stage.admitted(), stage.stranger());
        let (done, ended) = both(
            || relink(&stage, 0, &old, &new),
            || wait(stage.any(1).revoke(&stage.alice, &old.handle(), &herself(), NOW)).unwrap().unwrap(),
        );
        let relinked = matches!(done, Relinked::Done(_));
        assert_eq!(i64::from(relinked) + ended.connections_revoked, 1);
        assert_eq!(connection(&stage, &new).is_some(), relinked);
        assert!(!connection(&stage, &old).unwrap().is_active());
    }
}
