//! An agent that lost touch asks the same again: one question before her, one claimant of her answer (D-19).

use super::Place;
use super::agent::Agent;
use super::race::{CALLERS, PAIRS, ROUNDS, both, race, wait};
use super::stage::{LOOK, NOW, Said, Stage, TRADE, herself};
use crate::decision::Answer;
use crate::ledger::Kind;
use crate::store::Found;
use sayso_protocol::NegotiationId;
use sayso_protocol::payload::protection::Inactive;
use sayso_protocol::payload::terms::Proffer;
use serde_json::json;

/// Asks for one trade, the same every time.
fn ask(stage: &Stage, agent: &Agent) -> (NegotiationId, Said) {
    let (ticket, proffer) = stage.terms(TRADE);
    let said = commit(stage, 1, agent, &ticket, &proffer);
    (proffer.family, said)
}

fn commit(stage: &Stage, caller: usize, agent: &Agent, ticket: &str, proffer: &Proffer) -> Said {
    stage.advance(caller, ticket, agent.agree_to(proffer, NOW, json!({ "quantity": 10 })), NOW)
}

fn approved(stage: &Stage, agent: &Agent) -> (NegotiationId, String) {
    let (family, said) = ask(stage, agent);
    let ticket = said.waits();
    assert_eq!(stage.decide(0, &family, Answer::Approved), Some(()));
    (family, ticket)
}

fn waiting(stage: &Stage) -> Vec<NegotiationId> {
    let pending = wait(stage.any(0).pending(&stage.alice, NOW)).unwrap();
    pending.into_iter().map(|waiting| waiting.family).collect()
}

/// The earlier ticket is dead, she is asked once, and the deadline is the earlier one's.
pub fn asking_again_takes_its_own_place(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.stranger();
    let (_, first) = ask(&stage, &agent);
    let first = first.waits();
    let deadline = wait(stage.any(0).pending(&stage.alice, NOW)).unwrap()[0].deadline;
    let later = NOW.plus(3600);
    let (ticket, proffer) =
        stage.open(0, &stage.attempt_at(TRADE, later), crate::step::Beat::Present, later).terms();
    let second =
        stage.advance(1, &ticket, agent.agree_to(&proffer, later, json!({ "quantity": 10 })), later).waits();
    assert_eq!(waiting(&stage), std::slice::from_ref(&proffer.family));
    assert_eq!(wait(stage.any(1).pending(&stage.alice, later)).unwrap()[0].deadline, deadline);
    assert_eq!(stage.poll(0, &first).word(), "lost");
    assert_eq!(stage.decide(0, &proffer.family, Answer::Approved), Some(()));
    stage.poll(1, &second).granted();
}

/// However many repetitions race, one question is left, and the agent that holds its ticket is the one answered.
pub fn racing_repetitions_leave_one_question(place: &dyn Place) {
    let stage = Stage::set(place);
    for _ in 0..ROUNDS {
        let agent = stage.stranger();
        let proffered: Vec<_> = (0..CALLERS).map(|_| stage.terms(TRADE)).collect();
        let tickets = race(CALLERS, |caller| {
            let (ticket, proffer) = &proffered[caller];
            commit(&stage, caller, &agent, ticket, proffer).waits()
        });
        let left = waiting(&stage);
        assert_eq!(left.len(), 1);
        assert_eq!(stage.decide(0, &left[0], Answer::Approved), Some(()));
        let heard = tickets.iter().filter(|ticket| stage.poll(0, ticket).word() == "granted").count();
        assert_eq!(heard, 1);
    }
}

/// Another agent, another resource or other arguments are other questions.
pub fn another_question_is_not_attached(place: &dyn Place) {
    let stage = Stage::set(place);
    let (one, other) = (stage.stranger(), stage.stranger());
    let mut tickets = vec![ask(&stage, &one).1.waits(), ask(&stage, &other).1.waits()];
    tickets.push(stage.ask(&one, LOOK).1.waits());
    let (ticket, proffer) = stage.terms(TRADE);
    let elsewhere = one.agree_to(&proffer, NOW, json!({ "quantity": 11 }));
    tickets.push(stage.advance(0, &ticket, elsewhere, NOW).waits());
    assert_eq!(waiting(&stage).len(), 4);
    assert!(tickets.iter().all(|ticket| stage.poll(1, ticket).word() == "waits"));
}

/// She approved, and the reply was lost on its way: the same question is answered from her approval, and what was
/// issued before is dead. Her approval gives one grant, and it ends when she was told it would.
pub fn an_approval_nobody_heard_of_is_issued_once(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.stranger();
    let (family, ticket) = approved(&stage, &agent);
    let lost = stage.poll(0, &ticket).granted();
    let (again, said) = ask(&stage, &agent);
    let issued = said.granted();
    assert_eq!(stage.found(1, &lost), Found::Dead(Inactive::Revoked));
    assert!(!stage.consume(0, &lost, "a").consumed);
    let Found::Live(grant, _) = stage.found(0, &issued) else { panic!("the second grant lives") };
    assert_eq!(grant.exp, NOW.plus(3600));
    assert!(stage.consume(1, &issued, "b").consumed);
    assert_eq!(stage.kinds(&family), [Kind::Promised, Kind::Connected, Kind::Approved]);
    assert_eq!(stage.kinds(&again), [Kind::Promised, Kind::Touched]);
    // Approved and not even claimed: the same.
    let (_, unclaimed) = approved(&stage, &agent);
    ask(&stage, &agent).1.granted();
    assert_eq!(stage.poll(0, &unclaimed).word(), "lost");
}

/// A grant an enforcement point was told of was not lost; neither was one that was spent or whose agent was let go.
pub fn a_grant_that_was_shown_is_asked_for_afresh(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.stranger();
    let (_, ticket) = approved(&stage, &agent);
    let shown = stage.poll(0, &ticket).granted();
    assert!(matches!(stage.found(0, &shown), Found::Live(..)));
    let (family, said) = ask(&stage, &agent);
    said.waits();
    assert_eq!(waiting(&stage), [family]);
    assert!(matches!(stage.found(1, &shown), Found::Live(..)));
    let spender = stage.stranger();
    let (_, ticket) = approved(&stage, &spender);
    let spent = stage.poll(0, &ticket).granted();
    assert!(stage.consume(0, &spent, "a").consumed);
    ask(&stage, &spender).1.waits();
    let gone = stage.stranger();
    let (_, ticket) = approved(&stage, &gone);
    stage.poll(0, &ticket).granted();
    wait(stage.any(0).revoke(&stage.alice, &gone.handle(), &herself(), NOW)).unwrap().unwrap();
    ask(&stage, &gone).1.waits();
}

/// A repetition at the moment of her answer: either she answered the earlier question, and the repetition has her
/// answer, or she answered nothing and is asked the later one.
pub fn repetitions_race_her_decision(place: &dyn Place) {
    let stage = Stage::set(place);
    for _ in 0..PAIRS {
        let agent = stage.stranger();
        let (family, said) = ask(&stage, &agent);
        let first = said.waits();
        let (ticket, proffer) = stage.terms(TRADE);
        let (repeated, decided) = both(
            || commit(&stage, 0, &agent, &ticket, &proffer),
            || stage.decide(1, &family, Answer::Approved),
        );
        assert_eq!(stage.poll(0, &first).word(), "lost");
        match decided {
            Some(()) => drop(repeated.granted()),
            None => {
                let next = repeated.waits();
                assert_eq!(stage.decide(0, &proffer.family, Answer::Approved), Some(()));
                stage.poll(1, &next).granted();
            }
        }
    }
}
