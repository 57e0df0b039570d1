//! One signature, one use.

use super::*;
use bytes::Bytes;
use http::HeaderMap;
use sayso_protocol::SigningKey;
use sayso_protocol::sig::{self, Body, Facts, Profile, SignOptions};

const NOW: Timestamp = Timestamp(1_000_000);

fn proof(seed: u8, created: Timestamp, nonce: &str) -> Proof {
    let key = SigningKey::from_seed(&[seed; 32]).unwrap();
    let body = Bytes::from_static(b"{}");
    let facts = |headers| Facts {
        method: "POST",
        scheme: "https",
        authority: "gw.example",
        path: "/mcp",
        query: None,
        headers,
        body: Body::Whole(&body),
    };
    let options = SignOptions { nonce: Some(nonce), ..SignOptions::default() };
    let none = HeaderMap::new();
    let signed = sig::sign(&facts(&none), &key, created, &options).unwrap();
    let mut headers = HeaderMap::new();
    signed.insert_into(&mut headers);
    let facts = facts(&headers);
    sig::read(&headers).unwrap().verify(&facts, key.verifying(), &Profile::default(), created).unwrap()
}

#[test]
fn a_signature_is_good_once() {
    let replay = Replay::new(NOW);
    let first = proof(1, NOW, "a");
    let claim = replay.claim(&first, NOW).unwrap();
    assert_eq!(replay.claim(&first, NOW).unwrap_err(), Spoiled::Replayed);
    assert!(replay.claim(&proof(1, NOW, "b"), NOW).is_ok());
    assert!(replay.claim(&proof(2, NOW, "a"), NOW).is_ok());
    replay.release(&claim);
    assert!(replay.claim(&first, NOW).is_ok());
    assert_eq!(replay.claim(&first, NOW).unwrap_err(), Spoiled::Replayed);
}

#[test]
fn of_two_signatures_neither_is_good_alone_afterwards() {
    let replay = Replay::new(NOW);
    let (first, second) = (proof(1, NOW, "a"), proof(1, NOW.plus(1), "b"));
    let mut both = first.clone();
    both.further.push(second.clone());
    let claim = replay.claim(&both, NOW).unwrap();
    for again in [&first, &second, &both] {
        assert_eq!(replay.claim(again, NOW).unwrap_err(), Spoiled::Replayed);
    }
    replay.release(&claim);
    assert!(replay.claim(&second, NOW).is_ok());
    assert_eq!(replay.claim(&both, NOW).unwrap_err(), Spoiled::Replayed);
    assert!(replay.claim(&first, NOW).is_ok(), "a refused request left a mark");
}

#[test]
fn it_is_remembered_for_as_long_as_it_could_be_fresh() {
    let replay = Replay::new(NOW);
    let ahead = proof(1, NOW.plus(SKEW_SECONDS), "a");
    replay.claim(&ahead, NOW).unwrap();
    let edge = NOW.plus(2 * SKEW_SECONDS);
    assert_eq!(replay.claim(&ahead, edge).unwrap_err(), Spoiled::Replayed);
    assert_eq!(replay.claim(&ahead, ahead.created.plus(KEPT_SECONDS)).unwrap_err(), Spoiled::Replayed);
    assert!(replay.claim(&ahead, ahead.created.plus(KEPT_SECONDS + 1)).is_ok());
}

#[test]
fn what_was_made_before_the_start_is_refused() {
    let replay = Replay::new(NOW);
    assert_eq!(replay.claim(&proof(1, NOW.plus(-1), "a"), NOW).unwrap_err(), Spoiled::TooEarly);
    assert!(replay.claim(&proof(1, NOW, "a"), NOW).is_ok());
}

#[test]
fn a_full_cache_refuses_and_forgets_nothing() {
    let replay = Replay::bounded(NOW, 2);
    replay.claim(&proof(1, NOW, "a"), NOW).unwrap();
    let claim = replay.claim(&proof(1, NOW, "b"), NOW).unwrap();
    assert_eq!(replay.claim(&proof(1, NOW, "c"), NOW).unwrap_err(), Spoiled::Full);
    assert_eq!(replay.claim(&proof(1, NOW, "a"), NOW).unwrap_err(), Spoiled::Replayed);
    replay.release(&claim);
    replay.release(&claim);
    assert!(replay.claim(&proof(1, NOW, "c"), NOW).is_ok());
    assert_eq!(replay.claim(&proof(1, NOW, "d"), NOW).unwrap_err(), Spoiled::Full);
    let later = NOW.plus(KEPT_SECONDS + 1);
    assert!(replay.claim(&proof(1, later, "d"), later).is_ok());
}

#[test]
fn of_many_at_once_one_is_first() {
    let replay = Replay::new(NOW);
    let proof = proof(1, NOW, "a");
    let won = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| replay.claim(&proof, NOW).is_ok())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|won| *won).count()
    });
    assert_eq!(won, 1);
}
