//! Whose a session is, and what it remembers.

use super::*;
use sayso_protocol::SigningKey;

fn key(seed: u8) -> VerifyingKey {
    SigningKey::from_seed(&[seed; 32]).unwrap().verifying().clone()
}

fn id(text: &str) -> RequestId {
    text.parse().unwrap()
}

fn has_come(closing: &Closing) -> bool {
    let now = *closing.closings.borrow();
    now.is_none() || now != closing.since
}

// D-13: the first forwarded protected call binds the session.
#[test]
fn a_session_is_the_key_of_the_first_call_forwarded_in_it() {
    let session = Arc::new(Session::default());
    let before = session.closing();
    let first = session.tie(&key(1), "one").ok().unwrap();
    assert!(session.tie(&key(2), "two").is_err(), "another key's call under way");
    assert!(!session.is_bound() && session.last_token().is_none());
    drop(first);
    let second = session.tie(&key(2), "two").ok().unwrap();
    let again = session.tie(&key(2), "three").ok().unwrap();
    assert!(!has_come(&before));
    let own = second.keep();
    assert!(has_come(&before), "what was open is closed");
    assert!(!has_come(&own));
    drop(again);
    assert!(session.is_bound(), "a call that came to nothing unties nobody else's");
    assert!(session.last_token().unwrap() == Shown("two".into()));
    assert!(session.tie(&key(1), "one").is_err());
    let next = session.tie(&key(2), "four").ok().unwrap().keep();
    assert!(session.last_token().unwrap() == Shown("four".into()));
    assert!(!has_come(&own) && !has_come(&next), "only the first closes");
    session.end();
    assert!(has_come(&own) && has_come(&next) && has_come(&session.closing()));
}

// D-13: a response answers an id sent in that session, once.
#[test]
fn an_answer_fits_one_question_once() {
    let session = Session::default();
    session.ask(&id(r#""a/\u0062""#));
    session.ask(&id("7"));
    for foreign in ["8", r#""7""#, r#""a""#] {
        assert!(!session.answer(&id(foreign)), "{foreign}");
    }
    assert!(session.answer(&id(r#""a/b""#)) && session.answer(&id("7")));
    // A stream that is told again asks nothing anew.
    session.ask(&id("7"));
    assert!(!session.answer(&id("7")) && !session.answer(&id(r#""a\/b""#)));
}

#[test]
fn a_memory_is_bounded_and_forgets_the_oldest() {
    let session = Session::default();
    for nth in 0..10_000_u64 {
        session.ask(&nth.into());
        session.tell(nth.to_string().as_bytes());
    }
    assert!(!session.answer(&0.into()) && session.answer(&9_999.into()));
    assert!(!session.has_told(b"0") && session.has_told(b"9999"));
    let state = session.state();
    assert_eq!((state.asked.len(), state.told.len()), (ASKED, TOLD));
}

#[test]
fn what_is_spent_or_over_closes_nothing_and_all_else_that_is_dead_does() {
    for (reason, closes) in [
        ("already_consumed", false),
        ("expired", false),
        ("connection_revoked", true),
        ("revoked", true),
        ("organization_revoked", true),
        ("unknown_token", true),
        ("invalid_signature", true),
        ("something_new", true),
    ] {
        assert_eq!(ends(&Introspection::Dead(reason.to_owned().into())), closes, "{reason}");
    }
    assert!(!ends(&Introspection::Live(Box::new(crate::scripted::reusable()))));
}

#[test]
fn ids_are_long_and_each_its_own() {
    let ids: Vec<String> = (0..64).map(|_| Session::draw_id().unwrap()).collect();
    assert!(ids.iter().all(|id| id.len() == 43));
    assert!(ids.iter().enumerate().all(|(at, id)| !ids[..at].contains(id)));
}
