//! Tickets: each is good once, for a while, and not for ever more of them.

use super::Place;
use super::race::{CALLERS, ROUNDS, race, wait};
use super::stage::{BOBS, LOOK, NOW, Said, Stage, TRADE, count};
use crate::decision::Answer;
use crate::ledger::Kind;
use crate::negotiation::{PENDING_SECONDS, STEP_SECONDS};
use crate::step::Beat;
use crate::store::Digest;
use sayso_protocol::payload::negotiation::TokenError;

/// Racing first presentations of one sealed ticket.
pub fn a_sealed_ticket_opens_once(place: &dyn Place) {
    let stage = Stage::set(place);
    for _ in 0..ROUNDS {
        let attempt = stage.attempt(LOOK);
        let said = race(CALLERS, |caller| stage.open(caller, &attempt, Beat::Present, NOW));
        assert_eq!((count(&said, "terms"), count(&said, "lost")), (1, CALLERS - 1));
    }
}

/// Racing presentations of one rotated ticket: commits, polls, claims.
pub fn a_rotated_ticket_is_spent_once(place: &dyn Place) {
    let stage = Stage::set(place);
    for _ in 0..ROUNDS {
        let agent = stage.stranger();
        let (ticket, proffer) = stage.terms(TRADE);
        let commits = race(CALLERS, |caller| stage.commit(caller, &agent, &ticket, &proffer));
        assert_eq!((count(&commits, "waits"), count(&commits, "lost")), (1, CALLERS - 1));
        let ticket = commits.into_iter().find(|said| said.word() == "waits").unwrap().waits();

        let polls = race(CALLERS, |caller| stage.poll(caller, &ticket));
        assert_eq!((count(&polls, "waits"), count(&polls, "lost")), (1, CALLERS - 1));
        let ticket = polls.into_iter().find(|said| said.word() == "waits").unwrap().waits();

        assert_eq!(stage.decide(0, &proffer.family, Answer::Approved), Some(()));
        let claims = race(CALLERS, |caller| stage.poll(caller, &ticket));
        assert_eq!((count(&claims, "granted"), count(&claims, "lost")), (1, CALLERS - 1));
        assert_eq!(stage.kinds(&proffer.family), [Kind::Promised, Kind::Connected, Kind::Approved]);
    }
}

/// Two agents with one ticket: one of them is asked about, and she is asked once.
pub fn a_ticket_has_one_agent(place: &dyn Place) {
    let stage = Stage::set(place);
    for _ in 0..ROUNDS {
        let (ticket, proffer) = stage.terms(TRADE);
        let agents: Vec<_> = (0..CALLERS).map(|_| stage.stranger()).collect();
        let said = race(CALLERS, |caller| stage.commit(caller, &agents[caller], &ticket, &proffer));
        assert_eq!((count(&said, "waits"), count(&said, "lost")), (1, CALLERS - 1));
        let winner = said.iter().position(|said| said.word() == "waits").unwrap();
        let pending = wait(stage.any(0).pending(&stage.alice, NOW)).unwrap();
        let asked: Vec<_> = pending.iter().filter(|waiting| waiting.family == proffer.family).collect();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].commitment.handle, agents[winner].handle());
    }
}

/// A spent ticket stays spent, an expired one is none, and an open one says whose it is.
pub fn spent_and_expired_tickets_are_dead(place: &dyn Place) {
    let stage = Stage::set(place);
    let attempt = stage.attempt(TRADE);
    assert!(matches!(stage.open(0, &attempt, Beat::Present, attempt.expires), Said::Lost), "expired, sealed");
    let (first, proffer) = stage.open(0, &attempt, Beat::Present, NOW).terms();
    assert!(matches!(stage.open(1, &attempt, Beat::Present, NOW), Said::Lost), "opened twice");

    let peek = wait(stage.any(1).peek(Digest::of(&first), NOW)).unwrap().unwrap();
    assert_eq!((peek.owner, peek.due, peek.cnf), (stage.alice.clone(), NOW, None));
    let end = NOW.plus(STEP_SECONDS);
    assert_eq!(wait(stage.any(1).peek(Digest::of(&first), end)).unwrap(), None);
    assert!(matches!(stage.advance(0, &first, Beat::Present, end), Said::Lost), "expired");

    let agent = stage.stranger();
    let second = stage.commit(0, &agent, &first, &proffer).waits();
    assert!(matches!(stage.commit(1, &agent, &first, &proffer), Said::Lost), "spent");
    let peek = wait(stage.any(1).peek(Digest::of(&second), NOW)).unwrap().unwrap();
    assert_eq!((peek.due, peek.cnf), (NOW.plus(5), Some(agent.jwk())));
    assert_eq!(wait(stage.any(0).peek(Digest::of(&first), NOW)).unwrap(), None);
    assert!(matches!(stage.poll(0, "never issued"), Said::Lost));
}

