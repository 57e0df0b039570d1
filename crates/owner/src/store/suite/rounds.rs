//! Further rounds of a call: offered by what its tool asked, taken once, by the call's own key and operation, and only
//! while she allows them.

use super::Place;
use super::agent::{Agent, ISSUER};
use super::grants::{refused, spent};
use super::race::{CALLERS, PAIRS, ROUNDS, both, race, wait};
use super::stage::{LOOK, NOW, SERVER, Stage, TRADE, herself, published, unit};
use crate::ledger::{Kind, Row};
use crate::registry::Standing;
use crate::store::{Digest, Edit, Found, MOST_ROUNDS, Saved};
use crate::unit::{Unfit, Unit};
use sayso_protocol::payload::operation::Operation;
use sayso_protocol::payload::protection::{ConsumeReply, Continuation, Inactive, UNKNOWN_CONTINUATION};
use sayso_protocol::payload::rpt::MAX_LIFE;
use sayso_protocol::{NegotiationId, S256, Timestamp, canon};

fn state(text: &str) -> S256 {
    canon::s256_bytes(text.as_bytes())
}

fn bind(stage: &Stage, caller: usize, id: &str, bind: bool) -> Saved<Unit> {
    let edit = Edit { bind: Some(bind), ..Edit::default() };
    wait(stage.any(caller).edit_unit(&stage.alice, &id.parse().unwrap(), &edit, ISSUER, &herself(), NOW))
        .unwrap()
}

fn offer(stage: &Stage, caller: usize, family: &NegotiationId, asked: &str) -> bool {
    let store = stage.any(caller);
    wait(store.offer(&stage.alice, &stage.server, family, &state(asked), NOW)).unwrap()
}

fn found(stage: &Stage, caller: usize, token: &str, asked: &str, now: Timestamp) -> Found {
    let store = stage.any(caller);
    wait(store.round(&stage.alice, &stage.server, Digest::of(token), &state(asked), now)).unwrap()
}

fn resume(
    stage: &Stage,
    caller: usize,
    token: &str,
    attempt: &str,
    round: &Continuation,
    now: Timestamp,
) -> ConsumeReply {
    let store = stage.any(caller);
    wait(store.resume(&stage.alice, &stage.server, Digest::of(token), attempt, round, now)).unwrap()
}

/// A call of a unit that allows rounds, spent.
struct Made {
    family: NegotiationId,
    token: String,
    operation: Operation,
    agent: Agent,
}

impl Made {
    fn on(stage: &Stage) -> Self {
        let agent = stage.admitted();
        let (family, token) = stage.single_use(&agent);
        let Found::Live(grant, _) = stage.found(0, &token) else { panic!("the grant lives") };
        assert!(grant.continuation.is_none());
        let operation = grant.operation.unwrap();
        assert_eq!(stage.consume(1, &token, "the-call"), spent());
        Made { family, token, operation, agent }
    }

    fn round(&self, asked: &str) -> Continuation {
        Continuation {
            state: state(asked),
            answers: Some(state("answers")),
            operation: self.operation.clone(),
            key: self.agent.jwk().key().unwrap().thumbprint(),
        }
    }
}

/// A stage on which trades may ask.
fn set(place: &dyn Place) -> Stage {
    let stage = Stage::set(place);
    assert!(bind(&stage, 0, "trading", true).unwrap().bind);
    stage
}

fn last(stage: &Stage) -> Row {
    stage.rows(&stage.alice).pop().unwrap()
}

/// Racing takers of one round: one takes it, and her record says with which answers.
pub fn a_round_is_taken_once(place: &dyn Place) {
    let stage = set(place);
    for _ in 0..ROUNDS {
        let made = Made::on(&stage);
        assert!(offer(&stage, 0, &made.family, "one"));
        let Found::Live(grant, _) = found(&stage, 1, &made.token, "one", NOW) else { panic!("it waits") };
        assert_eq!((grant.continuation, grant.bind, grant.single_use), (Some(state("one")), true, true));
        let round = made.round("one");
        let replies = race(CALLERS, |caller| {
            resume(&stage, caller, &made.token, &format!("try-{caller}"), &round, NOW)
        });
        let winners: Vec<usize> = (0..CALLERS).filter(|caller| replies[*caller].consumed).collect();
        assert_eq!(winners.len(), 1);
        assert!(replies.iter().filter(|reply| !reply.consumed).all(|it| *it == refused("already_consumed")));
        let row = last(&stage);
        assert_eq!((row.record.kind, row.record.handle), (Kind::Touched, Some(made.agent.handle())));
        assert_eq!(row.record.entry["continuation"], state("one").as_str());
        assert_eq!(row.record.entry["answers_s256"], state("answers").as_str());
        assert_eq!(row.record.entry["resource_id"], TRADE);
        let kinds = [Kind::Promised, Kind::Approved, Kind::Touched, Kind::Touched];
        assert_eq!(stage.kinds(&made.family), kinds);

        // The winner hears what it was told, once more; the round is gone, and is not offered anew.
        let winner = format!("try-{}", winners[0]);
        assert_eq!(resume(&stage, 1, &made.token, &winner, &round, NOW), spent());
        assert_eq!(found(&stage, 0, &made.token, "one", NOW), Found::Dead(Inactive::AlreadyConsumed));
        assert!(!offer(&stage, 1, &made.family, "one"));
        assert_eq!(resume(&stage, 0, &made.token, "again", &round, NOW), refused("already_consumed"));
        assert_eq!(stage.kinds(&made.family), kinds);

        // What the tool asks next is a round of its own.
        assert!(offer(&stage, 0, &made.family, "two"));
        assert_eq!(resume(&stage, 0, &made.token, "next", &made.round("two"), NOW), spent());
    }
}

