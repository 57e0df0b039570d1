//! Her decisions: once, never lost, and never about what no longer waits.

use super::Place;
use super::race::{CALLERS, PAIRS, ROUNDS, both, race, wait};
use super::stage::{LOOK, NOW, Said, Stage, TRADE, herself};
use crate::connection::Identity;
use crate::decision::{Answer, Ruling};
use crate::ledger::{Author, Kind};
use crate::negotiation::Ask;
use crate::step::Beat;
use sayso_protocol::NegotiationId;
use sayso_protocol::payload::negotiation::TokenError;
use sayso_protocol::payload::rpt::MAX_LIFE;

/// Racing answers, half of them no: one is hers, and what follows is that one.
pub fn she_decides_once(place: &dyn Place) {
    let stage = Stage::set(place);
    for _ in 0..ROUNDS {
        let (family, said) = stage.ask(&stage.stranger(), TRADE);
        let ticket = said.waits();
        let answer = |caller| if caller % 4 < 2 { Answer::Approved } else { Answer::Denied };
        let said = race(CALLERS, |caller| stage.decide(caller, &family, answer(caller)));
        let winners: Vec<usize> = (0..CALLERS).filter(|caller| said[*caller].is_some()).collect();
        assert_eq!(winners.len(), 1);
        let claimed = stage.poll(0, &ticket);
        let kinds = stage.kinds(&family);
        match answer(winners[0]) {
            Answer::Approved => {
                claimed.granted();
                assert_eq!(kinds, [Kind::Promised, Kind::Connected, Kind::Approved]);
            }
            Answer::Denied => {
                assert!(matches!(claimed, Said::Refused(TokenError::RequestDenied)));
                assert_eq!(kinds, [Kind::Promised, Kind::Denied]);
            }
        }
        assert_eq!(stage.decide(1, &family, Answer::Approved), None);
    }
}

/// An answer to an agreement that is not the one that waits is no answer.
pub fn an_answer_is_to_what_she_was_shown(place: &dyn Place) {
    let stage = Stage::set(place);
    let (first, _) = stage.ask(&stage.stranger(), TRADE);
    let (second, _) = stage.ask(&stage.stranger(), TRADE);
    let waiting = wait(stage.any(0).pending(&stage.alice, NOW)).unwrap();
    let shown = |family: &NegotiationId| {
        let found = waiting.iter().find(|waiting| waiting.family == *family);
        found.map(|waiting| waiting.commitment.agreement.clone())
    };
    let rows = stage.rows(&stage.alice);
    let decide = |shown| {
        let ruling = Ruling { answer: Answer::Approved, shown };
        wait(stage.any(1).decide(&stage.alice, &first, &ruling, &herself(), NOW)).unwrap()
    };
    assert_eq!(decide(shown(&second)), None);
    assert_eq!(stage.rows(&stage.alice), rows);
    assert_eq!(decide(shown(&first)), Some(()));
    assert_eq!(decide(shown(&first)), None);
}

/// A poll at the moment of her decision does not lose it.
pub fn a_poll_never_loses_a_decision(place: &dyn Place) {
    let stage = Stage::set(place);
    for round in 0..PAIRS {
        let (family, said) = stage.ask(&stage.stranger(), TRADE);
        let ticket = said.waits();
        let yes = round % 2 == 0;
        let answer = if yes { Answer::Approved } else { Answer::Denied };
        let (polled, decided) = both(|| stage.poll(0, &ticket), || stage.decide(1, &family, answer));
        assert_eq!(decided, Some(()));
        let heard = match polled {
            Said::Waits(next) => stage.poll(0, &next),
            heard => heard,
        };
        assert_eq!(heard.word(), if yes { "granted" } else { "refused" });
    }
}

