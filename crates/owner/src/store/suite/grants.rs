//! Grants: found without being spent, spent once, dead for a reason, reported by their negotiation.

use super::Place;
use super::race::{CALLERS, ROUNDS, race, wait};
use super::stage::{NOW, Stage, TRADE, herself};
use crate::ledger::{Author, Kind};
use crate::store::{Digest, Found};
use sayso_protocol::Timestamp;
use sayso_protocol::payload::protection::{AccessReport, ConsumeReply, Inactive};
use sayso_protocol::payload::rpt::{MAX_LIFE, Rpt};

pub(crate) fn spent() -> ConsumeReply {
    ConsumeReply { consumed: true, error: None }
}

pub(crate) fn refused(error: &str) -> ConsumeReply {
    ConsumeReply { consumed: false, error: Some(error.into()) }
}

pub(crate) fn report(family: &sayso_protocol::NegotiationId) -> AccessReport {
    AccessReport {
        family: family.clone(),
        tool: "look".parse().unwrap(),
        params_s256: None,
        summary: Some("forwarded".into()),
        continuation: None,
    }
}

/// Racing spends of one grant, each its own attempt.
pub fn a_grant_is_spent_once(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    for _ in 0..ROUNDS {
        let (family, token) = stage.single_use(&agent);
        let replies = race(CALLERS, |caller| stage.consume(caller, &token, &format!("try-{caller}")));
        let winners: Vec<usize> = (0..CALLERS).filter(|caller| replies[*caller].consumed).collect();
        assert_eq!(winners.len(), 1);
        assert!(replies.iter().filter(|reply| !reply.consumed).all(|it| *it == refused("already_consumed")));
        assert_eq!(stage.kinds(&family), [Kind::Promised, Kind::Approved, Kind::Touched]);
        let row = stage.rows(&stage.alice).pop().unwrap();
        assert_eq!(row.record.handle, Some(agent.handle()));
        assert_eq!(row.record.author, Author::ResourceServer(stage.server.to_string()));
        assert_eq!(row.record.entry["resource_id"], TRADE);
        let connection = wait(stage.any(0).connections(&stage.alice)).unwrap().pop().unwrap();
        assert_eq!(connection.last_access, Some(NOW));

        // Asked again, the winner hears what it was told; nobody else becomes one, and nothing is recorded twice.
        let winner = format!("try-{}", winners[0]);
        assert_eq!(stage.consume(1, &token, &winner), spent());
        assert_eq!(stage.consume(0, &token, "try-again"), refused("already_consumed"));
        assert_eq!(stage.found(0, &token), Found::Dead(Inactive::AlreadyConsumed));
        assert_eq!(stage.kinds(&family).len(), 3);
    }
}

/// Racing repetitions of one attempt: all of them have spent it, and it was spent once.
pub fn one_attempt_is_one_spend(place: &dyn Place) {
    let stage = Stage::set(place);
    let (family, token) = stage.single_use(&stage.admitted());
    let replies = race(CALLERS, |caller| stage.consume(caller, &token, "the-try"));
    assert!(replies.iter().all(|reply| *reply == spent()));
    assert_eq!(stage.kinds(&family), [Kind::Promised, Kind::Approved, Kind::Touched]);
}

/// Looking at a grant spends nothing.
pub fn introspection_spends_nothing(place: &dyn Place) {
    let stage = Stage::set(place);
    let (_, token) = stage.single_use(&stage.admitted());
    for caller in 0..100 {
        assert!(matches!(stage.found(caller, &token), Found::Live(..)));
    }
    assert_eq!(stage.consume(0, &token, "try"), spent());
}

/// What introspection says is what the token says, without the agent.
pub fn introspection_repeats_the_token(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    for (family, token) in [stage.single_use(&agent), stage.reusable(&agent)] {
        let key = super::agent::house().issuer.grants;
        let (rpt, _) = Rpt::read(&token, key.verifying()).unwrap();
        let Found::Live(grant, _) = stage.found(1, &token) else { panic!("the grant lives") };
        assert_eq!(grant.family, family);
        assert_eq!((&grant.iss, &grant.aud, &grant.owner), (&rpt.iss, &rpt.aud, &rpt.owner));
        assert_eq!((grant.iat, grant.exp, grant.single_use), (rpt.iat, rpt.exp, rpt.single_use));
        assert_eq!((&grant.cnf, &grant.permissions), (&rpt.cnf, &rpt.permissions));
        assert_eq!((&grant.contract, &grant.operation), (&rpt.contract, &rpt.operation));
        let said = serde_json::to_string(&grant).unwrap();
        assert!(!said.contains(agent.handle().as_str()));
    }
}