/// Nothing but the call that was approved, by its own key, answers what its own tool asked.
pub fn a_round_is_of_one_call(place: &dyn Place) {
    let stage = set(place);
    let (made, other) = (Made::on(&stage), Made::on(&stage));
    assert!(offer(&stage, 0, &made.family, "asked"));
    let rows = stage.rows(&stage.alice).len();
    let honest = made.round("asked");
    let arguments = Operation { params_s256: state("other"), ..honest.operation.clone() };
    let tool = Operation { tool: "look".parse().unwrap(), ..honest.operation.clone() };
    let wrong = [
        ("never asked", &made.token, made.round("ask")),
        ("asked of another call", &other.token, other.round("asked")),
        ("another token", &other.token, honest.clone()),
        ("other arguments", &made.token, Continuation { operation: arguments, ..honest.clone() }),
        ("another tool", &made.token, Continuation { operation: tool, ..honest.clone() }),
        ("another key", &made.token, Continuation { key: other.round("asked").key, ..honest.clone() }),
    ];
    for (what, token, round) in wrong {
        assert_eq!(resume(&stage, 1, token, "try", &round, NOW), refused(UNKNOWN_CONTINUATION), "{what}");
    }
    assert_eq!(resume(&stage, 0, "nonsense", "try", &honest, NOW), refused("unknown_token"));
    let spent_already = Found::Dead(Inactive::AlreadyConsumed);
    assert_eq!(found(&stage, 0, &other.token, "asked", NOW), spent_already);
    assert_eq!(found(&stage, 0, &made.token, "ask", NOW), spent_already);
    assert_eq!(stage.found(1, &made.token), spent_already, "who asks about no round is told of none");
    let elsewhere = |owner, server: &str| {
        let (token, server) = (Digest::of(&made.token), server.parse().unwrap());
        wait(stage.any(0).round(owner, &server, token, &state("asked"), NOW)).unwrap()
    };
    assert_eq!(elsewhere(&stage.bob, SERVER), Found::Unknown);
    assert_eq!(elsewhere(&stage.alice, super::stage::OTHER), Found::Unknown);
    assert!(!wait(stage.any(0).offer(&stage.bob, &stage.server, &made.family, &state("x"), NOW)).unwrap());
    assert_eq!(stage.rows(&stage.alice).len(), rows, "what was refused left no row");
    assert_eq!(resume(&stage, 1, &made.token, "try", &honest, NOW), spent(), "and spent nothing");

    // A grant that is not spent yet carries no round, and neither does one for many calls.
    let (family, unspent) = stage.single_use(&other.agent);
    assert!(!offer(&stage, 0, &family, "asked"));
    let Found::Live(grant, _) = found(&stage, 0, &unspent, "asked", NOW) else { panic!("it lives") };
    assert_eq!((grant.continuation, grant.bind), (None, true));
    let round = Continuation { operation: grant.operation.unwrap(), ..other.round("asked") };
    assert_eq!(resume(&stage, 0, &unspent, "try", &round, NOW), refused(UNKNOWN_CONTINUATION));
    assert_eq!(stage.consume(0, &unspent, "try"), spent());
    let (family, many) = stage.reusable(&other.agent);
    assert!(!offer(&stage, 0, &family, "asked"));
    let Found::Live(grant, _) = found(&stage, 0, &many, "asked", NOW) else { panic!("it lives") };
    assert_eq!((grant.continuation, grant.bind), (None, false));
}

