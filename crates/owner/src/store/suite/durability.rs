//! What was answered is kept: over a restart, and for a day after it ended.

use super::Place;
use super::grants::{refused, spent};
use super::race::{CALLERS, race, wait};
use super::stage::{LOOK, NOW, Said, Stage, TRADE, herself};
use crate::decision::Answer;
use crate::ledger::{Author, Kind, Record};
use crate::negotiation::STEP_SECONDS;
use crate::step::Beat;
use crate::store::{DeviceKey, Digest, Found};
use sayso_protocol::Timestamp;
use sayso_protocol::payload::protection::Inactive;
use sayso_protocol::payload::rpt::MAX_LIFE;
use sayso_protocol::ticket::Attempt;
use serde_json::json;

const DAY: i64 = 24 * 3600;

/// No ticket, token or PAT is stored in a form anybody could present.
pub fn only_digests_are_kept(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    let (first, proffer) = stage.terms(TRADE);
    let second = stage.commit(0, &agent, &first, &proffer).waits();
    let third = stage.poll(0, &second).waits();
    assert_eq!(stage.decide(0, &proffer.family, Answer::Approved), Some(()));
    let token = stage.poll(0, &third).granted();
    let (_, open) = stage.ask(&agent, TRADE);
    wait(stage.any(0).grant_pat(Digest::of("a-pat-of-theirs"), &stage.alice, &stage.server, NOW.plus(600)))
        .unwrap();
    assert_eq!(stage.consume(0, &token, "try"), spent());
    let signature = token.rsplit('.').next().unwrap().to_owned();
    drop(stage);

    let contents = place.contents();
    let holds = |text: &str| contents.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds(agent.handle().as_str()), "the contents are those of the store");
    for secret in [first, second, third, open.waits(), token, signature, "a-pat-of-theirs".into()] {
        assert!(!holds(&secret));
    }
}

/// Decisions, spends, endings, tickets, connections, policy and record survive closing and opening.
pub fn a_restart_keeps_everything(place: &dyn Place) {
    let stage = Stage::set(place);
    let (agent, ended) = (stage.admitted(), stage.admitted());
    let (_, used) = stage.single_use(&agent);
    let (_, unused) = stage.single_use(&agent);
    let (_, dead) = stage.reusable(&ended);
    let (_, unclaimed) = stage.approved(&agent, TRADE);
    let (waiting, said) = stage.ask(&agent, TRADE);
    let ticket = said.waits();
    let opened = stage.attempt(LOOK);
    let (open, proffer) = stage.open(0, &opened, Beat::Present, NOW).terms();
    let jwk = agent.jwk();
    let thumbprint = jwk.key().unwrap().thumbprint();
    let key =
        DeviceKey { owner: stage.bob.clone(), jwk, thumbprint: thumbprint.clone(), label: "phone".into() };
    wait(stage.any(0).enrol(&key, &Author::Setup, NOW)).unwrap();
    wait(stage.any(0).grant_pat(Digest::of("pat"), &stage.alice, &stage.server, NOW.plus(600))).unwrap();
    assert!(wait(stage.any(0).remember(Digest::of("signature"), NOW.plus(121), NOW)).unwrap());
    wait(stage.any(1).revoke(&stage.alice, &ended.handle(), &herself(), NOW)).unwrap().unwrap();
    assert_eq!(stage.consume(0, &used, "try"), spent());
    let kept = |stage: &Stage| {
        let store = stage.any(0);
        let alice = &stage.alice;
        (
            stage.rows(alice),
            wait(store.connections(alice)).unwrap(),
            wait(store.pending(alice, NOW)).unwrap(),
            (wait(store.units(alice)).unwrap(), wait(store.resources(alice)).unwrap()),
            (wait(store.owners()).unwrap(), wait(store.resource_servers(alice)).unwrap()),
            (wait(store.pat(Digest::of("pat"), NOW)).unwrap(), wait(store.device(&thumbprint)).unwrap()),
            (store.epoch(), wait(store.roster()).unwrap()),
        )
    };
    let before = kept(&stage);

    let stage = stage.again(place);
    assert_eq!(kept(&stage), before);
    assert_eq!(stage.consume(1, &used, "another"), refused("already_consumed"));
    assert_eq!(stage.consume(1, &used, "try"), spent());
    assert_eq!(stage.found(0, &dead), Found::Dead(Inactive::ConnectionRevoked));
    assert_eq!(stage.consume(0, &unused, "try"), spent());
    assert!(matches!(stage.open(0, &opened, Beat::Present, NOW), Said::Lost));
    assert!(!wait(stage.any(0).remember(Digest::of("signature"), NOW.plus(121), NOW)).unwrap());
    stage.poll(0, &unclaimed).granted();
    assert_eq!(stage.decide(0, &waiting, Answer::Approved), Some(()));
    stage.poll(1, &ticket).granted();
    stage.commit(0, &agent, &open, &proffer).granted();
    assert!(matches!(stage.poll(0, &unclaimed), Said::Lost));
}