/// Each reason, in its precedence.
pub fn a_dead_grant_says_why(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    let found = |token: &str, now: Timestamp| {
        wait(stage.any(0).introspect(&stage.alice, &stage.server, Digest::of(token), now)).unwrap()
    };
    let consume = |token: &str, now: Timestamp| {
        wait(stage.any(1).consume(&stage.alice, &stage.server, Digest::of(token), "try", now)).unwrap()
    };
    let (_, spent_one) = stage.single_use(&agent);
    let (_, unspent) = stage.single_use(&agent);
    let (_, reusable) = stage.reusable(&agent);
    let end = NOW.plus(MAX_LIFE);

    assert_eq!(found("nonsense", NOW), Found::Unknown);
    assert_eq!(consume("nonsense", NOW), refused("unknown_token"));
    assert_eq!(consume(&reusable, NOW), refused("not_single_use"));
    assert!(matches!(found(&unspent, end.plus(-1)), Found::Live(..)));
    assert_eq!(found(&unspent, end), Found::Dead(Inactive::Expired));
    assert_eq!(consume(&unspent, end), refused("expired"));
    assert_eq!(consume(&reusable, end), refused("expired"));
    assert_eq!(consume(&spent_one, NOW), spent());
    assert_eq!(found(&spent_one, end), Found::Dead(Inactive::AlreadyConsumed));
    assert_eq!(consume(&spent_one, end), refused("already_consumed"), "a spend is not repeated past the end");

    wait(stage.any(0).revoke(&stage.alice, &agent.handle(), &herself(), NOW)).unwrap().unwrap();
    for token in [&spent_one, &unspent, &reusable] {
        assert_eq!(found(token, end), Found::Dead(Inactive::ConnectionRevoked));
        assert_eq!(consume(token, NOW), refused("connection_revoked"));
    }
}

/// Reports become rows of the agent the negotiation names; a report about nothing becomes none.
pub fn reports_are_recorded(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    let (family, _) = stage.reusable(&agent);
    for caller in 0..3 {
        let told = wait(stage.any(caller).report(&stage.alice, &stage.server, &report(&family), NOW.plus(7)));
        assert!(told.unwrap());
    }
    let touched = [Kind::Promised, Kind::Touched, Kind::Touched, Kind::Touched];
    assert_eq!(stage.kinds(&family), touched);
    let rows = wait(stage.any(1).ledger(&stage.alice, Some(&agent.handle()), 0, 100)).unwrap();
    assert_eq!(rows.last().unwrap().record.entry["tool"], "look");
    let connection = wait(stage.any(0).connections(&stage.alice)).unwrap().pop().unwrap();
    assert_eq!(connection.last_access, Some(NOW.plus(7)));

    let unheard = report(&"nothing".parse().unwrap());
    assert!(!wait(stage.any(0).report(&stage.alice, &stage.server, &unheard, NOW)).unwrap());
    assert_eq!(stage.kinds(&family), touched);
}

/// A spend is one row: its report adds none unless something went wrong afterwards.
pub fn a_spend_is_one_row(place: &dyn Place) {
    let stage = Stage::set(place);
    let (family, token) = stage.single_use(&stage.admitted());
    assert_eq!(stage.consume(0, &token, "try"), spent());
    let plain = AccessReport { summary: None, ..report(&family) };
    assert!(wait(stage.any(0).report(&stage.alice, &stage.server, &plain, NOW)).unwrap());
    assert_eq!(stage.kinds(&family).iter().filter(|kind| **kind == Kind::Touched).count(), 1);
    assert!(wait(stage.any(0).report(&stage.alice, &stage.server, &report(&family), NOW)).unwrap());
    assert_eq!(stage.kinds(&family).iter().filter(|kind| **kind == Kind::Touched).count(), 2);
}