/// What ends a grant ends its rounds.
pub fn no_round_outlives_what_it_stands_on(place: &dyn Place) {
    let stage = set(place);
    let waiting = || {
        let made = Made::on(&stage);
        assert!(offer(&stage, 0, &made.family, "asked"));
        made
    };
    let gone = |made: &Made, reason: &str, now: Timestamp, what: &str| {
        assert!(matches!(found(&stage, 0, &made.token, "asked", now), Found::Dead(_)), "{what}");
        assert_eq!(
            resume(&stage, 1, &made.token, "try", &made.round("asked"), now),
            refused(reason),
            "{what}"
        );
        assert!(!offer(&stage, 1, &made.family, "more") || now > NOW, "{what}");
    };
    gone(&waiting(), "expired", NOW.plus(MAX_LIFE), "its time");

    let made = waiting();
    bind(&stage, 1, "trading", false).unwrap();
    gone(&made, UNKNOWN_CONTINUATION, NOW, "she allows rounds no more");
    bind(&stage, 0, "trading", true).unwrap();
    gone(&made, UNKNOWN_CONTINUATION, NOW, "she allows rounds again");

    let made = waiting();
    let publish = |definition: Option<S256>| {
        let trade = sayso_protocol::payload::metadata::OwnedResource { definition, ..published(TRADE) };
        wait(stage.any(0).pull(&stage.alice, &stage.server, &[published(LOOK), trade], NOW)).unwrap();
    };
    publish(Some(state("another tool")));
    gone(&made, UNKNOWN_CONTINUATION, NOW, "the tool changed");
    publish(None);
    let made = waiting();
    wait(stage.any(0).pull(&stage.alice, &stage.server, &[published(LOOK)], NOW)).unwrap();
    gone(&made, UNKNOWN_CONTINUATION, NOW, "the tool went");
    publish(None);
    gone(&made, UNKNOWN_CONTINUATION, NOW, "the tool came back");

    let made = waiting();
    wait(stage.any(0).delete_unit(&stage.alice, &"trading".parse().unwrap(), &herself(), NOW))
        .unwrap()
        .unwrap();
    gone(&made, UNKNOWN_CONTINUATION, NOW, "its unit");
    stage.create(&stage.alice, &Unit { bind: true, ..unit("trading", TRADE, true) });
    gone(&made, UNKNOWN_CONTINUATION, NOW, "another unit of its name");

    let made = waiting();
    wait(stage.any(0).revoke(&stage.alice, &made.agent.handle(), &herself(), NOW)).unwrap().unwrap();
    gone(&made, "connection_revoked", NOW, "the connection");

    let made = waiting();
    let judge = |standing| {
        let (owner, server) = (&stage.alice, &stage.server);
        wait(stage.any(0).judge_resource_server(owner, server, standing, &herself(), NOW)).unwrap().unwrap();
    };
    judge(Standing::Revoked);
    gone(&made, "revoked", NOW, "the server");
}

/// Taking a round while she ends the connection: it was taken before, or not at all.
pub fn a_round_races_her_ending_it(place: &dyn Place) {
    let stage = set(place);
    for _ in 0..PAIRS {
        let made = Made::on(&stage);
        assert!(offer(&stage, 0, &made.family, "asked"));
        let (reply, ended) = both(
            || resume(&stage, 0, &made.token, "try", &made.round("asked"), NOW),
            || wait(stage.any(1).revoke(&stage.alice, &made.agent.handle(), &herself(), NOW)).unwrap(),
        );
        assert!(ended.is_some());
        let rows = stage.rows(&stage.alice);
        let of_this = |row: &&Row| row.record.handle == Some(made.agent.handle());
        let kinds: Vec<Kind> = rows.iter().filter(of_this).map(|row| row.record.kind).collect();
        // A row after the ending would be a call after it.
        assert!(kinds.ends_with(&[Kind::Touched, Kind::Revoked]), "{kinds:?}");
        let touched = kinds.iter().filter(|kind| **kind == Kind::Touched).count();
        assert_eq!(touched, if reply.consumed { 2 } else { 1 });
        assert!(reply.consumed || reply == refused("connection_revoked"));
    }
}

/// Rounds are allowed by an act of hers that is recorded, and for what was approved since.
pub fn rounds_are_hers_to_allow(place: &dyn Place) {
    let stage = Stage::set(place);
    let before = Made::on(&stage);
    assert!(!offer(&stage, 0, &before.family, "asked"), "no unit allows them at first");
    let rows = stage.rows(&stage.alice).len();
    assert!(bind(&stage, 0, "trading", true).unwrap().bind);
    let row = last(&stage).record;
    assert_eq!((row.kind, row.author, &row.entry["bind"]), (Kind::Approved, herself(), &true.into()));
    assert_eq!(row.entry["unit"], "trading");
    bind(&stage, 1, "trading", true).unwrap();
    assert_eq!(stage.rows(&stage.alice).len(), rows + 1, "saying it again is no news");
    assert!(!offer(&stage, 0, &before.family, "asked"), "what was approved without is without");
    let made = Made::on(&stage);
    for round in 0..MOST_ROUNDS {
        assert!(offer(&stage, 0, &made.family, &format!("round {round}")));
    }
    assert!(!offer(&stage, 0, &made.family, "one too many"));
    bind(&stage, 0, "trading", false).unwrap();
    let row = last(&stage).record;
    assert_eq!((row.kind, row.author, &row.entry["bind"]), (Kind::Revoked, herself(), &false.into()));
    let many = bind(&stage, 0, "reading", true);
    assert_eq!(many, Err(Unfit::Bind.into()), "there is nothing to allow where a grant is for many calls");
    assert!(wait(stage.any(1).units(&stage.alice)).unwrap().iter().all(|unit| !unit.bind));
}