/// First contact is hers to allow, whatever the unit says; her yes admits the agent and answers its request.
pub fn an_approval_admits_a_stranger(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.stranger();
    let (family, said) = stage.ask(&agent, LOOK);
    let ticket = said.waits();
    let waiting = wait(stage.any(1).pending(&stage.alice, NOW)).unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!(
        (&waiting[0].family, waiting[0].ask, &waiting[0].connection),
        (&family, Ask::Connection, &None)
    );
    assert_eq!(waiting[0].resource, Stage::resource(LOOK));
    assert_eq!(stage.decide(0, &family, Answer::Approved), Some(()));
    stage.poll(0, &ticket).granted();

    let connections = wait(stage.any(1).connections(&stage.alice)).unwrap();
    let [connection] = &connections[..] else { panic!("one connection") };
    assert_eq!((&connection.handle, connection.identity), (&agent.handle(), Identity::Pseudonymous));
    assert_eq!((connection.first_seen, connection.last_access, connection.revocations), (NOW, None, 0));
    let row = stage.rows(&stage.alice).pop().unwrap();
    assert_eq!((row.ts, row.record.kind, row.record.author), (NOW, Kind::Approved, herself()));

    // From now on she is asked about acts only.
    stage.reusable(&agent);
    let (family, said) = stage.ask(&agent, TRADE);
    said.waits();
    let waiting = wait(stage.any(0).pending(&stage.alice, NOW)).unwrap();
    assert_eq!((&waiting[0].family, waiting[0].ask), (&family, Ask::Operation));
    assert!(waiting[0].connection.as_ref().unwrap().is_active());
}

/// A denial admits nobody.
pub fn a_denial_admits_nobody(place: &dyn Place) {
    let stage = Stage::set(place);
    let (family, said) = stage.ask(&stage.stranger(), LOOK);
    let ticket = said.waits();
    assert_eq!(stage.decide(0, &family, Answer::Denied), Some(()));
    assert!(wait(stage.any(0).connections(&stage.alice)).unwrap().is_empty());
    assert!(matches!(stage.poll(0, &ticket), Said::Refused(TokenError::RequestDenied)));
    assert!(matches!(stage.poll(0, &ticket), Said::Lost));
}

/// An approval nobody claimed in time is worth nothing.
pub fn an_approval_lapses(place: &dyn Place) {
    let stage = Stage::set(place);
    for (late, word) in [(MAX_LIFE - 1, "granted"), (MAX_LIFE, "refused")] {
        let (_, ticket) = stage.approved(&stage.stranger(), TRADE);
        let claimed = stage.advance(0, &ticket, Beat::Present, NOW.plus(late));
        assert_eq!(claimed.word(), word);
    }
}

/// An approval is the agent's who asked: another agreement shown with its ticket changes nothing.
pub fn an_approval_cannot_be_borrowed(place: &dyn Place) {
    let stage = Stage::set(place);
    let (holder, thief) = (stage.admitted(), stage.admitted());
    let (ticket, proffer) = stage.terms(TRADE);
    let agreed = thief.agree(&proffer, NOW);
    let ticket = stage.commit(0, &holder, &ticket, &proffer).waits();
    assert_eq!(stage.decide(0, &proffer.family, Answer::Approved), Some(()));
    let token = stage.advance(0, &ticket, agreed, NOW).granted();
    let crate::store::Found::Live(grant, _) = stage.found(0, &token) else { panic!("live") };
    assert_eq!(grant.cnf.jwk, holder.jwk());
}

/// Setting up and her policy are other authors than she is.
pub fn rows_name_their_authors(place: &dyn Place) {
    let stage = Stage::set(place);
    stage.admitted();
    let rows = stage.rows(&stage.alice);
    let authors: Vec<_> = rows.iter().map(|row| (row.record.kind, row.record.author.clone())).collect();
    assert_eq!(
        authors,
        [
            (Kind::Approved, Author::Setup),
            (Kind::Approved, Author::Setup),
            (Kind::Promised, Author::Agent),
            (Kind::Connected, herself()),
            (Kind::Approved, herself()),
        ]
    );
}