/// A beat that makes no sense leaves the ticket as good as it was, and no trace.
pub fn a_senseless_beat_spends_nothing(place: &dyn Place) {
    let stage = Stage::set(place);
    let rows = stage.rows(&stage.alice);
    let attempt = stage.attempt(TRADE);
    let senseless = stage.open(0, &attempt, Beat::Decline, NOW);
    assert!(matches!(senseless, Said::Refused(TokenError::InvalidRequest)));
    assert_eq!(stage.rows(&stage.alice), rows);

    let (ticket, proffer) = stage.open(1, &attempt, Beat::Present, NOW).terms();
    let ticket = stage.commit(1, &stage.stranger(), &ticket, &proffer).waits();
    let rows = stage.rows(&stage.alice);
    let senseless = stage.advance(0, &ticket, Beat::Decline, NOW);
    assert!(matches!(senseless, Said::Refused(TokenError::InvalidRequest)));
    assert_eq!(stage.rows(&stage.alice), rows);
    stage.poll(0, &ticket).waits();
}

/// What ends a negotiation is recorded, and its ticket is dead.
pub fn a_closed_negotiation_stays_closed(place: &dyn Place) {
    let stage = Stage::set(place);
    let (ticket, proffer) = stage.terms(TRADE);
    let declined = stage.advance(0, &ticket, Beat::Decline, NOW);
    assert!(matches!(declined, Said::Refused(TokenError::RequestDenied)));
    assert!(matches!(stage.poll(0, &ticket), Said::Lost));
    let rows = stage.rows(&stage.alice);
    let row = &rows.last().unwrap().record;
    assert_eq!((row.kind, &row.handle, row.family.as_ref()), (Kind::Refused, &None, Some(&proffer.family)));
}

/// A waiting request lapses at its deadline: she cannot answer it any more, and the agent hears so.
pub fn a_request_lapses_at_its_deadline(place: &dyn Place) {
    let stage = Stage::set(place);
    let (family, said) = stage.ask(&stage.stranger(), TRADE);
    let ticket = said.waits();
    let late = NOW.plus(PENDING_SECONDS);
    let polled = stage.advance(0, &ticket, Beat::Present, late.plus(-1)).waits();
    assert_eq!(wait(stage.any(0).pending(&stage.alice, late.plus(-1))).unwrap().len(), 1);
    assert_eq!([late.plus(-1), late].map(|at| wait(stage.any(1).waiting(at)).unwrap()), [1, 0]);
    assert!(wait(stage.any(0).pending(&stage.alice, late)).unwrap().is_empty());
    let answer = wait(stage.any(0).decide(
        &stage.alice,
        &family,
        &Answer::Approved.into(),
        &super::stage::herself(),
        late,
    ));
    assert_eq!(answer.unwrap(), None);
    let told = stage.advance(0, &polled, Beat::Present, late);
    assert!(matches!(told, Said::Refused(TokenError::RequestDenied)));
    assert!(wait(stage.any(0).connections(&stage.alice)).unwrap().is_empty());
}

/// Uncommitted negotiations are capped per owner; committed and expired ones do not count, other owners are not hit.
pub fn uncommitted_negotiations_are_capped(place: &dyn Place) {
    const CAP: usize = 2_000;
    let stage = Stage::set(place);
    stage.ask(&stage.stranger(), TRADE).1.waits();
    let share = CAP / CALLERS + 1;
    let said: Vec<Said> = race(CALLERS, |caller| {
        let one = |_| stage.open(caller, &stage.attempt(LOOK), Beat::Present, NOW);
        (0..share).map(one).collect::<Vec<_>>()
    })
    .into_iter()
    .flatten()
    .collect();
    assert_eq!((count(&said, "terms"), count(&said, "full")), (CAP, share * CALLERS - CAP));

    let refused = stage.attempt(LOOK);
    assert!(matches!(stage.open(0, &refused, Beat::Present, NOW), Said::Full));
    stage.open(0, &stage.attempt(BOBS), Beat::Present, NOW).terms();
    let (ticket, proffer) = said.into_iter().find(|said| said.word() == "terms").unwrap().terms();
    stage.commit(0, &stage.stranger(), &ticket, &proffer).waits();
    stage.open(0, &refused, Beat::Present, NOW).terms();
    assert!(matches!(stage.open(0, &stage.attempt(LOOK), Beat::Present, NOW), Said::Full));

    let later = NOW.plus(STEP_SECONDS);
    let mut attempt = stage.attempt(LOOK);
    attempt.expires = later.plus(STEP_SECONDS);
    stage.open(0, &attempt, Beat::Present, later).terms();
}
