//! Tickets and forms at the token endpoint: unknown, spent, foreign and expired ones, hostile forms, races.
//!
//! A ticket that does not resolve is answered alike whatever it is, and nothing is stored for it.

use crate::house::{Agent, House};
use crate::wire::{FORM, JSON, Sent};
use futures::future::join_all;
use sayso_protocol::payload::negotiation::UMA_TICKET;

// BASE-03, CORE-09, CORE-110
#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_from_elsewhere_is_no_ticket() {
    let (here, there) = (House::new().await, House::new().await);
    let agent = Agent::new();
    let foreign = agent.reach(&there, &there.alice, "get_positions").await.ticket;
    let mut tampered = agent.reach(&here, &here.alice, "get_positions").await.ticket;
    let last = if tampered.ends_with('A') { "B" } else { "A" };
    tampered.replace_range(tampered.len() - 1.., last);
    let before = here.dump();
    let odd = ["x", "tkt1.", "tkt1.x.y", "..", "\u{e9}"].map(str::to_owned);
    let long = "A".repeat(5000);
    for ticket in odd.into_iter().chain([foreign, tampered, long, "A".repeat(43)]) {
        let sent = Sent::new("POST", "/token").form(&[("grant_type", UMA_TICKET), ("ticket", &ticket)]);
        assert_eq!(here.send(sent).await.refusal(), (400, "invalid_grant".into()), "{ticket:.20}");
    }
    assert_eq!(here.dump(), before);
}

// BASE-03, CORE-33
#[tokio::test(flavor = "multi_thread")]
async fn every_ticket_is_good_once() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talk = agent.reach(&house, &house.alice, "get_positions").await;
    let mut spent = vec![talk.ticket.clone()];
    talk.present(&[]).await;
    spent.push(talk.ticket.clone());
    talk.commit().await;
    spent.push(talk.ticket.clone());
    talk.present(&[]).await;
    let before = house.dump();
    for ticket in &spent {
        let answer = house.send(talk.request(ticket, &[])).await;
        assert_eq!(answer.refusal(), (400, "invalid_grant".into()));
    }
    assert_eq!(house.dump(), before);
    assert_eq!(talk.present(&[]).await.json()["error"], "request_submitted");
}

// BASE-03, D-17: five minutes between steps; what waits for her waits for days.
#[tokio::test(flavor = "multi_thread")]
async fn tickets_expire() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut sealed = agent.reach(&house, &house.alice, "get_positions").await;
    let mut proffered = agent.negotiate(&house, &house.alice, "get_positions").await;
    let mut waiting = agent.negotiate(&house, &house.alice, "get_transactions").await;
    waiting.commit().await;
    house.pass(301);
    assert_eq!(sealed.present(&[]).await.refusal(), (400, "invalid_grant".into()));
    assert_eq!(proffered.present(&[]).await.refusal(), (400, "invalid_grant".into()));
    assert_eq!(waiting.present(&[]).await.json()["error"], "request_submitted");
    house.pass(7 * 86_400);
    assert_eq!(waiting.present(&[]).await.refusal(), (403, "request_denied".into()));
}

// CORE-03, CORE-36
#[tokio::test(flavor = "multi_thread")]
async fn other_grants_are_not_served() {
    let house = House::new().await;
    for grant in ["authorization_code", "password", "urn:ietf:params:oauth:grant-type:jwt-bearer"] {
        let sent = Sent::new("POST", "/token").form(&[("grant_type", grant), ("ticket", "x")]);
        assert_eq!(house.send(sent).await.refusal(), (400, "unsupported_grant_type".into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_forms_are_refused_before_anything_is_looked_up() {
    let house = House::new().await;
    let agent = Agent::new();
    let talk = agent.reach(&house, &house.alice, "get_positions").await;
    let good = talk.request(&talk.ticket, &[]);
    let body = |bytes: Vec<u8>| Sent { body: bytes, ..good.clone() };
    let text = String::from_utf8(good.body.clone()).unwrap();
    let before = house.dump();
    for (sent, status, code) in [
        (body(vec![]), 400, "invalid_request"),
        (body(b"grant_type=".to_vec()), 400, "invalid_request"),
        (body(format!("{text}&ticket=x").into_bytes()), 400, "invalid_request"),
        (body(format!("{text}&decline=maybe").into_bytes()), 400, "invalid_request"),
        (body(format!("grant_type={UMA_TICKET}").into_bytes()), 400, "invalid_request"),
        (body([text.as_bytes(), b"&x=\xff"].concat()), 400, "invalid_request"),
        (body(vec![b'a'; 200_000]), 413, "request_body_too_large"),
        (good.clone().without(FORM.0).with(JSON.0, JSON.1), 415, "unsupported_media_type"),
        (good.clone().without(FORM.0), 415, "unsupported_media_type"),
        (good.clone().with(FORM.0, FORM.1), 415, "unsupported_media_type"),
        (good.clone().with("content-encoding", "gzip"), 415, "unsupported_media_type"),
        (good.clone().with("origin", "https://evil.example"), 403, "invalid_origin"),
        (good.clone().with("origin", "null"), 403, "invalid_origin"),
        (good.clone().with("host", "evil.example"), 421, "misdirected_request"),
    ] {
        assert_eq!(house.send(sent).await.refusal(), (status, code.to_owned()));
    }
    assert_eq!(house.dump(), before);
    assert_eq!(house.send(good.with("origin", &house.issuer)).await.json()["error"], "need_info");
}

// CORE-94
#[tokio::test(flavor = "multi_thread")]
async fn of_thirty_two_presentations_one_wins() {
    let house = House::new().await;
    let agent = Agent::new();
    let mut talk = agent.reach(&house, &house.alice, "get_positions").await;
    for _ in 0..2 {
        let race = (0..32).map(|_| house.send(talk.request(&talk.ticket, &[])));
        let answers = join_all(race).await;
        let won: Vec<_> = answers.iter().filter(|answer| answer.status == 403).collect();
        assert_eq!(won.len(), 1);
        let lost = answers.iter().filter(|answer| answer.status == 400);
        assert!(lost.map(|answer| answer.refusal().1).all(|code| code == "invalid_grant"));
        let won = won[0].clone();
        talk.keep(&won);
    }
    // From an approval exactly one grant.
    talk.commit().await;
    house.decide(&house.alice, &talk.family(), "approved").await.ok();
    let answers = join_all((0..32).map(|_| house.send(talk.request(&talk.ticket, &[])))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
    assert_eq!(house.dump().of("grants"), 1);
}

// D-23: 429 past the cap, with a sentence that says policy was not asked (CORE-41).
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_told_to_wait() {
    let house = House::new().await;
    let agent = Agent::new();
    let open = || async {
        let mut talk = agent.reach(&house, &house.alice, "get_positions").await;
        talk.present(&[]).await
    };
    for _ in 0..20 {
        let answers = join_all((0..100).map(|_| open())).await;
        assert!(answers.iter().all(|answer| answer.json()["error"] == "need_info"));
    }
    let before = house.dump();
    let answer = open().await;
    assert_eq!(answer.refusal(), (429, "request_denied".into()));
    assert_eq!(answer.header("retry-after"), Some("5"));
    assert_eq!(house.dump(), before);
    // Another owner's lane is her own.
    let mut talk = agent.reach(&house, &house.bob, "get_positions").await;
    assert_eq!(talk.present(&[]).await.json()["error"], "need_info");
}