/// Racing rows of both owners: each record is whole and without gaps.
pub fn records_have_no_gaps(place: &dyn Place) {
    let stage = Stage::set(place);
    let before = [stage.rows(&stage.alice).len(), stage.rows(&stage.bob).len()];
    race(CALLERS, |caller| {
        let owner = if caller % 4 < 2 { &stage.alice } else { &stage.bob };
        let entry = json!({ "caller": caller });
        let record =
            Record { kind: Kind::Refused, family: None, handle: None, author: Author::Policy, entry };
        for _ in 0..4 {
            wait(stage.any(caller).append(owner, &record, NOW)).unwrap();
        }
    });
    for (owner, before) in [&stage.alice, &stage.bob].into_iter().zip(before) {
        let rows = stage.rows(owner);
        assert_eq!(rows.len(), before + 2 * CALLERS);
        let callers = rows.iter().filter_map(|row| row.record.entry["caller"].as_u64());
        assert_eq!(callers.count(), 2 * CALLERS);
        let page = wait(stage.any(0).ledger(owner, None, 5, 3)).unwrap();
        assert_eq!(page.iter().map(|row| row.seq).collect::<Vec<_>>(), [6, 7, 8]);
    }
    let unheard = Record::new(Kind::Refused, &"f".parse().unwrap(), Author::Policy, json!({}));
    assert!(wait(stage.any(0).append(&"nobody".parse().unwrap(), &unheard, NOW)).is_err());
}

/// What ended is known for a day, and then forgotten; what lives and what she may want to read stays.
pub fn what_ended_is_kept_for_a_day(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    let (_, used) = stage.single_use(&agent);
    assert_eq!(stage.consume(0, &used, "try"), spent());
    let attempt = stage.attempt(LOOK);
    let (_, proffer) = stage.open(0, &attempt, Beat::Present, NOW).terms();
    let (waiting, _) = stage.ask(&agent, TRADE);
    let until = NOW.plus(121);
    assert!(wait(stage.any(0).remember(Digest::of("signature"), until, NOW)).unwrap());
    let rows = stage.rows(&stage.alice);
    let prune = |now: Timestamp| wait(stage.any(1).prune(now)).unwrap();
    let found = |now: Timestamp| {
        wait(stage.any(0).introspect(&stage.alice, &stage.server, Digest::of(&used), now)).unwrap()
    };
    let seen = || !wait(stage.any(0).remember(Digest::of("signature"), until, NOW)).unwrap();
    // A ticket that were good for ever, to see whether its negotiation is still known.
    let endless = Attempt { expires: NOW.plus(10 * DAY), ..attempt };
    let reopened = |now| stage.open(0, &endless, Beat::Present, now);

    prune(until.plus(DAY - 1));
    assert!(seen());
    prune(until.plus(DAY));
    assert!(!seen());
    prune(NOW.plus(STEP_SECONDS + DAY - 1));
    assert!(matches!(reopened(NOW.plus(DAY)), Said::Lost), "a spent ticket is remembered");
    let end = NOW.plus(MAX_LIFE);
    prune(end.plus(DAY - 1));
    assert_eq!(found(end.plus(DAY - 1)), Found::Dead(Inactive::AlreadyConsumed));
    prune(end.plus(DAY));
    assert_eq!(found(end.plus(DAY)), Found::Unknown);
    let pending = wait(stage.any(0).pending(&stage.alice, NOW.plus(3 * DAY))).unwrap();
    assert_eq!(pending.iter().map(|waiting| &waiting.family).collect::<Vec<_>>(), [&waiting]);
    prune(NOW.plus(100 * DAY));
    assert_eq!(stage.rows(&stage.alice), rows);
    assert!(wait(stage.any(0).terms(&proffer.terms.template_id)).unwrap().is_some());
    assert_eq!(wait(stage.any(0).connections(&stage.alice)).unwrap().len(), 1);
}
