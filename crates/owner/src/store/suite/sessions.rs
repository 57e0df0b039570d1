//! Signing in: a link opens one session whoever races for it, a session ends when it should, and neither is stored in a
//! form anybody could present.

use super::Place;
use super::race::{CALLERS, PAIRS, ROUNDS, both, race, wait};
use super::stage::{NOW, Stage, herself};
use crate::ledger::{Author, Kind, Row};
use crate::session::{IDLE_SECONDS, LINK_SECONDS, SESSION_SECONDS, Session};
use crate::store::Digest;
use sayso_protocol::{OwnerName, Timestamp};

const DAY: i64 = 24 * 3600;

fn create(stage: &Stage, owner: &OwnerName, link: &str) {
    let expires = NOW.plus(LINK_SECONDS);
    wait(stage.any(0).create_link(Digest::of(link), owner, &herself(), expires)).unwrap();
}

fn redeem(stage: &Stage, caller: usize, link: &str, session: &str, now: Timestamp) -> Option<Session> {
    let name = session.to_uppercase();
    wait(stage.any(caller).redeem_link(Digest::of(link), Digest::of(session), &name, now)).unwrap()
}

fn session(stage: &Stage, caller: usize, session: &str, now: Timestamp) -> Option<Session> {
    wait(stage.any(caller).session(Digest::of(session), now)).unwrap()
}

fn signed_in(stage: &Stage, owner: &OwnerName) -> Vec<Row> {
    let rows = stage.rows(owner).into_iter();
    rows.filter(|row| row.record.kind == Kind::Connected && row.record.handle.is_none()).collect()
}

/// Racing redemptions of one link: one session, one row that says whose, and it is the owner's the link was made for.
pub fn a_link_opens_one_session(place: &dyn Place) {
    let stage = Stage::set(place);
    for round in 0..ROUNDS {
        let link = format!("link {round}");
        create(&stage, &stage.bob, &link);
        let name = |caller| format!("session {round} {caller}");
        let opened = race(CALLERS, |caller| redeem(&stage, caller, &link, &name(caller), NOW));
        let winners: Vec<usize> = (0..CALLERS).filter(|caller| opened[*caller].is_some()).collect();
        assert_eq!(winners.len(), 1);
        let won = opened[winners[0]].clone().unwrap();
        assert_eq!((&won.owner, &won.link_by), (&stage.bob, &herself()));
        for caller in 0..CALLERS {
            let live = session(&stage, caller + 1, &name(caller), NOW);
            assert_eq!(live, (caller == winners[0]).then(|| won.clone()));
        }
        assert_eq!(redeem(&stage, 0, &link, "late", NOW), None);
        let rows = signed_in(&stage, &stage.bob);
        assert_eq!(rows.len(), round + 1);
        assert_eq!(rows[round].record, won.record());
    }
    assert_eq!(signed_in(&stage, &stage.alice), []);
    assert_eq!(redeem(&stage, 0, "nobody's", "session", NOW), None);
}

/// A link is good until it expires, and not at that moment.
pub fn links_expire(place: &dyn Place) {
    let stage = Stage::set(place);
    create(&stage, &stage.alice, "link");
    let end = NOW.plus(LINK_SECONDS);
    assert_eq!(redeem(&stage, 0, "link", "late", end), None);
    assert_eq!(session(&stage, 0, "late", end), None);
    assert_eq!(signed_in(&stage, &stage.alice), []);
    assert!(redeem(&stage, 0, "link", "in time", end.plus(-1)).is_some());
    create(&stage, &stage.alice, "forgotten");
    wait(stage.any(0).prune(end.plus(DAY))).unwrap();
    assert_eq!(redeem(&stage, 0, "forgotten", "x", NOW), None, "what ended a day ago is gone");
}

/// Use keeps a session alive, up to its end; without use it ends sooner.
pub fn sessions_end(place: &dyn Place) {
    let stage = Stage::set(place);
    for name in ["used", "unused"] {
        create(&stage, &stage.alice, name);
        redeem(&stage, 0, name, name, NOW).unwrap();
    }
    let mut now = NOW;
    while now.since(NOW) < SESSION_SECONDS - IDLE_SECONDS {
        now = now.plus(IDLE_SECONDS - 1);
        assert!(session(&stage, 1, "used", now).is_some(), "after {} s", now.since(NOW));
    }
    assert_eq!(session(&stage, 0, "unused", NOW.plus(IDLE_SECONDS)), None);
    assert!(session(&stage, 0, "used", NOW.plus(SESSION_SECONDS - 1)).is_some());
    assert_eq!(session(&stage, 0, "used", NOW.plus(SESSION_SECONDS)), None);
    wait(stage.any(0).prune(NOW.plus(SESSION_SECONDS + DAY))).unwrap();
    assert_eq!(session(&stage, 0, "used", NOW.plus(IDLE_SECONDS)), None, "what ended a day ago is gone");
}

/// Ending a session while it is used ends it; nothing of another session does.
pub fn a_session_that_ended_stays_so(place: &dyn Place) {
    let stage = Stage::set(place);
    create(&stage, &stage.alice, "other");
    redeem(&stage, 0, "other", "other", NOW).unwrap();
    for round in 0..PAIRS {
        let name = format!("session {round}");
        create(&stage, &stage.alice, &name);
        redeem(&stage, 0, &name, &name, NOW).unwrap();
        // Late enough that its use is noted.
        let later = NOW.plus(IDLE_SECONDS - 1);
        let end = || wait(stage.any(1).end_session(Digest::of(&name))).unwrap();
        both(|| session(&stage, 0, &name, later), end);
        assert_eq!(session(&stage, 0, &name, later), None);
        assert_eq!(session(&stage, 1, &name, later), None);
        end();
    }
    assert!(session(&stage, 0, "other", NOW).is_some());
}

/// After a restart a spent link is spent and a session lives; the secrets of both are nowhere.
pub fn sessions_survive_a_restart(place: &dyn Place) {
    let stage = Stage::set(place);
    for link in ["a-link-of-hers", "another-link-of-hers"] {
        create(&stage, &stage.alice, link);
    }
    let opened = redeem(&stage, 0, "a-link-of-hers", "a-session-of-hers", NOW);
    let stage = stage.again(place);
    assert_eq!(redeem(&stage, 0, "a-link-of-hers", "again", NOW), None);
    assert_eq!(session(&stage, 1, "a-session-of-hers", NOW), opened);
    assert!(matches!(opened.map(|session| session.author()), Some(Author::Browser(_))));
    drop(stage);
    let contents = place.contents();
    let holds = |text: &str| contents.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("A-SESSION-OF-HERS"), "the contents are those of the store");
    assert!(!holds("another-link-of-hers") && !holds("a-link-of-hers") && !holds("a-session-of-hers"));
}
